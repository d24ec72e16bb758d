//! The renter: play money, a rental that has ended with a charge, and one that runs.

use std::time::Duration;

use serde_json::{Value, json};

use super::cast::{CREDIT, RENTAL_HOURS};
use super::client::{Session, rows, text};
use crate::base::Result;
use crate::base::clock::monotonic;

/// A machine answers its first token within a second or two of a worker's sweep.
const ACTIVE_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(250);

/// `ended_on` and `runs_on` are listings; `None` for one that is not on the market.
///
/// # Errors
/// The server's own faults. What could not be rented comes back as a note.
pub(super) async fn prepare(renter: &Session, ended_on: Option<&str>, runs_on: Option<&str>) -> Result<Vec<String>> {
    credit(renter).await?;
    let mut notes = Vec::new();
    if let Some(listing) = ended_on {
        let request = json!({"listing_id": listing, "max_spend": "5.00"});
        if let Some((id, status)) = rented(renter, listing, "rigmark-demo-ended", &request, &mut notes).await?
            && !is_over(&status)
        {
            if is_active(renter, &id, &mut notes).await? {
                use_once(renter).await?;
            }
            renter.post(&format!("/api/v1/rentals/{id}/stop"), &json!({})).await?.success()?;
        }
    }
    if let Some(listing) = runs_on {
        let request = json!({"listing_id": listing, "hours": RENTAL_HOURS});
        if let Some((id, status)) = rented(renter, listing, "rigmark-demo-running", &request, &mut notes).await?
            && !is_over(&status)
        {
            is_active(renter, &id, &mut notes).await?;
        }
    }
    Ok(notes)
}

/// Play money, once: an account that has ever had an entry has had it.
async fn credit(renter: &Session) -> Result<()> {
    let entries = renter.get("/api/v1/ledger-entries?limit=1").await?;
    if rows(&entries).next().is_none() {
        let body = json!({"amount": CREDIT});
        renter.post_once("/api/v1/sandbox/credits", "rigmark-demo-credit", &body).await?.success()?;
    }
    Ok(())
}

/// Id and status of the renter's oldest rental of the listing, made now if there is none. The demo's renter rents a listing once: a rental
/// that has ended is not made again.
async fn rented(renter: &Session, listing: &str, key: &str, request: &Value, notes: &mut Vec<String>) -> Result<Option<(String, String)>> {
    let page = renter.get("/api/v1/rentals?limit=100").await?;
    let rental = match rows(&page).filter(|row| row["listing_id"] == listing).last() {
        Some(rental) => rental.clone(),
        None => {
            let answer = renter.post_once("/api/v1/rentals", key, request).await?;
            // Somebody else has it, it is paused, or the money was spent: the demo goes on without.
            if matches!(answer.status, 402 | 409) {
                notes.push(answer.into_error().detail().to_owned());
                return Ok(None);
            }
            answer.success()?
        }
    };
    Ok(Some((text(&rental, "/id")?.to_owned(), text(&rental, "/status")?.to_owned())))
}

fn is_over(status: &str) -> bool {
    matches!(status, "ended" | "failed")
}

/// Waits until the machine has answered; false, with a note, when it does not in time.
async fn is_active(renter: &Session, id: &str, notes: &mut Vec<String>) -> Result<bool> {
    let start = monotonic();
    while start.elapsed() < ACTIVE_WITHIN {
        let rental = renter.get(&format!("/api/v1/rentals/{id}")).await?;
        match text(&rental, "/status")? {
            "active" => return Ok(true),
            status if is_over(status) => break,
            _ => tokio::time::sleep(POLL).await,
        }
    }
    notes.push(format!("Rental {id} did not become active within {} s.", ACTIVE_WITHIN.as_secs()));
    Ok(false)
}

/// One question through the endpoint, as a renter would ask it.
async fn use_once(renter: &Session) -> Result<()> {
    let models = renter.get("/v1/models").await?;
    let Some(model) = rows(&models).next() else { return Ok(()) };
    let body = json!({
        "model": text(model, "/id")?, "max_tokens": 24,
        "messages": [{"role": "user", "content": "Say something in two dozen words."}],
    });
    renter.post("/v1/chat/completions", &body).await?.success()?;
    Ok(())
}
