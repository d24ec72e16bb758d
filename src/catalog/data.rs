//! The embedded rows, parsed once, with their indexes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use serde::de::DeserializeOwned;

use super::hardware_names::{HardwareMatch, HardwareNames};
use super::model::{HardwareKind, HardwareModel, Model, ModelRepo, Publisher};
use super::model_names::{ModelMatch, ModelNames};
use super::search::SearchIndex;
use crate::base::{Error, Result};

const HARDWARE_CSV: &str = include_str!("../../data/gpus.csv");
const MODELS_CSV: &str = include_str!("../../data/models.csv");
const REPOS_CSV: &str = include_str!("../../data/model_repos.csv");

static BUILTIN: LazyLock<Result<Catalog, String>> = LazyLock::new(|| Catalog::parse(HARDWARE_CSV, MODELS_CSV, REPOS_CSV));
static EMPTY: LazyLock<Catalog> = LazyLock::new(Catalog::default);

/// All rows of one set of CSV files. Rows keep the order of the files.
#[derive(Debug, Default)]
pub struct Catalog {
    hardware: Vec<HardwareModel>,
    models: Vec<Model>,
    repos: Vec<ModelRepo>,
    publishers: Vec<Publisher>,
    hardware_by_slug: HashMap<String, usize>,
    models_by_slug: HashMap<String, usize>,
    repos_by_id: HashMap<String, usize>,
    hardware_names: HardwareNames,
    model_names: ModelNames,
    pub(super) hardware_search: SearchIndex,
    pub(super) model_search: SearchIndex,
}

impl Catalog {
    /// The rows the binary was built with. Empty if they do not parse, which [`Catalog::checked`] reports at start.
    pub fn builtin() -> &'static Self {
        BUILTIN.as_ref().unwrap_or_else(|_| &EMPTY)
    }

    /// The rows the binary was built with, or why they cannot be read; to be asked once at start.
    pub fn checked() -> Result<&'static Self> {
        BUILTIN.as_ref().map_err(|fault| Error::internal(format!("the embedded catalog cannot be read: {fault}")))
    }

    /// Parses and indexes three CSV files of the shapes in `data/README.md`.
    ///
    /// # Errors
    /// A text naming the file and the fault: a field of the wrong type, a doubled slug, or a repository of no model.
    pub fn parse(hardware_csv: &str, models_csv: &str, repos_csv: &str) -> Result<Self, String> {
        let mut hardware: Vec<HardwareModel> = rows("gpus.csv", hardware_csv)?;
        for row in &mut hardware {
            row.unified = matches!(row.kind, HardwareKind::UnifiedMemory | HardwareKind::IntegratedGpu);
            row.unofficial = row.slug.ends_with("-mod");
        }
        let models: Vec<Model> = rows("models.csv", models_csv)?;
        let repos: Vec<ModelRepo> = rows("model_repos.csv", repos_csv)?;
        let hardware_by_slug = index_unique("gpus.csv", hardware.iter().map(|row| row.slug.clone()))?;
        let models_by_slug = index_unique("models.csv", models.iter().map(|row| row.slug.clone()))?;
        let repos_by_id = index_unique("model_repos.csv", repos.iter().map(|row| row.repo.to_lowercase()))?;
        if let Some(orphan) = repos.iter().find(|row| !models_by_slug.contains_key(&row.model_slug)) {
            return Err(format!("model_repos.csv: {} belongs to no model", orphan.repo));
        }
        Ok(Self {
            hardware_names: HardwareNames::new(&hardware),
            model_names: ModelNames::new(&models, &repos, &models_by_slug),
            hardware_search: SearchIndex::new(hardware.iter().map(|row| (row.name.as_str(), hardware_texts(row)))),
            model_search: SearchIndex::new(models.iter().map(|row| (row.name.as_str(), model_texts(row)))),
            publishers: publishers(&models),
            hardware,
            models,
            repos,
            hardware_by_slug,
            models_by_slug,
            repos_by_id,
        })
    }

    pub fn hardware_models(&self) -> &[HardwareModel] {
        &self.hardware
    }

    pub fn models(&self) -> &[Model] {
        &self.models
    }

    pub fn model_repos(&self) -> &[ModelRepo] {
        &self.repos
    }

    /// Publishers in order of their slugs.
    pub fn publishers(&self) -> &[Publisher] {
        &self.publishers
    }

    /// The hardware model of exactly this slug.
    pub fn hardware(&self, slug: &str) -> Option<&HardwareModel> {
        self.hardware_by_slug.get(slug).and_then(|index| self.hardware.get(*index))
    }

    /// The model of exactly this slug.
    pub fn model(&self, slug: &str) -> Option<&Model> {
        self.models_by_slug.get(slug).and_then(|index| self.models.get(*index))
    }

    /// What is known of a repository's weights; `repo` in any case.
    pub fn model_repo(&self, repo: &str) -> Option<&ModelRepo> {
        self.repos_by_id.get(&repo.to_lowercase()).and_then(|index| self.repos.get(*index))
    }

    /// What a typed or printed hardware name means.
    ///
    /// `memory_gib` (nominal, or what a tool reports) chooses between rows of that name, and is ignored where it fits none of them or is
    /// not positive: ask [`HardwareModel::memory_fits_mib`] whether the answer has that memory. Rules: `hardware_names`.
    pub fn resolve_hardware(&self, name: &str, memory_gib: Option<f64>) -> HardwareMatch<'_> {
        self.hardware_names.resolve(&self.hardware, name, memory_gib)
    }

    /// What a model's name, slug or repository id means. Rules: `model_names`.
    pub fn resolve_model(&self, name_or_hf_id: &str) -> ModelMatch<'_> {
        self.model_names.resolve(&self.models, name_or_hf_id)
    }
}

fn hardware_texts(row: &HardwareModel) -> Vec<&str> {
    let mut texts = vec![row.slug.as_str(), row.name.as_str(), row.vendor.as_str(), row.architecture.as_str()];
    texts.extend(row.aliases.iter().map(String::as_str));
    texts
}

fn model_texts(row: &Model) -> Vec<&str> {
    let mut texts = vec![row.slug.as_str(), row.name.as_str(), row.publisher.as_str(), row.family.as_str(), row.hf_id.as_str()];
    texts.extend(row.aliases.iter().map(String::as_str));
    texts
}

fn rows<T: DeserializeOwned>(file: &str, text: &str) -> Result<Vec<T>, String> {
    let rows = csv::Reader::from_reader(text.as_bytes()).into_deserialize().collect::<Result<Vec<T>, _>>();
    rows.map_err(|fault| format!("{file}: {fault}"))
}

fn index_unique(file: &str, keys: impl Iterator<Item = String>) -> Result<HashMap<String, usize>, String> {
    let mut index = HashMap::new();
    for (position, key) in keys.enumerate() {
        if let Some(_earlier) = index.insert(key.clone(), position) {
            return Err(format!("{file}: {key} stands there twice"));
        }
    }
    Ok(index)
}

fn publishers(models: &[Model]) -> Vec<Publisher> {
    let mut counts = BTreeMap::new();
    for model in models {
        *counts.entry(model.publisher.as_str()).or_insert(0) += 1;
    }
    counts.into_iter().map(|(slug, model_count)| Publisher { slug: slug.to_owned(), model_count }).collect()
}

/// Rows at `indexes`, each once, in the order of the file.
pub(super) fn rows_at<'a, T>(rows: &'a [T], indexes: &HashSet<usize>) -> Vec<&'a T> {
    rows.iter().enumerate().filter(|(index, _)| indexes.contains(index)).map(|(_, row)| row).collect()
}
