//! Quotes: signed, for a while, whatever the host does meanwhile.

use rigmark::base::{Code, Money};
use rigmark::market::service::open_quote;
use serde_json::json;

use crate::support::TestApp;
use crate::support::hosts::{RunRow, business_now, draft, engine, machine, person, published};

#[tokio::test]
async fn a_quote_keeps_its_price_for_two_minutes_of_business_time() {
    let app = TestApp::new().await;
    let (ann, bob) = (person(&app, "ann").await, person(&app, "bob").await);
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "16", &RunRow::default()).await;
    let body = bob.http.post("/api/v1/quotes").json(&json!({ "listing_id": offer.listing, "hours": 3 })).expect(201).await;
    assert_eq!((body["price_per_hour"].as_str(), body["total"].as_str(), body["hours"].as_i64()), (Some("16.00"), Some("48.00"), Some(3)));
    let text = body["quote"].as_str().unwrap();

    let path = format!("/api/v1/listings/{}", offer.listing);
    ann.http.patch(&path).json(&json!({ "price_per_hour": "20", "min_hours": 10 })).expect(200).await;
    let now = business_now(&app).await;
    let terms = open_quote(app.ctx(), now, text).unwrap();
    assert_eq!((terms.listing_id, terms.price_per_hour, terms.min_hours), (offer.listing, Money::usd_micros(16_000_000), 0));
    let taken =
        app.ctx().db.tx("test", async |tx| rigmark::market::service::take_terms(app.ctx(), tx, offer.listing, now).await).await.unwrap();
    assert_eq!((taken.price_per_hour, taken.min_hours), (Money::usd_micros(20_000_000), 10));
    let taken = taken.at_quote(&terms);
    assert_eq!((taken.price_per_hour, taken.min_hours), (Money::usd_micros(16_000_000), 0));
    // A new quote is at the new price.
    let body = bob.http.post("/api/v1/quotes").json(&json!({ "listing_id": offer.listing })).expect(201).await;
    assert_eq!((body["price_per_hour"].as_str(), body["total"].is_null()), (Some("20.00"), true));

    app.advance(119).await;
    assert!(open_quote(app.ctx(), terms.expires_at - chrono::TimeDelta::microseconds(1), text).is_ok());
    app.advance(1).await;
    assert_eq!(open_quote(app.ctx(), business_now(&app).await, text).unwrap_err().code(), Code::QuoteExpired);
}

#[tokio::test]
async fn what_was_not_signed_here_is_no_quote() {
    let app = TestApp::new().await;
    let (ann, other) = (person(&app, "ann").await, TestApp::new().await);
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "16", &RunRow::default()).await;
    let body = ann.http.post("/api/v1/quotes").json(&json!({ "listing_id": offer.listing })).expect(201).await;
    let text = body["quote"].as_str().unwrap();
    let now = business_now(&app).await;
    assert!(open_quote(app.ctx(), now, text).is_ok());
    // Another deployment has another key.
    assert_eq!(open_quote(other.ctx(), now, text).unwrap_err().code(), Code::InvalidQuote);
    let decoded = data_encoding::BASE64URL_NOPAD.decode(text.as_bytes()).unwrap();
    for at in 0..decoded.len() {
        let mut changed = decoded.clone();
        changed[at] ^= 1;
        let changed = data_encoding::BASE64URL_NOPAD.encode(&changed);
        assert_eq!(open_quote(app.ctx(), now, &changed).unwrap_err().code(), Code::InvalidQuote, "byte {at}");
    }
    for text in ["", "x", &text[..40], &format!("{text}A"), &"A".repeat(5_000)] {
        assert_eq!(open_quote(app.ctx(), now, text).unwrap_err().code(), Code::InvalidQuote, "{text}");
    }
}

#[tokio::test]
async fn quotes_are_for_what_is_on_the_market_and_for_lengths_it_takes() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let offer = published(&app, &ann, engine.url(), "1", &RunRow::default()).await;
    let path = format!("/api/v1/listings/{}", offer.listing);
    ann.http.patch(&path).json(&json!({ "min_hours": 2, "max_hours": 10 })).expect(200).await;
    for hours in [-1, 0, 1, 11, 100_000] {
        let form = json!({ "listing_id": offer.listing, "hours": hours });
        let problem = ann.http.post("/api/v1/quotes").json(&form).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], "/hours");
    }
    ann.http.post("/api/v1/quotes").json(&json!({ "listing_id": offer.listing, "hours": 10 })).expect(201).await;
    ann.http.post(&format!("{path}/pause")).expect(200).await;
    let form = json!({ "listing_id": offer.listing });
    ann.http.post("/api/v1/quotes").json(&form).expect_problem(409, "listing_not_available").await;
    let machine = machine(&ann, None).await;
    let draft = draft(&ann, machine, "1").await;
    ann.http.post("/api/v1/quotes").json(&json!({ "listing_id": draft })).expect_problem(404, "not_found").await;
    app.http.post("/api/v1/quotes").json(&form).expect_problem(401, "unauthenticated").await;
}
