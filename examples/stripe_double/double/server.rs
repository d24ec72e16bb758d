//! HTTP around the handlers: authentication, faults, idempotency keys, headers, the list of calls.
//!
//! A request is worked on apart from its connection: a client that hangs up changes nothing about what happens.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use actix_web::web::{Bytes, Data};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};

use super::call::Call;
use super::faults::{Fault, Kind};
use super::idempotency::Claim;
use super::refusal::{Answer, Refusal};
use super::world::API_VERSION;
use super::{Shared, control, expand, form, routes};

/// What goes back: an answer, or a connection that closes.
pub enum Outcome {
    Json { status: u16, body: Value, request_id: String, replayed: bool },
    Page { status: u16, html: String },
    Redirect(String),
    Closed,
}

pub async fn serve(request: HttpRequest, body: Bytes, shared: Data<Arc<Shared>>) -> HttpResponse {
    let shared = Arc::clone(shared.get_ref());
    let work = async move {
        let path = request.path().to_owned();
        let target = request.uri().path_and_query().map_or(path.as_str(), |target| target.as_str());
        if path == "/" || path.starts_with("/_double") {
            return control::handle(&shared, request.method().as_str(), target, &body).await;
        }
        let call = match read(&request, &body, &shared) {
            Ok(call) => call,
            Err(refusal) => return refused(&refusal, "req_unread"),
        };
        work(&shared, call).await
    };
    match actix_web::rt::spawn(work).await {
        Ok(outcome) => answer(outcome),
        Err(_) => HttpResponse::InternalServerError().finish(),
    }
}

fn answer(outcome: Outcome) -> HttpResponse {
    match outcome {
        Outcome::Json { status, body, request_id, replayed } => {
            let mut answer = HttpResponse::build(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR));
            answer.insert_header(("request-id", request_id)).insert_header(("stripe-version", API_VERSION));
            if replayed {
                answer.insert_header(("idempotent-replayed", "true"));
            }
            if status == 429 {
                answer.insert_header(("retry-after", "1"));
            }
            answer.content_type("application/json").body(serde_json::to_string_pretty(&body).unwrap_or_default())
        }
        Outcome::Page { status, html } => {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
            HttpResponse::build(status).content_type("text/html; charset=utf-8").body(html)
        }
        Outcome::Redirect(to) => HttpResponse::SeeOther().insert_header(("location", to)).finish(),
        // A body that fails before its first byte: actix closes the connection and sends nothing.
        Outcome::Closed => {
            let broken = futures::stream::once(async { Err::<Bytes, _>(std::io::Error::other("closed by a fault")) });
            HttpResponse::Ok().streaming(broken)
        }
    }
}

pub fn refused(refusal: &Refusal, request_id: &str) -> Outcome {
    Outcome::Json { status: refusal.status, body: refusal.body(request_id), request_id: request_id.to_owned(), replayed: false }
}

fn read(request: &HttpRequest, body: &[u8], shared: &Shared) -> Answer<Call> {
    let headers = request.headers();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    authorize(headers)?;
    let mut params = form::parse(request.query_string().as_bytes())?;
    let sent = form::parse(body)?;
    if let (Some(params), Some(sent)) = (params.as_object_mut(), sent.as_object()) {
        params.extend(sent.clone());
    }
    Ok(Call {
        method: request.method().to_string(),
        path: request.path().trim_end_matches('/').to_owned(),
        params,
        account: text("stripe-account"),
        idempotency_key: text("idempotency-key"),
        request_id: shared.lock().new_id("req"),
    })
}

/// Any secret or restricted key will do, as bearer or as the user of basic authentication.
fn authorize(headers: &HeaderMap) -> Answer<()> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let key = match header.split_once(' ') {
        Some(("Basic", packed)) => data_encoding::BASE64.decode(packed.as_bytes()).ok().and_then(|plain| String::from_utf8(plain).ok()),
        Some(("Bearer", key)) => Some(key.to_owned()),
        _ => None,
    };
    match key {
        Some(key) if key.starts_with("sk_") || key.starts_with("rk_") => Ok(()),
        Some(key) => Err(Refusal::new(401, "invalid_request_error", format!("Invalid API Key provided: {}", key.trim_end_matches(':')))),
        None => Err(Refusal::new(401, "invalid_request_error", "You did not provide an API key.")),
    }
}

async fn work(shared: &Arc<Shared>, call: Call) -> Outcome {
    let fault = shared.lock().faults.take(&call.method, &call.path);
    let outcome = match &fault {
        Some(Fault { kind: Kind::DropBefore, .. }) => Outcome::Closed,
        Some(fault) if fault.kind == Kind::Status => refuse_on_demand(shared, &call, fault),
        _ => run(shared, &call, fault.as_ref()).await,
    };
    let (status, replayed) = match &outcome {
        Outcome::Json { status, replayed, .. } => (*status, *replayed),
        _ => (0, false),
    };
    shared.lock().calls.push(json!({
        "method": call.method, "path": call.path, "params": call.params, "account": call.account, "request_id": call.request_id,
        "idempotency_key": call.idempotency_key, "status": status, "replayed": replayed, "fault": fault.is_some()
    }));
    outcome
}

fn refuse_on_demand(shared: &Shared, call: &Call, fault: &Fault) -> Outcome {
    let refusal = match fault.status {
        429 => Refusal::new(429, "invalid_request_error", "Request rate limit exceeded.").with("code", json!("rate_limit")),
        409 => Refusal::new(409, "invalid_request_error", "This object cannot be accessed right now.").with("code", json!("lock_timeout")),
        status => Refusal::new(status, "api_error", "An unknown error occurred."),
    };
    if fault.kept {
        let mut world = shared.lock();
        let now = world.now();
        if matches!(world.keys.claim(call, now), Ok(Claim::Free)) {
            world.keys.finish(call, Some((refusal.status, refusal.body(&call.request_id))));
        }
    }
    refused(&refusal, &call.request_id)
}

/// The effect, once for each key, with the delays of `fault` around it.
async fn run(shared: &Arc<Shared>, call: &Call, fault: Option<&Fault>) -> Outcome {
    let claim = {
        let mut world = shared.lock();
        let now = world.now();
        world.keys.claim(call, now)
    };
    let delay =
        |wanted: Kind| fault.filter(|fault| fault.kind == wanted).map_or(Duration::ZERO, |fault| Duration::from_millis(fault.delay_ms));
    let outcome = match claim {
        Err(refusal) => refused(&refusal, &call.request_id),
        Ok(Claim::Replay(status, body)) => Outcome::Json { status, body, request_id: call.request_id.clone(), replayed: true },
        Ok(Claim::Free) => {
            tokio::time::sleep(delay(Kind::DelayBefore)).await;
            let answered = effect(shared, call);
            tokio::time::sleep(delay(Kind::DelayAfter)).await;
            let (status, body, kept) = match answered {
                Ok(body) => (200, body, true),
                Err(refusal) => (refusal.status, refusal.body(&call.request_id), refusal.is_kept()),
            };
            shared.lock().keys.finish(call, kept.then(|| (status, body.clone())));
            Outcome::Json { status, body, request_id: call.request_id.clone(), replayed: false }
        }
    };
    if fault.is_some_and(|fault| fault.kind == Kind::DropAfter) { Outcome::Closed } else { outcome }
}

fn effect(shared: &Shared, call: &Call) -> Answer {
    let mut world = shared.lock();
    world.acting.clone_from(&call.account);
    if let Some(account) = &call.account {
        super::connect::may_act(&mut world, account)?;
    }
    world.request = json!({ "id": call.request_id, "idempotency_key": call.idempotency_key });
    let answered = routes::handle(&mut world, call).and_then(|body| expand::expand(&world, call, body));
    world.acting = None;
    world.request = Value::Null;
    answered
}
