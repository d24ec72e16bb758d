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
    db::{Bind, Conn, Statement, schema::listings},
};

/// What [`DetailsRow`] reads by position, given `l`, `m`, `a`, `r` and `rs`: [`DetailsSql`] without its last part.
pub(super) const COLUMNS: &str = "l.id, l.machine_id, l.account_id, l.state, l.off_market_reason, l.price_per_hour_micros, l.min_hours,
    l.max_hours, l.available_until, l.description, l.run_id, l.valid_until, l.is_taken, l.is_silent, l.hardware_slug, l.gpu_count, l.vram_gib,
    l.region, l.model, l.quantization, l.published_at, l.created_at, l.updated_at, l.closed_at, l.version, a.handle,
    m.hardware_slug, m.gpu_count, m.vram_gib, m.kind, m.cpu, m.ram_gib, m.region, m.last_seen_at, m.probe_failed_at, m.start_failures,
    m.endpoint_url IS NOT NULL, m.deleted_at, m.hardware_changed_at, m.endpoint_changed_at";

/// What [`RunColumns`] reads by position: [`RunSql`].
pub(super) const RUN_COLUMNS: &str = "r.id, r.status, r.evidence_level, r.visibility, r.hardware_slug, r.gpu_count,
    coalesce(r.model_slug, r.model_name), r.quantization, r.created_at, r.expires_at, r.stale_at, r.stale_reason, rs.stale_until,
    rs.disputed_at, rs.remeasured_at, r.title, r.summary, r.engine_name";

pub(super) const JOINS: &str = "JOIN machines m ON m.id = l.machine_id JOIN accounts a ON a.id = l.account_id
    LEFT JOIN runs r ON r.id = l.run_id AND r.machine_id = l.machine_id LEFT JOIN run_standings rs ON rs.run_id = r.id";

type Instant = sql::Nullable<sql::Timestamptz>;
type Words = sql::Nullable<sql::Text>;
type Number = sql::Nullable<sql::Double>;
type MachineSql = (
    sql::Text,
    sql::Integer,
    Number,
    sql::Text,
    Words,
    Number,
    Words,
    Instant,
    Instant,
    sql::Integer,
    sql::Bool,
    Instant,
    Instant,
    Instant,
);
type RunSql = (
    sql::Nullable<sql::Uuid>,
    Words,
    Words,
    Words,
    Words,
    sql::Nullable<sql::Integer>,
    Words,
    Words,
    Instant,
    Instant,
    Instant,
    Words,
    Instant,
    Instant,
    Instant,
    Words,
    Words,
    Words,
);
pub(super) type DetailsSql = (listings::SqlType, sql::Text, MachineSql, RunSql);

#[derive(Queryable)]
pub(super) struct DetailsRow {
    listing: Listing,
    by_handle: String,
    machine: MachineColumns,
    run: RunColumns,
}

#[derive(Queryable)]
pub(super) struct MachineColumns {
    hardware_slug: String,
    gpu_count: i32,
    vram_gib: Option<f64>,
    kind: String,
    cpu: Option<String>,
    ram_gib: Option<f64>,
    region: Option<String>,
    last_seen_at: Option<DateTime<Utc>>,
    probe_failed_at: Option<DateTime<Utc>>,
    start_failures: i32,
    has_endpoint: bool,
    deleted_at: Option<DateTime<Utc>>,
    hardware_changed_at: Option<DateTime<Utc>>,
    endpoint_changed_at: Option<DateTime<Utc>>,
}

/// All null when no run stands beside the listing.
#[derive(Queryable)]
pub(super) struct RunColumns {
    id: Option<RunId>,
    status: Option<String>,
    level: Option<String>,
    visibility: Option<String>,
    hardware_slug: Option<String>,
    gpu_count: Option<i32>,
    model: Option<String>,
    quantization: Option<String>,
    created_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    stale_at: Option<DateTime<Utc>>,
    stale_reason: Option<String>,
    stale_until: Option<DateTime<Utc>>,
    disputed_at: Option<DateTime<Utc>>,
    remeasured_at: Option<DateTime<Utc>>,
    title: Option<String>,
    summary: Option<String>,
    engine_name: Option<String>,
}

/// A word that this program does not know is the weakest level.
fn level(text: &str) -> EvidenceLevel {
    use EvidenceLevel::{Challenged, Document, Remeasured, Reported};
    [Document, Challenged, Remeasured].into_iter().find(|level| level.as_str() == text).unwrap_or(Reported)
}

impl RunColumns {
    fn row(self) -> Option<RunRow> {
        let facts = RunFacts {
            id: self.id?,
            status: self.status?,
            level: level(&self.level?),
            is_public: self.visibility? == "public",
            hardware_slug: self.hardware_slug,
            gpu_count: self.gpu_count,
            model: self.model?,
            quantization: self.quantization,
            created_at: self.created_at?,
            expires_at: self.expires_at?,
            is_stale: self.stale_at.is_some(),
            stale_reason: self.stale_reason,
            stale_until: self.stale_until,
            disputed_at: self.disputed_at,
            remeasured_at: self.remeasured_at,
        };
        Some(RunRow { facts, title: self.title?, summary: self.summary?, engine_name: self.engine_name })
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
                    is_deleted: m.deleted_at.is_some(),
                    hardware_slug: m.hardware_slug,
                    gpu_count: m.gpu_count,
                    hardware_changed_at: m.hardware_changed_at,
                    endpoint_changed_at: m.endpoint_changed_at,
                },
                vram_gib: m.vram_gib,
                kind: m.kind,
                cpu: m.cpu,
                ram_gib: m.ram_gib,
                region: m.region,
                has_endpoint: m.has_endpoint,
                last_seen_at: m.last_seen_at,
                probe_failed_at: m.probe_failed_at,
                start_failures: m.start_failures,
            },
        }
    }
}

pub async fn listing_details(conn: &mut Conn, id: ListingId) -> Result<Option<ListingDetails>> {
    let text = format!("SELECT {COLUMNS}, {RUN_COLUMNS} FROM listings l {JOINS} WHERE l.id = $1");
    let statement = Statement::<DetailsSql>::kept(text, vec![Bind::Id(id.uuid())]);
    let row: Option<DetailsRow> = statement.get_result(conn).await.optional()?;
    Ok(row.map(ListingDetails::from))
}

/// An account's own listings in every state, newest first.
pub async fn listing_list_own(conn: &mut Conn, account: AccountId, before: Option<ListingId>, limit: i64) -> Result<Vec<ListingDetails>> {
    let mut binds = vec![Bind::Id(account.uuid()), Bind::BigInt(limit)];
    let mut older = "";
    if let Some(before) = before {
        binds.push(Bind::Id(before.uuid()));
        older = "AND l.id < $3";
    }
    let text =
        format!("SELECT {COLUMNS}, {RUN_COLUMNS} FROM listings l {JOINS} WHERE l.account_id = $1 {older} ORDER BY l.id DESC LIMIT $2");
    let rows: Vec<DetailsRow> = Statement::<DetailsSql>::kept(text, binds).load(conn).await?;
    Ok(rows.into_iter().map(ListingDetails::from).collect())
}

/// Runs bound to a machine, newest first. Older ones than the newest hundred have long been replaced.
pub async fn run_list_of_machine(conn: &mut Conn, machine: MachineId) -> Result<Vec<RunFacts>> {
    let text = format!(
        "SELECT {RUN_COLUMNS} FROM runs r LEFT JOIN run_standings rs ON rs.run_id = r.id
         WHERE r.machine_id = $1 ORDER BY r.created_at DESC, r.id DESC LIMIT 100"
    );
    let rows: Vec<RunColumns> = Statement::<RunSql>::kept(text, vec![Bind::Id(machine.uuid())]).load(conn).await?;
    Ok(rows.into_iter().filter_map(RunColumns::row).map(|row| row.facts).collect())
}
