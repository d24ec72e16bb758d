//! Payments that a bank asks about or takes back: what is booked, what is out of reach, and what shows that the payment was right.

use rigmark::config::Mode;
use serde_json::{Value, json};

use super::{Shop, WEBHOOK, WEBHOOK_SECRET, app_in};
use crate::support::{
    hosts::{execute, person},
    renting::Stage,
    stripe_double::{Release, StripeDouble, StripeDoubleConfig},
};

impl Shop {
    /// A dispute that the payer's bank opens; its id at Stripe.
    pub fn dispute(&self, payment: &str, reason: &str, cents: i64) -> String {
        let form = json!({ "payment_intent": payment, "reason": reason, "amount": cents });
        self.stripe.control("POST", "disputes", &form).unwrap()["id"].as_str().unwrap().to_owned()
    }

    pub fn decide(&self, dispute: &str, status: &str) {
        self.stripe.control("POST", &format!("disputes/{dispute}"), &json!({ "status": status })).unwrap();
    }

    /// The account's only dispute.
    async fn disputed(&self) -> Value {
        let listed = self.ada.http.get("/api/v1/disputes").expect(200).await;
        assert_eq!(listed["data"].as_array().unwrap().len(), 1, "{listed}");
        let id = listed["data"][0]["id"].as_str().unwrap();
        let read = self.ada.http.get(&format!("/api/v1/disputes/{id}")).expect(200).await;
        assert_eq!(read, listed["data"][0]);
        read
    }
}

/// A paid top-up of 100 dollars, and its PaymentIntent.
async fn hundred() -> (Shop, Value, String) {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    let payment = shop.payment_of(&top_up).await;
    (shop, top_up, payment)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disputed_amount_is_taken_until_it_is_won_or_lost() {
    for (end, books, reinstated) in
        [("won", "available 10000, stripe:clearing -10000", "70.00"), ("lost", "available 3000, stripe:clearing -3000", "0.00")]
    {
        let (shop, top_up, payment) = hundred().await;
        let id = shop.dispute(&payment, "fraudulent", 7_000);
        shop.told(&["charge.dispute.created", "charge.dispute.funds_withdrawn"], 2).await;
        assert_eq!(shop.books().await, "available 3000, stripe:clearing -3000");
        let dispute = shop.disputed().await;
        assert_eq!(
            (&dispute["status"], &dispute["reason"], &dispute["amount"], &dispute["withdrawn"], &dispute["reinstated"]),
            (&json!("needs_response"), &json!("fraudulent"), &json!("70.00"), &json!("70.00"), &json!("0.00"))
        );
        assert_eq!((&dispute["top_up_id"], dispute["evidence_due_at"].is_string()), (&top_up["id"], true));
        // Neither the disputed part nor more than what is left.
        shop.refund_request("k", &top_up, "30.01").expect_problem(422, "invalid_input").await;
        assert_eq!(shop.count("account_freezes").await, 1);
        shop.decide(&id, end);
        shop.told(&["charge.dispute.closed"], 2).await;
        let dispute = shop.disputed().await;
        assert_eq!((&dispute["status"], &dispute["reinstated"], dispute["closed_at"].is_string()), (&json!(end), &json!(reinstated), true));
        for _ in 0..2 {
            shop.poll_moves().await;
            shop.release(Release { reverse: true, copies: 2, parallel: 4, ..Release::default() }).await;
            assert_eq!(shop.books().await, books, "{end}");
        }
        assert_eq!(shop.count("account_freezes").await, 0);
        // Stripe's fee of 15 dollars is kept, and nobody's charge.
        assert_eq!(shop.text("SELECT fee_micros FROM disputes").await, "15000000");
        let lines = shop.ada.http.get("/api/v1/statements").expect(200).await;
        let codes: Vec<_> = lines["lines"].as_array().unwrap().iter().map(|line| line["code"].as_str().unwrap().to_owned()).collect();
        let expected: &[&str] = if end == "won" { &["top_up", "chargeback", "chargeback_reversed"] } else { &["top_up", "chargeback"] };
        assert_eq!(codes, expected);
        if end == "won" {
            assert_eq!(shop.count("transfers WHERE code = 'chargeback_reversed' AND linked_transfer_id IS NOT NULL").await, 1);
        } else {
            shop.refund_request("l", &top_up, "30.01").expect_problem(422, "invalid_input").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_of_what_was_spent_leaves_a_debt_that_the_next_money_pays() {
    let (shop, _, payment) = hundred().await;
    shop.set_aside(90).await;
    shop.dispute(&payment, "fraudulent", 10_000);
    shop.told(&["charge.dispute.created"], 1).await;
    assert_eq!((shop.books().await.as_str(), shop.available().await.as_str()), ("available -9000, held 9000", "-90.00"));
    shop.paid("u", "100.00").await;
    assert_eq!(shop.available().await, "10.00");
}

/// An inquiry takes nothing: the amount is set aside, and comes back when the inquiry is closed, or is there to be taken when it is not.
#[tokio::test(flavor = "multi_thread")]
async fn an_inquiry_sets_the_amount_aside_and_books_nothing() {
    for escalates in [false, true] {
        let (shop, top_up, payment) = hundred().await;
        shop.set_aside(40).await;
        let id = shop.dispute(&payment, "inquiry", 8_000);
        shop.told(&["charge.dispute.created"], 2).await;
        // 60 of the 80 were there.
        assert_eq!(shop.books().await, "held 10000, stripe:clearing -10000");
        assert_eq!(shop.disputed().await["status"], "warning_needs_response");
        shop.refund_request("k", &top_up, "20.01").expect_problem(422, "invalid_input").await;
        assert_eq!(shop.count("account_freezes").await, 1);
        if escalates {
            shop.stripe.with(|world| {
                let mut dispute = world.all("dispute").remove(0);
                dispute["status"] = json!("needs_response");
                dispute["balance_transactions"] = json!([{ "amount": -8_000, "fee": 1_500, "net": -9_500, "currency": "usd" }]);
                world.put(&dispute);
            });
            shop.poll_moves().await;
            shop.poll_moves().await;
            assert_eq!(shop.books().await, "available -2000, held 4000, stripe:clearing -2000");
            assert_eq!((shop.disputed().await["withdrawn"].clone(), shop.count("account_freezes").await), (json!("80.00"), 1));
        } else {
            shop.decide(&id, "warning_closed");
            shop.told(&["charge.dispute.closed"], 2).await;
            shop.poll_moves().await;
            assert_eq!(shop.books().await, "available 6000, held 4000, stripe:clearing -10000");
            assert_eq!((shop.disputed().await["withdrawn"].clone(), shop.count("account_freezes").await), (json!("0.00"), 0));
            assert_eq!(shop.refund("l", &top_up, "60.00").await["status"], "succeeded");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_moves_forward_only_and_money_follows_the_sums() {
    let (shop, _, payment) = hundred().await;
    let id = shop.dispute(&payment, "fraudulent", 7_000);
    let opened = shop.stripe.with(|world| world.find(&id).unwrap());
    shop.decide(&id, "won");
    shop.poll_moves().await;
    let books = "available 10000, stripe:clearing -10000";
    assert_eq!((shop.books().await.as_str(), shop.disputed().await["status"].clone()), (books, json!("won")));
    // An answer of before, written late.
    shop.stripe.with(|world| world.put(&opened));
    shop.told(&["charge.dispute.created"], 1).await;
    assert_eq!(shop.text("SELECT outcome FROM stripe_events").await, "unchanged");
    assert_eq!((shop.books().await.as_str(), shop.disputed().await["status"].clone()), (books, json!("won")));
    assert_eq!(shop.count("account_freezes").await, 0);
}

/// Won, and the money comes days later.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_won_is_out_of_reach_until_it_has_come_back() {
    let (shop, top_up, payment) = hundred().await;
    let id = shop.dispute(&payment, "fraudulent", 7_000);
    let taken = shop.stripe.with(|world| world.find(&id).unwrap()["balance_transactions"].clone());
    shop.decide(&id, "won");
    let won = shop.stripe.with(|world| {
        let won = world.find(&id).unwrap();
        let mut early = won.clone();
        early["balance_transactions"] = taken;
        world.put(&early);
        won
    });
    shop.told(&["charge.dispute.closed"], 1).await;
    assert_eq!(shop.books().await, "available 3000, stripe:clearing -3000");
    shop.refund_request("k", &top_up, "30.01").expect_problem(422, "invalid_input").await;
    shop.stripe.with(|world| world.put(&won));
    shop.poll_moves().await;
    assert_eq!(shop.books().await, "available 10000, stripe:clearing -10000");
    assert_eq!(shop.count("disputes WHERE ask_at IS NOT NULL").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_of_a_payment_that_is_disputed_meanwhile_is_refused_and_the_dispute_is_learned() {
    let (shop, top_up, payment) = hundred().await;
    shop.dispute(&payment, "fraudulent", 10_000);
    let refund = shop.refund("k", &top_up, "60.00").await;
    assert_eq!((&refund["status"], &refund["failure_code"]), (&json!("failed"), &json!("charge_disputed")));
    assert_eq!(shop.books().await, "");
    assert_eq!(shop.disputed().await["status"], "needs_response");
    shop.told(&["charge.dispute.created", "charge.dispute.funds_withdrawn"], 2).await;
    assert_eq!(shop.books().await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dispute_without_any_webhook_is_found_by_the_poller_and_told_by_mail() {
    let (shop, _, payment) = hundred().await;
    let id = shop.dispute(&payment, "product_not_received", 7_000);
    shop.poll_moves().await;
    shop.poll_moves().await;
    assert_eq!(shop.books().await, "available 3000, stripe:clearing -3000");
    let letters = "jobs WHERE payload::text LIKE '%A payment is disputed%'";
    assert_eq!(shop.count(letters).await, 1);
    shop.decide(&id, "lost");
    shop.poll_moves().await;
    assert_eq!(shop.disputed().await["status"], "lost");
    assert_eq!((shop.count(letters).await, shop.count("jobs WHERE payload::text LIKE '%A dispute is lost%'").await), (1, 1));
    let bob = person(&shop.app, "bob").await;
    assert_eq!(bob.http.get("/api/v1/disputes").expect(200).await["data"], json!([]));
}

/// A renter who pays through Stripe in the sandbox's market.
struct Market {
    stage: Stage,
    stripe: StripeDouble,
    top_up: Value,
}

impl Market {
    async fn new() -> Self {
        let config = StripeDoubleConfig { bind: "127.0.0.1:0".to_owned(), webhook_url: None, secret: WEBHOOK_SECRET.to_owned() };
        let stripe = StripeDouble::start(&config).unwrap();
        stripe.hold_webhooks();
        let app = app_in(Mode::Sandbox, &stripe.url()).await;
        stripe.set_webhook_url(&format!("{}{WEBHOOK}", app.http.base_url()));
        let stage = Stage::on(app, "3.60", "0").await;
        let form = json!({ "amount": "100.00", "payment_method": "pm_card_visa" });
        let top_up = stage.renter.http.post("/api/v1/top-ups").idempotency_key("t").json(&form).expect(201).await;
        Self { stage, stripe, top_up }
    }

    async fn dispute(&self, reason: &str, cents: i64) -> String {
        let payment = self.stripe.with(|world| world.all("payment_intent")[0]["id"].clone());
        let form = json!({ "payment_intent": payment, "reason": reason, "amount": cents });
        let dispute = self.stripe.control("POST", "disputes", &form).unwrap();
        self.release().await;
        dispute["id"].as_str().unwrap().to_owned()
    }

    async fn release(&self) {
        let sent = self.stripe.release(&Release::default()).await.unwrap();
        assert!(!sent.is_empty() && sent.iter().all(|sent| sent["status"] == 200), "{sent:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_new_is_rented_while_a_payment_is_disputed() {
    for (reason, end) in [("fraudulent", "won"), ("fraudulent", "lost"), ("inquiry", "warning_closed")] {
        let market = Market::new().await;
        let id = market.dispute(reason, 5_000).await;
        market.stage.request(json!({ "hours": 1 })).expect_problem(409, "account_frozen").await;
        market.stripe.control("POST", &format!("disputes/{id}"), &json!({ "status": end })).unwrap();
        market.release().await;
        // 50 dollars at least are there, and nothing is open.
        let rental = market.stage.rent(json!({ "hours": 1 })).await;
        market.stage.stop(&rental).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rental_goes_on_with_what_it_holds_and_a_lost_dispute_is_a_debt_that_blocks() {
    let market = Market::new().await;
    let rental = market.stage.rent_active(json!({ "max_spend": "3.60" })).await;
    let id = market.dispute("fraudulent", 10_000).await;
    assert_eq!(market.stage.fetch(&rental).await["status"], "active");
    market.stage.app.advance(60).await;
    market.stripe.control("POST", &format!("disputes/{id}"), &json!({ "status": "lost" })).unwrap();
    market.release().await;
    market.stage.stop(&rental).await;
    let balance = market.stage.renter.http.get("/api/v1/balance").expect(200).await;
    assert!(balance["available"].as_str().unwrap().starts_with('-'), "{balance}");
    market.stage.request(json!({ "hours": 1 })).expect_problem(402, "insufficient_funds").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_evidence_of_a_dispute_is_one_file() {
    let market = Market::new().await;
    let stage = &market.stage;
    let rental = stage.rent_active(json!({ "hours": 2 })).await;
    stage.app.advance(600).await;
    stage.stop(&rental).await;
    market.dispute("fraudulent", 10_000).await;
    let listed = stage.renter.http.get("/api/v1/disputes").expect(200).await;
    let id = listed["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/disputes/{id}/evidence");
    let evidence = stage.renter.http.get(&path).expect(200).await;
    assert_eq!((&evidence["dispute"]["id"], &evidence["account"]["handle"]), (&json!(id), &json!("renter")));
    assert_eq!((&evidence["payment"]["top_up_id"], &evidence["payment"]["received"]), (&market.top_up["id"], &json!("100.00")));
    assert!(evidence["payment"]["payment_intent"].as_str().unwrap().starts_with("pi_"));
    let rented = evidence["rentals"].as_array().unwrap();
    assert_eq!(rented.len(), 1);
    assert_eq!((&rented[0]["rental"]["id"], &rented[0]["usage"]), (&rental["id"], &stage.usage(&rental).await));
    assert!(!rented[0]["usage"]["segments"].as_array().unwrap().is_empty());
    let run = stage.offer.run.to_string();
    assert!(rented[0]["run_url"].as_str().unwrap().ends_with(&format!("/en/runs/{run}")), "{}", rented[0]);
    assert!(rented[0]["run_document_url"].as_str().unwrap().ends_with(&format!("/api/v1/matrix-runs/{run}/document")));
    let codes: Vec<_> = evidence["ledger_entries"].as_array().unwrap().iter().map(|entry| entry["code"].as_str().unwrap()).collect();
    for code in ["top_up", "hold", "rental_charge", "hold_release", "chargeback"] {
        assert!(codes.contains(&code), "{code} in {codes:?}");
    }
    assert_eq!((&evidence["is_complete"], &evidence["refunds"]), (&json!(true), &json!([])));
    // The host is a party of the rental, not of the payment.
    stage.host.http.get(&path).expect_problem(404, "not_found").await;
    execute(&stage.app, "UPDATE accounts SET is_operator = true WHERE handle = 'host'").await;
    let exported = stage.host.http.get(&format!("/api/v1/admin{}", path.trim_start_matches("/api/v1"))).expect(200).await;
    assert_eq!((&exported["payment"], &exported["ledger_entries"]), (&evidence["payment"], &evidence["ledger_entries"]));
}
