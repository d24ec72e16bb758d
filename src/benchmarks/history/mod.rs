//! What happened to a run: its public audit.
//!
//! Invariants: `run_events` is the one place that remembers an event of a run. `runs` and `run_standings` hold what is, `remeasurements` what
//! was measured, and identity's audit has none of it. An event is written in the transaction of its act and never changed; the table refuses.

pub mod model;
pub(super) mod queries;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    checks::{Finding, Severity},
    model::EvidenceLevel,
    service::ReviewDecision,
    verdict::Verdict,
};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, RunId},
    },
    db::Tx,
    identity::Caller,
};

/// What happened, with what anyone may know of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    Uploaded,
    /// The checks' first word. `findings` are the codes that are more than notes.
    Verdict {
        verdict: Verdict,
        rules_version: String,
        findings: Vec<String>,
    },
    /// The rules changed and the stored bytes were judged again; verdict or level are others.
    VerdictRecomputed {
        was: Verdict,
        verdict: Verdict,
        evidence_level: EvidenceLevel,
        rules_version: String,
        findings: Vec<String>,
    },
    /// An operator decided.
    Reviewed {
        decision: ReviewDecision,
        was: Verdict,
        verdict: Verdict,
        reason: String,
    },
    /// An operator took a person's decision back; the run waits again.
    Reopened {
        was: Verdict,
        reason: String,
    },
    /// The uploader's one answer.
    Answered {
        text: String,
    },
    /// The server's own measurement agreed.
    Remeasured,
    /// It disagreed: the badge is withdrawn. `other_run` is the run that was measured, when that is a newer one of the machine.
    Disputed {
        reason: Option<String>,
        other_run: Option<RunId>,
    },
    /// A later measurement agreed.
    DisputeEnded {
        other_run: Option<RunId>,
    },
    /// It disagreed twice: a person has to look.
    SentToReview {
        reason: Option<String>,
    },
    /// The machine is no longer what was measured.
    Stale {
        reason: String,
        until: DateTime<Utc>,
    },
    /// What the run left open of its machine was heard of for the first time: a change of it counts from now on.
    BaseLine {
        reason: String,
    },
}

/// Who did it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Doer {
    /// Whose handle is shown.
    account: Option<AccountId>,
    /// The person, who is not shown where the account is an organization.
    user: Option<AccountId>,
}

impl Doer {
    /// The program itself.
    pub const SYSTEM: Self = Self { account: None, user: None };

    /// Somebody for the account they act for.
    pub fn caller(caller: &Caller) -> Self {
        Self { account: Some(caller.account_id), user: Some(caller.user_id) }
    }

    /// An operator, who acts as a person whatever account the call names.
    pub fn operator(caller: &Caller) -> Self {
        Self { account: Some(caller.user_id), user: Some(caller.user_id) }
    }
}

/// Writes an event down in the transaction that does it.
///
/// # Errors
/// The database's own faults; a second `answered` violates the constraint `run_events_one_answer`.
pub async fn append(tx: &mut Tx<'_>, run: RunId, by: Doer, event: &Event, at: DateTime<Utc>) -> Result<()> {
    let mut details = serde_json::to_value(event).map_err(Error::internal)?;
    let kind = details.as_object_mut().and_then(|members| members.remove("kind"));
    let kind = kind.as_ref().and_then(serde_json::Value::as_str).ok_or_else(|| Error::internal("an event without a kind"))?;
    tracing::info!(target: "audit", action = kind, audit.target = %run, actor.user = by.user.map(tracing::field::display));
    let row = model::NewRunEvent { run_id: run, at, kind, account_id: by.account, user_id: by.user, details: &details };
    queries::run_event_insert(tx, &row).await
}

/// The codes that count for the verdict.
pub(super) fn counted(findings: &[Finding]) -> Vec<String> {
    findings.iter().filter(|finding| finding.severity != Severity::Note).map(|finding| finding.code.to_string()).collect()
}
