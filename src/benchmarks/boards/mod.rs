//! Leaderboards: which ranking a request asks for, and the rank of each row.
//!
//! A row is a series (model, quantization, KV cache type, hardware, number of GPUs) at one context and concurrency, with the median of what was
//! measured of it. Invariants: only accepted runs count (verified, public, in no dispute, no quick profile); a person counts once, with the
//! median of the runs they uploaded, however many and for whatever accounts; of two figures in the middle the weaker one stands, so that every
//! figure is one that the row's run has; rows that differ in quantization, KV cache type, context or concurrency never share a rank; reports never count. What stands in the tables is derived
//! by `leaderboard_refresh` (migrations) from runs and their cells, in the transaction that changes a run: [`run_changed`].
//!
//! Locks: a run's row before its series; several series in the order of their ids.

pub mod api;
pub mod model;
pub(super) mod queries;

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

pub use model::{
    BestFigure, HardwareWithRuns, LeaderboardOffer, LeaderboardRow, LeaderboardRun, Measured, ModelPage, ModelWithRuns, PublisherPage,
    PublisherView, ReportCount,
};

use super::{
    model::EvidenceLevel,
    quantization::{Quantization, kv_cache_name},
};
use crate::{
    base::{
        Result,
        faults::Faults,
        id::{ListingId, RunId},
        shape::ContextText,
        units::{CONCURRENCY_MAX, CONTEXT_TOKENS_MAX, parse_context},
    },
    catalog::{self, Catalog, ModelMatch},
    db::Tx,
    web::Limit,
};

/// To be called in every transaction that inserts a run, or changes its verdict, level, visibility, dispute, staleness, what it is said to be
/// of, or its cells; after the change. The leaderboard then has it at the commit.
///
/// # Errors
/// The database's own faults.
pub async fn run_changed(tx: &mut Tx<'_>, run: RunId) -> Result<()> {
    queries::run_changed(tx, run).await
}

/// What a ranking is by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LeaderboardMetric)]
pub enum Metric {
    /// Total tokens per second of one request; without context unless one is given.
    #[default]
    DecodeSingle,
    /// The best valid total over all concurrency levels of a context; without context unless one is given.
    DecodePeak,
    /// Total tokens per second at a context and concurrency.
    DecodeAt,
    /// Prompt tokens per second of a cold prompt at a context.
    PrefillAt,
    /// Milliseconds to the first token at a context and concurrency, as the decode cell has it: the prompt's beginning may be cached.
    TtftAt,
    /// Output tokens for one dollar at a context and concurrency: published listings with a measured badge.
    TokensPerDollar,
}

impl Metric {
    pub const ALL: [Self; 6] = [Self::DecodeSingle, Self::DecodePeak, Self::DecodeAt, Self::PrefillAt, Self::TtftAt, Self::TokensPerDollar];

    pub const fn unit(self) -> Unit {
        match self {
            Self::DecodeSingle | Self::DecodePeak | Self::DecodeAt | Self::PrefillAt => Unit::TokensPerSecond,
            Self::TtftAt => Unit::Milliseconds,
            Self::TokensPerDollar => Unit::TokensPerDollar,
        }
    }

    /// As `boards` has it; a single request is a concurrency of one.
    pub(super) const fn board(self) -> &'static str {
        match self {
            Self::DecodeSingle | Self::DecodeAt => "decode_at",
            Self::DecodePeak => "decode_peak",
            Self::PrefillAt => "prefill_at",
            Self::TtftAt => "ttft_at",
            Self::TokensPerDollar => "tokens_per_dollar",
        }
    }

    const fn needs_context(self) -> bool {
        !matches!(self, Self::DecodeSingle | Self::DecodePeak)
    }

    const fn needs_concurrency(self) -> bool {
        matches!(self, Self::DecodeAt | Self::TtftAt | Self::TokensPerDollar)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = LeaderboardUnit)]
pub enum Unit {
    TokensPerSecond,
    Milliseconds,
    TokensPerDollar,
}

/// Which ranking, and what it is narrowed to.
#[derive(Debug, Clone, Default, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LeaderboardQuery {
    /// Default: `decode_single`.
    #[serde(default)]
    #[param(inline)]
    pub metric: Metric,
    /// Tokens of context as measured: `16384` or `16k`. Every metric but `decode_single` and `decode_peak` needs it.
    #[param(value_type = Option<ContextText>)]
    pub context: Option<String>,
    /// Requests at once as measured, for `decode_at`, `ttft_at` and `tokens_per_dollar`.
    #[param(minimum = 1, maximum = 4096)]
    pub concurrency: Option<i32>,
    /// A model of the catalog by slug, name or repository, or the name under which runs were uploaded.
    pub model: Option<String>,
    /// Handle of the organization that publishes the model.
    pub publisher: Option<String>,
    /// A hardware model by slug or name.
    pub hardware: Option<String>,
    /// GPUs of the machine.
    #[param(minimum = 1)]
    pub gpu_count: Option<i32>,
    /// Any spelling of a quantization.
    pub quantization: Option<String>,
    /// As engines name it (`fp8`); `auto` where the launch command names none.
    pub kv_cache_dtype: Option<String>,
    /// Only runs of this engine count: `vllm`.
    pub engine: Option<String>,
    /// Only runs of at least this level count: `document`, `challenged` or `remeasured`.
    #[param(inline)]
    pub evidence: Option<EvidenceLevel>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// A checked question.
#[derive(Debug, Clone)]
pub struct Ranking {
    pub metric: Metric,
    pub context_tokens: i32,
    /// 0 where the metric has none.
    pub concurrency: i32,
    pub model: Option<String>,
    pub publisher: Option<String>,
    pub hardware_slug: Option<String>,
    pub gpu_count: Option<i32>,
    pub quantization: Option<String>,
    pub kv_cache_dtype: Option<String>,
    pub engine: Option<String>,
    pub least_evidence: EvidenceLevel,
}

impl Ranking {
    /// # Errors
    /// `invalid_input` with every fault (and `candidates` for a name that means several).
    pub fn check(query: &LeaderboardQuery) -> Result<Self> {
        let mut faults = Faults::default();
        let context_tokens = check_context(query, &mut faults);
        let concurrency = check_concurrency(query, &mut faults);
        let hardware_slug = query.hardware.as_deref().and_then(|name| faults.take(catalog_row("?hardware", name)));
        let model = query.model.as_deref().and_then(|name| faults.take(model_name("?model", name)));
        if query.gpu_count.is_some_and(|count| count < 1) {
            faults.add("?gpu_count", "out_of_range", "gpu_count is at least 1.");
        }
        if query.evidence == Some(EvidenceLevel::Reported) {
            faults.add("?evidence", "invalid_value", "Reports are not ranked; see GET /api/v1/reports.");
        }
        faults.finish()?;
        Ok(Self {
            metric: query.metric,
            context_tokens,
            concurrency,
            model,
            publisher: query.publisher.as_deref().map(|handle| handle.trim_start_matches('@').to_ascii_lowercase()),
            hardware_slug,
            gpu_count: query.gpu_count,
            quantization: query.quantization.as_deref().map(|text| Quantization::parse(text).as_str().to_owned()),
            kv_cache_dtype: query.kv_cache_dtype.as_deref().map(|text| kv_cache_name(text).unwrap_or_else(|| KV_AUTO.to_owned())),
            engine: query.engine.clone(),
            least_evidence: query.evidence.unwrap_or(EvidenceLevel::Document),
        })
    }
}

/// The KV cache type of runs whose launch command names none: the engine's own choice.
pub const KV_AUTO: &str = "auto";

fn catalog_row(pointer: &str, name: &str) -> Result<String> {
    catalog::service::hardware_input(pointer, name, None).map(|row| row.slug.clone())
}

/// The slug of a name that the catalog knows; another name finds the runs that were uploaded under it.
fn model_name(pointer: &str, name: &str) -> Result<String> {
    match Catalog::builtin().resolve_model(name) {
        ModelMatch::One(row) => Ok(row.slug.clone()),
        ModelMatch::Ambiguous(_) => catalog::service::model_input(pointer, name).map(|row| row.slug.clone()),
        ModelMatch::Unknown => Ok(name.trim().to_owned()),
    }
}

fn check_context(query: &LeaderboardQuery, faults: &mut Faults) -> i32 {
    let Some(text) = query.context.as_deref() else {
        if query.metric.needs_context() {
            faults.add("?context", "missing_field", "This metric is at a context: give one that was measured.");
        }
        return 0;
    };
    let tokens = parse_context(text);
    if tokens.is_none() {
        let detail = format!("A context is a number of tokens up to {CONTEXT_TOKENS_MAX}, such as 16384 or 16k.");
        faults.add("?context", "invalid_value", detail);
    }
    tokens.unwrap_or_default()
}

fn check_concurrency(query: &LeaderboardQuery, faults: &mut Faults) -> i32 {
    match (query.metric.needs_concurrency(), query.concurrency) {
        (true, None) => {
            faults.add("?concurrency", "missing_field", "This metric is at a concurrency: give one that was measured.");
            0
        }
        (true, Some(level)) => {
            if !(1..=CONCURRENCY_MAX).contains(&level) {
                faults.add("?concurrency", "out_of_range", format!("concurrency is from 1 to {CONCURRENCY_MAX}."));
            }
            level
        }
        (false, Some(_)) => {
            faults.add("?concurrency", "not_applicable", "This metric has no concurrency of its own.");
            0
        }
        (false, None) => i32::from(query.metric == Metric::DecodeSingle),
    }
}

/// Where a page begins: after this row. It counts the rows before, so that a page knows its ranks without reading them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Rows up to this one.
    pub number: i64,
    pub rank: i64,
    pub sort_value: f64,
    pub quantization: String,
    pub kv_cache_dtype: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listing: Option<ListingId>,
}

impl Place {
    /// The place of the row that comes after `before`: it shares a rank only with what it equals and can be compared with.
    #[must_use]
    pub fn after(before: Option<&Self>, sort_value: f64, quantization: &str, kv_cache_dtype: &str) -> Self {
        let number = before.map_or(0, |before| before.number) + 1;
        let tied = before.filter(|before| {
            before.sort_value.total_cmp(&sort_value).is_eq()
                && before.quantization == quantization
                && before.kv_cache_dtype == kv_cache_dtype
        });
        Self {
            number,
            rank: tied.map_or(number, |before| before.rank),
            sort_value,
            quantization: quantization.to_owned(),
            kv_cache_dtype: kv_cache_dtype.to_owned(),
            series: None,
            listing: None,
        }
    }
}
