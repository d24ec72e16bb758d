//! Rows of the market's table, what the API shows of listings and quotes, and what rentals take from them.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    gate::{MachineFacts, Rules, RunFacts, UnmetCode, run_conditions},
    state::ListingState,
    workload::{MeasuredCell, Workload},
};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, ListingId, MachineId, RunId},
        money::Currency,
        shape::RegionText,
    },
    benchmarks::model::EvidenceLevel,
    catalog::{Catalog, HardwareKind},
    db::schema::listings,
};

/// One row of `listings`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable)]
#[diesel(table_name = listings, check_for_backend(diesel::pg::Pg))]
pub struct Listing {
    pub id: ListingId,
    pub machine_id: MachineId,
    pub account_id: AccountId,
    pub state: String,
    pub off_market_reason: Option<String>,
    pub price_per_hour_micros: Money,
    pub min_hours: i32,
    pub max_hours: Option<i32>,
    pub available_until: Option<DateTime<Utc>>,
    pub description: String,
    pub run_id: Option<RunId>,
    pub valid_until: Option<DateTime<Utc>>,
    pub is_taken: bool,
    pub is_silent: bool,
    pub hardware_slug: String,
    pub gpu_count: i32,
    pub vram_gib: Option<f64>,
    pub region: Option<String>,
    pub model: Option<String>,
    pub quantization: Option<String>,
    pub published_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
    pub version: i32,
}

impl Listing {
    /// # Errors
    /// `internal` for a state that this program does not know.
    pub fn state(&self) -> Result<ListingState> {
        ListingState::parse(&self.state).ok_or_else(|| Error::internal("a listing's state that is not known"))
    }
}

/// What is written of a locked listing: everything that moves.
#[derive(AsChangeset)]
#[diesel(table_name = listings, treat_none_as_null = true)]
pub(super) struct ListingChange<'a> {
    pub state: &'a str,
    pub off_market_reason: Option<&'a str>,
    pub price_per_hour_micros: Money,
    pub min_hours: i32,
    pub max_hours: Option<i32>,
    pub available_until: Option<DateTime<Utc>>,
    pub description: &'a str,
    pub run_id: Option<RunId>,
    pub valid_until: Option<DateTime<Utc>>,
    pub is_silent: bool,
    pub hardware_slug: &'a str,
    pub gpu_count: i32,
    pub vram_gib: Option<f64>,
    pub region: Option<&'a str>,
    pub model: Option<&'a str>,
    pub quantization: Option<&'a str>,
    pub published_at: Option<DateTime<Utc>>,
    pub updated_at: DateTime<Utc>,
    pub closed_at: Option<DateTime<Utc>>,
    pub version: i32,
}

impl<'a> From<&'a Listing> for ListingChange<'a> {
    fn from(listing: &'a Listing) -> Self {
        Self {
            state: &listing.state,
            off_market_reason: listing.off_market_reason.as_deref(),
            price_per_hour_micros: listing.price_per_hour_micros,
            min_hours: listing.min_hours,
            max_hours: listing.max_hours,
            available_until: listing.available_until,
            description: &listing.description,
            run_id: listing.run_id,
            valid_until: listing.valid_until,
            is_silent: listing.is_silent,
            hardware_slug: &listing.hardware_slug,
            gpu_count: listing.gpu_count,
            vram_gib: listing.vram_gib,
            region: listing.region.as_deref(),
            model: listing.model.as_deref(),
            quantization: listing.quantization.as_deref(),
            published_at: listing.published_at,
            updated_at: listing.updated_at,
            closed_at: listing.closed_at,
            version: listing.version,
        }
    }
}

/// A listing with what is shown beside it, read from the rows themselves.
#[derive(Debug, Clone)]
pub(super) struct ListingDetails {
    pub listing: Listing,
    pub machine: MachineRow,
    pub by: String,
    /// The backing run, or the last one.
    pub run: Option<RunRow>,
}

#[derive(Debug, Clone)]
pub(super) struct MachineRow {
    pub facts: MachineFacts,
    pub vram_gib: Option<f64>,
    pub kind: String,
    pub cpu: Option<String>,
    pub ram_gib: Option<f64>,
    pub region: Option<String>,
    pub has_endpoint: bool,
    pub last_seen_at: Option<DateTime<Utc>>,
    pub probe_failed_at: Option<DateTime<Utc>>,
    pub start_failures: i32,
}

#[derive(Debug, Clone)]
pub(super) struct RunRow {
    pub facts: RunFacts,
    pub title: String,
    pub summary: String,
    pub engine_name: Option<String>,
}

/// Whether the evidence behind a listing still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Badge {
    Measured,
    Stale,
}

/// Why a listing cannot be rented now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unavailable {
    /// It is not on the market.
    NotPublished,
    /// What backs it no longer holds; it is about to leave the market.
    NotMeasured,
    /// Its machine has not answered for a quarter of an hour.
    MachineSilent,
    /// A rental has the machine or has reserved it.
    Taken,
}

/// The machine behind a listing. Prices are for all of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ListedMachine {
    pub id: MachineId,
    #[schema(example = "RTX 3090")]
    pub gpu: String,
    #[schema(example = "rtx-3090")]
    pub hardware: String,
    pub gpu_count: i32,
    /// Of one GPU, nominal, in GiB.
    pub vram_gib: Option<f64>,
    #[schema(value_type = HardwareKind)]
    pub kind: String,
    pub cpu: Option<String>,
    pub ram_gib: Option<f64>,
    #[schema(value_type = Option<RegionText>)]
    pub region: Option<String>,
    pub last_seen_at: Option<DateTime<Utc>>,
    /// Whether its last probe succeeded.
    pub is_answering: bool,
    /// Rentals that it failed to start.
    pub start_failures: i32,
}

/// The run behind a badge.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BackingRun {
    pub id: RunId,
    pub title: String,
    pub summary: String,
    /// Slug of the catalog's model, or the name it was measured under.
    pub model: String,
    pub quantization: Option<String>,
    pub engine: Option<String>,
    #[schema(value_type = EvidenceLevel)]
    pub evidence_level: String,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    /// What has changed since it was measured.
    pub stale_reason: Option<String>,
    /// Until then it backs the listing nevertheless.
    pub stale_until: Option<DateTime<Utc>>,
    /// When Rigmark's own measurement last agreed with it.
    pub remeasured_at: Option<DateTime<Utc>>,
}

/// The measured cell that answers a workload: the lightest valid one that is at least as heavy as asked.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct WorkloadMatch {
    pub run_id: RunId,
    pub cell: MatchedCell,
    /// Total of the cell ÷ its concurrency.
    pub tokens_per_second_per_user: f64,
    /// Measured with a warm cache.
    pub ttft_ms: Option<f64>,
    /// Of a prompt never seen before, from the prefill rows.
    pub cold_ttft_ms: Option<f64>,
    /// Price per hour × 10^6 ÷ (speed per user × users asked × 3600), half-even at six decimals.
    pub price_per_million_output_tokens: Option<Money>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct MatchedCell {
    pub context_tokens: i32,
    pub concurrency: i32,
    pub total_tokens_per_second: f64,
}

impl WorkloadMatch {
    pub(super) fn new(run_id: RunId, cell: &MeasuredCell, price_per_hour: Money, workload: &Workload) -> Self {
        Self {
            run_id,
            cell: MatchedCell {
                context_tokens: cell.context_tokens,
                concurrency: cell.concurrency,
                total_tokens_per_second: cell.total_tokens_per_second,
            },
            tokens_per_second_per_user: cell.tokens_per_second_per_user(),
            ttft_ms: cell.ttft_ms,
            cold_ttft_ms: cell.cold_ttft_ms,
            price_per_million_output_tokens: cell.price_per_million_output_tokens(price_per_hour, workload.concurrency),
        }
    }
}

/// A listing as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ListingView {
    pub id: ListingId,
    pub state: ListingState,
    /// Why the system took it off the market; one of the conditions of publishing.
    #[schema(value_type = Option<UnmetCode>)]
    pub off_market_reason: Option<String>,
    /// Null while no run has backed it.
    pub badge: Option<Badge>,
    /// Whether it can be rented now: published, its machine there, and no rental has the machine now or has reserved it.
    pub available: bool,
    pub unavailable_because: Option<Unavailable>,
    #[schema(example = "@ada")]
    pub by: String,
    pub machine: ListedMachine,
    /// For the whole machine.
    pub price_per_hour: Money,
    pub currency: Currency,
    /// Whole hours billed at least; 0 is no minimum.
    pub min_hours: i32,
    pub max_hours: Option<i32>,
    pub available_until: Option<DateTime<Utc>>,
    pub description: String,
    pub run: Option<BackingRun>,
    /// With a workload only.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub matched: Option<WorkloadMatch>,
    pub published_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Goes up by one with every change by the owner.
    pub version: i32,
}

impl ListingView {
    pub(super) fn new(details: ListingDetails, matched: Option<WorkloadMatch>, rules: &Rules) -> Result<Self> {
        let ListingDetails { listing, machine, by, run } = details;
        let state = listing.state()?;
        let holds = run.as_ref().map(|run| run_conditions(&run.facts, &machine.facts, rules).is_empty());
        let badge = run.as_ref().zip(holds).map(|(run, holds)| match holds && !run.facts.is_stale {
            true => Badge::Measured,
            false => Badge::Stale,
        });
        let is_valid = listing.valid_until.is_some_and(|until| until > rules.now) && holds == Some(true);
        let unavailable_because = match state {
            ListingState::Draft | ListingState::Paused | ListingState::OffMarket => Some(Unavailable::NotPublished),
            ListingState::Published if !is_valid => Some(Unavailable::NotMeasured),
            ListingState::Published if listing.is_silent || !machine.has_endpoint => Some(Unavailable::MachineSilent),
            ListingState::Published if listing.is_taken => Some(Unavailable::Taken),
            ListingState::Published => None,
        };
        Ok(Self {
            available: unavailable_because.is_none(),
            unavailable_because,
            id: listing.id,
            state,
            off_market_reason: listing.off_market_reason,
            badge,
            by: format!("@{by}"),
            machine: listed_machine(listing.machine_id, machine),
            price_per_hour: listing.price_per_hour_micros,
            currency: listing.price_per_hour_micros.currency(),
            min_hours: listing.min_hours,
            max_hours: listing.max_hours,
            available_until: listing.available_until,
            description: listing.description,
            run: run.map(backing_run),
            matched,
            published_at: listing.published_at,
            created_at: listing.created_at,
            updated_at: listing.updated_at,
            version: listing.version,
        })
    }
}

fn listed_machine(id: MachineId, machine: MachineRow) -> ListedMachine {
    let slug = machine.facts.hardware_slug;
    ListedMachine {
        id,
        gpu: Catalog::builtin().hardware(&slug).map_or_else(|| slug.clone(), |row| row.name.clone()),
        hardware: slug,
        gpu_count: machine.facts.gpu_count,
        vram_gib: machine.vram_gib,
        kind: machine.kind,
        cpu: machine.cpu,
        ram_gib: machine.ram_gib,
        region: machine.region,
        is_answering: machine.last_seen_at.is_some() && machine.probe_failed_at.is_none(),
        last_seen_at: machine.last_seen_at,
        start_failures: machine.start_failures,
    }
}

fn backing_run(run: RunRow) -> BackingRun {
    BackingRun {
        id: run.facts.id,
        title: run.title,
        summary: run.summary,
        model: run.facts.model,
        quantization: run.facts.quantization,
        engine: run.engine_name,
        evidence_level: run.facts.level.as_str().to_owned(),
        created_at: run.facts.created_at,
        expires_at: run.facts.expires_at,
        stale_reason: run.facts.stale_reason,
        stale_until: run.facts.stale_until,
        remeasured_at: run.facts.remeasured_at,
    }
}

/// A signed price.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QuoteView {
    /// To be sent back as `quote` when renting.
    pub quote: String,
    pub listing_id: ListingId,
    /// For the whole machine.
    pub price_per_hour: Money,
    pub currency: Currency,
    pub min_hours: i32,
    pub max_hours: Option<i32>,
    /// As asked.
    pub hours: Option<i32>,
    /// What the hours asked for cost.
    pub total: Option<Money>,
    /// Until then it can be rented at this price, whatever the host changes.
    pub expires_at: DateTime<Utc>,
}

/// What a quote promises.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuoteTerms {
    pub listing_id: ListingId,
    pub price_per_hour: Money,
    pub min_hours: i32,
    pub max_hours: Option<i32>,
    pub hours: Option<i32>,
    pub expires_at: DateTime<Utc>,
}

/// What a rental takes from a listing whose row it has locked.
#[derive(Debug, Clone)]
pub struct ListingTerms {
    pub listing_id: ListingId,
    pub machine_id: MachineId,
    pub host_account_id: AccountId,
    pub price_per_hour: Money,
    pub min_hours: i32,
    pub max_hours: Option<i32>,
    pub available_until: Option<DateTime<Utc>>,
    pub run_id: Option<RunId>,
    /// Of the backing run: slug of the catalog's model, or the name it was measured under.
    pub model: Option<String>,
    pub quantization: Option<String>,
}

impl ListingTerms {
    /// The same listing at a quote's terms.
    #[must_use]
    pub fn at_quote(self, quote: &QuoteTerms) -> Self {
        Self { price_per_hour: quote.price_per_hour, min_hours: quote.min_hours, max_hours: quote.max_hours, ..self }
    }
}
