//! Who reaches which machine, and passing a request on.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use futures::future::join_all;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    body::Passing,
    names::{self, Choice, ModelName},
    right::{self, Answer},
};
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, RentalId},
    },
    ctx::Ctx,
    engines::EngineResponse,
    identity::{self, Caller},
    machines::{self, model::Machine},
    rentals,
};

const OWNED_MACHINES_MAX: i64 = 100;

/// A model that the caller may use, and where.
#[derive(Debug, Clone)]
struct Reach {
    name: ModelName,
    machine: Arc<Machine>,
    /// The rental that gives the right; none for the machine's owner.
    rental: Option<RentalId>,
    owner: String,
    created_unix_seconds: i64,
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

/// How fresh what engines say of themselves has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    Lately,
    Now,
}

/// A machine within reach.
struct Place {
    machine: Arc<Machine>,
    rental: Option<RentalId>,
    since_unix_seconds: i64,
    /// What it served when the rental began, for while its engine does not answer.
    known_model: Option<String>,
}

/// Everything the caller reaches: machines of active rentals, and own machines whose engine answers.
async fn reach(ctx: &Ctx, caller: &Caller, asking: Asking) -> Result<Vec<Reach>> {
    let places = places(ctx, caller).await?;
    let owners: Vec<AccountId> = places.iter().map(|place| place.machine.account_id).collect();
    let handles: HashMap<_, _> = {
        let mut conn = ctx.db.conn().await?;
        identity::service::account_summaries(&mut conn, &owners).await?
    };
    let served = join_all(places.iter().map(|place| served(ctx, &place.machine, asking))).await;
    let mut all = Vec::new();
    for (place, served) in places.into_iter().zip(served) {
        let owner = handles.get(&place.machine.account_id).map(|a| a.handle.clone()).unwrap_or_default();
        let models: Vec<String> = served.map_or_else(|| place.known_model.into_iter().collect(), |served| served.to_vec());
        for model in models {
            all.push(Reach {
                name: ModelName::new(&owner, &place.machine.name, &place.machine.id.to_string(), &model),
                machine: place.machine.clone(),
                rental: place.rental,
                owner: owner.clone(),
                created_unix_seconds: place.since_unix_seconds,
            });
        }
    }
    Ok(all)
}

async fn places(ctx: &Ctx, caller: &Caller) -> Result<Vec<Place>> {
    let rentals = rentals::service::active_of_renter(ctx, caller.account_id).await?;
    let mut conn = ctx.db.conn().await?;
    let mut places = Vec::new();
    for rental in rentals {
        places.push(Place {
            machine: Arc::new(machines::service::fetch(&mut conn, rental.machine_id).await?),
            rental: Some(rental.id),
            since_unix_seconds: rental.created_at.timestamp(),
            known_model: rental.model,
        });
    }
    for machine in machines::service::list_with_endpoint(&mut conn, caller.account_id, OWNED_MACHINES_MAX).await? {
        let since_unix_seconds = machine.created_at.timestamp();
        places.push(Place { machine: Arc::new(machine), rental: None, since_unix_seconds, known_model: None });
    }
    Ok(places)
}

/// What the machine's engine serves; `None` when it does not say.
async fn served(ctx: &Ctx, machine: &Machine, asking: Asking) -> Option<Arc<[String]>> {
    let target = machines::service::target(ctx, machine).ok()?;
    match asking {
        Asking::Lately => ctx.engines.models_lately(&target).await,
        Asking::Now => ctx.engines.models_now(&target).await,
    }
}

fn names_of(reach: &[Reach]) -> Vec<ModelName> {
    reach.iter().map(|r| r.name.clone()).collect()
}

/// The body of `/v1/models`: the served name where it is unique, the full one always.
///
/// # Errors
/// The database's own faults.
pub async fn models(ctx: &Ctx, caller: &Caller) -> Result<ModelList> {
    let reach = reach(ctx, caller, Asking::Now).await?;
    let names = names_of(&reach);
    let entry = |(place, id): (usize, &str)| {
        let found = reach.get(place)?;
        Some(ModelEntry { id: id.to_owned(), object: "model", created: found.created_unix_seconds, owned_by: found.owner.clone() })
    };
    Ok(ModelList { object: "list", data: names::listed(&names).into_iter().filter_map(entry).collect() })
}

/// An engine's answer, ready to be passed on.
pub struct Passage {
    pub status: u16,
    pub content_type: Option<String>,
    pub retry_after: Option<String>,
    pub is_event_stream: bool,
    pub body: Answer,
}

/// Passes a chat request on to the machine that its `model` names.
///
/// # Errors
/// `invalid_input` for a body without a model, `not_found` for a model out of reach, `ambiguous_name` with the names to choose from,
/// `engine_unreachable`, `engine_error`, and the loss of the right to an answer that has not begun.
pub async fn chat(ctx: &Ctx, caller: &Caller, body: Passing) -> Result<Passage> {
    let asked = body.model().ok_or_else(|| Error::invalid("/model", "missing_field", "The body must name a model."))?;
    let chosen = choose(ctx, caller, &asked).await?;
    let target = machines::service::target(ctx, &chosen.machine)?;
    let mut lost = right::watch(ctx.clone(), caller.clone(), chosen.rental);
    let (request, is_stream) = (Bytes::from(body.with_model(&chosen.name.served)), body.is_stream());
    drop(body);
    let response = tokio::select! {
        response = ctx.engines.chat(&target, request, is_stream) => response?,
        error = &mut lost => return Err(error),
    };
    if matches!(response.status, 401 | 403) {
        // The host's key, not the caller's.
        return Err(Error::new(Code::EngineError, "The machine's engine refuses the key that its host has registered."));
    }
    let header = |name: &str| response.headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
    let (content_type, retry_after) = (header("content-type"), header("retry-after"));
    let is_event_stream = content_type.as_deref().is_some_and(|kind| kind.starts_with("text/event-stream"));
    let EngineResponse { status, body, .. } = response;
    Ok(Passage { status, content_type, retry_after, is_event_stream, body: right::guard(body, lost, is_event_stream) })
}

/// The model that `asked` names among all within reach.
async fn choose(ctx: &Ctx, caller: &Caller, asked: &str) -> Result<Reach> {
    let mut asking = Asking::Lately;
    loop {
        let mut reach = reach(ctx, caller, asking).await?;
        let names = names_of(&reach);
        match names::choose(&names, asked) {
            Choice::One(place) => return Ok(reach.swap_remove(place)),
            Choice::Ambiguous(places) => return Err(ambiguous(&names, &places)),
            // An engine may have come up, or changed what it serves, since it was last asked.
            Choice::Unknown if asking == Asking::Lately => asking = Asking::Now,
            Choice::Unknown => return Err(unknown(&names, asked)),
        }
    }
}

fn ambiguous(names: &[ModelName], places: &[usize]) -> Error {
    let full: Vec<&str> = places.iter().filter_map(|place| names::full_name(names, *place)).collect();
    let detail = format!("Several of your machines serve this model; ask for one of: {}.", full.join(", "));
    Error::new(Code::AmbiguousName, detail).with_extra("candidates", serde_json::json!(full))
}

fn unknown(names: &[ModelName], asked: &str) -> Error {
    let within: Vec<&str> = names::listed(names).into_iter().map(|(_, name)| name).collect();
    let asked: String = asked.chars().take(200).collect();
    let detail = if within.is_empty() {
        format!("The model '{asked}' is on no machine of yours: you have no active rental and no machine that answers.")
    } else {
        format!("The model '{asked}' is on no machine of yours. Within reach: {}.", within.join(", "))
    };
    Error::new(Code::NotFound, detail)
}
