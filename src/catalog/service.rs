//! Use cases of the catalog: the mirror at start, single rows, pages, and names as input.
//!
//! The rows do not change while the process lives, so nothing here but [`load`] touches the database.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::NAME_CHARS_MAX;
use super::data::Catalog;
use super::hardware_names::HardwareMatch;
use super::model::{HardwareModel, Model, ModelRepo};
use super::model_names::ModelMatch;
use super::queries;
use super::search::{HardwareFilter, ModelFilter};
use super::tokens;
use crate::base::{Code, Error, FieldError, Result};
use crate::db::Conn;

/// One row a name could mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Candidate {
    pub slug: String,
    pub name: String,
}

/// One model as the API shows it by itself.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelDetail {
    #[serde(flatten)]
    pub model: Model,
    /// Published and quantised weights, those of other checkpoints of the same network among them.
    pub repositories: Vec<ModelRepo>,
}

/// How many rows of the mirror were new or had changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loaded {
    pub hardware_models: usize,
    pub models: usize,
}

/// Brings the tables up to the rows of this program; to be called at every start, after the migrations. Safe to repeat and to run in two
/// processes at once. Rows that this program no longer has stay, since others may refer to them.
///
/// # Errors
/// `internal` when the embedded files cannot be read; the database's own faults.
pub async fn load(conn: &mut Conn) -> Result<Loaded> {
    let catalog = Catalog::checked()?;
    let hardware_models = queries::hardware_models_upsert(conn, catalog.hardware_models()).await?;
    let models = queries::models_upsert(conn, catalog.models()).await?;
    tracing::info!(hardware_models, models, "catalog loaded");
    Ok(Loaded { hardware_models, models })
}

/// # Errors
/// `not_found`.
pub fn hardware_fetch(slug: &str) -> Result<&'static HardwareModel> {
    Catalog::builtin().hardware(slug).ok_or_else(|| Error::not_found("hardware model"))
}

/// # Errors
/// `not_found`.
pub fn model_fetch(slug: &str) -> Result<&'static Model> {
    Catalog::builtin().model(slug).ok_or_else(|| Error::not_found("model"))
}

/// A model with the repositories that hold its weights.
///
/// # Errors
/// `not_found`.
pub fn model_detail(slug: &str) -> Result<ModelDetail> {
    let model = model_fetch(slug)?.clone();
    let repositories = Catalog::builtin().model_repos().iter().filter(|repo| repo.model_slug == model.slug).cloned().collect();
    Ok(ModelDetail { model, repositories })
}

/// The one row a name means. A `vram_gib` of 0 is what tools print for unified memory, and says nothing.
///
/// # Errors
/// `ambiguous_name` with `candidates`, `not_found`, or `invalid_input` for a `vram_gib` that is no size.
pub fn hardware_resolve(name: &str, vram_gib: Option<f64>) -> Result<&'static HardwareModel> {
    if vram_gib.is_some_and(|gib| !gib.is_finite() || gib < 0.0) {
        return Err(Error::invalid("?vram_gib", "out_of_range", "The size must be 0 or more."));
    }
    match Catalog::builtin().resolve_hardware(name, vram_gib) {
        HardwareMatch::One(row) => Ok(row),
        HardwareMatch::Ambiguous(rows) => Err(ambiguous(hardware_candidates(&rows))),
        HardwareMatch::Unknown => Err(Error::not_found("hardware model")),
    }
}

/// The row that a field of a request body means; `pointer` is the field.
///
/// # Errors
/// `invalid_input` with `ambiguous_name` (and `candidates`) or `unknown_hardware` for the field.
pub fn hardware_input(pointer: &str, name: &str, memory_gib: Option<f64>) -> Result<&'static HardwareModel> {
    match Catalog::builtin().resolve_hardware(name, memory_gib) {
        HardwareMatch::One(row) => Ok(row),
        HardwareMatch::Ambiguous(rows) => Err(ambiguous_input(pointer, hardware_candidates(&rows))),
        HardwareMatch::Unknown => Err(Error::invalid(pointer, "unknown_hardware", "No hardware model has this name.")),
    }
}

/// The model that a field of a request body means; `pointer` is the field.
///
/// # Errors
/// `invalid_input` with `ambiguous_name` (and `candidates`) or `unknown_model` for the field.
pub fn model_input(pointer: &str, name_or_hf_id: &str) -> Result<&'static Model> {
    match Catalog::builtin().resolve_model(name_or_hf_id) {
        ModelMatch::One(row) => Ok(row),
        ModelMatch::Ambiguous(rows) => Err(ambiguous_input(pointer, model_candidates(&rows))),
        ModelMatch::Unknown => Err(Error::invalid(pointer, "unknown_model", "No model has this name or repository.")),
    }
}

/// At most `rows_max` hardware models of a list after the row `after`.
///
/// # Errors
/// `invalid_input` for a `q` that is too long; `invalid_cursor` when `after` is no row of this list.
pub fn hardware_list(filter: HardwareFilter<'_>, after: Option<&str>, rows_max: usize) -> Result<Vec<&'static HardwareModel>> {
    check_q(filter.q)?;
    after_row(Catalog::builtin().search_hardware(filter), |row| &row.slug, after, rows_max)
}

/// At most `rows_max` models of a list after the row `after`.
///
/// # Errors
/// As [`hardware_list`].
pub fn model_list(filter: ModelFilter<'_>, after: Option<&str>, rows_max: usize) -> Result<Vec<&'static Model>> {
    check_q(filter.q)?;
    after_row(Catalog::builtin().search_models(filter), |row| &row.slug, after, rows_max)
}

fn check_q(q: &str) -> Result<()> {
    if tokens::too_long(q) {
        return Err(Error::invalid("?q", "too_long", format!("At most {NAME_CHARS_MAX} characters.")));
    }
    Ok(())
}

fn after_row<T>(rows: Vec<&'static T>, slug: impl Fn(&T) -> &str, after: Option<&str>, rows_max: usize) -> Result<Vec<&'static T>> {
    let start = match after.map(|after| rows.iter().position(|row| slug(row) == after)) {
        None => 0,
        Some(Some(position)) => position + 1,
        // A row of another version of the program.
        Some(None) => return Err(Error::new(Code::InvalidCursor, "The list has no such row; start again without the cursor.")),
    };
    Ok(rows.into_iter().skip(start).take(rows_max).collect())
}

fn hardware_candidates(rows: &[&HardwareModel]) -> Vec<Candidate> {
    rows.iter().map(|row| Candidate { slug: row.slug.clone(), name: row.name.clone() }).collect()
}

fn model_candidates(rows: &[&Model]) -> Vec<Candidate> {
    rows.iter().map(|row| Candidate { slug: row.slug.clone(), name: row.name.clone() }).collect()
}

fn ambiguous(candidates: Vec<Candidate>) -> Error {
    Error::new(Code::AmbiguousName, among(&candidates)).with_extra("candidates", json!(candidates))
}

fn ambiguous_input(pointer: &str, candidates: Vec<Candidate>) -> Error {
    let detail = among(&candidates);
    Error::invalid_fields(vec![FieldError::new(pointer, Code::AmbiguousName.as_str(), detail)]).with_extra("candidates", json!(candidates))
}

fn among(candidates: &[Candidate]) -> String {
    let names: Vec<&str> = candidates.iter().map(|candidate| candidate.name.as_str()).collect();
    format!("The name could mean {}.", names.join(", "))
}
