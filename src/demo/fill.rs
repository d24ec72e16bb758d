//! The order of filling.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::cast::{AUTHOR, REFERENCE_CLAIM, REFERENCE_DOCUMENT_GZIP, RENTER};
use super::client::{Session, rows, sign_in};
use super::{Display, Engines, machine, rentals};
use crate::base::{Error, Result};

/// Fills the sandbox that answers at `base_url`. Returns notes for the operator about what could not be done; empty when all is there.
///
/// # Errors
/// What stood in the way of everything: the server does not answer, a handle is taken.
pub async fn fill(base_url: &str, engines: &Engines, display: Arc<Display>) -> Result<Vec<String>> {
    let is_new = engines.is_first_start();
    let author = sign_in(base_url, &AUTHOR, is_new).await?;
    reference_run(&author).await?;
    let mut notes = Vec::new();
    let mut listings = Vec::new();
    let mut machines = tokio::task::JoinSet::new();
    for (index, host) in engines.hosts().iter().enumerate() {
        let session = sign_in(base_url, &host.person, is_new).await?;
        let (host, engine_url, display) = (*host, engines.url(host)?.to_owned(), Arc::clone(&display));
        machines.spawn(async move { (index, machine::prepare(&session, &host, &engine_url, &display).await) });
    }
    // Signed in meanwhile, not after.
    let renter = sign_in(base_url, &RENTER, is_new).await?;
    while let Some(joined) = machines.join_next().await {
        let (index, prepared) = joined.map_err(Error::internal)?;
        match prepared {
            Ok(listing) => listings.push((index, listing)),
            Err(error) => notes.push(error.detail().to_owned()),
        }
    }
    display.finish();
    listings.sort_by_key(|(index, _)| *index);
    let of_host = |wanted: usize| listings.iter().find(|(index, _)| *index == wanted).map(|(_, id)| id.as_str());
    notes.extend(rentals::prepare(&renter, of_host(0), of_host(1)).await?);
    Ok(notes)
}

/// The file's own text, so that its hash is the file's.
#[derive(Serialize)]
struct Upload<'a> {
    document: &'a RawValue,
    hardware: &'a Value,
    model: &'a Value,
    engine: &'a Value,
    launch_command: &'a Value,
    notes: &'static str,
}

async fn reference_run(author: &Session) -> Result<()> {
    let page = author.get(&format!("/api/v1/matrix-runs?by={}&limit=1", AUTHOR.handle)).await?;
    if rows(&page).next().is_some() {
        return Ok(());
    }
    let document = tokio::task::spawn_blocking(unpack).await.map_err(Error::internal)??;
    let claim: Value = serde_json::from_str(REFERENCE_CLAIM).map_err(Error::internal)?;
    let upload = Upload {
        document: serde_json::from_str(&document).map_err(Error::internal)?,
        hardware: &claim["hardware"],
        model: &claim["model"],
        engine: &claim["engine"],
        launch_command: &claim["launch_command"],
        notes: "Demo: the reference run, measured by the public benchmark on a real machine.",
    };
    author.post("/api/v1/matrix-runs", &upload).await?.success()?;
    Ok(())
}

fn unpack() -> Result<String> {
    std::io::read_to_string(flate2::read::GzDecoder::new(REFERENCE_DOCUMENT_GZIP)).map_err(Error::internal)
}
