//! A stage for rentals: a host with a machine on the market, a renter with money, and the books to look at afterwards.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::base::{
    Money,
    id::{RentalId, TransferId},
};
use rigmark::measure::simulated::SimulatedEngine;
use serde_json::{Value, json};

use super::hosts::{Offer, Person, RunRow, business_now, engine, person, published};
use super::http::{Http, Request};
use super::{TestApp, wait_for};

/// 3.60 $ an hour: a second costs 1,000 micro-dollars.
pub const PRICE: &str = "3.60";

pub struct Stage {
    pub app: TestApp,
    pub host: Person,
    pub renter: Person,
    pub engine: SimulatedEngine,
    pub offer: Offer,
}

impl Stage {
    /// A machine at [`PRICE`], and a renter with these funds.
    pub async fn new(funds: &str) -> Self {
        Self::at_price(PRICE, funds).await
    }

    pub async fn at_price(price: &str, funds: &str) -> Self {
        Self::on(TestApp::new().await, price, funds).await
    }

    /// The same on this app.
    pub async fn on(app: TestApp, price: &str, funds: &str) -> Self {
        let (host, renter) = (person(&app, "host").await, person(&app, "renter").await);
        credit(&renter.http, funds).await;
        let engine = engine();
        let offer = published(&app, &host, engine.url(), price, &RunRow::default()).await;
        Self { app, host, renter, engine, offer }
    }

    /// Changes the listing's terms.
    pub async fn terms(&self, form: Value) {
        self.host.http.patch(&format!("/api/v1/listings/{}", self.offer.listing)).json(&form).expect(200).await;
    }

    /// The request of the renter; `listing_id` is added unless there is a quote.
    pub fn request(&self, form: Value) -> Request {
        request(&self.renter.http, self.with_listing(form))
    }

    pub fn with_listing(&self, mut form: Value) -> Value {
        if form.get("quote").is_none() && form.get("listing_id").is_none() {
            form["listing_id"] = json!(self.offer.listing);
        }
        form
    }

    #[track_caller]
    pub fn rent(&self, form: Value) -> impl Future<Output = Value> {
        self.request(form).expect(201)
    }

    /// Rents and lets the machine give its first token.
    pub async fn rent_active(&self, form: Value) -> Value {
        let rental = self.rent(form).await;
        start(&self.app, &self.renter, rental_id(&rental)).await
    }

    pub async fn fetch(&self, rental: &Value) -> Value {
        fetch(&self.renter, rental_id(rental)).await
    }

    pub async fn stop(&self, rental: &Value) -> Value {
        self.renter.http.post(&format!("/api/v1/rentals/{}/stop", rental_id(rental))).expect(200).await
    }

    pub async fn usage(&self, rental: &Value) -> Value {
        self.renter.http.get(&format!("/api/v1/rentals/{}/usage", rental_id(rental))).expect(200).await
    }

    pub async fn is_available(&self) -> bool {
        let listing = self.app.http.get(&format!("/api/v1/listings/{}", self.offer.listing)).expect(200).await;
        listing["available"].as_bool().unwrap()
    }

    pub async fn now(&self) -> DateTime<Utc> {
        business_now(&self.app).await
    }

    /// Moves business time without running anything, as if every worker were away.
    pub async fn advance_without_workers(&self, seconds: i64) {
        let ctx = self.app.ctx();
        let mut conn = self.app.connect().await;
        let now = ctx.business_now(&mut conn).await.unwrap();
        rigmark::db::business_clock_set(&mut conn, &ctx.clock, now + TimeDelta::seconds(seconds)).await.unwrap();
    }

    pub async fn assert_books(&self) {
        assert_books(&mut self.app.connect().await).await;
    }
}

/// A request to rent, under a new key.
pub fn request(http: &Http, form: Value) -> Request {
    http.post("/api/v1/rentals").idempotency_key(TransferId::new().to_string()).json(&form)
}

/// Play money; nothing for `0`.
pub async fn credit(http: &Http, amount: &str) {
    if amount != "0" {
        let key = TransferId::new().to_string();
        http.post("/api/v1/sandbox/credits").idempotency_key(key).json(&json!({ "amount": amount })).expect(201).await;
    }
}

#[track_caller]
pub fn rental_id(rental: &Value) -> RentalId {
    super::hosts::id(&rental["id"])
}

pub async fn fetch(person: &Person, id: RentalId) -> Value {
    person.http.get(&format!("/api/v1/rentals/{id}")).expect(200).await
}

/// Runs the workers until the rental is active.
pub async fn start(app: &TestApp, renter: &Person, id: RentalId) -> Value {
    wait_for("the first token", Duration::from_secs(60), async || {
        app.work().await;
        fetch(renter, id).await["status"] == "active"
    })
    .await;
    fetch(renter, id).await
}

#[track_caller]
pub fn money(value: &Value) -> Money {
    value.as_str().unwrap_or_else(|| panic!("{value} is no amount")).parse().unwrap()
}
#[track_caller]
pub fn micros(value: &Value) -> i64 {
    money(value).micros()
}
#[track_caller]
pub fn instant(value: &Value) -> DateTime<Utc> {
    value.as_str().unwrap_or_else(|| panic!("{value} is no instant")).parse().unwrap()
}
/// Whole seconds from one instant of an answer to another.
#[track_caller]
pub fn seconds_between(from: &Value, to: &Value) -> i64 {
    (instant(to) - instant(from)).num_seconds()
}

/// Available and held.
pub async fn balance(person: &Person) -> (String, String) {
    let body = person.http.get("/api/v1/balance").expect(200).await;
    (body["available"].as_str().unwrap().to_owned(), body["held"].as_str().unwrap().to_owned())
}

pub async fn earnings(person: &Person) -> Money {
    money(&person.http.get("/api/v1/balance").expect(200).await["earnings"])
}

/// Kinds of the rental's events, in order.
pub async fn event_kinds(stage: &Stage, rental: &Value) -> Vec<String> {
    let usage = stage.usage(rental).await;
    usage["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
}

#[derive(QueryableByName, Debug)]
struct Fault {
    #[diesel(sql_type = sql::Text)]
    fault: String,
}

/// What must hold of every rental and its money at any time. One row for each breach.
const RENTAL_FAULTS: &str = "
SELECT r.id || ': a live rental without exactly one open hold' AS fault FROM rentals r
    WHERE r.status NOT IN ('ended', 'failed') AND 1 <> (SELECT count(*) FROM holds h WHERE h.rental_id = r.id AND h.state = 'open')
UNION ALL SELECT r.id || ': a rental that is over has an open hold' FROM rentals r
    WHERE r.status IN ('ended', 'failed') AND EXISTS (SELECT FROM holds h WHERE h.rental_id = r.id AND h.state = 'open')
UNION ALL SELECT h.id || ': a hold of no rental' FROM holds h LEFT JOIN rentals r ON r.hold_id = h.id WHERE r.id IS NULL AND h.state = 'open'
UNION ALL SELECT r.id || ': posted ' || r.gross_posted_micros || ' but the ledger has ' || x.gross FROM rentals r, LATERAL (
        SELECT coalesce(-sum(p.amount_micros), 0) AS gross FROM transfers t JOIN postings p ON p.transfer_id = t.id
        JOIN ledger_accounts a ON a.id = p.ledger_account_id WHERE t.rental_id = r.id AND t.code = 'rental_charge' AND a.kind = 'held') x
    WHERE x.gross <> r.gross_posted_micros
UNION ALL SELECT r.id || ': fee posted ' || r.fee_posted_micros || ' but the ledger has ' || x.fee FROM rentals r, LATERAL (
        SELECT coalesce(sum(p.amount_micros), 0) AS fee FROM transfers t JOIN postings p ON p.transfer_id = t.id
        JOIN ledger_accounts a ON a.id = p.ledger_account_id WHERE t.rental_id = r.id AND t.code = 'rental_charge' AND a.kind = 'platform:fees') x
    WHERE x.fee <> r.fee_posted_micros
UNION ALL SELECT r.id || ': a charge without a first token' FROM rentals r WHERE r.active_at IS NULL AND r.gross_posted_micros <> 0
UNION ALL SELECT r.id || ': billed although it was stopped before its first token' FROM rentals r
    WHERE r.active_at > r.stop_requested_at AND r.gross_posted_micros > 0
UNION ALL SELECT r.id || ': more charged than the seconds cost' FROM rentals r WHERE r.end_reason IS DISTINCT FROM 'renter_stopped'
    AND r.gross_posted_micros > r.price_per_hour_micros::numeric * (SELECT coalesce(sum(extract(epoch FROM
        coalesce(s.ended_at, r.settled_through) - s.started_at)), 0) FROM rental_segments s WHERE s.rental_id = r.id) / 3600
UNION ALL SELECT r.id || ': segments cost more than is posted' FROM rentals r
    WHERE r.gross_posted_micros < (SELECT coalesce(sum(s.gross_posted_micros), 0) FROM rental_segments s WHERE s.rental_id = r.id)
UNION ALL SELECT r.id || ': segments overlap' FROM rentals r JOIN rental_segments a ON a.rental_id = r.id
    JOIN rental_segments b ON b.rental_id = r.id AND b.sequence > a.sequence WHERE b.started_at < coalesce(a.ended_at, 'infinity')
UNION ALL SELECT r.id || ': over with an open segment' FROM rentals r JOIN rental_segments s ON s.rental_id = r.id
    WHERE r.status IN ('ended', 'failed') AND s.ended_at IS NULL
UNION ALL SELECT r.id || ': billed beyond its deadline' FROM rentals r JOIN rental_segments s ON s.rental_id = r.id WHERE s.ended_at > r.ends_at
UNION ALL SELECT r.id || ': watched although over' FROM rentals r JOIN machine_watches w ON w.machine_id = r.machine_id
    AND w.reason LIKE 'rnt%' WHERE NOT EXISTS (SELECT FROM rentals l WHERE l.machine_id = r.machine_id AND l.status NOT IN ('ended', 'failed'))
UNION ALL SELECT r.id || ': live and not watched' FROM rentals r WHERE r.status NOT IN ('ended', 'failed')
    AND NOT EXISTS (SELECT FROM machine_watches w WHERE w.machine_id = r.machine_id AND w.reason LIKE 'rnt%')
UNION ALL SELECT l.id || ': taken = ' || l.is_taken FROM listings l WHERE l.closed_at IS NULL AND l.is_taken <>
    EXISTS (SELECT FROM rentals r WHERE r.listing_id = l.id AND r.status NOT IN ('ended', 'failed'))
UNION ALL SELECT a.key || ': below zero' FROM ledger_accounts a WHERE a.balance_micros < 0 AND NOT a.may_be_negative";

/// The books agree with the postings, and the rentals with the books.
pub async fn assert_books(conn: &mut diesel_async::AsyncPgConnection) {
    let report = rigmark::ledger::service::reconcile(conn).await.unwrap();
    assert!(report.differences.is_empty(), "{:#?}", report.differences);
    let faults: Vec<Fault> = sql_query(RENTAL_FAULTS).load(conn).await.unwrap();
    assert!(faults.is_empty(), "{faults:#?}");
}
