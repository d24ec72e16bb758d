//! What a listing needs to be on the market (evidence.md 0). Pure: the service gathers the facts, and all unmet conditions come back at once.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    base::{id::RunId, shape},
    benchmarks::model::EvidenceLevel,
    config::ListingEvidence,
};

/// A condition that is not met.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Unmet {
    pub code: UnmetCode,
    pub detail: String,
}

macro_rules! codes {
    ($($name:ident $text:literal;)*) => {
        /// The closed list of conditions; also the reasons for which the system takes a listing off the market.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum UnmetCode { $($name),* }
        impl UnmetCode {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $text),* } }
        }
    };
}

impl utoipa::PartialSchema for UnmetCode {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        shape::closed(Self::ALL.iter().map(|code| code.as_str()), "A condition of publishing.")
    }
}
impl ToSchema for UnmetCode {}

codes! {
    MachineDeleted "machine_deleted";
    AccountClosed "account_closed";
    PriceMissing "price_missing";
    AvailabilityEnded "availability_ended";
    EndpointMissing "endpoint_missing";
    EndpointUnreachable "endpoint_unreachable";
    EngineSimulated "engine_simulated";
    RunMissing "run_missing";
    RunRejected "run_rejected";
    RunInReview "run_in_review";
    RemeasureDisagreed "remeasure_disagreed";
    HardwareChanged "hardware_changed";
    HardwareDiffers "hardware_differs";
    EndpointChanged "endpoint_changed";
    RunStale "run_stale";
    RunExpired "run_expired";
    RunUnlisted "run_unlisted";
    EvidenceTooLow "evidence_too_low";
}

impl Serialize for UnmetCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

fn unmet(code: UnmetCode, detail: impl Into<String>) -> Unmet {
    Unmet { code, detail: detail.into() }
}

/// The evidence that this deployment wants.
pub const fn wanted_level(config: ListingEvidence) -> EvidenceLevel {
    match config {
        ListingEvidence::Challenged => EvidenceLevel::Challenged,
        ListingEvidence::Remeasured => EvidenceLevel::Remeasured,
    }
}

/// What the machine is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineFacts {
    pub is_deleted: bool,
    pub hardware_slug: String,
    pub gpu_count: i32,
    pub hardware_changed_at: Option<DateTime<Utc>>,
    pub endpoint_changed_at: Option<DateTime<Utc>>,
}

/// What the machine's engine said when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Engine {
    Missing,
    /// With the reason, as the host may read it.
    Unreachable(String),
    Reachable {
        is_simulated: bool,
    },
    /// Sweeps look at evidence only.
    NotAsked,
}

/// A run bound to the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFacts {
    pub id: RunId,
    pub status: String,
    pub level: EvidenceLevel,
    pub is_public: bool,
    pub hardware_slug: Option<String>,
    pub gpu_count: Option<i32>,
    /// Slug of the catalog's model, or the name it was measured under.
    pub model: String,
    pub quantization: Option<String>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub stale_reason: Option<String>,
    pub is_stale: bool,
    /// Until then a stale run still backs a listing that it backs already; none: not at all.
    pub stale_until: Option<DateTime<Utc>>,
    /// When the server's own measurement disagreed with it, unless a later one agreed.
    pub disputed_at: Option<DateTime<Utc>>,
    /// When the server's own measurement last agreed with it.
    pub remeasured_at: Option<DateTime<Utc>>,
}

impl RunFacts {
    /// Whether it is stale, but its host has some days yet to answer a new challenge.
    pub fn is_in_grace(&self, now: DateTime<Utc>) -> bool {
        self.is_stale && self.stale_until.is_some_and(|until| until > now)
    }

    /// When it stops backing a listing by itself.
    pub fn backs_until(&self) -> DateTime<Utc> {
        self.stale_until.filter(|_| self.is_stale).map_or(self.expires_at, |until| until.min(self.expires_at))
    }
}

/// What this deployment asks of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub now: DateTime<Utc>,
    pub wanted: EvidenceLevel,
    pub is_sandbox: bool,
    /// A listing is to be put on the market: a stale run, which keeps one there for some days, does not bring one there.
    pub is_publishing: bool,
}

/// Everything the gate looks at.
#[derive(Debug, Clone)]
pub struct Facts {
    pub is_account_closed: bool,
    pub machine: MachineFacts,
    pub engine: Engine,
    pub has_price: bool,
    pub available_until: Option<DateTime<Utc>>,
    /// Newest first.
    pub runs: Vec<RunFacts>,
}

/// The newest run that backs the listing, or every condition that is not met. When no run will do, the conditions are those of the run that
/// misses the fewest.
///
/// # Errors
/// At least one unmet condition.
pub fn check<'a>(facts: &'a Facts, rules: &Rules) -> Result<&'a RunFacts, Vec<Unmet>> {
    let mut missing = listing_conditions(facts, rules);
    missing.extend(engine_conditions(&facts.engine, rules));
    let mut closest: Option<Vec<Unmet>> = None;
    for run in &facts.runs {
        let faults = run_conditions(run, &facts.machine, rules);
        if faults.is_empty() {
            return if missing.is_empty() { Ok(run) } else { Err(missing) };
        }
        if closest.as_ref().is_none_or(|best| faults.len() < best.len()) {
            closest = Some(faults);
        }
    }
    let none = || vec![unmet(UnmetCode::RunMissing, "No run of this machine has been uploaded. Ask for a challenge and answer it.")];
    missing.extend(closest.unwrap_or_else(none));
    Err(missing)
}

fn listing_conditions(facts: &Facts, rules: &Rules) -> Vec<Unmet> {
    let mut missing = Vec::new();
    if facts.machine.is_deleted {
        missing.push(unmet(UnmetCode::MachineDeleted, "The machine was deleted."));
    }
    if facts.is_account_closed {
        missing.push(unmet(UnmetCode::AccountClosed, "The account is closed."));
    }
    if !facts.has_price {
        missing.push(unmet(UnmetCode::PriceMissing, "Set price_per_hour."));
    }
    if let Some(until) = facts.available_until.filter(|until| *until <= rules.now) {
        missing.push(unmet(UnmetCode::AvailabilityEnded, format!("available_until was {}.", instant(until))));
    }
    missing
}

fn engine_conditions(engine: &Engine, rules: &Rules) -> Option<Unmet> {
    match engine {
        Engine::Missing => Some(unmet(UnmetCode::EndpointMissing, "The machine has no endpoint: renters could not reach it.")),
        Engine::Unreachable(why) => Some(unmet(UnmetCode::EndpointUnreachable, why.clone())),
        Engine::Reachable { is_simulated: true } if !rules.is_sandbox => {
            Some(unmet(UnmetCode::EngineSimulated, "The engine is a simulated one; those are for the sandbox."))
        }
        Engine::Reachable { .. } | Engine::NotAsked => None,
    }
}

const REMEASURE_HINT: &str = " Have the machine measured by Rigmark itself: POST /api/v1/machines/{id}/remeasure.";

/// Why the run does not back a listing of the machine; empty when it does. The first is the one to name as the reason.
pub fn run_conditions(run: &RunFacts, machine: &MachineFacts, rules: &Rules) -> Vec<Unmet> {
    let mut missing = Vec::new();
    let mut add = |code, detail: String| missing.push(unmet(code, detail));
    match run.status.as_str() {
        "verified" => {}
        "rejected" => add(UnmetCode::RunRejected, format!("Run {} was rejected; its checks say why.", run.id)),
        _ => add(UnmetCode::RunInReview, format!("Run {} waits for review.", run.id)),
    }
    if let Some(at) = run.disputed_at {
        let detail = format!("Rigmark's own measurement at {} does not fit run {}; the run shows its samples.", instant(at), run.id);
        add(UnmetCode::RemeasureDisagreed, detail);
    }
    if let Some(at) = machine.hardware_changed_at.filter(|at| *at > run.created_at) {
        add(UnmetCode::HardwareChanged, format!("The machine's hardware changed at {}, after run {}.", instant(at), run.id));
    }
    let differs = run.hardware_slug.as_ref().is_some_and(|slug| *slug != machine.hardware_slug)
        || run.gpu_count.is_some_and(|count| count != machine.gpu_count);
    if differs {
        let measured = format!("{} x {}", run.gpu_count.unwrap_or(1), run.hardware_slug.as_deref().unwrap_or("unknown"));
        let stated = format!("{} x {}", machine.gpu_count, machine.hardware_slug);
        add(UnmetCode::HardwareDiffers, format!("Run {} was measured on {measured}, the machine has {stated}.", run.id));
    }
    // A document says nothing about which engine was registered; re-measuring does.
    let engine_matters = rules.wanted >= EvidenceLevel::Remeasured;
    let known_since = run.remeasured_at.map_or(run.created_at, |at| at.max(run.created_at));
    if let Some(at) = machine.endpoint_changed_at.filter(|at| engine_matters && *at > known_since) {
        let detail = format!("The machine's endpoint changed at {}, after run {}.{REMEASURE_HINT}", instant(at), run.id);
        add(UnmetCode::EndpointChanged, detail);
    }
    if run.is_stale && (rules.is_publishing || !run.is_in_grace(rules.now)) {
        let why = run.stale_reason.as_deref().unwrap_or("something it depends on changed");
        add(UnmetCode::RunStale, format!("Run {} is stale: {why}.", run.id));
    }
    if run.expires_at <= rules.now {
        add(UnmetCode::RunExpired, format!("Run {} expired at {}.", run.id, instant(run.expires_at)));
    }
    if !run.is_public {
        add(UnmetCode::RunUnlisted, format!("Run {} is unlisted.", run.id));
    }
    if run.level < rules.wanted {
        let hint = if engine_matters { REMEASURE_HINT } else { "" };
        let (has, wanted) = (run.level.as_str(), rules.wanted.as_str());
        let detail = format!("Run {} has the evidence level {has}; a listing needs {wanted}.{hint}", run.id);
        add(UnmetCode::EvidenceTooLow, detail);
    }
    missing
}

fn instant(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}
