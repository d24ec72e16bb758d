//! The measuring itself: the drawn cells, one after another, each compared as soon as it is there. No database.

use std::time::Duration;

use super::super::{
    model::RunDetail,
    remeasure::{Limits, Measured, PlannedCell, Reference, Sample, Tolerances, compare, draw},
};
use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
    engines::{EngineClient, Target},
    measure::{
        inspect::{EngineFacts, Identity},
        spot::{Answers, Spot, SpotMeter, SpotPlan},
    },
};

/// A window in the sandbox, where the whole has to be quick.
const SANDBOX_WINDOW_MAX: Duration = Duration::from_secs(2);
const MAX_TOKENS_DEFAULT: u64 = 2_048;
/// Fewer would end streams before their answers can be judged; more only costs cache.
const MAX_TOKENS_RANGE: (u64, u64) = (128, 8_192);
/// A prompt's codes and question, beyond the context that was asked for.
const QUESTION_TOKENS_MAX: u64 = 512;

/// What was found at a machine.
pub(super) struct Findings {
    pub plan: Vec<PlannedCell>,
    pub samples: Vec<Sample>,
    pub identity: Identity,
    pub is_simulated: bool,
}

/// Draws the cells and measures them.
///
/// # Errors
/// `engine_unreachable` and `engine_error` for an engine that could not be measured at all, `no_verified_run` for a matrix without cells.
pub(super) async fn measure(
    ctx: &Ctx,
    client: &EngineClient,
    target: &Target,
    run: &RunDetail,
    tolerances: &Tolerances,
) -> Result<Findings> {
    let reference = Reference::of(&run.matrix);
    let models = client.models(target).await?;
    // Under another name it is measured all the same; that the name changed makes the run stale.
    let served = run.run.served_model.as_deref().filter(|name| models.iter().any(|model| model == name));
    let context_max = reference.cells().iter().map(|(context, _)| *context).max().unwrap_or(0);
    let meter = SpotMeter::start(client, target, served, context_max).await?;
    let (low, high) = MAX_TOKENS_RANGE;
    let max_tokens = run.run.max_output_tokens.unwrap_or(MAX_TOKENS_DEFAULT).clamp(low, high);
    let plan = draw(&reference, &limits(meter.facts(), max_tokens), &mut rand::rng());
    if plan.is_empty() {
        return Err(Error::new(Code::NoVerifiedRun, "The engine as it is now can run none of the cells of the run's matrix."));
    }
    let window = Duration::from_millis(ctx.config.tunables.remeasure_window_milliseconds.into());
    let window = if ctx.config.mode.is_sandbox() { window.min(SANDBOX_WINDOW_MAX) } else { window };
    let mut samples = Vec::with_capacity(plan.len());
    for cell in &plan {
        let spot = SpotPlan { context_tokens: cell.context_tokens, concurrency: cell.concurrency, window, max_tokens };
        samples.push(sample(&meter, &reference, &spot, tolerances).await?);
    }
    Ok(Findings { plan, samples, identity: meter.facts().identity(), is_simulated: meter.facts().is_simulated() })
}

fn limits(facts: &EngineFacts, max_tokens: u64) -> Limits {
    Limits {
        max_model_len: facts.model.max_model_len,
        kv_tokens: facts.kv_tokens,
        max_running: facts.max_running,
        max_tokens: max_tokens + QUESTION_TOKENS_MAX,
    }
}

/// One cell. What is out of its bounds is measured once more at once, from fresh: a hiccup is no disagreement.
async fn sample(meter: &SpotMeter<'_>, reference: &Reference, plan: &SpotPlan, tolerances: &Tolerances) -> Result<Sample> {
    let expected = reference
        .expected(plan.context_tokens, plan.concurrency)
        .ok_or_else(|| Error::internal("a cell was drawn that the matrix says nothing about"))?;
    let first = compare(&measured(meter, plan).await, &expected, tolerances);
    if first.within || first.inconclusive.is_some() {
        return Ok(first);
    }
    let mut second = compare(&measured(meter, plan).await, &expected, tolerances);
    let mut kept = if second.inconclusive.is_some() { first.clone() } else { second.clone() };
    second.answers.add(first.answers);
    kept.answers = second.answers;
    kept.tries = 2;
    Ok(kept)
}

async fn measured(meter: &SpotMeter<'_>, plan: &SpotPlan) -> Measured {
    let mut measured = Measured {
        context_tokens: plan.context_tokens,
        concurrency: plan.concurrency,
        total_tokens_per_second: 0.0,
        inter_token_latency_seconds: 0.0,
        ttft_seconds: None,
        latency_seconds: meter.latency().as_secs_f64(),
        answers: Answers::default(),
        text_bytes_per_token: None,
        chars_per_prompt_token: meter.chars_per_token(),
        inconclusive: None,
    };
    match meter.measure(plan).await {
        Ok(spot) => fill(&mut measured, &spot),
        Err(error) => measured.inconclusive = Some(error.detail().to_owned()),
    }
    measured
}

fn fill(measured: &mut Measured, spot: &Spot) {
    let speed = spot.cell.speed();
    measured.total_tokens_per_second = speed.total_tokens_per_second;
    measured.inter_token_latency_seconds = speed.inter_token_latency_p50;
    measured.ttft_seconds = spot.prefill.as_ref().map(|row| row.ttft_seconds);
    measured.answers = spot.answers;
    measured.text_bytes_per_token = spot.text_bytes_per_token;
    let is_queued = spot.cell.server.gauges.iter().any(|gauges| gauges.waiting > 0.0);
    measured.inconclusive = match spot.cell.failure() {
        Some(failure) => Some(failure),
        None if spot.cell.ready.timed_out || is_queued => Some("The engine did not run all streams at once.".to_owned()),
        None => None,
    };
}
