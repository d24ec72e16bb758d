//! One host's machine: registered, measured by a challenge, listed through the gate.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Display;
use super::cast::Host;
use super::client::{Answer, Session, rows, text};
use crate::base::{Code, Error, Result};
use crate::engines::{EngineAddress, EngineClient, Target};
use crate::measure::matrix::{MatrixPlan, run_matrix};

/// A machine that is disturbed while it is measured may be sent to review; then it is measured anew.
const MEASURED_TIMES_MAX: u32 = 3;
/// Conditions of the gate that a new run meets.
const MET_BY_A_RUN: [&str; 7] =
    ["run_missing", "run_rejected", "run_in_review", "run_stale", "run_expired", "hardware_changed", "hardware_differs"];

#[derive(Deserialize)]
struct Challenge {
    id: String,
    contexts: Vec<u64>,
    concurrency_levels: Vec<u32>,
    prefill_contexts: Vec<u64>,
    duration_seconds: f64,
    max_tokens: u64,
}

/// Brings the host's listing on the market and returns its id.
///
/// # Errors
/// What stood in the way, in words for the operator.
pub(super) async fn prepare(session: &Session, host: &Host, engine_url: &str, display: &Display) -> Result<String> {
    let machine = registered(session, host, engine_url).await?;
    let (listing, state) = drafted(session, host, &machine).await?;
    // A listing that somebody has paused stays paused.
    if matches!(state.as_str(), "published" | "paused") {
        return Ok(listing);
    }
    let mut measured = 0;
    loop {
        let answer = session.post(&format!("/api/v1/listings/{listing}/publish"), &json!({})).await?;
        match answer.status {
            200 => return Ok(listing),
            409 if measured < MEASURED_TIMES_MAX && wants_a_run(&answer) => {
                measured += 1;
                measure(session, host, &machine, engine_url, display).await?;
            }
            _ => return Err(not_listed(host, answer)),
        }
    }
}

fn not_listed(host: &Host, answer: Answer) -> Error {
    let unmet = answer.body.get("unmet").and_then(Value::as_array).into_iter().flatten();
    let details: Vec<&str> = unmet.filter_map(|condition| condition.get("detail")?.as_str()).collect();
    if details.is_empty() {
        return answer.into_error();
    }
    Error::new(Code::ListingNotMeasured, format!("{} of @{} is not listed: {}", host.machine, host.person.handle, details.join(" ")))
}

/// Whether nothing is missing but a new run.
fn wants_a_run(answer: &Answer) -> bool {
    let unmet = answer.body.get("unmet").and_then(Value::as_array);
    unmet.is_some_and(|unmet| {
        unmet.iter().all(|condition| condition.get("code").and_then(Value::as_str).is_some_and(|code| MET_BY_A_RUN.contains(&code)))
    })
}

/// The id of the host's machine, whose endpoint is the running engine.
async fn registered(session: &Session, host: &Host, engine_url: &str) -> Result<String> {
    let page = session.get("/api/v1/machines?limit=100").await?;
    let Some(machine) = rows(&page).find(|row| row["name"] == host.machine) else {
        let body = json!({
            "name": host.machine, "region": host.region, "endpoint": {"url": engine_url},
            "hardware": {
                "gpu": host.hardware, "gpu_count": 1, "cpu": host.cpu, "ram_gib": host.ram_gib, "os": "Ubuntu 24.04",
            },
        });
        let machine = session.post("/api/v1/machines", &body).await?.success()?;
        return text(&machine, "/id").map(str::to_owned);
    };
    let id = text(machine, "/id")?.to_owned();
    if machine.pointer("/endpoint/url").and_then(Value::as_str) != Some(engine_url) {
        let body = json!({"endpoint": {"url": engine_url}});
        session.patch(&format!("/api/v1/machines/{id}"), &body).await?.success()?;
    }
    Ok(id)
}

/// The machine's listing and its state.
async fn drafted(session: &Session, host: &Host, machine: &str) -> Result<(String, String)> {
    let page = session.get("/api/v1/me/listings?limit=100").await?;
    let found = rows(&page).find(|row| row.pointer("/machine/id").and_then(Value::as_str) == Some(machine)).cloned();
    let listing = match found {
        Some(listing) => listing,
        None => {
            let body = json!({
                "machine_id": machine, "price_per_hour": host.price_per_hour, "min_hours": host.min_hours, "description": host.description,
            });
            session.post("/api/v1/listings", &body).await?.success()?
        }
    };
    Ok((text(&listing, "/id")?.to_owned(), text(&listing, "/state")?.to_owned()))
}

/// Asks for a challenge, really measures what it asks, and uploads the document.
async fn measure(session: &Session, host: &Host, machine: &str, engine_url: &str, display: &Display) -> Result<()> {
    let wanted = json!({"model": host.model, "quantization": host.quantization});
    let challenge = session.post(&format!("/api/v1/machines/{machine}/challenges"), &wanted).await?.success()?;
    let challenge: Challenge = serde_json::from_value(challenge).map_err(Error::internal)?;
    display.begin(host.machine, host.hardware);
    let address = EngineAddress::parse(engine_url).map_err(Error::internal)?;
    let target = Target { address, api_key: None, allow_private: true };
    let plan = MatrixPlan {
        contexts: challenge.contexts,
        concurrency_levels: challenge.concurrency_levels,
        prefill_contexts: challenge.prefill_contexts,
        duration: Duration::try_from_secs_f64(challenge.duration_seconds).map_err(Error::internal)?,
        max_tokens: challenge.max_tokens,
    };
    let client = EngineClient::new()?;
    let name = host.machine;
    let observer = |progress: crate::measure::matrix::Progress<'_>| display.measuring(name, progress);
    let outcome = run_matrix(&client, &target, Some(host.model), &plan, &observer, &CancellationToken::new()).await?;
    let upload = json!({
        "document": outcome.document, "machine_id": machine, "challenge_id": challenge.id,
        "model": {"hf_id": host.model, "quantization": host.quantization},
        "launch_command": format!("rigmark simulate-engine --model {} --hardware {}", host.model, host.hardware),
        "notes": "Demo: measured against a simulated engine.",
    });
    session.post("/api/v1/matrix-runs", &upload).await?.success()?;
    Ok(())
}
