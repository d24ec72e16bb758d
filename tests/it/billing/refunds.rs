//! Refunds that are asked for here and at Stripe (money.md 21).

use futures::future::join_all;
use rigmark::{
    base::{Code, Money, id::HoldId},
    ledger::{
        self, LedgerAccount, TransferCode,
        model::{Actor, HoldRequest, derived_id},
        service::{Posting, TransferRequest},
    },
};
use serde_json::{Value, json};

use super::{Shop, fifty};
use crate::support::{
    hosts::{account_id, person},
    stripe_double::Release,
};

impl Shop {
    /// A top-up of this amount that was paid.
    pub async fn paid(&self, key: &str, amount: &str) -> Value {
        let top_up = self.top_up(key, json!({ "amount": amount, "payment_method": "pm_card_visa" })).await;
        assert_eq!(top_up["status"], "succeeded");
        top_up
    }

    /// The PaymentIntent of a top-up.
    pub async fn payment_of(&self, top_up: &Value) -> String {
        let entries = self.ada.http.get("/api/v1/top-ups").expect(200).await;
        assert!(entries["data"].as_array().unwrap().iter().any(|row| row["id"] == top_up["id"]));
        let id: rigmark::base::id::TopUpId = top_up["id"].as_str().unwrap().parse().unwrap();
        self.text(&format!("SELECT payment_intent_id FROM top_ups WHERE id = '{}'", id.uuid())).await
    }

    pub fn refund_request(&self, key: &str, top_up: &Value, amount: &str) -> crate::support::http::Request {
        let form = json!({ "top_up_id": top_up["id"], "amount": amount });
        self.ada.http.post("/api/v1/refunds").idempotency_key(key).json(&form)
    }

    /// A refund that must be answered 201.
    pub async fn refund(&self, key: &str, top_up: &Value, amount: &str) -> Value {
        self.refund_request(key, top_up, amount).expect(201).await
    }

    pub async fn read_refund(&self, refund: &Value) -> Value {
        self.ada.http.get(&format!("/api/v1/refunds/{}", refund["id"].as_str().unwrap())).expect(200).await
    }

    /// Makes every refund and dispute that may change due, and the reading of Stripe's lists, and lets the pollers run.
    pub async fn poll_moves(&self) {
        self.execute("UPDATE refunds SET ask_at = created_at WHERE ask_at IS NOT NULL").await;
        self.execute("UPDATE disputes SET ask_at = created_at WHERE ask_at IS NOT NULL").await;
        self.execute("UPDATE stripe_scans SET due_at = through").await;
        rigmark::billing::refunds::service::ask_due(self.app.ctx()).await.unwrap();
        rigmark::billing::disputes::service::ask_due(self.app.ctx()).await.unwrap();
    }

    /// Every balance that is not zero, in cents; and the books agree with the postings.
    pub async fn books(&self) -> String {
        let report = ledger::service::reconcile(&mut self.app.connect().await).await.unwrap();
        assert_eq!(report.differences, Vec::new());
        let balances = "SELECT coalesce(string_agg(kind || ' ' || balance_micros / 10000, ', ' ORDER BY kind), '')
            FROM ledger_accounts WHERE balance_micros <> 0";
        self.text(balances).await
    }

    /// Sets money aside, as a rental would.
    pub async fn set_aside(&self, dollars: i64) {
        let account = account_id(&self.app, &self.ada).await;
        let ctx = self.app.ctx();
        let hold = async |tx: &mut rigmark::db::Tx<'_>| {
            let request = HoldRequest {
                id: HoldId::new(),
                transfer_id: derived_id(&["test", &HoldId::new().to_string()]),
                account,
                rental: None,
                amount: Money::usd_micros(dollars * 1_000_000),
                actor: Actor::System,
                business_at: ctx.business_now(tx).await?,
                expires_at: None,
            };
            ledger::service::hold(tx, request).await
        };
        ctx.db.tx("set_aside", hold).await.unwrap();
    }

    /// The events of these types, each as often as said; all must be taken.
    pub async fn told(&self, events: &[&str], copies: usize) {
        let events: Vec<String> = events.iter().map(|event| (*event).to_owned()).collect();
        let expected = vec![200; events.len() * copies];
        assert_eq!(self.release(Release { events, copies, ..Release::default() }).await, expected);
    }

    pub fn refunds_at_stripe(&self) -> Vec<Value> {
        self.stripe.with(|world| world.all("refund"))
    }

    /// A refund that somebody makes in Stripe's dashboard, in cents.
    pub async fn refund_at_stripe(&self, payment: &str, cents: &str) -> Value {
        let refund = self.at_stripe("/v1/refunds", &[("payment_intent", payment), ("amount", cents)]).await;
        assert_eq!(refund["object"], "refund", "{refund}");
        refund
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_leaves_the_balance_and_is_a_line_of_its_own() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    let refund = shop.refund("k", &top_up, "60.00").await;
    assert_eq!(
        (&refund["status"], &refund["amount"], &refund["currency"], &refund["origin"], &refund["top_up_id"]),
        (&json!("succeeded"), &json!("60.00"), &json!("usd"), &json!("request"), &top_up["id"])
    );
    assert_eq!((&refund["failure_code"], refund["settled_at"].is_string()), (&Value::Null, true));
    assert_eq!(shop.books().await, "available 4000, stripe:clearing -4000");
    let call = shop.stripe.calls().into_iter().find(|call| call["path"] == "/v1/refunds" && call["method"] == "POST").unwrap();
    assert_eq!(call["idempotency_key"], format!("{}:refund", refund["id"].as_str().unwrap()));
    assert_eq!((&call["params"]["metadata"]["rigmark_id"], &call["params"]["amount"]), (&refund["id"], &json!("6000")));
    assert_eq!(call["params"]["payment_intent"], shop.payment_of(&top_up).await);
    let statement = shop.ada.http.get("/api/v1/statements").expect(200).await;
    let lines: Vec<_> = statement["lines"].as_array().unwrap().iter().map(|line| (line["code"].clone(), line["amount"].clone())).collect();
    assert_eq!(lines, [(json!("top_up"), json!("100.00")), (json!("refund"), json!("-60.00"))]);
    assert_eq!((&statement["closing"], shop.available().await.as_str()), (&json!("40.00"), "40.00"));
    // What Stripe tells afterwards is no news.
    assert!(shop.release(Release { copies: 2, parallel: 4, ..Release::default() }).await.iter().all(|status| *status == 200));
    shop.poll_moves().await;
    assert_eq!(shop.books().await, "available 4000, stripe:clearing -4000");
    assert_eq!((shop.read_refund(&refund).await, shop.refunds_at_stripe().len()), (refund, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_one_refund() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    let first = shop.refund("k", &top_up, "60.00").await;
    assert_eq!(shop.refund("k", &top_up, "60.00").await, first);
    shop.refund_request("k", &top_up, "10.00").expect_problem(422, "idempotency_key_reused").await;
    // The answer is forgotten, the refund is not.
    shop.execute("DELETE FROM idempotency_keys").await;
    assert_eq!(shop.refund("k", &top_up, "60.00").await["id"], first["id"]);
    shop.execute("DELETE FROM idempotency_keys").await;
    shop.refund_request("k", &top_up, "10.00").expect_problem(422, "idempotency_key_reused").await;
    assert_eq!(shop.books().await, "available 4000, stripe:clearing -4000");
    // A day later the key is free.
    shop.execute("DELETE FROM idempotency_keys").await;
    shop.execute("UPDATE refunds SET created_at = created_at - interval '26 hours'").await;
    assert_ne!(shop.refund("k", &top_up, "10.00").await["id"], first["id"]);
    assert_eq!((shop.refunds_at_stripe().len(), shop.books().await.as_str()), (2, "available 3000, stripe:clearing -3000"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_refund_is_said_before_stripe_hears_of_it() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    shop.top_up("other", fifty("pm_card_visa")).await;
    for (at, amount) in ["-5.00", "0.00", "100.000001", "100.01", "150.00", "0.001"].into_iter().enumerate() {
        let problem = shop.refund_request(&format!("k{at}"), &top_up, amount).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], "/amount", "{amount}: {problem}");
    }
    let form = json!({ "top_up_id": top_up["id"], "amount": "10.00" });
    shop.ada.http.post("/api/v1/refunds").json(&form).expect_problem(400, "idempotency_key_required").await;
    let form = json!({ "top_up_id": top_up["id"], "amount": "10.00", "currency": "eur" });
    shop.ada.http.post("/api/v1/refunds").idempotency_key("c").json(&form).expect_problem(422, "invalid_input").await;
    let unknown = json!({ "id": "top_01h455vb4pex5vsknk084sn02q" });
    shop.refund_request("u", &unknown, "10.00").expect_problem(404, "not_found").await;
    let bob = person(&shop.app, "bob").await;
    let form = json!({ "top_up_id": top_up["id"], "amount": "10.00" });
    bob.http.post("/api/v1/refunds").idempotency_key("k").json(&form).expect_problem(404, "not_found").await;
    let open = shop.top_up("open", json!({ "amount": "50.00" })).await;
    shop.refund_request("o", &open, "10.00").expect_problem(409, "invalid_state").await;
    assert_eq!((shop.refunds_at_stripe().len(), shop.count("refunds").await), (0, 0));
    assert_eq!(shop.books().await, "available 15000, stripe:clearing -15000");
}

/// cases.md 2: credit that was spent does not go back.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_spent_or_set_aside_cannot_go_back() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    shop.set_aside(70).await;
    let problem = shop.refund_request("k", &top_up, "30.01").expect_problem(422, "invalid_input").await;
    assert_eq!(problem["errors"][0]["code"], "more_than_available");
    assert_eq!(shop.refund("l", &top_up, "30.00").await["status"], "succeeded");
    assert_eq!(shop.books().await, "held 7000, stripe:clearing -7000");
}

/// Whatever the program looked at before: the database lets only what has left at Stripe leave a debt.
#[tokio::test(flavor = "multi_thread")]
async fn no_refund_that_is_asked_for_leaves_a_debt() {
    let shop = Shop::new().await;
    shop.paid("t", "100.00").await;
    let account = account_id(&shop.app, &shop.ada).await;
    let ctx = shop.app.ctx();
    let post = async |code: TransferCode| {
        let refund = async |tx: &mut rigmark::db::Tx<'_>| {
            let (from, to) = (LedgerAccount::Available(account), LedgerAccount::RefundsInTransit);
            let request = TransferRequest {
                id: derived_id(&["test", code.as_str()]),
                code,
                postings: Posting::between(from, to, Money::usd_micros(100_010_000))?,
                rental: None,
                payment: Some("pi_1".to_owned()),
                actor: Actor::System,
                business_at: ctx.business_now(tx).await?,
                linked: None,
            };
            ledger::service::post(tx, request).await
        };
        ctx.db.tx("test", refund).await
    };
    assert_eq!(post(TransferCode::Refund).await.unwrap_err().code(), Code::InsufficientFunds);
    post(TransferCode::RefundAtStripe).await.unwrap();
    assert_eq!(shop.books().await, "available -1, stripe:clearing -10000, stripe:refunds_in_transit 10001");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_newest_first_and_of_the_account() {
    let shop = Shop::new().await;
    let (one, two) = (shop.paid("t", "100.00").await, shop.paid("u", "50.00").await);
    let mut ids = Vec::new();
    for (key, top_up) in [("a", &one), ("b", &two), ("c", &one)] {
        ids.insert(0, shop.refund(key, top_up, "10.00").await["id"].clone());
    }
    let listed = |page: &Value| page["data"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>();
    let first = shop.ada.http.get("/api/v1/refunds?limit=2").expect(200).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = shop.ada.http.get(&format!("/api/v1/refunds?limit=2&cursor={cursor}")).expect(200).await;
    assert_eq!([listed(&first), listed(&second)].concat(), ids);
    let of_two = shop.ada.http.get(&format!("/api/v1/refunds?top_up_id={}", two["id"].as_str().unwrap())).expect(200).await;
    assert_eq!(listed(&of_two), [ids[1].clone()]);
    assert!(listed(&shop.ada.http.get("/api/v1/refunds?status=failed").expect(200).await).is_empty());
    let bob = person(&shop.app, "bob").await;
    assert!(listed(&bob.http.get("/api/v1/refunds").expect(200).await).is_empty());
    bob.http.get(&format!("/api/v1/refunds/{}", ids[0].as_str().unwrap())).expect_problem(404, "not_found").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_60_dollar_refunds_of_100_dollars_exactly_one_succeeds_200_times() {
    let shop = Shop::new().await;
    for round in 0..200 {
        let top_up = shop.paid(&format!("t{round}"), "100.00").await;
        let fire = async |key: &str| shop.refund_request(&format!("{key}{round}"), &top_up, "60.00").answer().await;
        let answers = join_all([fire("a"), fire("b")]).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 422], "round {round}: {answers:?}", answers = answers.iter().map(|a| &a.body).collect::<Vec<_>>());
        let won = answers.iter().find(|answer| answer.status == 201).unwrap().json();
        assert_eq!(won["status"], "succeeded", "round {round}");
    }
    assert_eq!((shop.count("refunds WHERE status = 'succeeded'").await, shop.count("refunds").await), (200, 200));
    assert_eq!(shop.refunds_at_stripe().len(), 200);
    assert_eq!(shop.books().await, "available 800000, stripe:clearing -800000");
}

/// The same when the balance is the limit: several payments, and money for one refund only.
#[tokio::test(flavor = "multi_thread")]
async fn refunds_of_several_payments_at_once_stay_within_the_balance() {
    let shop = Shop::new().await;
    let mut top_ups = Vec::new();
    for at in 0..6 {
        top_ups.push(shop.paid(&format!("t{at}"), "100.00").await);
    }
    shop.set_aside(450).await;
    let fire = async |at: usize| shop.refund_request(&format!("k{at}"), &top_ups[at], "60.00").answer().await;
    let answers = join_all((0..6).map(fire)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 2);
    assert_eq!(answers.iter().filter(|answer| answer.status == 422).count(), 4);
    assert_eq!(shop.books().await, "available 3000, held 45000, stripe:clearing -48000");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_refund_is_in_transit_until_it_succeeds_or_fails() {
    for (end, books, status) in [
        ("succeeded", "available 4000, stripe:clearing -4000", "succeeded"),
        ("failed", "available 10000, stripe:clearing -10000", "failed"),
        ("canceled", "available 10000, stripe:clearing -10000", "failed"),
    ] {
        for polls in [false, true] {
            let shop = Shop::new().await;
            let top_up = shop.paid("t", "100.00").await;
            shop.stripe.with(|world| world.refunds_wait = true);
            let refund = shop.refund("k", &top_up, "60.00").await;
            assert_eq!((&refund["status"], &refund["settled_at"]), (&json!("pending"), &Value::Null));
            let transit = "available 4000, stripe:clearing -10000, stripe:refunds_in_transit 6000";
            assert_eq!(shop.books().await, transit);
            shop.poll_moves().await;
            assert_eq!(shop.books().await, transit);
            // What is on its way counts: no more than 40 is left.
            shop.refund_request("l", &top_up, "40.01").expect_problem(422, "invalid_input").await;
            let id = shop.refunds_at_stripe()[0]["id"].as_str().unwrap().to_owned();
            shop.stripe.control("POST", &format!("refunds/{id}"), &json!({ "status": end })).unwrap();
            if polls {
                shop.poll_moves().await
            } else {
                shop.told(&["refund.updated"], 2).await
            }
            assert_eq!(shop.books().await, books, "{end}");
            assert_eq!(shop.read_refund(&refund).await["status"], status);
            shop.poll_moves().await;
            shop.release(Release { copies: 2, ..Release::default() }).await;
            assert_eq!(shop.books().await, books, "{end}");
            let codes = "SELECT string_agg(code, ' ' ORDER BY created_at) FROM transfers";
            let last = if end == "succeeded" { "refund_settled" } else { "refund_failed" };
            assert_eq!(shop.text(codes).await, format!("top_up refund {last}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_fails_after_it_succeeded_is_reversed_once() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    let refund = shop.refund("k", &top_up, "60.00").await;
    let id = shop.refunds_at_stripe()[0]["id"].as_str().unwrap().to_owned();
    let failed = json!({ "status": "failed", "failure_reason": "expired_or_canceled_card" });
    shop.stripe.control("POST", &format!("refunds/{id}"), &failed).unwrap();
    shop.told(&["refund.failed", "refund.updated", "refund.failed"], 2).await;
    shop.poll_moves().await;
    shop.release(Release { reverse: true, copies: 2, parallel: 4, ..Release::default() }).await;
    assert_eq!(shop.books().await, "available 10000, stripe:clearing -10000");
    let read = shop.read_refund(&refund).await;
    assert_eq!((&read["status"], &read["failure_code"]), (&json!("failed"), &json!("expired_or_canceled_card")));
    assert_eq!(shop.count("transfers WHERE code = 'refund_failed' AND linked_transfer_id IS NOT NULL").await, 1);
    // The whole payment can go back again.
    assert_eq!(shop.refund("l", &top_up, "100.00").await["status"], "succeeded");
    assert_eq!(shop.books().await, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_made_at_stripe_is_booked_once_whoever_finds_it() {
    for finder in ["charge.refunded", "refund.created", "the poller"] {
        let shop = Shop::new().await;
        let top_up = shop.paid("t", "100.00").await;
        let payment = shop.payment_of(&top_up).await;
        shop.refund("k", &top_up, "20.00").await;
        shop.poll_moves().await;
        shop.refund_at_stripe(&payment, "3000").await;
        shop.refund_at_stripe(&payment, "500").await;
        if finder == "the poller" {
            shop.poll_moves().await
        } else {
            shop.told(&[finder], 2).await
        }
        let books = "available 4500, stripe:clearing -4500";
        if finder != "the poller" {
            // The oldest event of the type is that of the first refund; what is read is all that there is now.
            assert_eq!(shop.books().await, books, "{finder}");
        }
        shop.poll_moves().await;
        shop.release(Release { copies: 2, parallel: 4, ..Release::default() }).await;
        assert_eq!(shop.books().await, books, "{finder}");
        let listed = shop.ada.http.get("/api/v1/refunds").expect(200).await;
        let listed: Vec<_> = listed["data"].as_array().unwrap().iter().map(|row| (row["origin"].clone(), row["amount"].clone())).collect();
        assert_eq!(listed, [(json!("stripe"), json!("5.00")), (json!("stripe"), json!("30.00")), (json!("request"), json!("20.00"))]);
        shop.refund_request("l", &top_up, "45.01").expect_problem(422, "invalid_input").await;
        assert_eq!(shop.count("refunds WHERE alarm IS NOT NULL").await, 0);
    }
}

/// The money has left, so the books say so, and the account owes what it had spent.
#[tokio::test(flavor = "multi_thread")]
async fn a_refund_made_at_stripe_of_what_was_spent_leaves_a_debt() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    let payment = shop.payment_of(&top_up).await;
    shop.set_aside(70).await;
    shop.refund_at_stripe(&payment, "10000").await;
    shop.told(&["charge.refunded"], 1).await;
    assert_eq!(shop.books().await, "available -7000, held 7000");
    assert_eq!(shop.available().await, "-70.00");
    // It comes back: the debt is gone.
    let id = shop.refunds_at_stripe()[0]["id"].as_str().unwrap().to_owned();
    shop.stripe.control("POST", &format!("refunds/{id}"), &json!({ "status": "failed" })).unwrap();
    shop.told(&["refund.failed"], 2).await;
    assert_eq!(shop.books().await, "available 3000, held 7000, stripe:clearing -10000");
}

/// The rows and Stripe's own sum agree, or somebody is called.
#[tokio::test(flavor = "multi_thread")]
async fn a_sum_that_the_list_does_not_explain_is_an_alarm() {
    let shop = Shop::new().await;
    let top_up = shop.paid("t", "100.00").await;
    let payment = shop.payment_of(&top_up).await;
    shop.refund_at_stripe(&payment, "3000").await;
    shop.stripe.with(|world| {
        let mut charge = world.all("charge").remove(0);
        charge["amount_refunded"] = json!(4_000);
        world.put(&charge);
    });
    shop.told(&["charge.refunded"], 1).await;
    assert_eq!(shop.text("SELECT outcome FROM stripe_events").await, "alarm");
    assert_eq!(shop.books().await, "available 7000, stripe:clearing -7000");
}

#[tokio::test]
async fn the_sandbox_refunds_nothing() {
    let app = crate::support::TestApp::new().await;
    let ada = person(&app, "ada").await;
    let form = json!({ "top_up_id": "top_01h455vb4pex5vsknk084sn02q", "amount": "10.00" });
    ada.http.post("/api/v1/refunds").idempotency_key("k").json(&form).expect_problem(409, "no_payment_provider").await;
}
