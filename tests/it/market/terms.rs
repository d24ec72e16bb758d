//! Taking terms under the listing's lock.

use rigmark::base::{Code, id::ListingId};
use rigmark::market::service::{set_taken, take_terms};

use crate::support::TestApp;
use crate::support::hosts::{RunRow, account_id, business_now, engine, person, published};

/// What rentals do: take the terms, then take the machine, in one transaction.
async fn rent(app: &TestApp, listing: ListingId) -> Result<(), Code> {
    let now = business_now(app).await;
    let work = async |tx: &mut rigmark::db::Tx<'_>| {
        let terms = take_terms(app.ctx(), tx, listing, now).await?;
        rigmark::machines::service::watch(tx, terms.machine_id, "rnt_test").await?;
        set_taken(tx, terms.listing_id, true).await
    };
    app.ctx().db.tx("test_rent", work).await.map_err(|error| error.code())
}

#[tokio::test]
async fn terms_are_those_of_the_listing() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "16", &RunRow::default()).await;
    let now = business_now(&app).await;
    let terms = app.ctx().db.tx("test", async |tx| take_terms(app.ctx(), tx, offer.listing, now).await).await.unwrap();
    assert_eq!((terms.listing_id, terms.machine_id, terms.run_id), (offer.listing, offer.machine, Some(offer.run)));
    assert_eq!((terms.host_account_id, terms.price_per_hour.micros()), (account_id(&app, &ann).await, 16_000_000));
    assert_eq!((terms.model.as_deref(), terms.quantization.as_deref()), (Some("gpt-oss-20b"), Some("mxfp4")));
    assert_eq!((terms.min_hours, terms.max_hours, terms.available_until), (0, None, None));
    assert_eq!(rent(&app, ListingId::new()).await, Err(Code::NotFound));
}

#[tokio::test]
async fn a_taken_listing_leaves_the_default_search() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "16", &RunRow::default()).await;
    let count = async |query: &str| app.http.get(&format!("/api/v1/listings{query}")).expect(200).await["data"].as_array().unwrap().len();
    rent(&app, offer.listing).await.unwrap();
    assert_eq!((count("").await, count("?include_unavailable=true").await), (0, 1));
    let body = app.http.get(&format!("/api/v1/listings/{}", offer.listing)).expect(200).await;
    assert_eq!((body["state"].as_str(), body["unavailable_because"].as_str()), (Some("published"), Some("taken")));
    app.ctx().db.tx("test", async |tx| set_taken(tx, offer.listing, false).await).await.unwrap();
    assert_eq!(count("").await, 1);
}

#[tokio::test]
async fn pausing_and_renting_at_the_same_instant_have_one_winner() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "16", &RunRow::default()).await;
    let path = format!("/api/v1/listings/{}", offer.listing);
    let (mut paused_first, mut rented_first) = (0, 0);
    for round in 0..30 {
        let pause = async || ann.http.post(&format!("{path}/pause")).expect(200).await;
        let rented = if round % 2 == 0 {
            tokio::join!(pause(), rent(&app, offer.listing)).1
        } else {
            tokio::join!(rent(&app, offer.listing), pause()).0
        };
        // Pausing always succeeds: a rental that came first goes on. One that came second is refused, never half made.
        let taken = app.ctx().db.tx("test", async |tx| {
            let row = rigmark::machines::service::fetch(tx, offer.machine).await?;
            rigmark::machines::service::unwatch(tx, row.id, "rnt_test").await?;
            Ok(())
        });
        taken.await.unwrap();
        match rented {
            Ok(()) => rented_first += 1,
            Err(Code::ListingNotAvailable) => paused_first += 1,
            Err(other) => panic!("{other:?}"),
        }
        app.ctx().db.tx("test", async |tx| set_taken(tx, offer.listing, false).await).await.unwrap();
        ann.http.post(&format!("{path}/publish")).expect(200).await;
    }
    assert_eq!(paused_first + rented_first, 30);
}
