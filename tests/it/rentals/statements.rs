//! What renter and host are shown adds up to the micro-dollar.

use chrono::{NaiveTime, TimeDelta};
use rigmark::base::Money;
use serde_json::{Value, json};

use crate::support::hosts::{Person, RunRow, person, published};
use crate::support::renting::{Stage, balance, credit, earnings, micros, money, rental_id, request};

async fn statement(person: &Person, query: &str) -> Value {
    let body = person.http.get(&format!("/api/v1/statements{query}")).expect(200).await;
    let sum = money(&body["opening"]).plus(money(&body["credits"])).unwrap().minus(money(&body["charges"])).unwrap();
    assert_eq!(sum, money(&body["closing"]), "{body}");
    body
}

#[tokio::test]
async fn money_goes_from_renter_to_host_less_the_fee_and_nowhere_else() {
    let stage = Stage::at_price("0.37", "10").await;
    assert_eq!(earnings(&stage.host).await, Money::ZERO);
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(3_700).await;
    // Seen while it runs, on both sides.
    let running = stage.usage(&rental).await;
    assert_eq!(micros(&running["host_share"]), earnings(&stage.host).await.micros());
    let (available, held) = balance(&stage.renter).await;
    let spent = 10_000_000 - micros(&json!(available)) - micros(&json!(held));
    assert_eq!(spent, micros(&running["gross"]));
    stage.stop(&rental).await;
    let usage = stage.usage(&rental).await;
    let (gross, fee, share) = (micros(&usage["gross"]), micros(&usage["platform_fee"]), micros(&usage["host_share"]));
    let seconds = usage["segments"][0]["billed_seconds"].as_i64().unwrap();
    assert_eq!(gross, 370_000 * seconds / 3_600);
    assert_eq!(fee + share, gross);
    assert!((fee * 10 - gross).abs() <= 5, "half-even of a tenth: {usage}");
    assert_eq!(earnings(&stage.host).await.micros(), share);
    assert_eq!(micros(&json!(balance(&stage.renter).await.0)), 10_000_000 - gross);

    let (theirs, ours) = (statement(&stage.renter, "").await, statement(&stage.host, "").await);
    assert_eq!((micros(&theirs["charges"]), micros(&ours["credits"])), (gross, share));
    let lines = theirs["lines"].as_array().unwrap();
    let charged: i64 = lines.iter().filter(|line| line["code"] == "rental_charge").map(|line| micros_signed(&line["amount"])).sum();
    assert_eq!(charged, -gross);
    assert!(lines.iter().filter(|line| line["code"] == "rental_charge").all(|line| line["rental_id"] == rental["id"]));
    stage.assert_books().await;
}

/// Amounts of lines may be below zero, which no amount of a request is.
fn micros_signed(value: &Value) -> i64 {
    let text = value.as_str().unwrap();
    let amount: Money = text.trim_start_matches('-').parse().unwrap();
    if text.starts_with('-') { -amount.micros() } else { amount.micros() }
}

/// A UTC day's line has what was used in that day, however the ticks fell.
#[tokio::test]
async fn each_day_has_what_was_used_in_it() {
    let stage = Stage::new("1000").await;
    let rental = stage.rent_active(json!({})).await;
    let start = crate::support::renting::instant(&rental["active_at"]);
    stage.app.advance(3 * 86_400 + 5_000).await;
    let stopped = stage.stop(&rental).await;
    let end = crate::support::renting::instant(&stopped["ended_at"]);
    let body = statement(&stage.renter, "").await;
    let charges: Vec<&Value> = body["lines"].as_array().unwrap().iter().filter(|line| line["code"] == "rental_charge").collect();
    let mut expected = Vec::new();
    let mut from = start;
    while from < end {
        let midnight = from.date_naive().succ_opt().unwrap().and_time(NaiveTime::MIN).and_utc();
        let until = midnight.min(end);
        let through = |at: chrono::DateTime<chrono::Utc>| (at - start).num_seconds() * 1_000;
        expected.push((from.date_naive().to_string(), -(through(until) - through(from))));
        from = until;
    }
    let found: Vec<(String, i64)> =
        charges.iter().map(|line| (line["day"].as_str().unwrap().to_owned(), micros_signed(&line["amount"]))).collect();
    assert_eq!(found, expected);
    // A statement of one day is that day's line.
    let (day, amount) = &expected[1];
    let one = statement(&stage.host, &format!("?from={day}&to={day}")).await;
    assert_eq!(micros(&one["credits"]), -amount * 9 / 10);
    stage.assert_books().await;
}

/// Many rentals of odd prices and odd lengths, of several renters at several hosts: every statement adds up, and all money is somewhere.
#[tokio::test]
async fn many_rentals_add_up() {
    let stage = Stage::at_price("0.37", "50").await;
    let mut offers = vec![stage.offer.listing];
    for price in ["0.000001", "1.234567", "99.999999"] {
        offers.push(published(&stage.app, &stage.host, stage.engine.url(), price, &RunRow::default()).await.listing);
    }
    let renters = [stage.renter.clone(), person(&stage.app, "rita").await, person(&stage.app, "rolf").await];
    for renter in &renters[1..] {
        credit(&renter.http, "500").await;
    }
    let mut all: Vec<(usize, Value)> = Vec::new();
    for round in 0..6_i64 {
        for (place, listing) in offers.iter().enumerate() {
            let who = (place + usize::try_from(round).unwrap()) % 3;
            let answer = request(&renters[who].http, json!({ "listing_id": listing, "max_spend": "30.5" })).answer().await;
            if answer.status == 201 {
                all.push((who, answer.json()));
            }
        }
        stage.app.advance(61 + 997 * round).await;
        for (who, rental) in &all {
            renters[*who].http.post(&format!("/api/v1/rentals/{}/stop", rental_id(rental))).expect(200).await;
        }
    }
    let mut sums = [0_i64; 3];
    let (mut gross, mut share) = (0, 0);
    for (who, rental) in &all {
        let usage = renters[*who].http.get(&format!("/api/v1/rentals/{}/usage", rental_id(rental))).expect(200).await;
        assert_eq!(micros(&usage["platform_fee"]) + micros(&usage["host_share"]), micros(&usage["gross"]));
        sums[*who] += micros(&usage["gross"]);
        gross += micros(&usage["gross"]);
        share += micros(&usage["host_share"]);
    }
    assert!(all.len() > 15 && gross > 1_000_000, "{} {gross}", all.len());
    for (who, renter) in renters.iter().enumerate() {
        let body = statement(renter, "").await;
        assert_eq!(micros(&body["charges"]), sums[who]);
        assert_eq!(micros(&body["closing"]), micros(&body["credits"]) - sums[who]);
    }
    assert_eq!(micros(&statement(&stage.host, "").await["credits"]), share);
    assert_eq!(earnings(&stage.host).await.micros(), share);
    stage.assert_books().await;
}

/// Statements of months that meet tile the whole.
#[tokio::test]
async fn periods_tile() {
    let stage = Stage::new("5000").await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(40 * 86_400).await;
    stage.stop(&rental).await;
    let today = stage.now().await.date_naive();
    let whole = statement(&stage.renter, "").await;
    let mut charges = Money::ZERO;
    let mut from = today - TimeDelta::days(60);
    while from <= today {
        let to = from + TimeDelta::days(9);
        let part = statement(&stage.renter, &format!("?from={from}&to={to}")).await;
        charges = charges.plus(money(&part["charges"])).unwrap();
        from = to + TimeDelta::days(1);
    }
    assert_eq!(charges, money(&whole["charges"]));
    stage.assert_books().await;
}
