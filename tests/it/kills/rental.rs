//! A rental from its acceptance to its end, with the clock moved in between, so that it starts and the meter ticks.

use rigmark::config::Mode;
use rigmark::measure::simulated::SimulatedEngine;
use serde_json::{Value, json};

use super::{Scenario, World, id_of, prove, text};
use crate::support::{
    hosts::{Person, RunRow, engine, published},
    http::{Http, Request},
    renting::{PRICE, credit, money},
};

const FUNDS: &str = "20.00";

pub struct Rental {
    listing: String,
    _engine: SimulatedEngine,
}

impl Rental {
    /// Somebody's machine on the market.
    pub async fn new(world: &mut World) -> Self {
        let host = world.somebody().await;
        let engine = engine();
        let offer = published(&world.app, &host, engine.url(), PRICE, &RunRow::default()).await;
        Self { listing: offer.listing.to_string(), _engine: engine }
    }

    fn request(&self, http: &Http) -> Request {
        http.post("/api/v1/rentals").idempotency_key("the-one").json(&json!({ "listing_id": self.listing, "hours": 1 }))
    }
    fn extend(http: &Http, rental: &str) -> Request {
        http.post(&format!("/api/v1/rentals/{rental}/extend")).idempotency_key("more").json(&json!({ "hours": 1 }))
    }
    fn stop(http: &Http, rental: &str) -> Request {
        http.post(&format!("/api/v1/rentals/{rental}/stop"))
    }
}

fn advance(http: &Http, seconds: i64) -> Request {
    http.post("/api/v1/sandbox/clock").json(&json!({ "advance_seconds": seconds }))
}

impl Scenario for Rental {
    type Case = ();

    async fn prepare(&self, _: &World, who: &Person) {
        credit(&who.http, FUNDS).await;
    }

    async fn act(&self, _: &World, http: &Http, (): &()) {
        let Some(rental) = id_of(self.request(http)).await else { return };
        // Started; then two ticks.
        for seconds in [5, 600, 600] {
            if advance(http, seconds).try_answer().await.is_none() {
                return;
            }
        }
        Self::extend(http, &rental).try_answer().await;
        advance(http, 60).try_answer().await;
        Self::stop(http, &rental).try_answer().await;
    }

    async fn repeat(&self, _: &World, http: &Http, (): &()) {
        let rental = text(&self.request(http).expect(201).await["id"]).to_owned();
        let extended = Self::extend(http, &rental).answer().await;
        assert!(matches!(extended.status.as_u16(), 200 | 409), "{}", extended.body);
        Self::stop(http, &rental).expect(200).await;
        let twice = Self::stop(http, &rental).expect(200).await;
        assert_eq!(twice["status"], "ended");
    }

    async fn check(&self, world: &World, http: &Http, (): &(), is_repeated: bool) {
        // Whoever has left is billed to the deadline; then the machine is free.
        world.app.advance(8_000).await;
        let list = http.get("/api/v1/rentals").expect(200).await;
        let rentals = list["data"].as_array().unwrap();
        assert!(rentals.len() == 1 || (rentals.is_empty() && !is_repeated), "{list}");
        assert!(rentals.iter().all(|rental| rental["status"] == "ended"), "{list}");
        let balance = http.get("/api/v1/balance").expect(200).await;
        assert_eq!(balance["held"], "0.00");
        let spent = rentals.first().map_or(rigmark::base::Money::ZERO, |rental| money(&rental["spend"]));
        assert_eq!(money(&balance["available"]).plus(spent).unwrap(), FUNDS.parse().unwrap());
        let listing = world.app.http.get(&format!("/api/v1/listings/{}", self.listing)).expect(200).await;
        assert_eq!(listing["available"], Value::Bool(true));
        // The ledger charged what the seconds of the segments cost, to the micro-dollar.
        let wrong = "rentals r WHERE r.gross_posted_micros <> (SELECT coalesce(sum(floor(r.price_per_hour_micros::numeric
            * floor(extract(epoch FROM s.ended_at - s.started_at)) / 3600)), 0) FROM rental_segments s WHERE s.rental_id = r.id)";
        assert_eq!(world.count(wrong).await, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rental() {
    let mut world = World::new(Mode::Sandbox).await;
    let rental = Rental::new(&mut world).await;
    prove("rental", &mut world, &rental).await;
}
