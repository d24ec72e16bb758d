//! Automatic top-up: when it charges, when it does not, and what failures lead to.

use futures::future::join_all;
use rigmark::{
    base::{Money, id::AccountId, id::TransferId},
    billing::automatic::service::top_up_due,
    ledger::{
        self, LedgerAccount, TransferCode,
        model::Actor,
        service::{Posting, TransferRequest},
    },
};
use serde_json::{Value, json};

use super::Shop;
use crate::support::stripe_double::{Kind, Release};

const AUTOMATIC: &str = "/api/v1/automatic-top-up";

impl Shop {
    /// With ada's card saved, and automatic top-up of 50 dollars below 10 set.
    async fn automatic(card: &str) -> Self {
        let shop = Self::new().await;
        shop.save_card(card).await;
        shop.set(json!({ "threshold": "10.00", "amount": "50.00" })).await;
        shop
    }

    async fn set(&self, form: Value) -> Value {
        self.ada.http.put(AUTOMATIC).json(&form).expect(200).await
    }

    async fn automatic_now(&self) -> Value {
        self.ada.http.get(AUTOMATIC).expect(200).await
    }

    async fn sweep(&self) {
        top_up_due(self.app.ctx()).await.unwrap();
    }

    /// For everything that has to do with tries.
    async fn an_hour_passes(&self) {
        self.execute(
            "UPDATE automatic_top_ups SET last_try_at = last_try_at - interval '1 hour', next_try_at = next_try_at - interval '1 hour'",
        )
        .await;
    }

    async fn spend(&self, micros: i64) {
        let id = self.text("SELECT id FROM accounts WHERE handle = 'ada'").await;
        let account = AccountId::from_uuid(id.parse().unwrap());
        let ctx = self.app.ctx();
        let spend = async |tx: &mut rigmark::db::Tx<'_>| {
            let transfer = TransferRequest {
                id: TransferId::new(),
                code: TransferCode::Adjustment,
                postings: Posting::between(LedgerAccount::Available(account), LedgerAccount::PlatformFees, Money::usd_micros(micros))?,
                rental: None,
                payment: None,
                actor: Actor::System,
                business_at: ctx.business_now(tx).await?,
                linked: None,
            };
            ledger::service::post(tx, transfer).await.map(drop)
        };
        ctx.db.tx("test_spend", spend).await.unwrap();
    }

    async fn tries(&self) -> i64 {
        self.count("top_ups WHERE means = 'automatic'").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn little_is_left_and_the_card_is_charged_while_nobody_is_there() {
    let shop = Shop::automatic("pm_card_visa").await;
    shop.sweep().await;
    shop.assert_credited_once("50.00").await;
    let top_up = &shop.ada.http.get("/api/v1/top-ups").expect(200).await["data"][0];
    assert_eq!((&top_up["means"], &top_up["status"], &top_up["amount"]), (&json!("automatic"), &json!("succeeded"), &json!("50.00")));
    let call = shop.stripe.calls().into_iter().rfind(|call| call["path"] == "/v1/payment_intents").unwrap();
    assert_eq!((&call["params"]["off_session"], &call["params"]["confirm"]), (&json!("true"), &json!("true")));
    assert_eq!(call["idempotency_key"], format!("{}:payment", top_up["id"].as_str().unwrap()));
    let read = shop.automatic_now().await;
    assert_eq!((&read["state"], &read["failures"], &read["last_failure"]), (&json!("on"), &json!(0), &Value::Null));
    assert_eq!(read["last_top_up_id"], top_up["id"]);
    assert_eq!(shop.letters().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn once_an_hour_at_most_and_only_below_the_threshold() {
    let shop = Shop::automatic("pm_card_visa").await;
    shop.sweep().await;
    // Enough is there: the mark is taken back when it is looked at again, and nobody looks any more.
    shop.an_hour_passes().await;
    shop.sweep().await;
    assert_eq!((shop.tries().await, shop.count("automatic_top_ups WHERE is_low").await), (1, 0));
    // Down to the threshold exactly is not below it.
    shop.spend(40_000_000).await;
    assert_eq!(shop.count("automatic_top_ups WHERE is_low").await, 0);
    shop.spend(1).await;
    assert_eq!(shop.count("automatic_top_ups WHERE is_low").await, 1);
    shop.sweep().await;
    assert_eq!((shop.tries().await, shop.available().await), (2, "59.999999".to_owned()));
    shop.spend(59_000_000).await;
    for _ in 0..3 {
        shop.sweep().await;
    }
    assert_eq!(shop.tries().await, 2);
    // Saving it again does not bring the next try forward, nor does turning it off and on.
    shop.ada.http.delete(AUTOMATIC).expect(204).await;
    shop.ada.http.get(AUTOMATIC).expect_problem(404, "not_found").await;
    shop.ada.http.delete(AUTOMATIC).expect_problem(404, "not_found").await;
    shop.set(json!({ "threshold": "20.00", "amount": "50.00" })).await;
    shop.sweep().await;
    assert_eq!(shop.tries().await, 2);
    shop.an_hour_passes().await;
    shop.sweep().await;
    assert_eq!((shop.tries().await, shop.available().await), (3, "50.999999".to_owned()));
}

/// The balance falls in the moment in which it was found high enough: the mark is there afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_fall_is_not_missed_by_who_takes_the_mark_back() {
    let shop = Shop::automatic("pm_card_visa").await;
    shop.sweep().await;
    for _ in 0..10 {
        shop.execute("UPDATE automatic_top_ups SET is_low = true, last_try_at = NULL, next_try_at = created_at").await;
        let before = shop.tries().await;
        // All but five dollars.
        let dollars: i64 = shop.available().await.split('.').next().unwrap().parse().unwrap();
        tokio::join!(shop.sweep(), shop.spend((dollars - 5) * 1_000_000));
        let low_or_tried = shop.count("automatic_top_ups WHERE is_low").await == 1 || shop.tries().await > before;
        assert!(low_or_tried);
        shop.execute("UPDATE automatic_top_ups SET last_try_at = NULL, next_try_at = created_at").await;
        shop.sweep().await;
        assert!(shop.tries().await > before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_sweeps_at_once_charge_once() {
    let shop = Shop::automatic("pm_card_visa").await;
    join_all((0..8).map(|_| shop.sweep())).await;
    assert_eq!((shop.tries().await, shop.payments_made()), (1, 1));
    shop.assert_credited_once("50.00").await;
    let refused = diesel::sql_query("UPDATE automatic_top_ups SET next_try_at = last_try_at + interval '59 minutes'");
    let refused = diesel_async::RunQueryDsl::execute(refused, &mut shop.app.connect().await).await.unwrap_err();
    assert!(refused.to_string().contains("automatic_top_ups_one_try_an_hour"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_shown_and_mailed_and_three_in_a_row_pause() {
    let shop = Shop::automatic("pm_card_chargeCustomerFail").await;
    for failures in 1..=3 {
        shop.sweep().await;
        let read = shop.automatic_now().await;
        assert_eq!((&read["failures"], &read["last_failure"]["code"]), (&json!(failures), &json!("generic_decline")));
        assert_eq!(read["last_failure"]["top_up_id"], read["last_top_up_id"]);
        assert_eq!(read["state"], if failures < 3 { "on" } else { "paused" });
        // Whoever else sees the same failure makes no other of it.
        shop.poll().await;
        assert!(shop.release(Release::default()).await.iter().all(|status| *status == 200));
        assert_eq!(shop.automatic_now().await["failures"], json!(failures));
        shop.an_hour_passes().await;
    }
    assert_eq!(shop.automatic_now().await["paused_reason"], "payments_failed");
    shop.sweep().await;
    assert_eq!((shop.tries().await, shop.payments_made()), (3, 3));
    shop.assert_nothing_credited().await;
    let letters = shop.letters().await;
    assert_eq!(letters.len(), 3, "{letters:?}");
    let card = &shop.cards().await[0];
    for letter in &letters {
        assert!(letter.starts_with("To: ada@example.org\n") && letter.contains("50.00") && letter.contains("generic_decline"), "{letter}");
        for secret in [&card["id"], &card["last4"], &card["brand"]] {
            assert!(!letter.contains(secret.as_str().unwrap()), "{letter}");
        }
    }
    assert_eq!(letters.iter().filter(|letter| letter.contains("paused")).count(), 1);
    // Saved again, with a card that pays.
    let card = shop.save_card("pm_card_visa").await;
    let saved = shop.set(json!({ "threshold": "10.00", "amount": "50.00", "payment_method": card })).await;
    assert_eq!((&saved["state"], &saved["failures"], &saved["paused_reason"]), (&json!("on"), &json!(0), &Value::Null));
    shop.sweep().await;
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_success_between_failures_starts_the_count_again() {
    let shop = Shop::automatic("pm_card_chargeCustomerFail").await;
    for _ in 0..2 {
        shop.sweep().await;
        shop.an_hour_passes().await;
    }
    assert_eq!(shop.automatic_now().await["failures"], 2);
    // The bank changes its mind.
    let card = shop.cards().await[0]["id"].as_str().unwrap().to_owned();
    shop.stripe.with(|world| world.cards.remove(&card));
    shop.sweep().await;
    let read = shop.automatic_now().await;
    assert_eq!((&read["failures"], &read["last_failure"]["code"]), (&json!(0), &json!("generic_decline")));
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bank_that_wants_its_customer_pauses_at_once_and_the_customer_can_still_pay() {
    let shop = Shop::new().await;
    let form = json!({ "payment_method": "pm_card_authenticationRequired" });
    let asked = shop.ada.http.post("/api/v1/payment-methods").json(&form).expect(201).await;
    let setup = asked["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    shop.stripe.control("POST", &format!("payment_intents/{setup}"), &json!({ "outcome": "succeeded" })).unwrap();
    shop.ada.http.get(&format!("/api/v1/card-setups/{}", asked["id"].as_str().unwrap())).expect(200).await;
    shop.set(json!({ "threshold": "10.00", "amount": "50.00" })).await;
    shop.sweep().await;
    let read = shop.automatic_now().await;
    assert_eq!((&read["state"], &read["paused_reason"]), (&json!("paused"), &json!("authentication_required")));
    assert_eq!(read["last_failure"]["code"], "authentication_required");
    let letters = shop.letters().await;
    assert!(letters.len() == 1 && letters[0].contains("confirm the payment yourself"), "{letters:?}");
    shop.an_hour_passes().await;
    shop.sweep().await;
    assert_eq!((shop.tries().await, shop.payments_made()), (1, 1));
    // The same top-up, paid by hand.
    let id = read["last_top_up_id"].as_str().unwrap();
    let open = shop.ada.http.get(&format!("/api/v1/top-ups/{id}")).expect(200).await;
    let payment = open["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
    shop.pay(payment, "pm_card_visa").await;
    assert_eq!(shop.ada.http.get(&format!("/api/v1/top-ups/{id}")).expect(200).await["status"], "succeeded");
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_has_its_limit() {
    let shop = Shop::new().await;
    shop.save_card("pm_card_visa").await;
    shop.set(json!({ "threshold": "10.00", "amount": "50.00", "monthly_max": "120.00" })).await;
    for _ in 0..4 {
        shop.sweep().await;
        if shop.available().await != "0.00" {
            shop.spend(50_000_000).await;
        }
        shop.execute("UPDATE automatic_top_ups SET last_try_at = NULL, next_try_at = created_at").await;
    }
    assert_eq!((shop.tries().await, shop.available().await), (2, "0.00".to_owned()));
    shop.sweep().await;
    let next = shop.automatic_now().await["next_try_at"].as_str().unwrap().to_owned();
    assert!(next.contains("-01T00:00:00"), "{next}");
    // Next month; what was tried and failed, or lies in another month, does not count.
    shop.execute("UPDATE top_ups SET created_at = created_at - interval '31 days'").await;
    shop.execute("UPDATE automatic_top_ups SET last_try_at = NULL, next_try_at = created_at").await;
    shop.sweep().await;
    assert_eq!((shop.tries().await, shop.available().await), (3, "50.00".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_lost_is_found_by_the_poller_and_nothing_is_charged_twice() {
    let shop = Shop::automatic("pm_card_visa").await;
    shop.fault(Kind::DropAfter, "POST", 2);
    shop.fault(Kind::DropBefore, "GET", 2);
    shop.sweep().await;
    assert_eq!((shop.payments_made(), shop.text("SELECT status FROM top_ups").await), (1, "pending".to_owned()));
    // Even an hour later: while nobody knows what became of it, no other is begun.
    shop.an_hour_passes().await;
    shop.sweep().await;
    assert_eq!((shop.tries().await, shop.payments_made()), (1, 1));
    shop.poll().await;
    shop.assert_credited_once("50.00").await;
    assert_eq!(shop.automatic_now().await["failures"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_never_arrived_is_nobodys_failure() {
    let shop = Shop::automatic("pm_card_visa").await;
    shop.fault(Kind::DropBefore, "POST", 2);
    shop.sweep().await;
    shop.execute("UPDATE top_ups SET created_at = created_at - interval '31 minutes'").await;
    shop.poll().await;
    assert_eq!(shop.text("SELECT status || ' ' || failure_code FROM top_ups").await, "canceled never_arrived");
    let read = shop.automatic_now().await;
    assert_eq!((&read["state"], &read["failures"], shop.letters().await.len()), (&json!("on"), &json!(0), 0));
    shop.an_hour_passes().await;
    shop.sweep().await;
    shop.assert_credited_once("50.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_its_card_pauses_it_with_a_reason() {
    let shop = Shop::automatic("pm_card_visa").await;
    let other = shop.save_card("pm_card_mastercard").await;
    let card = shop.automatic_now().await["payment_method"].as_str().unwrap().to_owned();
    shop.ada.http.delete(&format!("/api/v1/payment-methods/{other}")).expect(204).await;
    assert_eq!(shop.automatic_now().await["state"], "on");
    shop.ada.http.delete(&format!("/api/v1/payment-methods/{card}")).expect(204).await;
    let read = shop.automatic_now().await;
    assert_eq!((&read["state"], &read["paused_reason"]), (&json!("paused"), &json!("payment_method_removed")));
    shop.sweep().await;
    assert_eq!(shop.tries().await, 0);
    assert!(shop.letters().await[0].contains("The card that it charged was removed"));
    let form = json!({ "threshold": "10.00", "amount": "50.00" });
    let problem = shop.ada.http.put(AUTOMATIC).json(&form).expect_problem(422, "invalid_input").await;
    assert_eq!(problem["errors"][0]["pointer"], "/payment_method");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_set_is_checked() {
    let shop = Shop::automatic("pm_card_visa").await;
    let rows = [
        (json!({ "threshold": "0.00", "amount": "50.00" }), "/threshold"),
        (json!({ "threshold": "10.00", "amount": "4.99" }), "/amount"),
        (json!({ "threshold": "10.00", "amount": "50.005" }), "/amount"),
        (json!({ "threshold": "10.00", "amount": "50.00", "monthly_max": "49.99" }), "/monthly_max"),
        (json!({ "threshold": "10.00", "amount": "50.00", "payment_method": "card" }), "/payment_method"),
        (json!({ "threshold": "10.00", "amount": "50.00", "payment_method": "pm_card_visa" }), "/payment_method"),
        (json!({ "threshold": "-1.00", "amount": "50.00" }), "/threshold"),
    ];
    for (form, pointer) in rows {
        let problem = shop.ada.http.put(AUTOMATIC).json(&form).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{form}");
    }
    assert_eq!(shop.automatic_now().await["threshold"], "10.00");
}
