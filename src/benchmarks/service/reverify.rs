//! Recomputing the verdicts of all runs: one pass, run by run in the order of their ids, each in a transaction that also notes how far the
//! pass has come. Interrupted at any moment it goes on from there; what two processes begin at once only one does.

use std::num::NonZeroUsize;

use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};

use super::{
    super::{
        assess::assess_value,
        boards,
        checks::Finding,
        document,
        history::{self, Doer, Event},
        model::{EvidenceLevel, Run, RunDetail},
        quantization::kv_cache_of_command,
        queries::original_seen,
        reverify::{
            Before, level_after,
            model::{Outcome, Pass, Recomputed, Stored},
            queries, verdict_after,
        },
        verdict::{Assessment, RULES_VERSION, Verdict},
    },
    announce,
    copies::{self, Newcomer},
    gunzip, gzip, read,
    remeasure::{run_changed, run_link},
    upload::{best_figures, cells, context, detail, summary},
};
use crate::{
    base::{Error, Result, id::RunId},
    ctx::Ctx,
    db::{JsonText, Tx},
    identity,
};

/// Documents that are judged at the same time: each may take 256 MiB while it is read.
const JUDGED_AT_ONCE_MAX: usize = 4;

/// Whether `rigmark reverify` has something to do.
///
/// # Errors
/// The database's own faults.
pub async fn has_runs_of_other_rules(ctx: &Ctx) -> Result<bool> {
    queries::run_of_other_rules(&mut *ctx.db.conn().await?, RULES_VERSION).await
}

/// A pass over all runs.
pub struct Reverification {
    ctx: Ctx,
    pass: Pass,
    at_once: usize,
}

impl Reverification {
    /// Goes on with the open pass, or begins one.
    ///
    /// # Errors
    /// The database's own faults.
    pub async fn begin(ctx: &Ctx) -> Result<Self> {
        let now = ctx.clock.wall_now();
        let pass = ctx.db.tx("reverify_begin", async |tx| queries::pass_begin(tx, RULES_VERSION, now).await).await?;
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Ok(Self { ctx: ctx.clone(), pass, at_once: cores.min(JUDGED_AT_ONCE_MAX) })
    }

    /// How far it has come.
    pub const fn pass(&self) -> &Pass {
        &self.pass
    }

    /// Does the next few runs; `false` when there were none and the pass is finished. It may be dropped at any moment: a run is done whole or
    /// not at all.
    ///
    /// # Errors
    /// `invalid_state` when another process works on the pass; the database's own faults.
    pub async fn step(&mut self) -> Result<bool> {
        let limit = i64::try_from(self.at_once).unwrap_or(1);
        let few = queries::stored_after(&mut *self.ctx.db.conn().await?, self.pass.last_run_id, limit).await?;
        if few.is_empty() {
            let now = self.ctx.clock.wall_now();
            self.pass = self.ctx.db.tx("reverify_finish", async |tx| queries::pass_finish(tx, &self.pass, now).await).await?;
            return Ok(false);
        }
        let ctx = self.ctx.clone();
        let mut judged = stream::iter(few).map(|stored| judge(&ctx, stored)).buffered(self.at_once);
        while let Some(done) = judged.next().await {
            let (run, judged) = done?;
            let wall_now = ctx.clock.wall_now();
            self.pass = ctx
                .db
                .tx("reverify", async |tx| {
                    let outcome = match &judged {
                        Some(judged) => apply(&ctx, tx, &run, judged, wall_now).await?,
                        None => Outcome::Unreadable,
                    };
                    queries::pass_advance(tx, &self.pass, run.id, outcome).await
                })
                .await?;
        }
        Ok(true)
    }
}

/// What the rules say of a document alone.
struct Judged {
    assessment: Assessment,
    redacted_gzip: Vec<u8>,
}

/// Judges the original in the circumstances of its upload. Nothing when these rules cannot read it: that is for a person, and logged.
async fn judge(ctx: &Ctx, stored: Stored) -> Result<(Run, Option<Judged>)> {
    let Stored { run, document, challenge } = stored;
    let Some((original_gzip, original_sha256)) = document else {
        tracing::error!(run.id = %run.id, "a run has no document");
        return Ok((run, None));
    };
    let before: RunDetail = run.detail.read()?;
    let bytes_seen = match challenge {
        Some(_) => original_seen(&mut *ctx.db.conn().await?, &original_sha256, Some(run.id)).await?,
        None => false,
    };
    let context = context(ctx, &before.circumstances, challenge.as_ref(), bytes_seen, run.created_at)?;
    let judged = tokio::task::spawn_blocking(move || {
        let value = match document::read_value(&gunzip(&original_gzip)?) {
            Ok(value) => value,
            Err(fault) => return Ok(Err(fault)),
        };
        let mut assessment = match assess_value(value, &before.claim, &context) {
            Ok(assessment) => assessment,
            Err(fault) => return Ok(Err(fault)),
        };
        let redacted_gzip = gzip(&std::mem::take(&mut assessment.redacted))?;
        Ok::<_, Error>(Ok(Judged { assessment, redacted_gzip }))
    });
    match judged.await.map_err(Error::internal)?? {
        Ok(judged) => Ok((run, Some(judged))),
        Err(fault) => {
            tracing::error!(run.id = %run.id, code = fault.code.as_str(), pointer = fault.pointer, "a run's document cannot be read");
            Ok((run, None))
        }
    }
}

/// Writes what has changed of a run, and tells who must know.
async fn apply(ctx: &Ctx, tx: &mut Tx<'_>, run: &Run, judged: &Judged, wall_now: DateTime<Utc>) -> Result<Outcome> {
    let Some(run) = super::super::remeasure::queries::run_lock(tx, run.id).await? else { return Ok(Outcome::Kept) };
    let newcomer = Newcomer { run: run.id, account: run.account_id, machine: run.machine_id };
    let copies = copies::findings(tx, &newcomer, run.challenge_id.is_some(), &judged.assessment).await?;
    let assessment = judged.assessment.clone().with_findings(copies);
    let before: RunDetail = run.detail.read()?;
    let standing = super::super::queries::standing_fetch(tx, run.id).await?;
    let was = Before {
        verdict: read::verdict(&run.status)?,
        evidence_level: EvidenceLevel::parse(&run.evidence_level)?,
        is_reviewed: run.reviewed_at.is_some() || is_reopened(tx, run.id).await?,
        is_disputed: standing.disputed_at.is_some(),
        answers_challenge: run.challenge_id.is_some(),
        findings: &before.findings,
    };
    let verdict = verdict_after(&was, &assessment.findings);
    let level = level_after(&was, verdict);
    write(tx, &run, &before, &assessment, (verdict, level), &judged.redacted_gzip).await?;
    if (verdict, level) == (was.verdict, was.evidence_level) {
        return Ok(Outcome::Kept);
    }
    tell(ctx, tx, &run, &was, (verdict, level), &assessment.findings, wall_now).await?;
    Ok(Outcome::Changed)
}

/// Whether a person has put it back into the queue, and nothing since has said otherwise.
async fn is_reopened(tx: &mut Tx<'_>, run: RunId) -> Result<bool> {
    Ok(history::queries::run_event_last_ruling(tx, run).await?.is_some_and(|ruling| ruling.kind == "reopened"))
}

async fn write(
    tx: &mut Tx<'_>,
    run: &Run,
    before: &RunDetail,
    assessment: &Assessment,
    (verdict, level): (Verdict, EvidenceLevel),
    redacted_gzip: &[u8],
) -> Result<()> {
    let after = detail(before.notes.clone(), before.circumstances.clone(), assessment);
    let best = best_figures(&assessment.matrix);
    let recomputed = Recomputed {
        status: verdict.as_str(),
        evidence_level: level.as_str(),
        title: &assessment.title,
        summary: &summary(assessment),
        detail: JsonText::of(&after)?,
        rules_version: &assessment.rules_version,
        document_sha256: &assessment.document_sha256,
        decode_single_tokens_per_second: best.single,
        decode_peak_tokens_per_second: best.peak,
        prefill_peak_tokens_per_second: best.prefill,
        kv_cache_dtype: assessment.claim.launch_command.as_deref().and_then(kv_cache_of_command),
    };
    queries::run_update(tx, run.id, &recomputed).await?;
    if run.document_sha256 != assessment.document_sha256 {
        queries::document_replace(tx, run.id, redacted_gzip).await?;
    }
    if before.matrix != assessment.matrix {
        queries::cells_replace(tx, run.id, &cells(run.id, &assessment.matrix)).await?;
    }
    // What rankings go by (`leaderboard_accepted`).
    let is_quick = |findings: &[Finding]| findings.iter().any(|finding| finding.code == "profile_quick");
    let was = (run.status.as_str(), run.evidence_level.as_str(), &run.kv_cache_dtype, &before.matrix, is_quick(&before.findings));
    let is = (recomputed.status, recomputed.evidence_level, &recomputed.kv_cache_dtype, &assessment.matrix, is_quick(&assessment.findings));
    if was != is {
        boards::run_changed(tx, run.id).await?;
    }
    queries::marks_replace(tx, run.id, &copies::marks(assessment)).await?;
    tx.note_public_change();
    Ok(())
}

/// The history, the market, and the uploader where the verdict is another.
async fn tell(
    ctx: &Ctx,
    tx: &mut Tx<'_>,
    run: &Run,
    was: &Before<'_>,
    (verdict, level): (Verdict, EvidenceLevel),
    findings: &[Finding],
    wall_now: DateTime<Utc>,
) -> Result<()> {
    let event = Event::VerdictRecomputed {
        was: was.verdict,
        verdict,
        evidence_level: level,
        rules_version: RULES_VERSION.to_owned(),
        findings: history::counted(findings),
    };
    let now = ctx.business_now(tx).await?;
    history::append(tx, run.id, Doer::SYSTEM, &event, now).await?;
    run_changed(tx, run.id, wall_now).await?;
    if verdict == was.verdict {
        return Ok(());
    }
    let known: Vec<&str> = was.findings.iter().map(|finding| finding.code.as_ref()).collect();
    let new = findings.iter().filter(|finding| !known.contains(&finding.code.as_ref()));
    let new: String = new.map(|finding| format!("  {}: {}\n", finding.code, finding.message)).collect();
    let outcome = match verdict {
        Verdict::Verified => "It is verified now, and may back a listing.",
        Verdict::NeedsReview => "A person will look at it; until then it has no badge.",
        Verdict::Rejected => "It is rejected now and has no badge. You can answer a new challenge at any time.",
    };
    let found = if new.is_empty() { String::new() } else { format!("\n\nNew findings:\n\n{new}") };
    let text = format!(
        "The rules by which Rigmark judges runs have changed, and the verdict on your run {} is another by them. {outcome}{found}\n\n{}",
        run.title,
        run_link(ctx, run)
    );
    announce::verdict(ctx, tx, run.id).await?;
    identity::service::notify(ctx, tx, run.account_id, "The verdict on your run has changed", &text).await
}
