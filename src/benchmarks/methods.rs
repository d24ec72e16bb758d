//! What is measured and by which rules, for whoever wants to know before they believe a number. All of it is what the code itself goes by.

use serde::Serialize;
use utoipa::ToSchema;

use super::{
    assess::TOOL_NAME,
    boards::Metric,
    checks::{CHECKS, CheckInfo, EXACT_SINCE, KNOWN_MINOR_MAX, Severity},
    document::CELLS_MAX,
    matrix::CellStatus,
    remeasure::FASTER_FACTOR_MAX,
    verdict::RULES_VERSION,
};
use crate::{
    ctx::Ctx,
    web::body::{PACKED_BYTES_MAX, RUN_BYTES_MAX},
};

/// The methods of this deployment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BenchmarkMethods)]
pub struct Methods {
    /// Of all checks together.
    pub rules_version: &'static str,
    pub suites: Vec<Suite>,
    /// Programs whose documents are read.
    pub tools: Vec<KnownTool>,
    pub documents: DocumentLimits,
    pub checks: Vec<MethodCheck>,
    pub remeasuring: Remeasuring,
    pub leaderboard: LeaderboardMethod,
    /// How long a verified run may back a listing.
    pub evidence_valid_days: i64,
    /// How long a stale one still does.
    pub stale_valid_days: i64,
}

/// One part of a run.
#[derive(Debug, Serialize, ToSchema)]
pub struct Suite {
    pub id: &'static str,
    pub title: &'static str,
    pub measures: &'static str,
    pub definitions: Vec<Definition>,
    /// What a cell of it can be.
    pub cell_statuses: Vec<CellStatus>,
}

/// What a field of a run is.
#[derive(Debug, Serialize, ToSchema)]
pub struct Definition {
    pub field: &'static str,
    pub definition: &'static str,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct KnownTool {
    pub name: &'static str,
    /// From this version on a broken exact relation is an error.
    pub exact_since: String,
    /// The newest minor version whose documents have been seen; newer ones are read, and what they break is a suspicion.
    pub newest_known: String,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct DocumentLimits {
    pub packed_bytes_max: usize,
    pub unpacked_bytes_max: usize,
    pub cells_max: usize,
}

/// A check, and how much it can count.
#[derive(Debug, Serialize, ToSchema)]
pub struct MethodCheck {
    #[serde(flatten)]
    pub check: CheckInfo,
    pub severities: Vec<SeverityByVersion>,
}

/// The worst that a check says of documents of these versions. It says less where its assumption does not hold.
#[derive(Debug, Serialize, ToSchema)]
pub struct SeverityByVersion {
    pub versions: String,
    pub severity_max: Severity,
}

/// Shares by which a machine may be slower than its matrix when the server measures it itself.
#[derive(Debug, Serialize, ToSchema)]
pub struct Remeasuring {
    pub time_between_tokens_percent: u32,
    pub total_percent: u32,
    pub cold_ttft_percent: u32,
    /// Of the streams, that must answer right what they were asked about their prompt.
    pub right_answers_percent: u32,
    /// A machine that is so many times faster than its matrix is another.
    pub faster_factor_max: f64,
}

/// How a row of the leaderboard comes about.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeaderboardMethod {
    pub metrics: Vec<Metric>,
    /// What a row is one of.
    pub grouped_by: Vec<&'static str>,
    pub accepted: &'static str,
    pub figure: &'static str,
    pub ranks: &'static str,
}

pub fn methods(ctx: &Ctx) -> Methods {
    let tunables = &ctx.config.tunables;
    Methods {
        rules_version: RULES_VERSION,
        suites: suites(),
        tools: tools(),
        documents: DocumentLimits { packed_bytes_max: PACKED_BYTES_MAX, unpacked_bytes_max: RUN_BYTES_MAX, cells_max: CELLS_MAX },
        checks: CHECKS.iter().map(|check| MethodCheck { check: *check, severities: severities(check) }).collect(),
        remeasuring: Remeasuring {
            time_between_tokens_percent: tunables.remeasure_time_between_tokens_percent,
            total_percent: tunables.remeasure_total_percent,
            cold_ttft_percent: tunables.remeasure_cold_ttft_percent,
            right_answers_percent: tunables.remeasure_right_answers_percent,
            faster_factor_max: FASTER_FACTOR_MAX,
        },
        leaderboard: LeaderboardMethod {
            metrics: Metric::ALL.to_vec(),
            grouped_by: vec!["model", "quantization", "kv_cache_dtype", "context_tokens", "concurrency", "hardware", "gpu_count"],
            accepted: "Verified public runs that no re-measurement has put in doubt and that say what they are of. Stale ones count and are marked. \
                       Quick profiles and reports never count.",
            figure: "A person counts once, with the median of the runs they uploaded; the figure is the median of the people. Of two in the middle the \
                     weaker one stands, so that the row's run has exactly this figure. Every figure is computed from cells.",
            ranks: "A rank is shared by equal figures of the same quantization, KV cache type, context and concurrency only.",
        },
        evidence_valid_days: tunables.evidence_valid_days,
        stale_valid_days: tunables.stale_valid_days,
    }
}

fn version((major, minor, patch): (u32, u32, u32)) -> String {
    format!("{major}.{minor}.{patch}")
}

fn tools() -> Vec<KnownTool> {
    let known = |name| KnownTool { name, exact_since: version(EXACT_SINCE), newest_known: format!("0.{KNOWN_MINOR_MAX}") };
    vec![known(TOOL_NAME), known("rigmark-measure")]
}

fn severities(check: &CheckInfo) -> Vec<SeverityByVersion> {
    let (exact, other) = (check.weight.severity_max(true), check.weight.severity_max(false));
    if exact == other {
        return vec![SeverityByVersion { versions: "all".to_owned(), severity_max: exact }];
    }
    vec![
        SeverityByVersion { versions: format!("{} to 0.{KNOWN_MINOR_MAX}", version(EXACT_SINCE)), severity_max: exact },
        SeverityByVersion { versions: "others".to_owned(), severity_max: other },
    ]
}

const STATUSES: [CellStatus; 7] = [
    CellStatus::Valid,
    CellStatus::Queued,
    CellStatus::OverCapacity,
    CellStatus::Error,
    CellStatus::Loop,
    CellStatus::Skipped,
    CellStatus::NotRun,
];

fn suites() -> Vec<Suite> {
    let define =
        |rows: &[(&'static str, &'static str)]| rows.iter().map(|(field, definition)| Definition { field, definition }).collect::<Vec<_>>();
    vec![
        Suite {
            id: "sustained_decode",
            title: "Sustained decode",
            measures: "Output tokens a second while a fixed number of requests of one context length are all being answered.",
            definitions: define(&[
                (
                    "total_tokens_per_second",
                    "Output tokens of all requests in the measured window, divided by the seconds to the last of them.",
                ),
                ("per_request_tokens_per_second", "The median over requests of one divided by the request's mean time between tokens."),
                ("ttft_ms", "The median time to the first token; the beginning of the prompt may be in the engine's cache."),
                ("itl_ms", "The median over requests of the mean time between tokens."),
                ("average_active_requests", "The mean of the engine's own count of running requests."),
            ]),
            cell_statuses: STATUSES.to_vec(),
        },
        Suite {
            id: "prefill",
            title: "Prefill",
            measures: "How fast one prompt that the engine has not seen is read.",
            definitions: define(&[
                ("prompt_tokens", "As the engine counted them."),
                ("tokens_per_second", "Prompt tokens divided by the time to the first token."),
                ("ttft_ms", "The time to the first token."),
            ]),
            cell_statuses: vec![CellStatus::Valid],
        },
        Suite {
            id: "burst",
            title: "Burst",
            measures: "A fixed number of whole requests sent at once, from the first request to the last answer. Shown with its run, not ranked.",
            definitions: define(&[
                ("total_tokens_per_second", "Output tokens of all requests, divided by the seconds from first to last."),
                ("completed_requests", "Requests that were answered to their end."),
            ]),
            cell_statuses: STATUSES.to_vec(),
        },
    ]
}
