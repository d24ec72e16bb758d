//! Use cases of the catalog: the mirror at start, single rows, pages, and names as input.
//!
//! The rows do not change while the process lives, so nothing here but [`load`] touches the database.

use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::data::Catalog;
use super::hardware_names::HardwareMatch;
use super::model::{HardwareModel, Model};
use super::model_names::ModelMatch;
use super::queries;
use super::search::{HardwareFilter, ModelFilter};
use crate::base::{Code, Error, FieldError, Result};
use crate::db::Conn;

/// One row a name could mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Candidate {
    pub slug: String,
    pub name: String,
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

/// The one row a name means.
///
/// # Errors
/// `ambiguous_name` with `candidates`, or `not_found`.
pub fn hardware_resolve(name: &str, memory_gib: Option<f64>) -> Result<&'static HardwareModel> {
    match Catalog::builtin().resolve_hardware(name, memory_gib) {
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

/// At most `limit` rows of a list after the row `after`, and the slug to go on from if there are more.
///
/// # Errors
/// `invalid_cursor` when `after` is no row of this list.
pub fn hardware_page(
    filter: HardwareFilter<'_>,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<&'static HardwareModel>, Option<&'static str>)> {
    page(Catalog::builtin().search_hardware(filter), |row| &row.slug, after, limit)
}

/// As [`hardware_page`].
///
/// # Errors
/// `invalid_cursor` when `after` is no row of this list.
pub fn model_page(filter: ModelFilter<'_>, after: Option<&str>, limit: usize) -> Result<(Vec<&'static Model>, Option<&'static str>)> {
    page(Catalog::builtin().search_models(filter), |row| &row.slug, after, limit)
}

fn page<T>(
    rows: Vec<&'static T>,
    slug: impl Fn(&'static T) -> &'static str,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<&'static T>, Option<&'static str>)> {
    let start = match after {
        None => 0,
        Some(after) => match rows.iter().position(|row| slug(row) == after) {
            Some(position) => position + 1,
            // A row of an older program that this one no longer has.
            None => return Err(Error::new(Code::InvalidCursor, "The list has no such row.")),
        },
    };
    let total = rows.len();
    let data: Vec<&T> = rows.into_iter().skip(start).take(limit).collect();
    let next = data.last().filter(|_| start + data.len() < total).map(|row| slug(row));
    Ok((data, next))
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
