//! Reconciliation: what it finds between the books, Stripe, and what runs; and that it may run whenever, beside itself.

use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection;
use rigmark::base::id::{AccountId, TransferId};
use rigmark::ledger::{
    Actor, LedgerAccount, TransferCode,
    service::{Posting, TransferRequest},
};
use rigmark::{billing, identity};
use serde_json::{Value, json};

use super::{Shop, fifty};
use crate::support::{
    TestApp,
    hosts::{Person, person},
    renting::{Stage, rental_id},
    stripe_double::{Fault, Kind},
};

const DAY_SECONDS: i64 = 24 * 3_600;

async fn operator(app: &TestApp) -> Person {
    let olga = person(app, "olga").await;
    identity::service::set_operator(&app.ctx().db, &app.ctx().clock, "olga", true).await.unwrap();
    olga
}

/// Reconciles; the outcome as its route shows it. Not through the route: wall time moves here, and access tokens with it.
async fn reconciled(app: &TestApp) -> Value {
    assert!(billing::reconcile::run(app.ctx(), TimeDelta::zero()).await.unwrap());
    shown(app).await
}

async fn shown(app: &TestApp) -> Value {
    serde_json::to_value(billing::reconciliation_latest(app.ctx()).await.unwrap()).unwrap()
}

/// Kinds and subjects of the findings, in the order of the kinds.
fn found(view: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found: Vec<_> =
        view["findings"].as_array().unwrap().iter().map(|finding| (text(&finding["kind"]), text(&finding["subject"]))).collect();
    found.sort();
    found
}

fn kinds(view: &Value) -> Vec<String> {
    found(view).into_iter().map(|(kind, _)| kind).collect()
}

/// A payment at Stripe that Rigmark knows nothing of; its id.
async fn paid_elsewhere(shop: &Shop, cents: &str, currency: &str) -> String {
    let form = [
        ("amount", cents),
        ("currency", currency),
        ("payment_method", "pm_card_visa"),
        ("confirm", "true"),
        ("automatic_payment_methods[enabled]", "true"),
        ("automatic_payment_methods[allow_redirects]", "never"),
    ];
    let payment = shop.at_stripe("/v1/payment_intents", &form).await;
    assert_eq!(payment["status"], "succeeded", "{payment}");
    payment["id"].as_str().unwrap().to_owned()
}

async fn post(shop: &Shop, code: TransferCode, from: LedgerAccount, to: LedgerAccount, amount: &str, payment: &str) -> TransferId {
    let id = TransferId::new();
    let request = TransferRequest {
        id,
        code,
        postings: Posting::between(from, to, amount.parse().unwrap()).unwrap(),
        rental: None,
        payment: Some(payment.to_owned()),
        actor: Actor::System,
        business_at: shop.app.ctx().clock.wall_now(),
        linked: None,
    };
    let posting = async |tx: &mut rigmark::db::Tx<'_>| rigmark::ledger::service::post(tx, request.clone()).await;
    shop.app.ctx().db.tx("test", posting).await.unwrap();
    id
}

async fn ada(shop: &Shop) -> AccountId {
    let id = shop.text("SELECT id FROM accounts WHERE handle = 'ada'").await;
    AccountId::from_uuid(id.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn books_that_agree_with_stripe_have_no_findings_and_add_up() {
    let shop = Shop::new().await;
    let olga = operator(&shop.app).await;
    let never = olga.http.get("/api/v1/reconciliation").expect(200).await;
    assert_eq!((&never["started_at"], &never["findings"]), (&Value::Null, &json!([])));
    shop.top_up("a", fifty("pm_card_visa")).await;
    shop.top_up("b", json!({ "amount": "100.00", "payment_method": "pm_card_visa" })).await;
    shop.top_up("c", fifty("pm_card_chargeDeclined")).await;
    shop.app.shift_wall(2 * DAY_SECONDS);
    let view = reconciled(&shop.app).await;
    assert_eq!((&view["findings"], &view["finding_count"]), (&json!([]), &json!(0)));
    let sums = &view["stripe"];
    assert_eq!((&sums["books"], &sums["stripe"], &sums["waiting"]), (&json!("150.00"), &json!("150.00"), &json!("0.00")));
    // 2.9 % and 30 cents of each, as the double charges; they are in no ledger account.
    assert_eq!((&sums["fees"], &sums["own"], &sums["transactions"]), (&json!("4.95"), &json!("0.00"), &json!(2)));
    let clearing = "SELECT balance_micros FROM ledger_accounts WHERE kind = 'stripe:clearing'";
    let net_and_fees = "SELECT -sum(net_minor_units + fee_minor_units) * 10000 FROM stripe_balance_transactions";
    assert_eq!(shop.text(clearing).await, shop.text(net_and_fees).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_only_stripe_knows_is_found_after_the_grace() {
    let shop = Shop::new().await;
    shop.top_up("a", fifty("pm_card_visa")).await;
    let payment = paid_elsewhere(&shop, "2000", "usd").await;
    let early = reconciled(&shop.app).await;
    assert_eq!((&early["findings"], &early["stripe"]["waiting"]), (&json!([]), &json!("-20.00")));
    shop.app.shift_wall(DAY_SECONDS + 60);
    let view = reconciled(&shop.app).await;
    assert_eq!(found(&view), [("stripe_only".to_owned(), payment)]);
    let finding = &view["findings"][0];
    assert_eq!((&finding["expected"], &finding["found"]), (&json!("20.000000 usd at Stripe"), &json!("nothing in the books")));
    assert_eq!((&view["stripe"]["books"], &view["stripe"]["stripe"]), (&json!("50.00"), &json!("70.00")));
    // What is found again keeps since when; what is found no more goes.
    shop.app.shift_wall(600);
    assert_eq!(reconciled(&shop.app).await["findings"][0]["first_seen_at"], finding["first_seen_at"]);
    shop.execute("DELETE FROM stripe_balance_transactions WHERE amount_minor_units = 2000").await;
    shop.app.shift_wall(5 * DAY_SECONDS);
    assert_eq!(reconciled(&shop.app).await["findings"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_only_the_books_have_and_other_amounts_are_found() {
    let shop = Shop::new().await;
    shop.top_up("a", fifty("pm_card_visa")).await;
    let payment = shop.text("SELECT payment_intent_id FROM top_ups").await;
    let available = LedgerAccount::Available(ada(&shop).await);
    post(&shop, TransferCode::TopUp, LedgerAccount::StripeClearing, available, "7", "pi_invented").await;
    post(&shop, TransferCode::Chargeback, available, LedgerAccount::StripeClearing, "3", &payment).await;
    paid_elsewhere(&shop, "900", "eur").await;
    // That one is in a currency without books is no matter of time.
    assert_eq!(kinds(&reconciled(&shop.app).await), ["other_currency"]);
    shop.app.shift_wall(DAY_SECONDS + 60);
    let view = reconciled(&shop.app).await;
    assert_eq!(kinds(&view), ["amount_differs", "books_only", "other_currency"]);
    let of = |kind: &str| view["findings"].as_array().unwrap().iter().find(|finding| finding["kind"] == kind).unwrap().clone();
    let differs = of("amount_differs");
    assert_eq!((&differs["subject"], &differs["found"]), (&json!(payment), &json!("47.000000 usd in the books")));
    assert_eq!(of("books_only")["subject"], "pi_invented");
}

/// A refund leaves Stripe's balance at once and our clearing when it is settled; one that fails comes back.
#[tokio::test(flavor = "multi_thread")]
async fn refunds_and_disputes_are_the_payments_own() {
    let shop = Shop::new().await;
    for key in ["a", "b", "c"] {
        shop.top_up(key, fifty("pm_card_visa")).await;
    }
    let payments: Vec<String> = {
        let listed = shop.text("SELECT string_agg(payment_intent_id, ' ' ORDER BY id) FROM top_ups").await;
        listed.split(' ').map(str::to_owned).collect()
    };
    let available = LedgerAccount::Available(ada(&shop).await);
    // Under the payment's name, under the refund's own, and a dispute.
    shop.at_stripe("/v1/refunds", &[("payment_intent", &payments[0]), ("amount", "2000")]).await;
    post(&shop, TransferCode::Refund, available, LedgerAccount::RefundsInTransit, "20", &payments[0]).await;
    let second = shop.at_stripe("/v1/refunds", &[("payment_intent", &payments[1]), ("amount", "1000")]).await;
    let refund = post(&shop, TransferCode::Refund, available, LedgerAccount::RefundsInTransit, "10", second["id"].as_str().unwrap()).await;
    shop.stripe.control("POST", "disputes", &json!({ "payment_intent": payments[2] })).unwrap();
    post(&shop, TransferCode::Chargeback, available, LedgerAccount::StripeClearing, "50", &payments[2]).await;
    shop.app.shift_wall(DAY_SECONDS + 60);
    let view = reconciled(&shop.app).await;
    assert_eq!(view["findings"], json!([]));
    assert_eq!((&view["stripe"]["books"], &view["stripe"]["stripe"]), (&json!("70.00"), &json!("70.00")));
    // Settled: it only moves on our side; the transfer names the payment through its link alone.
    let settled = TransferRequest {
        id: TransferId::new(),
        code: TransferCode::RefundSettled,
        postings: Posting::between(LedgerAccount::RefundsInTransit, LedgerAccount::StripeClearing, "10".parse().unwrap()).unwrap(),
        rental: None,
        payment: None,
        actor: Actor::System,
        business_at: shop.app.ctx().clock.wall_now(),
        linked: Some(refund),
    };
    let posting = async |tx: &mut rigmark::db::Tx<'_>| rigmark::ledger::service::post(tx, settled.clone()).await;
    shop.app.ctx().db.tx("test", posting).await.unwrap();
    shop.app.shift_wall(DAY_SECONDS);
    let view = reconciled(&shop.app).await;
    assert_eq!((&view["findings"], &view["stripe"]["books"]), (&json!([]), &json!("70.00")));
}

/// Pages of a hundred, more than one, and a position that is not gone back behind.
#[tokio::test(flavor = "multi_thread")]
async fn stripes_list_is_read_on_from_where_it_was() {
    let shop = Shop::new().await;
    shop.top_up("a", fifty("pm_card_visa")).await;
    for _ in 0..120 {
        paid_elsewhere(&shop, "100", "usd").await;
    }
    let lists = || shop.stripe.calls().iter().filter(|call| call["path"] == "/v1/balance_transactions").count();
    reconciled(&shop.app).await;
    assert_eq!((shop.count("stripe_balance_transactions").await, lists()), (121, 2));
    // An answer that never comes: the position does not move.
    let position = "SELECT stripe_read_through FROM reconciliations";
    let before = shop.text(position).await;
    shop.execute("DELETE FROM stripe_balance_transactions").await;
    shop.stripe.fault(Fault { path: Some("/v1/balance_transactions".to_owned()), times: 2, ..Fault::new(Kind::Status) });
    let view = reconciled(&shop.app).await;
    assert_eq!((&view["stripe_unanswered"], shop.count("stripe_balance_transactions").await), (&json!(true), 0));
    assert_eq!(shop.text(position).await, before);
    let view = reconciled(&shop.app).await;
    assert_eq!((&view["stripe_unanswered"], shop.count("stripe_balance_transactions").await), (&json!(false), 121));
    // Days later only the span since then, and its last hour again, is asked for.
    shop.app.shift_wall(3 * DAY_SECONDS);
    let asked = lists();
    reconciled(&shop.app).await;
    reconciled(&shop.app).await;
    let calls = shop.stripe.calls();
    let spans: Vec<&Value> = calls.iter().filter(|call| call["path"] == "/v1/balance_transactions").skip(asked).collect();
    let last = spans.last().unwrap();
    let from: i64 = last["params"]["created"]["gte"].as_str().unwrap().parse().unwrap();
    assert!(shop.app.ctx().clock.wall_now().timestamp() - from < 2 * 3_600, "{last}");
    assert!(last["params"]["created"].get("lt").is_none(), "{last}");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_stripe_is_silent_what_was_found_stands() {
    let shop = Shop::new().await;
    shop.top_up("a", fifty("pm_card_visa")).await;
    let payment = paid_elsewhere(&shop, "2000", "usd").await;
    shop.app.shift_wall(DAY_SECONDS + 60);
    reconciled(&shop.app).await;
    shop.stripe.fault(Fault { path: Some("/v1/balance_transactions".to_owned()), times: 2, ..Fault::new(Kind::Status) });
    let view = reconciled(&shop.app).await;
    assert_eq!((found(&view), &view["stripe_unanswered"]), (vec![("stripe_only".to_owned(), payment)], &json!(true)));
    assert_eq!(view["finding_count"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn any_number_at_once_leave_one_outcome_and_the_sweep_rests() {
    let shop = Shop::new().await;
    shop.top_up("a", fifty("pm_card_visa")).await;
    paid_elsewhere(&shop, "2000", "usd").await;
    shop.app.shift_wall(DAY_SECONDS + 60);
    let runs = (0..8).map(|_| billing::reconcile::run(shop.app.ctx(), TimeDelta::zero()));
    let done = futures::future::join_all(runs).await;
    assert!(done.iter().all(Result::is_ok) && done.iter().any(|done| matches!(done, Ok(true))), "{done:?}");
    assert_eq!(kinds(&shown(&shop.app).await), ["stripe_only"]);
    assert_eq!(shop.count("stripe_balance_transactions").await, 2);
    // Nobody has the lease afterwards; the sweep comes again after its rest.
    assert!(!billing::reconcile::run(shop.app.ctx(), TimeDelta::minutes(5)).await.unwrap());
    shop.app.shift_wall(301);
    assert!(billing::reconcile::run(shop.app.ctx(), TimeDelta::minutes(5)).await.unwrap());
    // Whoever died in one holds the others up for a quarter of an hour at most.
    shop.execute(&format!(
        "UPDATE reconciliations SET leased_until = '{}'",
        (shop.app.ctx().clock.wall_now() + TimeDelta::minutes(15)).to_rfc3339()
    ))
    .await;
    assert!(!billing::reconcile::run(shop.app.ctx(), TimeDelta::zero()).await.unwrap());
    shop.app.shift_wall(901);
    assert!(billing::reconcile::run(shop.app.ctx(), TimeDelta::zero()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn rentals_and_what_they_hold_agree_all_the_way() {
    let stage = Stage::new("20").await;
    let nothing = async |when: &str| {
        let view = reconciled(&stage.app).await;
        assert_eq!(view["findings"], json!([]), "{when}");
        view["rentals"].as_i64().unwrap()
    };
    assert_eq!(nothing("before").await, 0);
    let rental = stage.rent(json!({})).await;
    assert_eq!(nothing("held").await, 1);
    crate::support::renting::start(&stage.app, &stage.renter, rental_id(&rental)).await;
    stage.app.advance(3_600).await;
    assert_eq!(nothing("active").await, 1);
    stage.stop(&rental).await;
    assert_eq!(nothing("ended").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_side_that_lost_the_other_is_found() {
    let stage = Stage::new("20").await;
    let rental = stage.rent_active(json!({})).await;
    let (id, listing) = (rental["id"].as_str().unwrap().to_owned(), stage.offer.listing.to_string());
    // What was done behind the program's back, and what must be found, of what.
    let rows = [
        ("UPDATE holds SET rental_id = gen_random_uuid()", vec!["hold_without_rental", "rental_without_hold"]),
        ("UPDATE listings SET is_taken = false", vec!["rental_without_machine"]),
        ("DELETE FROM machine_watches WHERE reason LIKE 'rnt%'", vec!["rental_without_watch"]),
        ("UPDATE rental_segments SET ended_at = started_at", vec!["rental_without_span"]),
        ("UPDATE rentals SET paused_at = settled_through", vec!["rental_without_span"]),
        ("UPDATE rentals SET settled_through = settled_through - interval '1 hour'", vec!["rental_not_metered"]),
        ("UPDATE rentals SET next_due_at = now() - interval '1 hour'", vec!["rental_not_metered"]),
        (
            "UPDATE rentals SET status = 'ended', end_reason = 'operator', ended_at = now(), next_due_at = NULL",
            vec!["hold_without_rental", "machine_without_rental", "span_without_rental", "watch_without_rental"],
        ),
        ("UPDATE ledger_accounts SET balance_micros = balance_micros + 1 WHERE kind = 'available'", vec!["books", "books"]),
    ];
    let mut connection = stage.app.connect().await;
    let tables = ["holds", "listings", "machine_watches", "rental_segments", "rentals", "ledger_accounts"];
    for table in tables {
        connection.batch_execute(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await.unwrap();
    }
    for (change, expected) in rows {
        connection.batch_execute(&format!("BEGIN; SET LOCAL session_replication_role = replica; {change}; COMMIT")).await.unwrap();
        let view = reconciled(&stage.app).await;
        assert_eq!(kinds(&view), expected, "{change}: {view}");
        for (kind, subject) in found(&view) {
            let wanted = match kind.as_str() {
                "hold_without_rental" => "hld_",
                "machine_without_rental" => listing.as_str(),
                "watch_without_rental" => "mch_",
                "books" => "",
                _ => id.as_str(),
            };
            assert!(subject.starts_with(wanted), "{change}: {kind} {subject}");
        }
        let back: String =
            tables.iter().map(|table| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table};")).collect();
        connection.batch_execute(&format!("BEGIN; SET LOCAL session_replication_role = replica; {back} COMMIT")).await.unwrap();
    }
    assert_eq!(reconciled(&stage.app).await["findings"], json!([]));
}

/// The text of an id in SQL is the program's.
#[tokio::test]
async fn ids_are_written_alike_in_sql() {
    let shop = Shop::new().await;
    for _ in 0..50 {
        let id = TransferId::new();
        assert_eq!(shop.text(&format!("SELECT id_text('trf', '{}')", id.uuid())).await, id.to_string());
    }
    for (uuid, text) in [
        ("00000000-0000-0000-0000-000000000000", "trf_00000000000000000000000000"),
        ("ffffffff-ffff-ffff-ffff-ffffffffffff", "trf_7zzzzzzzzzzzzzzzzzzzzzzzzz"),
    ] {
        assert_eq!(shop.text(&format!("SELECT id_text('trf', '{uuid}')")).await, text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_what_was_found_to_operators_alone() {
    let shop = Shop::new().await;
    let olga = operator(&shop.app).await;
    let browser = crate::review::browser::Browser::signed_in(&shop.app, "olga").await;
    shop.ada.http.get("/api/v1/reconciliation").expect_problem(403, "forbidden").await;
    let never = browser.page("/en/reconciliation", 200).await;
    assert!(never.contains("There has been none yet"), "{never}");
    shop.top_up("a", fifty("pm_card_visa")).await;
    let payment = paid_elsewhere(&shop, "2000", "usd").await;
    let view = reconciled(&shop.app).await;
    assert_eq!(olga.http.get("/api/v1/reconciliation").expect(200).await, view);
    let page = browser.page("/en/reconciliation", 200).await;
    assert!(page.contains("Nothing differs") && page.contains("reconciliation\">"), "{page}");
    shop.app.shift_wall(DAY_SECONDS + 60);
    reconciled(&shop.app).await;
    let browser = crate::review::browser::Browser::signed_in(&shop.app, "olga").await;
    let page = browser.page("/en/reconciliation", 200).await;
    for text in ["1 finding", &payment, "Money at Stripe that is not in the books", "70.00", "By Stripe, before its fees"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    crate::pages::html::assert_sound("/en/reconciliation", &page);
    let other = crate::review::browser::Browser::signed_in(&shop.app, "ada").await;
    other.page("/en/reconciliation", 403).await;
    let stranger = shop.app.http.get("/en/reconciliation").answer().await;
    assert_eq!(stranger.status.as_u16(), 302);
}
