//! Rows of `run_events` and what the API shows of them.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::super::{model::EvidenceLevel, service::ReviewDecision, verdict::Verdict};
use crate::{
    base::{
        Error, Result,
        id::{AccountId, RunId},
    },
    db::schema::run_events,
};

/// A row to be written.
#[derive(Insertable)]
#[diesel(table_name = run_events)]
pub(in super::super) struct NewRunEvent<'a> {
    pub run_id: RunId,
    pub at: DateTime<Utc>,
    pub kind: &'a str,
    pub account_id: Option<AccountId>,
    pub user_id: Option<AccountId>,
    pub details: &'a serde_json::Value,
}

/// One row.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = run_events, check_for_backend(diesel::pg::Pg))]
pub struct RunEvent {
    pub sequence: i64,
    pub at: DateTime<Utc>,
    pub kind: String,
    pub account_id: Option<AccountId>,
    pub user_id: Option<AccountId>,
    pub details: serde_json::Value,
}

/// What happened to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunEventKind {
    Uploaded,
    /// What the checks said of it.
    Verdict,
    /// The rules changed, and the stored bytes were judged again.
    VerdictRecomputed,
    /// An operator decided.
    Reviewed,
    /// An operator took a person's decision back: it waits again.
    Reopened,
    /// The uploader's one answer.
    Answered,
    /// The server's own measurement agreed.
    Remeasured,
    /// It disagreed: the badge is withdrawn.
    Disputed,
    /// A later measurement agreed.
    DisputeEnded,
    /// It disagreed twice: a person has to look.
    SentToReview,
    /// The machine is no longer what was measured.
    Stale,
    /// What the run left open of its machine was heard of for the first time.
    BaseLine,
}

/// One event of a run's history. Members that its kind does not have are null.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunEventView {
    pub at: DateTime<Utc>,
    pub kind: RunEventKind,
    /// Handle of the uploader or the operator; null: the service itself.
    pub by: Option<String>,
    pub decision: Option<ReviewDecision>,
    /// The verdict before.
    pub was: Option<Verdict>,
    /// The verdict from then on.
    pub verdict: Option<Verdict>,
    /// The evidence level from then on.
    pub evidence_level: Option<EvidenceLevel>,
    pub rules_version: Option<String>,
    /// Codes of the findings that were more than notes.
    pub findings: Option<Vec<String>>,
    /// Why, in words.
    pub reason: Option<String>,
    /// The uploader's answer.
    pub text: Option<String>,
    /// Until then a stale run still backs a listing.
    pub until: Option<DateTime<Utc>>,
    /// The newer run of the machine that was measured.
    pub other_run: Option<RunId>,
}

/// What `details` may hold.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Details {
    decision: Option<ReviewDecision>,
    was: Option<Verdict>,
    verdict: Option<Verdict>,
    evidence_level: Option<EvidenceLevel>,
    rules_version: Option<String>,
    findings: Option<Vec<String>>,
    reason: Option<String>,
    text: Option<String>,
    until: Option<DateTime<Utc>>,
    other_run: Option<RunId>,
}

impl RunEventView {
    /// # Errors
    /// `internal` for a row that this program cannot read.
    pub fn of(row: RunEvent, by: Option<String>) -> Result<Self> {
        let kind = serde_json::from_value(serde_json::Value::String(row.kind)).map_err(Error::internal)?;
        let details: Details = serde_json::from_value(row.details).map_err(Error::internal)?;
        Ok(Self {
            at: row.at,
            kind,
            by,
            decision: details.decision,
            was: details.was,
            verdict: details.verdict,
            evidence_level: details.evidence_level,
            rules_version: details.rules_version,
            findings: details.findings,
            reason: details.reason,
            text: details.text,
            until: details.until,
            other_run: details.other_run,
        })
    }
}
