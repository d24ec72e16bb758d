//! Listings with the machine, account and run beside them.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types as sql};
use diesel_async::RunQueryDsl;

use super::super::{
    gate::{MachineFacts, RunFacts},
    model::{Listing, ListingDetails, MachineRow, RunRow},
};
use crate::{
    base::{
        Result,
        id::{AccountId, ListingId, MachineId, RunId},
    },
    benchmarks::model::EvidenceLevel,
    db::Conn,
};

/// What [`DetailsRow`] reads, given `l`, `m`, `a`, `r` and `rs`.
pub(super) const COLUMNS: &str = "l.*, a.handle AS by_handle,
    m.hardware_slug AS machine_hardware_slug, m.gpu_count AS machine_gpu_count, m.vram_gib AS machine_vram_gib, m.kind AS machine_kind,
    m.cpu AS machine_cpu, m.ram_gib AS machine_ram_gib, m.region AS machine_region, m.last_seen_at AS machine_last_seen_at,
    m.probe_failed_at AS machine_probe_failed_at, m.start_failures AS machine_start_failures,
    m.endpoint_url IS NOT NULL AS machine_has_endpoint, m.deleted_at AS machine_deleted_at,
    m.hardware_changed_at AS machine_hardware_changed_at, m.endpoint_changed_at AS machine_endpoint_changed_at";

pub(super) const RUN_COLUMNS: &str = "r.id AS backing_id, r.status AS run_status, r.evidence_level AS run_level,
    r.visibility AS run_visibility, r.hardware_slug AS run_hardware_slug, r.gpu_count AS run_gpu_count,
    coalesce(r.model_slug, r.model_name) AS run_model, r.quantization AS run_quantization, r.created_at AS run_created_at,
    r.expires_at AS run_expires_at, r.stale_at AS run_stale_at, r.stale_reason AS run_stale_reason, r.title AS run_title,
    rs.stale_until AS run_stale_until, rs.disputed_at AS run_disputed_at, rs.remeasured_at AS run_remeasured_at,
    r.summary AS run_summary, r.engine_name AS run_engine_name";

pub(super) const JOINS: &str = "JOIN machines m ON m.id = l.machine_id JOIN accounts a ON a.id = l.account_id
    LEFT JOIN runs r ON r.id = l.run_id AND r.machine_id = l.machine_id LEFT JOIN run_standings rs ON rs.run_id = r.id";

#[derive(QueryableByName)]
pub(super) struct DetailsRow {
    #[diesel(embed)]
    listing: Listing,
    #[diesel(embed)]
    machine: MachineColumns,
    #[diesel(embed)]
    run: RunColumns,
    #[diesel(sql_type = sql::Text)]
    by_handle: String,
}

#[derive(QueryableByName)]
struct MachineColumns {
    #[diesel(sql_type = sql::Text)]
    machine_hardware_slug: String,
    #[diesel(sql_type = sql::Integer)]
    machine_gpu_count: i32,
    #[diesel(sql_type = sql::Nullable<sql::Double>)]
    machine_vram_gib: Option<f64>,
    #[diesel(sql_type = sql::Text)]
    machine_kind: String,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    machine_cpu: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Double>)]
    machine_ram_gib: Option<f64>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    machine_region: Option<String>,
    #[diesel(sql_type = sql::Bool)]
    machine_has_endpoint: bool,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    machine_last_seen_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    machine_probe_failed_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Integer)]
    machine_start_failures: i32,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    machine_deleted_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    machine_hardware_changed_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    machine_endpoint_changed_at: Option<DateTime<Utc>>,
}

/// All null when no run stands beside the listing.
#[derive(QueryableByName)]
struct RunColumns {
    #[diesel(sql_type = sql::Nullable<sql::Uuid>)]
    backing_id: Option<RunId>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_status: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_level: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_visibility: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_hardware_slug: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Integer>)]
    run_gpu_count: Option<i32>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_model: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_quantization: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    run_created_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    run_expires_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    run_stale_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_stale_reason: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    run_stale_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    run_disputed_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Timestamptz>)]
    run_remeasured_at: Option<DateTime<Utc>>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_title: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_summary: Option<String>,
    #[diesel(sql_type = sql::Nullable<sql::Text>)]
    run_engine_name: Option<String>,
}

/// A word that this program does not know is the weakest level.
fn level(text: &str) -> EvidenceLevel {
    use EvidenceLevel::{Challenged, Document, Remeasured, Reported};
    [Document, Challenged, Remeasured].into_iter().find(|level| level.as_str() == text).unwrap_or(Reported)
}

impl RunColumns {
    fn row(self) -> Option<RunRow> {
        let facts = RunFacts {
            id: self.backing_id?,
            status: self.run_status?,
            level: level(&self.run_level?),
            is_public: self.run_visibility? == "public",
            hardware_slug: self.run_hardware_slug,
            gpu_count: self.run_gpu_count,
            model: self.run_model?,
            quantization: self.run_quantization,
            created_at: self.run_created_at?,
            expires_at: self.run_expires_at?,
            is_stale: self.run_stale_at.is_some(),
            stale_reason: self.run_stale_reason,
            stale_until: self.run_stale_until,
            disputed_at: self.run_disputed_at,
            remeasured_at: self.run_remeasured_at,
        };
        Some(RunRow { facts, title: self.run_title?, summary: self.run_summary?, engine_name: self.run_engine_name })
    }
}

impl From<DetailsRow> for ListingDetails {
    fn from(row: DetailsRow) -> Self {
        let m = row.machine;
        Self {
            listing: row.listing,
            by: row.by_handle,
            run: row.run.row(),
            machine: MachineRow {
                facts: MachineFacts {
                    is_deleted: m.machine_deleted_at.is_some(),
                    hardware_slug: m.machine_hardware_slug,
                    gpu_count: m.machine_gpu_count,
                    hardware_changed_at: m.machine_hardware_changed_at,
                    endpoint_changed_at: m.machine_endpoint_changed_at,
                },
                vram_gib: m.machine_vram_gib,
                kind: m.machine_kind,
                cpu: m.machine_cpu,
                ram_gib: m.machine_ram_gib,
                region: m.machine_region,
                has_endpoint: m.machine_has_endpoint,
                last_seen_at: m.machine_last_seen_at,
                probe_failed_at: m.machine_probe_failed_at,
                start_failures: m.machine_start_failures,
            },
        }
    }
}

pub async fn listing_details(conn: &mut Conn, id: ListingId) -> Result<Option<ListingDetails>> {
    let text = format!("SELECT {COLUMNS}, {RUN_COLUMNS} FROM listings l {JOINS} WHERE l.id = $1");
    let row: Option<DetailsRow> = diesel::sql_query(text).bind::<sql::Uuid, _>(id).get_result(conn).await.optional()?;
    Ok(row.map(ListingDetails::from))
}

/// An account's own listings in every state, newest first.
pub async fn listing_list_own(conn: &mut Conn, account: AccountId, before: Option<ListingId>, limit: i64) -> Result<Vec<ListingDetails>> {
    let text = format!(
        "SELECT {COLUMNS}, {RUN_COLUMNS} FROM listings l {JOINS}
         WHERE l.account_id = $1 AND ($2 IS NULL OR l.id < $2) ORDER BY l.id DESC LIMIT $3"
    );
    let rows: Vec<DetailsRow> = diesel::sql_query(text)
        .bind::<sql::Uuid, _>(account)
        .bind::<sql::Nullable<sql::Uuid>, _>(before)
        .bind::<sql::BigInt, _>(limit)
        .load(conn)
        .await?;
    Ok(rows.into_iter().map(ListingDetails::from).collect())
}

/// Runs bound to a machine, newest first. Older ones than the newest hundred have long been replaced.
pub async fn run_list_of_machine(conn: &mut Conn, machine: MachineId) -> Result<Vec<RunFacts>> {
    let text = format!(
        "SELECT {RUN_COLUMNS} FROM runs r LEFT JOIN run_standings rs ON rs.run_id = r.id
         WHERE r.machine_id = $1 ORDER BY r.created_at DESC, r.id DESC LIMIT 100"
    );
    let rows: Vec<RunColumns> = diesel::sql_query(text).bind::<sql::Uuid, _>(machine).load(conn).await?;
    Ok(rows.into_iter().filter_map(RunColumns::row).map(|row| row.facts).collect())
}
