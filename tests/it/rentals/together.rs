//! The meter bills many rentals in one transaction, each as if it were alone.

use chrono::{SubsecRound, TimeDelta};
use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::RunQueryDsl;
use rigmark::rentals::service;
use serde_json::{Value, json};

use crate::support::{
    hosts::{Person, RunRow, person, published},
    renting::{PRICE, Stage, credit, fetch, micros, rental_id, request, start},
};

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = sql::BigInt)]
    count: i64,
}

struct Market {
    stage: Stage,
    rented: Vec<(Person, Value)>,
}

impl Market {
    /// A rental of a machine of its own for each of these funds.
    async fn new(funds: &[&str]) -> Self {
        let stage = Stage::new("0").await;
        let mut rented = Vec::new();
        for (place, funds) in funds.iter().enumerate() {
            let renter = person(&stage.app, &format!("renter-{place}")).await;
            credit(&renter.http, funds).await;
            let offer = published(&stage.app, &stage.host, stage.engine.url(), PRICE, &RunRow::default()).await;
            let rental = request(&renter.http, json!({ "listing_id": offer.listing })).expect(201).await;
            rented.push((renter, rental));
        }
        for (renter, rental) in &rented {
            start(&stage.app, renter, rental_id(rental)).await;
        }
        Self { stage, rented }
    }

    async fn count(&self, from: &str) -> i64 {
        let counted: Count =
            sql_query(format!("SELECT count(*) FROM {from}")).get_result(&mut self.stage.app.connect().await).await.unwrap();
        counted.count
    }

    /// A second costs 1,000 micro-dollars, whoever has the machine and however it was billed.
    async fn assert_each_paid_its_seconds(&self) {
        for (renter, rental) in &self.rented {
            let rental = fetch(renter, rental_id(rental)).await;
            assert_eq!(micros(&rental["spend"]), rental["billed_seconds"].as_i64().unwrap() * 1_000, "{rental}");
            let usage = renter.http.get(&format!("/api/v1/rentals/{}/usage", rental["id"].as_str().unwrap())).expect(200).await;
            assert_eq!(micros(&usage["platform_fee"]) + micros(&usage["host_share"]), micros(&usage["gross"]), "{usage}");
            assert_eq!(micros(&usage["platform_fee"]), micros(&usage["gross"]) / 10, "{usage}");
        }
        self.stage.assert_books().await;
    }
}

/// Charges of one transaction were written at one instant.
const TOGETHER: &str = "(SELECT created_at FROM transfers WHERE code = 'rental_charge' GROUP BY created_at HAVING count(*) > 1) many";

#[tokio::test(flavor = "multi_thread")]
async fn those_with_money_for_days_are_billed_together_and_the_others_alone() {
    let market = Market::new(&["1000", "1000", "20", "1000"]).await;
    for seconds in [60, 61, 3_600, 59, 120, 7_200, 60] {
        market.stage.app.advance(seconds).await;
        market.assert_each_paid_its_seconds().await;
    }
    assert!(market.count(TOGETHER).await > 3, "no charges were made together");
    // Over an hour's hold, which was renewed on the way.
    let (renter, rental) = &market.rented[0];
    assert!(micros(&fetch(renter, rental_id(rental)).await["spend"]) > 10_000_000);
    assert!(market.count("transfers WHERE code = 'hold_increase'").await > 4);
    for (renter, rental) in &market.rented {
        let path = format!("/api/v1/rentals/{}/stop", rental_id(rental));
        renter.http.post(&path).expect(200).await;
    }
    market.assert_each_paid_its_seconds().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_be_billed_does_not_stop_the_others() {
    let market = Market::new(&["1000", "1000", "1000"]).await;
    market.stage.app.advance(60).await;
    let broken = rental_id(&market.rented[1].1);
    let spoil = format!("UPDATE rentals SET fee_posted_micros = gross_posted_micros + 1 WHERE id = '{}'", broken.uuid());
    sql_query(spoil).execute(&mut market.stage.app.connect().await).await.unwrap();
    let before = market.count("transfers WHERE code = 'rental_charge'").await;
    let ctx = market.stage.app.ctx();
    let now = (market.stage.now().await + TimeDelta::seconds(120)).trunc_subsecs(6);
    let seen = format!("UPDATE machines SET last_seen_at = '{}'", now.to_rfc3339());
    sql_query(seen).execute(&mut market.stage.app.connect().await).await.unwrap();
    assert!(service::settle_due(ctx, now).await.is_err());
    assert_eq!(market.count("transfers WHERE code = 'rental_charge'").await, before + 2);
    assert_eq!(market.count(&format!("rentals WHERE settled_through = '{}'", now.to_rfc3339())).await, 2);
    // Nothing more is due for those two.
    assert!(service::settle_due(ctx, now).await.is_err());
    assert_eq!(market.count("transfers WHERE code = 'rental_charge'").await, before + 2);
}

/// Two meters at once, as two processes have: one of them bills.
#[tokio::test(flavor = "multi_thread")]
async fn two_meters_at_once_bill_once() {
    let market = Market::new(&["1000", "1000", "20"]).await;
    market.stage.app.advance(60).await;
    let now = (market.stage.now().await + TimeDelta::seconds(300)).trunc_subsecs(6);
    let seen = format!("UPDATE machines SET last_seen_at = '{}'", now.to_rfc3339());
    sql_query(seen).execute(&mut market.stage.app.connect().await).await.unwrap();
    let ctx = market.stage.app.ctx();
    let meters = (0..4).map(|_| service::settle_due(ctx, now));
    for settled in futures::future::join_all(meters).await {
        settled.unwrap();
    }
    market.assert_each_paid_its_seconds().await;
    assert_eq!(market.count(&format!("rentals WHERE settled_through = '{}'", now.to_rfc3339())).await, 3);
}
