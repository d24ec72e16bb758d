//! The mirror of the rows in PostgreSQL: written, never read from here. Other domains join on it.

use diesel::{BoolExpressionMethods, ExpressionMethods, Insertable, PgExpressionMethods, query_dsl::methods::FilterDsl, upsert::excluded};
use diesel_async::RunQueryDsl;

use super::model::{HardwareModel, Model};
use crate::base::{Error, Result};
use crate::db::{Conn, schema};

#[derive(Insertable)]
#[diesel(table_name = schema::hardware_models)]
struct HardwareRow<'a> {
    slug: &'a str,
    name: &'a str,
    vendor: &'a str,
    kind: &'a str,
    architecture: &'a str,
    memory_gib: Option<f64>,
    bandwidth_gb_s: Option<f64>,
    unified: bool,
}

#[derive(Insertable)]
#[diesel(table_name = schema::models)]
struct ModelRow<'a> {
    slug: &'a str,
    hf_id: &'a str,
    name: &'a str,
    publisher: &'a str,
    family: &'a str,
    kind: &'a str,
    total_params_b: f64,
    active_params_b: f64,
    max_context: i32,
}

/// Writes the rows in order of their slugs, so that two processes that start at once wait for each other instead of deadlocking. Returns how
/// many were new or had changed; the others are left untouched.
pub(super) async fn hardware_models_upsert(conn: &mut Conn, rows: &[HardwareModel]) -> Result<usize> {
    use schema::hardware_models::dsl;
    let mut rows: Vec<HardwareRow<'_>> = rows
        .iter()
        .map(|row| HardwareRow {
            slug: &row.slug,
            name: &row.name,
            vendor: &row.vendor,
            kind: row.kind.as_str(),
            architecture: &row.architecture,
            memory_gib: row.memory_gib,
            bandwidth_gb_s: row.bandwidth_gb_s,
            unified: row.unified,
        })
        .collect();
    rows.sort_unstable_by_key(|row| row.slug);
    let differs = dsl::name
        .is_distinct_from(excluded(dsl::name))
        .or(dsl::vendor.is_distinct_from(excluded(dsl::vendor)))
        .or(dsl::kind.is_distinct_from(excluded(dsl::kind)))
        .or(dsl::architecture.is_distinct_from(excluded(dsl::architecture)))
        .or(dsl::memory_gib.is_distinct_from(excluded(dsl::memory_gib)))
        .or(dsl::bandwidth_gb_s.is_distinct_from(excluded(dsl::bandwidth_gb_s)))
        .or(dsl::unified.is_distinct_from(excluded(dsl::unified)));
    let upsert = diesel::insert_into(dsl::hardware_models)
        .values(rows)
        .on_conflict(dsl::slug)
        .do_update()
        .set((
            dsl::name.eq(excluded(dsl::name)),
            dsl::vendor.eq(excluded(dsl::vendor)),
            dsl::kind.eq(excluded(dsl::kind)),
            dsl::architecture.eq(excluded(dsl::architecture)),
            dsl::memory_gib.eq(excluded(dsl::memory_gib)),
            dsl::bandwidth_gb_s.eq(excluded(dsl::bandwidth_gb_s)),
            dsl::unified.eq(excluded(dsl::unified)),
        ))
        .filter(differs);
    Ok(upsert.execute(conn).await?)
}

/// As [`hardware_models_upsert`].
pub(super) async fn models_upsert(conn: &mut Conn, rows: &[Model]) -> Result<usize> {
    use schema::models::dsl;
    let mut rows = rows.iter().map(model_row).collect::<Result<Vec<_>>>()?;
    rows.sort_unstable_by_key(|row| row.slug);
    let differs = dsl::hf_id
        .is_distinct_from(excluded(dsl::hf_id))
        .or(dsl::name.is_distinct_from(excluded(dsl::name)))
        .or(dsl::publisher.is_distinct_from(excluded(dsl::publisher)))
        .or(dsl::family.is_distinct_from(excluded(dsl::family)))
        .or(dsl::kind.is_distinct_from(excluded(dsl::kind)))
        .or(dsl::total_params_b.is_distinct_from(excluded(dsl::total_params_b)))
        .or(dsl::active_params_b.is_distinct_from(excluded(dsl::active_params_b)))
        .or(dsl::max_context.is_distinct_from(excluded(dsl::max_context)));
    let upsert = diesel::insert_into(dsl::models)
        .values(rows)
        .on_conflict(dsl::slug)
        .do_update()
        .set((
            dsl::hf_id.eq(excluded(dsl::hf_id)),
            dsl::name.eq(excluded(dsl::name)),
            dsl::publisher.eq(excluded(dsl::publisher)),
            dsl::family.eq(excluded(dsl::family)),
            dsl::kind.eq(excluded(dsl::kind)),
            dsl::total_params_b.eq(excluded(dsl::total_params_b)),
            dsl::active_params_b.eq(excluded(dsl::active_params_b)),
            dsl::max_context.eq(excluded(dsl::max_context)),
        ))
        .filter(differs);
    Ok(upsert.execute(conn).await?)
}

fn model_row(row: &Model) -> Result<ModelRow<'_>> {
    Ok(ModelRow {
        slug: &row.slug,
        hf_id: &row.hf_id,
        name: &row.name,
        publisher: &row.publisher,
        family: &row.family,
        kind: row.kind.as_str(),
        total_params_b: row.total_params_b,
        active_params_b: row.active_params_b,
        max_context: i32::try_from(row.max_context).map_err(Error::internal)?,
    })
}
