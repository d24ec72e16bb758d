//! Comparing, and writing down what came of it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    GRACE_HOURS,
    model::{BalanceRow, FindingKind, FindingRow, FindingView, Found, Outcome, ReconciliationView, StoredSums},
    queries,
};
use crate::{
    base::{Error, Result},
    ctx::Ctx,
    db::{Conn, Tx},
    integrations::stripe::{BalanceSpan, Stripe, StripeFault},
    ledger,
};

/// Longer than a reconciliation takes; whoever died in one lets the next go on after this.
const LEASE: TimeDelta = TimeDelta::minutes(15);
/// Of each kind so many are listed; all are counted.
const FINDINGS_MAX: i64 = 100;
/// Stripe's list is read in spans of this length until now is reached.
const SPAN: TimeDelta = TimeDelta::days(1);
/// How far back a span is read again: what Stripe lists late, and how far its clock may be behind ours.
const OVERLAP: TimeDelta = TimeDelta::hours(1);
/// A rental that the meter has not looked at for this much longer than silence takes to end one.
const METER_SLACK: TimeDelta = TimeDelta::minutes(5);

/// Compares everything, unless another process is at it or the latest one began less than `rest` ago. Returns whether it did.
///
/// # Errors
/// The database's own faults; that Stripe does not answer is written down as part of the outcome.
pub async fn run(ctx: &Ctx, rest: TimeDelta) -> Result<bool> {
    let started_at = ctx.clock.wall_now();
    let until = started_at.checked_add_signed(LEASE).ok_or_else(|| Error::internal("the clock is at its end"))?;
    {
        let mut conn = ctx.db.conn().await?;
        if !queries::lease_take(&mut conn, started_at, until, queries::before(started_at, rest)).await? {
            return Ok(false);
        }
    }
    let done = compare_all(ctx, started_at).await;
    let mut conn = ctx.db.conn().await?;
    queries::lease_end(&mut conn, until, ctx.clock.wall_now()).await?;
    done.map(|()| true)
}

async fn compare_all(ctx: &Ctx, started_at: DateTime<Utc>) -> Result<()> {
    let is_answered = match &ctx.stripe {
        Some(stripe) => read_stripe(ctx, stripe).await?.inspect_err(|fault| tracing::warn!(%fault, "Stripe cannot be asked")).is_ok(),
        None => false,
    };
    let mut found = Vec::new();
    let outcome = {
        let mut conn = ctx.db.conn().await?;
        let books = books(&mut conn, &mut found).await?;
        let now = ctx.business_now(&mut conn).await?;
        let silence = TimeDelta::seconds(ctx.config.tunables.host_silent_end_seconds);
        let metered_after = queries::before(queries::before(now, silence), METER_SLACK);
        found.extend(queries::sessions_compare(&mut conn, metered_after, FINDINGS_MAX).await?);
        let unmoved_since = queries::before(ctx.clock.wall_now(), TimeDelta::hours(GRACE_HOURS));
        if is_answered {
            found.extend(queries::stripe_compare(&mut conn, unmoved_since, FINDINGS_MAX).await?);
        }
        let stripe = match &ctx.stripe {
            Some(_) => Some(sums(&mut conn, unmoved_since).await?),
            None => None,
        };
        let rentals = queries::live_rental_count(&mut conn).await?;
        Outcome { rentals, counts: counts(&found)?, stripe, stripe_unanswered: ctx.stripe.is_some() && !is_answered, ..books }
    };
    store(ctx, started_at, outcome, &found).await
}

/// The ledger with its postings.
async fn books(conn: &mut Conn, found: &mut Vec<Found>) -> Result<Outcome> {
    let report = ledger::service::reconcile(conn).await?;
    let of_kind = i64::try_from(report.differences.len()).map_err(Error::internal)?;
    for difference in report.differences.into_iter().take(usize::try_from(FINDINGS_MAX).map_err(Error::internal)?) {
        let subject = format!("{} {}", difference.what, difference.subject);
        let kind = FindingKind::Books.as_str().to_owned();
        found.push(Found { kind, subject, expected: difference.expected, found: difference.found, of_kind });
    }
    Ok(Outcome {
        ledger_accounts: report.ledger_accounts,
        transfers: report.transfers,
        holds: report.holds,
        rentals: 0,
        counts: BTreeMap::new(),
        stripe: None,
        stripe_unanswered: false,
    })
}

async fn sums(conn: &mut Conn, unmoved_since: DateTime<Utc>) -> Result<StoredSums> {
    let row = queries::stripe_sums(conn, unmoved_since).await?;
    Ok(StoredSums {
        books_micros: row.books.micros(),
        stripe_micros: row.stripe.micros(),
        fees_micros: row.fees.micros(),
        own_micros: row.own.micros(),
        waiting_micros: row.waiting.micros(),
        transactions: row.transactions,
    })
}

fn counts(found: &[Found]) -> Result<BTreeMap<FindingKind, i64>> {
    found.iter().map(|row| Ok((kind(&row.kind)?, row.of_kind))).collect()
}

fn kind(text: &str) -> Result<FindingKind> {
    FindingKind::parse(text).ok_or_else(|| Error::internal(format!("the finding kind {text}")))
}

/// Reads on in Stripe's list; each page is stored as it comes.
async fn read_stripe(ctx: &Ctx, stripe: &Stripe) -> Result<Result<(), StripeFault>> {
    let (position, first) = {
        let mut conn = ctx.db.conn().await?;
        (queries::read_through(&mut conn).await?, queries::first_top_up_at(&mut conn).await?)
    };
    // Before the first top-up there was nothing of ours at Stripe.
    let Some(mut position) = position.or(first) else { return Ok(Ok(())) };
    loop {
        let now = ctx.clock.wall_now();
        let until = position.checked_add_signed(SPAN).filter(|until| *until < now);
        let span = BalanceSpan { from: queries::before(position, OVERLAP), until };
        if let Err(fault) = read_span(ctx, stripe, &span).await? {
            return Ok(Err(fault));
        }
        let mut conn = ctx.db.conn().await?;
        queries::read_through_raise(&mut conn, until.unwrap_or(now)).await?;
        match until {
            Some(until) => position = until,
            None => return Ok(Ok(())),
        }
    }
}

async fn read_span(ctx: &Ctx, stripe: &Stripe, span: &BalanceSpan) -> Result<Result<(), StripeFault>> {
    let mut after = None;
    loop {
        let (rows, has_more) = match stripe.balance_transactions(span, after).await {
            Ok(page) => page,
            Err(fault) => return Ok(Err(fault)),
        };
        after = rows.last().map(|last| last.id.clone());
        if !rows.is_empty() {
            let rows = rows.into_iter().map(BalanceRow::of).collect::<Result<Vec<_>>>()?;
            let mut conn = ctx.db.conn().await?;
            queries::balance_insert(&mut conn, rows).await?;
        }
        if !has_more || after.is_none() {
            return Ok(Ok(()));
        }
    }
}

async fn store(ctx: &Ctx, started_at: DateTime<Utc>, mut outcome: Outcome, found: &[Found]) -> Result<()> {
    let of_stripe = FindingKind::ALL.iter().filter(|kind| kind.is_of_stripe());
    let kept: Vec<&str> = if outcome.stripe_unanswered { of_stripe.map(|kind| kind.as_str()).collect() } else { Vec::new() };
    if outcome.stripe_unanswered {
        let mut conn = ctx.db.conn().await?;
        let before = queries::latest_fetch(&mut conn).await?.2.map(|result| result.read::<Outcome>()).transpose()?;
        outcome.counts.extend(before.into_iter().flat_map(|before| before.counts).filter(|(kind, _)| kind.is_of_stripe()));
    }
    let mut seen = BTreeSet::new();
    let mut rows = Vec::new();
    for row in found.iter().filter(|row| seen.insert((&row.kind, &row.subject))) {
        let Found { kind, subject, expected, found, .. } = row.clone();
        rows.push(FindingRow { kind, subject, expected, found, first_seen_at: started_at, last_seen_at: started_at });
    }
    let finished_at = ctx.clock.wall_now();
    let write = async |tx: &mut Tx<'_>| queries::result_store(tx, (started_at, finished_at), &outcome, &rows, &kept).await;
    if ctx.db.tx("reconciliation", write).await? {
        report(&outcome, found);
    }
    Ok(())
}

/// As metrics and in the log.
fn report(outcome: &Outcome, found: &[Found]) {
    for kind in FindingKind::ALL {
        let count = u32::try_from(outcome.counts.get(kind).copied().unwrap_or(0)).unwrap_or(u32::MAX);
        metrics::gauge!("rigmark_reconciliation_findings", "kind" => kind.as_str()).set(count);
    }
    for row in found {
        tracing::error!(
            target: "audit",
            kind = row.kind,
            subject = row.subject,
            expected = row.expected,
            found = row.found,
            "reconciliation found a difference"
        );
    }
}

/// The latest reconciliation and its findings.
///
/// # Errors
/// The database's own faults.
pub async fn latest(ctx: &Ctx) -> Result<ReconciliationView> {
    let ((started_at, finished_at, result), rows) = {
        let mut conn = ctx.db.conn().await?;
        (queries::latest_fetch(&mut conn).await?, queries::finding_list(&mut conn).await?)
    };
    let outcome = result.map(|result| result.read::<Outcome>()).transpose()?;
    let count = |of: fn(&Outcome) -> i64| outcome.as_ref().map_or(0, of);
    let view = |row: FindingRow| {
        let kind = kind(&row.kind)?;
        Ok(FindingView { kind, subject: row.subject, expected: row.expected, found: row.found, first_seen_at: row.first_seen_at })
    };
    Ok(ReconciliationView {
        started_at,
        finished_at,
        ledger_accounts: count(|outcome| outcome.ledger_accounts),
        transfers: count(|outcome| outcome.transfers),
        holds: count(|outcome| outcome.holds),
        rentals: count(|outcome| outcome.rentals),
        stripe: outcome.as_ref().and_then(|outcome| outcome.stripe).map(StoredSums::view),
        stripe_unanswered: outcome.as_ref().is_some_and(|outcome| outcome.stripe_unanswered),
        finding_count: count(|outcome| outcome.counts.values().copied().fold(0, i64::saturating_add)),
        findings: rows.into_iter().map(view).collect::<Result<_>>()?,
    })
}
