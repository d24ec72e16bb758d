//! Who reaches which machine, and passing a request on.

use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::names::{Choice, ModelName, choose};
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, RentalId},
    },
    ctx::Ctx,
    engines::{BodyStream, EngineResponse},
    identity::{self, Caller},
    machines::{self, model::Machine},
    rentals,
};

/// How often an open stream asks whether it may go on.
const RIGHT_CHECK: Duration = Duration::from_millis(700);
const OWNED_MACHINES_MAX: i64 = 100;

/// A model that the caller may use, and where.
#[derive(Debug, Clone)]
pub struct Reach {
    pub name: ModelName,
    pub machine: Machine,
    /// The rental that gives the right; none for the machine's owner.
    pub rental: Option<RentalId>,
    pub created_unix_seconds: i64,
}

/// One entry of `/v1/models`, in OpenAI's shape.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelEntry {
    pub id: String,
    pub object: &'static str,
    pub created: i64,
    /// Handle of the machine's host.
    pub owned_by: String,
}

/// The body of `/v1/models`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelList {
    pub object: &'static str,
    pub data: Vec<ModelEntry>,
}

/// Everything the caller reaches: machines of active rentals, and own machines whose engine answers.
///
/// # Errors
/// The database's own faults. An engine that does not answer is left out.
pub async fn reach(ctx: &Ctx, caller: &Caller) -> Result<Vec<Reach>> {
    let (rented, owned) = {
        let mut conn = ctx.db.conn().await?;
        let rentals = rentals::service::active_of_renter(&mut conn, caller.account_id).await?;
        let mut rented = Vec::new();
        for rental in rentals {
            let Some(model) = rental.model.clone() else { continue };
            rented.push((machines::service::fetch(&mut conn, rental.machine_id).await?, rental.id, rental.created_at, model));
        }
        let owned = machines::service::list_with_endpoint(&mut conn, caller.account_id, OWNED_MACHINES_MAX).await?;
        (rented, owned)
    };
    let owners: Vec<AccountId> = rented.iter().map(|(m, ..)| m.account_id).chain([caller.account_id]).collect();
    let handles = {
        let mut conn = ctx.db.conn().await?;
        identity::service::account_summaries(&mut conn, &owners).await?
    };
    let handle = |machine: &Machine| handles.get(&machine.account_id).map(|a| a.handle.clone()).unwrap_or_default();
    let mut all: Vec<Reach> = rented
        .into_iter()
        .map(|(machine, rental, since, model)| Reach {
            name: ModelName::new(&handle(&machine), &machine.name, &model),
            machine,
            rental: Some(rental),
            created_unix_seconds: since.timestamp(),
        })
        .collect();
    for (machine, models) in served_by(ctx, owned).await {
        for model in models {
            all.push(Reach {
                name: ModelName::new(&handle(&machine), &machine.name, &model),
                machine: machine.clone(),
                rental: None,
                created_unix_seconds: machine.created_at.timestamp(),
            });
        }
    }
    Ok(all)
}

/// Asks own machines what they serve, all at once; silent ones are left out.
async fn served_by(ctx: &Ctx, owned: Vec<Machine>) -> Vec<(Machine, Vec<String>)> {
    let asked = owned.into_iter().map(|machine| async {
        let target = machines::service::target(ctx, &machine).ok()?;
        let models = ctx.engines.models(&target).await.ok()?;
        Some((machine, models))
    });
    futures::future::join_all(asked).await.into_iter().flatten().collect()
}

/// The body of `/v1/models`: the served name where it is unique, the full one always.
///
/// # Errors
/// The database's own faults.
pub async fn models(ctx: &Ctx, caller: &Caller) -> Result<ModelList> {
    let reach = reach(ctx, caller).await?;
    let names: Vec<ModelName> = reach.iter().map(|r| r.name.clone()).collect();
    let mut data = Vec::new();
    for entry in &reach {
        let owned_by = entry.name.full.split('/').next().unwrap_or_default().trim_start_matches('@').to_owned();
        let model =
            |id: &str| ModelEntry { id: id.to_owned(), object: "model", created: entry.created_unix_seconds, owned_by: owned_by.clone() };
        if matches!(choose(&names, &entry.name.served), Choice::One(_)) {
            data.push(model(&entry.name.served));
        }
        data.push(model(&entry.name.full));
    }
    Ok(ModelList { object: "list", data })
}

/// A request to one engine, ready to go.
pub struct Passage {
    pub response: EngineResponse,
    pub is_stream: bool,
}

/// Passes a chat request on to the machine that its `model` names.
///
/// # Errors
/// `invalid_input` for a body without a model, `not_found` for a model out of reach, `ambiguous_name` with the names to choose from,
/// `engine_unreachable`, `engine_error`.
pub async fn chat(ctx: &Ctx, caller: &Caller, mut body: Value) -> Result<Passage> {
    let asked = body.get("model").and_then(Value::as_str).map(str::to_owned);
    let asked = asked.ok_or_else(|| Error::invalid("/model", "missing_field", "The body names no model."))?;
    let is_stream = body.get("stream").and_then(Value::as_bool).unwrap_or(false);
    let mut reach = reach(ctx, caller).await?;
    let names: Vec<ModelName> = reach.iter().map(|r| r.name.clone()).collect();
    let chosen = match choose(&names, &asked) {
        Choice::One(place) => reach.swap_remove(place),
        Choice::Ambiguous(places) => return Err(ambiguous(&names, &places)),
        Choice::Unknown => return Err(unknown(&names, &asked)),
    };
    if let Some(model) = body.get_mut("model") {
        *model = Value::String(chosen.name.served.clone());
    }
    let target = machines::service::target(ctx, &chosen.machine)?;
    let mut response = ctx.engines.chat(&target, Bytes::from(body.to_string()), is_stream).await?;
    if is_stream {
        response.body = while_allowed(ctx.clone(), caller.clone(), chosen.rental, response.body);
    }
    Ok(Passage { response, is_stream })
}

fn ambiguous(names: &[ModelName], places: &[usize]) -> Error {
    let full: Vec<&str> = places.iter().filter_map(|i| names.get(*i)).map(|n| n.full.as_str()).collect();
    let detail = format!("Several of your machines serve this model; ask for one of: {}.", full.join(", "));
    Error::new(Code::AmbiguousName, detail).with_extra("candidates", serde_json::json!(full))
}

fn unknown(names: &[ModelName], asked: &str) -> Error {
    let within: Vec<&str> = names.iter().map(|n| n.served.as_str()).collect();
    let asked: String = asked.chars().take(200).collect();
    let detail = if within.is_empty() {
        format!("The model '{asked}' is on no machine of yours: you have no active rental and no machine that answers.")
    } else {
        format!("The model '{asked}' is on no machine of yours. Within reach: {}.", within.join(", "))
    };
    Error::new(Code::NotFound, detail)
}

/// Ends the stream when the caller loses the right to it: the rental is over, the key is revoked, the member removed.
fn while_allowed(ctx: Ctx, caller: Caller, rental: Option<RentalId>, body: BodyStream) -> BodyStream {
    let lost = async move {
        loop {
            tokio::time::sleep(RIGHT_CHECK).await;
            match may_go_on(&ctx, &caller, rental).await {
                Ok(true) => {}
                Ok(false) => return,
                // The database is away for a moment: that ends no stream.
                Err(error) => tracing::warn!(error = ?error, "a stream's right could not be checked"),
            }
        }
    };
    body.take_until(lost.boxed()).boxed()
}

async fn may_go_on(ctx: &Ctx, caller: &Caller, rental: Option<RentalId>) -> Result<bool> {
    let mut conn = ctx.db.conn().await?;
    match identity::caller_refresh(ctx, &mut conn, caller).await {
        Ok(_) => {}
        Err(error) if matches!(error.code(), Code::Unauthenticated | Code::NotFound) => return Ok(false),
        Err(error) => return Err(error),
    }
    match rental {
        Some(id) => rentals::service::is_active(&mut conn, id).await,
        None => Ok(true),
    }
}
