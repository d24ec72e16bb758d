//! Changing Pro: the plan with proration, seats of an organization, the portal.

use serde_json::{Value, json};

use super::pro::{DAY, ProShop, monthly, with_key};
use crate::support::hosts::{Person, person};
use crate::support::stripe_double::{Fault, Kind};

#[tokio::test(flavor = "multi_thread")]
async fn another_plan_settles_what_is_left_of_the_period() {
    let shop = ProShop::new().await;
    shop.subscribe("k", monthly("pm_card_visa")).await;
    shop.pass(15 * DAY);
    let yearly = shop.ada.http.post("/api/v1/pro/plan").json(&json!({ "plan": "yearly" })).expect(200).await;
    assert_eq!((&yearly["plan"], &yearly["status"]), (&json!("yearly"), &json!("active")));
    let invoice = shop.stripe.with(|world| world.all("invoice")[0].clone());
    let amounts: Vec<i64> = invoice["lines"]["data"].as_array().unwrap().iter().map(|line| line["amount"].as_i64().unwrap()).collect();
    let [back, year] = amounts.as_slice() else { panic!("{amounts:?}") };
    // About half of the month comes back.
    assert!((-1_600..=-1_400).contains(back) && *year == 30_000, "{amounts:?}");
    let paid = (3_000 + 30_000 + back) * 10_000;
    shop.assert_paid(2, &paid.to_string()).await;
    // The same again is no change.
    shop.ada.http.post("/api/v1/pro/plan").json(&json!({ "plan": "yearly" })).expect(200).await;
    shop.tell(true).await;
    shop.assert_paid(2, &paid.to_string()).await;
    shop.pass(300 * DAY);
    assert!(shop.is_pro().await);
    // Back to months: the rest of the year is kept for what comes; a canceled month then reaches a month, not the year.
    let back = shop.ada.http.post("/api/v1/pro/plan").json(&json!({ "plan": "monthly" })).expect(200).await;
    assert_eq!(back["plan"], "monthly");
    shop.ada.http.post("/api/v1/pro/cancel").expect(200).await;
    shop.pass(32 * DAY);
    shop.tell(true).await;
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("canceled", false));
    shop.assert_paid(2, &paid.to_string()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_card_changes_nothing() {
    let shop = ProShop::new().await;
    shop.subscribe("k", monthly("pm_card_visa")).await;
    shop.replace_card("pm_card_chargeCustomerFail").await;
    shop.ada.http.post("/api/v1/pro/plan").json(&json!({ "plan": "yearly" })).expect_problem(402, "card_declined").await;
    let pro = shop.pro().await;
    assert_eq!((&pro["subscription"]["plan"], &pro["subscription"]["status"]), (&json!("monthly"), &json!("active")));
    shop.assert_paid(1, "30000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_whose_answer_was_lost_is_found_by_asking() {
    let shop = ProShop::new().await;
    shop.subscribe("k", monthly("pm_card_visa")).await;
    let lost = |kind| Fault { method: Some("POST".to_owned()), path: Some("/v1/subscriptions/".to_owned()), times: 2, ..Fault::new(kind) };
    shop.stripe.fault(lost(Kind::DropBefore));
    shop.ada.http.post("/api/v1/pro/plan").json(&json!({ "plan": "yearly" })).expect_problem(503, "unavailable").await;
    assert_eq!(shop.pro().await["subscription"]["plan"], "monthly");
    shop.stripe.fault(lost(Kind::DropAfter));
    assert_eq!(shop.ada.http.post("/api/v1/pro/plan").json(&json!({ "plan": "yearly" })).expect(200).await["plan"], "yearly");
    assert_eq!(shop.count("transfers WHERE code = 'pro_payment'").await, 2);
}

struct Guild {
    shop: ProShop,
    /// A key of the organization's.
    guild: Person,
    founder: Person,
}

impl Guild {
    async fn new() -> Self {
        let shop = ProShop::new().await;
        let founder = person(&shop.app, "founder").await;
        founder.http.post("/api/v1/organizations").json(&json!({ "handle": "guild" })).expect(201).await;
        let guild = with_key(&shop, &founder, Some("@guild")).await;
        Self { shop, guild, founder }
    }

    async fn invite(&self, handle: &str) -> (Person, String) {
        let invited = person(&self.shop.app, handle).await;
        let form = json!({ "handle": handle, "role": "member" });
        let invitation = self.founder.http.post("/api/v1/organizations/guild/invitations").json(&form).expect(201).await;
        let path = format!("/api/v1/organizations/guild/invitations/{}/accept", invitation["id"].as_str().unwrap());
        (invited, path)
    }

    async fn subscribe(&self, key: &str, seats: Value) -> crate::support::http::Answer {
        let form = json!({ "plan": "monthly", "payment_method": "pm_card_visa", "seats": seats });
        self.guild.http.post("/api/v1/pro").idempotency_key(key).json(&form).answer().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_pays_for_its_members_and_nobody_joins_beyond_its_seats() {
    let stage = Guild::new().await;
    let (bob, join) = stage.invite("bob").await;
    bob.http.post(&join).expect(200).await;
    assert_eq!(stage.subscribe("few", json!(1)).await.status, 422);
    let begun = stage.subscribe("k", Value::Null).await;
    assert_eq!(begun.status, 201, "{}", begun.body);
    assert_eq!(serde_json::from_str::<Value>(&begun.body).unwrap()["seats"], 2);
    stage.shop.assert_paid(1, "60000000").await;
    let (cleo, join) = stage.invite("cleo").await;
    cleo.http.post(&join).expect_problem(409, "no_free_seat").await;
    let seats = |seats: i32| stage.guild.http.post("/api/v1/pro/seats").json(&json!({ "seats": seats }));
    seats(1).expect_problem(422, "invalid_input").await;
    seats(501).expect_problem(422, "invalid_input").await;
    assert_eq!(seats(3).expect(200).await["seats"], 3);
    // Begun a moment ago: the third seat for all of the month.
    stage.shop.assert_paid(2, "90000000").await;
    cleo.http.post(&join).expect(200).await;
    // The members' own accounts are their own.
    assert_eq!(bob.http.get("/api/v1/me").expect(200).await["is_pro"], false);
    assert_eq!(bob.http.get("/api/v1/me").header("Rigmark-Account", "@guild").expect(200).await["is_pro"], true);
    // Without Pro nothing limits them.
    stage.guild.http.post("/api/v1/pro/cancel").expect(200).await;
    stage.shop.execute("UPDATE entitlements SET sold_until = sold_until - interval '40 days'").await;
    let (dan, join) = stage.invite("dan").await;
    dan.http.post(&join).expect(200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_has_one_seat() {
    let shop = ProShop::new().await;
    let form = json!({ "plan": "monthly", "payment_method": "pm_card_visa", "seats": 2 });
    shop.ada.http.post("/api/v1/pro").idempotency_key("k").json(&form).expect_problem(422, "invalid_input").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_portal_is_where_the_card_is_changed() {
    let shop = ProShop::new().await;
    shop.subscribe("k", monthly("pm_card_visa")).await;
    shop.replace_card("pm_card_chargeCustomerFail").await;
    shop.pass(31 * DAY);
    shop.tell(false).await;
    assert_eq!(shop.status().await, "past_due");
    let back = json!({ "return_url": "https://example.org/pro" });
    let portal = shop.ada.http.post("/api/v1/pro/portal").json(&back).expect(200).await;
    let url = portal["url"].as_str().unwrap();
    let form = "act=card&card=4242424242424242";
    let posted = reqwest::Client::new().post(url).header("content-type", "application/x-www-form-urlencoded").body(form);
    assert!(posted.send().await.unwrap().status().is_success());
    // Stripe tries again by itself.
    shop.pass(3 * DAY + 60);
    shop.tell(true).await;
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("active", true));
    shop.assert_paid(2, "60000000").await;
    // Canceled there, it is canceled here.
    let form = format!("act=cancel&subscription={}", shop.subscription()["id"].as_str().unwrap());
    let posted = reqwest::Client::new().post(url).header("content-type", "application/x-www-form-urlencoded").body(form);
    assert!(posted.send().await.unwrap().status().is_success());
    shop.tell(true).await;
    assert_eq!(shop.pro().await["subscription"]["renews"], false);
    shop.ada.http.post("/api/v1/pro/portal").json(&json!({ "return_url": "javascript:0" })).expect_problem(422, "invalid_input").await;
}
