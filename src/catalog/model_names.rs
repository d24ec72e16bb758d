//! Which model a name, a slug or a repository id means. Pure, and never by substring.
//!
//! Case and punctuation do not count ("qwen3:32b" is Qwen3-32B). In order: a repository the catalog knows; a slug, a name, an alias or the
//! part of a known repository after the slash; and, for uploads by others, the name without the known endings of quantised weights, if what
//! is left is exactly one model's. Anything else is unknown: a fine-tune's numbers are not those of its base.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use regex::Regex;

use super::data::rows_at;
use super::model::{Model, ModelRepo};
use super::tokens;

/// What a model name means.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelMatch<'a> {
    One(&'a Model),
    /// At least two, in the catalog's order.
    Ambiguous(Vec<&'a Model>),
    Unknown,
}

impl<'a> ModelMatch<'a> {
    pub fn one(&self) -> Option<&'a Model> {
        match self {
            Self::One(row) => Some(row),
            Self::Ambiguous(_) | Self::Unknown => None,
        }
    }

    /// Every row the name can mean.
    pub fn candidates(self) -> Vec<&'a Model> {
        match self {
            Self::One(row) => vec![row],
            Self::Ambiguous(rows) => rows,
            Self::Unknown => Vec::new(),
        }
    }
}

const HOSTS: &[&str] = &["https://huggingface.co/", "https://hf.co/", "huggingface.co/", "hf.co/"];

/// One ending that says how weights are stored, after [`simple`]. A pattern that does not compile would strip nothing; a test holds it.
static QUANTIZED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let llama_cpp = r"(?:ud-)?i?q\d(?:-(?:k|0|1|nl|xs|xxs|s|m))?(?:-(?:s|m|l|xl|xxl))?";
    let formats = "awq|gptq|gguf|ggml|exl2|exl3|mlx|bnb|hqq|autoround|aqlm|compressed-tensors|imatrix|i1|qat|quantized";
    let types = r"[2-8]bit|[2-8]-bit|\d(?:-\d+)?bpw|int[48]|fp[48]|nvfp4|mxfp[48]|bf16|fp16|f16|fp32|f32|w\d+a\d+|g(?:32|64|128)|dynamic";
    Regex::new(&format!("^(.+?)-(?:{llama_cpp}|{formats}|{types})$")).ok()
});

#[derive(Debug, Default)]
pub(super) struct ModelNames {
    /// `owner/name` to a row.
    repos: HashMap<String, usize>,
    /// Slugs, names, aliases and the names of known repositories.
    names: HashMap<String, BTreeSet<usize>>,
    /// The same without endings of quantised weights.
    bases: HashMap<String, BTreeSet<usize>>,
}

impl ModelNames {
    pub(super) fn new(models: &[Model], repos: &[ModelRepo], models_by_slug: &HashMap<String, usize>) -> Self {
        let mut names = Self::default();
        for (index, model) in models.iter().enumerate() {
            for text in [&model.slug, &model.hf_id, &model.name].into_iter().chain(&model.aliases) {
                names.learn(index, text);
            }
        }
        for repo in repos {
            if let Some(index) = models_by_slug.get(&repo.model_slug) {
                names.learn(*index, &repo.repo);
            }
        }
        names
    }

    fn learn(&mut self, index: usize, text: &str) {
        let folded = tokens::fold(text);
        if let Some((owner, name)) = folded.split_once('/') {
            self.repos.entry(repo_key(owner, name)).or_insert(index);
            self.learn_name(index, simple(name));
        }
        // With a slash this is owner and name in one, as some uploaders call their copies ("Qwen_Qwen3-32B-GGUF").
        self.learn_name(index, simple(&folded));
    }

    fn learn_name(&mut self, index: usize, name: String) {
        self.bases.entry(base(&name).to_owned()).or_default().insert(index);
        self.names.entry(name).or_default().insert(index);
    }

    pub(super) fn resolve<'a>(&self, models: &'a [Model], text: &str) -> ModelMatch<'a> {
        if tokens::too_long(text) {
            return ModelMatch::Unknown;
        }
        let folded = tokens::fold(text.trim());
        let path = HOSTS.iter().find_map(|host| folded.strip_prefix(host)).unwrap_or(&folded).trim_end_matches('/');
        let (owner, name) = path.split_once('/').map_or((None, path), |(owner, name)| (Some(owner), name));
        if name.contains('/') {
            return ModelMatch::Unknown;
        }
        let known = owner.and_then(|owner| self.repos.get(&repo_key(owner, name)));
        if let Some(row) = known.and_then(|index| models.get(*index)) {
            return ModelMatch::One(row);
        }
        let name = simple(name);
        let named = self.names.get(&name).map(|found| rows_at(models, &found.iter().copied().collect::<HashSet<_>>()));
        match named.as_deref() {
            Some([row]) => ModelMatch::One(row),
            Some([]) | None => self.based_on(models, &name).map_or(ModelMatch::Unknown, ModelMatch::One),
            Some(several) => ModelMatch::Ambiguous(several.to_vec()),
        }
    }

    fn based_on<'a>(&self, models: &'a [Model], name: &str) -> Option<&'a Model> {
        let base = base(name);
        let found = self.names.get(base).or_else(|| self.bases.get(base))?;
        let only = found.first().filter(|_| found.len() == 1)?;
        models.get(*only)
    }
}

fn repo_key(owner: &str, name: &str) -> String {
    format!("{}/{}", simple(owner), simple(name))
}

/// Letters and digits, with one hyphen wherever anything else stood between them.
fn simple(folded: &str) -> String {
    folded.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// `name` without the endings that say how the weights are stored.
fn base(name: &str) -> &str {
    let Some(ending) = QUANTIZED.as_ref() else { return name };
    let mut rest = name;
    while let Some(shorter) = ending.captures(rest).and_then(|found| found.get(1)) {
        rest = shorter.as_str();
    }
    rest
}
