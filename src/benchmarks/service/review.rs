//! Review: an operator's decision on a run, and the uploader's answer.
//!
//! A person decides, and every act is in the run's history. What the checks rejected stays rejected: there is nothing to decide. A person's
//! decision stands until a person takes it back (`reopen`), which puts the run into the queue again; so no decision ever overwrites another.
//! Nobody decides on a run of their own account. Each act locks the run's row, so that of two operators at once the second learns what the
//! first decided.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    super::{
        history::{
            self, Doer, Event,
            model::{RunEvent, RunEventView},
            queries as events,
        },
        model::{Run, RunView},
        queries, remeasure,
        verdict::Verdict,
    },
    announce,
    history::views,
    read,
    remeasure::{run_changed, run_link},
};
use crate::{
    base::{Code, Error, Result, id::RunId},
    ctx::Ctx,
    db::{Conn, Tx},
    identity::{
        self, Caller,
        scope::{Need, Scope},
    },
};

const REASON_CHARS_MIN: usize = 3;
const REASON_CHARS_MAX: usize = 1_000;
const ANSWER_CHARS_MAX: usize = 2_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReviewDecision {
    Accept,
    Reject,
    /// Takes a person's decision back: the run waits for review again.
    Reopen,
}

/// A decision and why; the reason is public.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewRequest {
    pub decision: ReviewDecision,
    /// Public. 3 to 1000 characters.
    #[schema(min_length = 3, max_length = 1000)]
    pub reason: String,
}

/// Accepts or rejects a run that waits for review, rejects one that the checks verified, or takes a person's decision back. The same operator's
/// same decision again changes nothing.
///
/// # Errors
/// `not_found`; `conflict_of_interest`; `already_decided` with who, what and when; `invalid_state` where there is nothing to decide;
/// `invalid_input` without a reason.
pub async fn review(ctx: &Ctx, operator: &Caller, id: RunId, request: &ReviewRequest) -> Result<RunView> {
    let reason = bounded("/reason", &request.reason, REASON_CHARS_MIN, REASON_CHARS_MAX)?;
    ctx.db.tx("run_review", async |tx| decide(ctx, tx, operator, id, request.decision, &reason).await).await?;
    read::fetch(ctx, id).await
}

/// The text as it is kept ([`crate::base::text::prose`]).
fn bounded(pointer: &str, text: &str, min: usize, max: usize) -> Result<String> {
    let plain = crate::base::text::prose(text);
    if (min..=max).contains(&plain.chars().count()) {
        return Ok(plain);
    }
    Err(Error::invalid(pointer, "wrong_length", format!("It has {min} to {max} characters.")))
}

/// Whether the operator has a stake in the run: it is of an account of theirs, or they uploaded it and have left that account since.
pub(super) async fn is_own(conn: &mut Conn, operator: &Caller, run: &Run) -> Result<bool> {
    if identity::service::belongs_to(conn, operator.user_id, run.account_id).await? {
        return Ok(true);
    }
    Ok(events::run_uploader(conn, run.id).await? == Some(operator.user_id))
}

async fn decide(ctx: &Ctx, tx: &mut Tx<'_>, operator: &Caller, id: RunId, decision: ReviewDecision, reason: &str) -> Result<()> {
    let run = remeasure::queries::run_lock(tx, id).await?.ok_or_else(|| Error::not_found("run"))?;
    if is_own(tx, operator, &run).await? {
        return Err(Error::new(Code::ConflictOfInterest, "It is a run of your own account: another operator decides."));
    }
    let was = read::verdict(&run.status)?;
    let ruling = events::run_event_last_ruling(tx, id).await?;
    if ruling.as_ref().is_some_and(|ruling| is_repeated(ruling, operator, decision, reason)) {
        return Ok(());
    }
    let verdict = outcome(tx, was, ruling, decision).await?;
    // An answer to a challenge that a person accepted is as good as one that passed by itself.
    let level = if run.challenge_id.is_some() && verdict == Verdict::Verified { "challenged" } else { "document" };
    let now = ctx.business_now(tx).await?;
    let decided = (decision != ReviewDecision::Reopen).then_some((operator.user_id, reason, now));
    queries::run_review(tx, id, verdict.as_str(), level, decided).await?;
    let event = match decision {
        ReviewDecision::Reopen => Event::Reopened { was, reason: reason.to_owned() },
        _ => Event::Reviewed { decision, was, verdict, reason: reason.to_owned() },
    };
    history::append(tx, id, Doer::operator(operator), &event, now).await?;
    tell(ctx, tx, &run, decision, reason).await?;
    if verdict != was {
        announce::verdict(ctx, tx, id).await?;
    }
    run_changed(tx, id, ctx.clock.wall_now()).await
}

/// Whether the last ruling is this very act.
fn is_repeated(ruling: &RunEvent, operator: &Caller, decision: ReviewDecision, reason: &str) -> bool {
    ruling.user_id == Some(operator.user_id) && ruled(ruling) == Some(decision) && ruling.details["reason"] == reason
}

/// What a person decided, if the ruling is a person's.
fn ruled(ruling: &RunEvent) -> Option<ReviewDecision> {
    match ruling.kind.as_str() {
        "reopened" => Some(ReviewDecision::Reopen),
        "reviewed" => serde_json::from_value(ruling.details["decision"].clone()).ok(),
        _ => None,
    }
}

/// Whether it is a person's accepting or rejecting that stands.
pub(super) fn is_decided(ruling: Option<&RunEvent>) -> bool {
    ruling.and_then(ruled).is_some_and(|decision| decision != ReviewDecision::Reopen)
}

/// The verdict that the decision gives.
async fn outcome(conn: &mut Conn, was: Verdict, ruling: Option<RunEvent>, decision: ReviewDecision) -> Result<Verdict> {
    let invalid = |detail: &'static str| Err(Error::new(Code::InvalidState, detail));
    let by_person = is_decided(ruling.as_ref());
    match (decision, was, ruling) {
        (ReviewDecision::Accept, Verdict::NeedsReview, _) => Ok(Verdict::Verified),
        (ReviewDecision::Reject, Verdict::NeedsReview, _) => Ok(Verdict::Rejected),
        (ReviewDecision::Reopen, Verdict::NeedsReview, _) => invalid("The run waits for review already."),
        (ReviewDecision::Reopen, ..) if by_person => Ok(Verdict::NeedsReview),
        (ReviewDecision::Accept | ReviewDecision::Reject, _, Some(ruling)) if by_person => Err(already_decided(conn, ruling).await?),
        (ReviewDecision::Reject, Verdict::Verified, _) => Ok(Verdict::Rejected),
        (ReviewDecision::Accept, Verdict::Verified, _) => invalid("The checks verified the run; there is nothing to accept."),
        (_, Verdict::Rejected, _) => invalid("A run that its checks rejected cannot be decided otherwise."),
        (ReviewDecision::Reopen, Verdict::Verified, _) => invalid("No person has decided on the run."),
    }
}

async fn already_decided(conn: &mut Conn, ruling: RunEvent) -> Result<Error> {
    let mut shown = views(conn, vec![ruling]).await?;
    let shown = shown.pop().ok_or_else(|| Error::internal("an event without a view"))?;
    let (by, word) = (shown.by.unwrap_or_default(), if shown.verdict == Some(Verdict::Verified) { "accepted" } else { "rejected" });
    let detail = format!("{by} has {word} it: {} Reopen it to decide again.", shown.reason.as_deref().unwrap_or_default());
    let error = Error::new(Code::AlreadyDecided, detail).with_extra("decided_by", by.into());
    let decision = serde_json::to_value(shown.decision).map_err(Error::internal)?;
    let at = serde_json::to_value(shown.at).map_err(Error::internal)?;
    Ok(error.with_extra("decision", decision).with_extra("decided_at", at))
}

/// The uploader hears of it.
async fn tell(ctx: &Ctx, tx: &mut Tx<'_>, run: &Run, decision: ReviewDecision, reason: &str) -> Result<()> {
    let (subject, what) = match decision {
        ReviewDecision::Accept => ("Your run was accepted", "An operator has looked at your run and accepted it."),
        ReviewDecision::Reject => {
            ("Your run was rejected", "An operator has looked at your run and rejected it. You can answer once, on the run's page.")
        }
        ReviewDecision::Reopen => {
            ("Your run is looked at again", "An operator has taken the decision on your run back and looks at it again.")
        }
    };
    let text = format!("{what}\n\n{reason}\n\n{}", run_link(ctx, run));
    identity::service::notify(ctx, tx, run.account_id, subject, &text).await
}

/// What the uploader says to an operator; public.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRequest {
    /// Public. 1 to 2000 characters.
    #[schema(min_length = 1, max_length = 2000)]
    pub text: String,
}

/// The uploader's answer, once a run: while it waits for review, or after a person rejected it. The same text again gives the same answer.
///
/// # Errors
/// `not_found` for a run that is not the caller's account's, `already_answered`, `invalid_state` when nobody waits for an answer,
/// `invalid_input` for a text that is empty or too long.
pub async fn answer(ctx: &Ctx, caller: &Caller, id: RunId, request: &AnswerRequest) -> Result<RunEventView> {
    let text = bounded("/text", &request.text, 1, ANSWER_CHARS_MAX)?;
    ctx.db
        .tx("run_answer", async |tx| {
            let run = remeasure::queries::run_lock(tx, id).await?;
            let run = run.filter(|run| run.account_id == caller.account_id).ok_or_else(|| Error::not_found("run of yours"))?;
            let now = ctx.business_now(tx).await?;
            match events::run_event_answer(tx, id).await? {
                Some(given) if given.details["text"] == text.as_str() => {}
                Some(_) => return Err(Error::new(Code::AlreadyAnswered, "The run has been answered; that is possible once.")),
                None => append_answer(tx, caller, &run, &text, now).await?,
            }
            let given = events::run_event_answer(tx, id).await?.ok_or_else(|| Error::internal("the answer is gone"))?;
            views(tx, vec![given]).await?.pop().ok_or_else(|| Error::internal("an event without a view"))
        })
        .await
}

async fn append_answer(tx: &mut Tx<'_>, caller: &Caller, run: &Run, text: &str, now: DateTime<Utc>) -> Result<()> {
    let ruling = events::run_event_last_ruling(tx, run.id).await?;
    if !may_answer(read::verdict(&run.status)?, ruling.as_ref()) {
        return Err(Error::new(Code::InvalidState, "A run is answered while it waits for review, or after a person rejected it."));
    }
    history::append(tx, run.id, Doer::caller(caller), &Event::Answered { text: text.to_owned() }, now).await
}

fn may_answer(status: Verdict, ruling: Option<&RunEvent>) -> bool {
    match status {
        Verdict::NeedsReview => true,
        Verdict::Rejected => is_decided(ruling),
        Verdict::Verified => false,
    }
}

/// Whether the run's uploader may answer now: nobody has, and somebody waits for it.
///
/// # Errors
/// `not_found` for a run that is not the caller's account's.
pub async fn answerable(ctx: &Ctx, caller: &Caller, id: RunId) -> Result<(RunView, bool)> {
    let mut conn = ctx.db.conn().await?;
    let run = queries::run_fetch(&mut conn, id).await?;
    let run = run.filter(|run| run.account_id == caller.account_id).ok_or_else(|| Error::not_found("run of yours"))?;
    let ruling = events::run_event_last_ruling(&mut conn, id).await?;
    let given = events::run_event_answer(&mut conn, id).await?;
    let may = given.is_none() && may_answer(read::verdict(&run.status)?, ruling.as_ref());
    Ok((read::shown(&conn, run.id).await?.0, may))
}

/// The person acting for the account whose run it is.
///
/// # Errors
/// `not_found` for a run of an account that they do not belong to, `forbidden` where their role may not upload runs.
pub async fn owner_of(ctx: &Ctx, caller: &Caller, id: RunId) -> Result<Caller> {
    let no_such = || Error::not_found("run of yours");
    let mut conn = ctx.db.conn().await?;
    let account = queries::run_account(&mut conn, id).await?.ok_or_else(no_such)?;
    let owner = identity::caller_for(&mut conn, caller, account).await?;
    owner.require(Need::Scope(Scope::RunsWrite))?;
    Ok(owner)
}
