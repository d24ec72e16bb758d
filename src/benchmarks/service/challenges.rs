//! Issuing challenges and reading them.

use chrono::TimeDelta;
use serde::Deserialize;
use utoipa::ToSchema;

use super::super::{
    challenge::{ChallengeSpec, CommandTarget, DrawRequest, Profile, draw, measure_command, tool_command},
    model::{Challenge, ChallengeView},
    quantization::Quantization,
    queries,
};
use crate::{
    base::{
        Code, Error, Result,
        id::{ChallengeId, MachineId},
        text,
    },
    ctx::Ctx,
    db::Tx,
    engines::EngineModel,
    identity::Caller,
    machines,
};

/// Challenges a machine may ask for within an hour of business time.
const PER_HOUR_MAX: i64 = 60;
const NAME_CHARS_MAX: usize = 200;

/// What the host may choose about a challenge.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChallengeRequest {
    /// The model that will be measured: a repository or a name of the catalog. Fixed by the challenge: an answer cannot claim another. Without
    /// it the engine's own name for what it serves is all that is known.
    #[schema(min_length = 1, max_length = 200)]
    pub model: Option<String>,
    /// Fixed with the model.
    #[schema(min_length = 1, max_length = 200)]
    pub quantization: Option<String>,
    /// `sandbox` (about a minute) or `standard` (a quarter of an hour). In the sandbox the default is the short one.
    pub profile: Option<Profile>,
}

/// Draws a challenge for one's own machine.
///
/// # Errors
/// `not_found` for a machine that is not the caller's, `rate_limited`, `invalid_input`.
pub async fn challenge_create(ctx: &Ctx, caller: &Caller, machine: MachineId, request: &ChallengeRequest) -> Result<ChallengeView> {
    let text_fits = |text: &Option<String>| text.as_deref().is_none_or(|t| !t.trim().is_empty() && t.chars().count() <= NAME_CHARS_MAX);
    for (pointer, text) in [("/model", &request.model), ("/quantization", &request.quantization)] {
        if !text_fits(text) {
            return Err(Error::invalid(pointer, "wrong_length", "From 1 to 200 characters."));
        }
        if let Some(fault) = text.as_deref().and_then(|text| text::label_fault(pointer, text)) {
            return Err(Error::invalid_fields(vec![fault]));
        }
    }
    let machine = {
        let mut conn = ctx.db.conn().await?;
        machines::service::fetch_owned(&mut conn, caller, machine).await?
    };
    // Asked outside any transaction; an engine that does not answer leaves the model to the tool's own look-up.
    let served = served_model(ctx, &machine, request.model.as_deref()).await;
    let model = served.as_ref().map(|m| m.id.clone()).or_else(|| request.model.clone());
    let max_model_len = served.and_then(|m| m.max_model_len);
    let profile = request.profile.unwrap_or(if ctx.config.mode.is_sandbox() { Profile::Sandbox } else { Profile::Standard });
    let seed = rand::random::<u64>();
    let challenge = ctx
        .db
        .tx("challenge_create", async |tx| {
            let now = ctx.business_now(tx).await?;
            limit(tx, machine.id, now).await?;
            let expires_at = now + TimeDelta::seconds(ctx.config.tunables.challenge_valid_seconds);
            let spec = draw(&DrawRequest {
                profile,
                model: model.clone(),
                quantization: request.quantization.as_deref().map(|q| Quantization::parse(q).as_str().to_owned()),
                max_model_len,
                max_running_requests: None,
                issued_at: now,
                expires_at,
                seed,
            });
            let row = Challenge {
                id: ChallengeId::new(),
                machine_id: machine.id,
                account_id: machine.account_id,
                spec: serde_json::to_value(&spec).map_err(Error::internal)?,
                issued_at: now,
                expires_at,
                used_at: None,
                model: request.model.clone(),
            };
            queries::challenge_insert(tx, &row).await?;
            Ok(row)
        })
        .await?;
    view(ctx, &challenge, machine.endpoint_url.as_deref())
}

async fn limit(tx: &mut Tx<'_>, machine: MachineId, now: chrono::DateTime<chrono::Utc>) -> Result<()> {
    let recent = queries::challenge_count_since(tx, machine, now - TimeDelta::hours(1)).await?;
    if recent >= PER_HOUR_MAX {
        let detail = format!("A machine may ask for {PER_HOUR_MAX} challenges an hour.");
        return Err(Error::new(Code::RateLimited, detail).with_retry_after(600));
    }
    Ok(())
}

/// What the engine says of the model that is served under the wanted name, or else of its first: engines often serve under a name of their own.
async fn served_model(ctx: &Ctx, machine: &machines::model::Machine, wanted: Option<&str>) -> Option<EngineModel> {
    machine.endpoint_url.as_ref()?;
    let target = machines::service::target(ctx, machine).ok()?;
    let description = ctx.engines.describe(&target).await.ok()?;
    let place = description.models.iter().position(|m| wanted.is_some_and(|w| w == m.id)).unwrap_or(0);
    description.models.into_iter().nth(place)
}

/// A challenge of one's own machine.
///
/// # Errors
/// `not_found` for anybody else's.
pub async fn challenge_fetch(ctx: &Ctx, caller: &Caller, id: ChallengeId) -> Result<ChallengeView> {
    let mut conn = ctx.db.conn().await?;
    let found = queries::challenge_fetch(&mut conn, id).await?;
    let challenge = found.filter(|c| c.account_id == caller.account_id).ok_or_else(|| Error::not_found("challenge"))?;
    let machine = machines::service::fetch(&mut conn, challenge.machine_id).await?;
    view(ctx, &challenge, machine.endpoint_url.as_deref())
}

fn view(ctx: &Ctx, challenge: &Challenge, engine_url: Option<&str>) -> Result<ChallengeView> {
    let spec: ChallengeSpec = challenge.spec()?;
    let id = challenge.id.to_string();
    // Without a registered engine: the address at which the host most likely runs one.
    let engine_url = engine_url.unwrap_or("http://127.0.0.1:8000");
    let target = CommandTarget { engine_url, server_url: &ctx.public_url, challenge_id: &id };
    Ok(ChallengeView {
        id: challenge.id,
        machine_id: challenge.machine_id,
        command: tool_command(&spec, &target),
        measure_command: measure_command(&spec, &target),
        model: challenge.model.clone().or_else(|| spec.model.clone()),
        served_model: spec.model,
        quantization: spec.quantization,
        contexts: spec.contexts,
        concurrency_levels: spec.concurrency_levels,
        prefill_contexts: spec.prefill_contexts,
        duration_seconds: spec.duration_seconds,
        max_tokens: spec.max_tokens,
        issued_at: challenge.issued_at,
        expires_at: challenge.expires_at,
        used_at: challenge.used_at,
    })
}
