//! Beginning Pro when something goes wrong: cards that decline or ask, pages that run out, answers that are lost; and the pure rules.

use rigmark::billing::pro::model::ProStatus;
use serde_json::{Value, json};

use super::pro::{DAY, ProShop, monthly, price};
use super::{double, test_mode};
use crate::support::stripe_double::{Fault, Kind, Release};

#[test]
fn what_has_ended_never_comes_back() {
    for over in [ProStatus::Canceled, ProStatus::IncompleteExpired] {
        for next in ProStatus::ALL {
            assert!(!over.may_become(next, true), "{over:?} {next:?}");
        }
    }
    for live in [ProStatus::Active, ProStatus::PastDue, ProStatus::Trialing, ProStatus::Unpaid, ProStatus::Paused] {
        assert!(live.may_become(ProStatus::Canceled, false), "an end counts whenever it was seen");
        assert!(live.may_become(ProStatus::PastDue, true) && !live.may_become(ProStatus::PastDue, false), "an old answer says nothing new");
        assert!(!live.may_become(ProStatus::Incomplete, true) && !live.may_become(ProStatus::Failed, true));
        assert!(ProStatus::Failed.may_become(live, false), "what was paid after all counts");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declined_card_leaves_nothing_behind() {
    let shop = ProShop::new().await;
    let failed = shop.subscribe("k", monthly("pm_card_chargeDeclined")).await;
    assert_eq!((&failed["status"], &failed["failure_code"]), (&json!("failed"), &json!("generic_decline")));
    assert!(!shop.is_pro().await);
    assert_eq!(shop.subscribe("again", monthly("pm_card_visa")).await["status"], "active");
    shop.assert_paid(1, "30000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_payment_that_fails_can_be_given_up() {
    let shop = ProShop::new().await;
    let begun = shop.subscribe("k", monthly("pm_card_chargeCustomerFail")).await;
    assert_eq!((&begun["status"], begun["client_secret"].is_string()), (&json!("incomplete"), true));
    assert!(!shop.is_pro().await);
    assert_eq!(shop.pro().await["subscription"].get("client_secret"), None);
    shop.ada
        .http
        .post("/api/v1/pro")
        .idempotency_key("other")
        .json(&monthly("pm_card_visa"))
        .expect_problem(409, "already_subscribed")
        .await;
    assert_eq!(shop.ada.http.post("/api/v1/pro/cancel").expect(200).await["status"], "canceled");
    shop.tell(true).await;
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("canceled", false));
    assert_eq!(shop.subscribe("other", monthly("pm_card_visa")).await["status"], "active");
    shop.assert_paid(1, "30000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_asks_its_owner_gives_pro_once_answered() {
    for by_webhook in [true, false] {
        let shop = ProShop::new().await;
        let begun = shop.subscribe("k", monthly("pm_card_authenticationRequired")).await;
        assert_eq!((&begun["status"], shop.is_pro().await), (&json!("incomplete"), false));
        let payment = begun["client_secret"].as_str().unwrap().split("_secret_").next().unwrap();
        shop.stripe.control("POST", &format!("payment_intents/{payment}"), &json!({ "outcome": "succeeded" })).unwrap();
        if by_webhook {
            shop.tell(true).await
        } else {
            shop.poll_pro().await
        }
        assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("active", true));
        shop.assert_paid(1, "30000000").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_pays_with_the_secret_of_the_first_invoice() {
    let shop = ProShop::new().await;
    let begun = shop.subscribe("k", json!({ "plan": "yearly" })).await;
    assert_eq!((&begun["status"], shop.is_pro().await), (&json!("incomplete"), false));
    let payment = begun["client_secret"].as_str().unwrap().split("_secret_").next().unwrap().to_owned();
    shop.pay(&payment, "pm_card_visa").await;
    shop.tell(false).await;
    assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("active", true));
    shop.assert_paid(1, "300000000").await;
}

fn page() -> Value {
    json!({ "plan": "monthly", "return_url": "https://example.org/pro" })
}

fn session_of(begun: &Value) -> String {
    begun["checkout_url"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_page_begins_it() {
    for by_webhook in [true, false] {
        let shop = ProShop::new().await;
        let begun = shop.subscribe("k", page()).await;
        assert_eq!((&begun["status"], shop.is_pro().await), (&json!("incomplete"), false));
        let card = json!({ "card": "4242424242424242" });
        shop.stripe.control("POST", &format!("checkout/{}", session_of(&begun)), &card).unwrap();
        if by_webhook {
            shop.tell(true).await
        } else {
            shop.poll_pro().await
        }
        assert_eq!((shop.status().await.as_str(), shop.is_pro().await), ("active", true));
        shop.assert_paid(1, "30000000").await;
        assert_eq!(shop.count("stripe_events WHERE outcome = 'alarm'").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_runs_out_or_is_given_up_came_to_nothing() {
    let shop = ProShop::new().await;
    let begun = shop.subscribe("k", page()).await;
    shop.pass(2 * DAY);
    shop.tell(false).await;
    assert_eq!(shop.text("SELECT status || ' ' || failure_code FROM pro_subscriptions").await, "failed checkout_expired");
    let second = shop.subscribe("again", page()).await;
    assert_ne!(begun["id"], second["id"]);
    let given_up = shop.ada.http.post("/api/v1/pro/cancel").expect(200).await;
    assert_eq!((&given_up["status"], &given_up["failure_code"]), (&json!("failed"), &json!("canceled")));
    // Nobody can pay there any more.
    let card = json!({ "card": "4242424242424242" });
    shop.stripe.control("POST", &format!("checkout/{}", session_of(&second)), &card).unwrap_err();
    assert_eq!(shop.count("transfers").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_found_by_asking() {
    for kind in [Kind::DropAfter, Kind::DelayAfter] {
        let shop = ProShop::new().await;
        let fault = Fault { delay_ms: 1_500, times: 2, ..Fault::new(kind) };
        shop.stripe.fault(Fault { method: Some("POST".to_owned()), path: Some("/v1/subscriptions".to_owned()), ..fault });
        assert_eq!(shop.subscribe("k", monthly("pm_card_visa")).await["status"], "active", "{kind:?}");
        assert_eq!(shop.stripe.with(|world| world.all("subscription").len()), 1);
        shop.tell(true).await;
        shop.assert_paid(1, "30000000").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_never_arrived_frees_the_account_after_a_while() {
    let shop = ProShop::new().await;
    let fault =
        Fault { method: Some("POST".to_owned()), path: Some("/v1/subscriptions".to_owned()), times: 2, ..Fault::new(Kind::DropBefore) };
    shop.stripe.fault(fault);
    shop.ada.http.post("/api/v1/pro").idempotency_key("k").json(&monthly("pm_card_visa")).expect_problem(503, "unavailable").await;
    shop.poll_pro().await;
    assert_eq!(shop.status().await, "pending");
    shop.app.shift_wall(1_860);
    shop.poll_pro().await;
    assert_eq!(shop.text("SELECT status || ' ' || failure_code FROM pro_subscriptions").await, "failed never_arrived");
    shop.app.shift_wall(-1_860);
    assert_eq!(shop.subscribe("again", monthly("pm_card_visa")).await["status"], "active");
    shop.assert_paid(1, "30000000").await;
}

/// Its first request was given up here, and Stripe has it after all.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_subscription_of_one_account_is_an_alarm() {
    let shop = ProShop::new().await;
    shop.subscribe("k", monthly("pm_card_chargeDeclined")).await;
    let first = shop.text("SELECT id FROM pro_subscriptions").await;
    shop.subscribe("again", monthly("pm_card_visa")).await;
    let first: rigmark::base::id::ProSubscriptionId = rigmark::base::Id::from_uuid(first.parse().unwrap());
    let subscription = shop.subscription();
    let (customer, item) = (subscription["customer"].as_str().unwrap(), subscription["items"]["data"][0]["price"]["id"].as_str().unwrap());
    let method = shop.at_stripe("/v1/payment_methods/pm_card_visa/attach", &[("customer", customer)]).await;
    let name = first.to_string();
    let form = [
        ("customer", customer),
        ("items[0][price]", item),
        ("default_payment_method", method["id"].as_str().unwrap()),
        ("metadata[rigmark_id]", name.as_str()),
    ];
    shop.at_stripe("/v1/subscriptions", &form).await;
    shop.tell(true).await;
    assert_eq!(shop.text("SELECT alarm FROM pro_subscriptions ORDER BY id LIMIT 1").await, "second_subscription");
    shop.assert_paid(1, "30000000").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_that_is_none_of_ours_makes_stripe_come_again() {
    let shop = ProShop::new().await;
    let customer = shop.at_stripe("/v1/customers", &[]).await["id"].as_str().unwrap().to_owned();
    let method = shop.at_stripe("/v1/payment_methods/pm_card_visa/attach", &[("customer", customer.as_str())]).await;
    let other = price(&shop.stripe, "100", "month").await;
    let form =
        [("customer", customer.as_str()), ("items[0][price]", other.as_str()), ("default_payment_method", method["id"].as_str().unwrap())];
    shop.at_stripe("/v1/subscriptions", &form).await;
    let events = ["customer.subscription.created", "invoice.paid", "payment_intent.succeeded"].map(str::to_owned).to_vec();
    assert_eq!(shop.release(Release { events, ..Release::default() }).await, [404, 404, 404]);
    assert_eq!((shop.count("transfers").await, shop.count("stripe_events").await), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_that_do_not_fit_stop_the_program() {
    let stripe = double();
    let (month, year) = (price(&stripe, "3000", "month").await, price(&stripe, "30000", "year").await);
    let database = crate::support::database().await;
    for (monthly, yearly, fault) in [
        (&year, &month, "STRIPE_PRICE_PRO_MONTHLY: the price must be paid once a month."),
        (&month, &"price_none".to_owned(), "STRIPE_PRICE_PRO_YEARLY: Stripe has no price price_none."),
    ] {
        let dir = crate::support::TempDir::new();
        let mut config = crate::support::sandbox_config(database.url(), &dir);
        let prices = rigmark::config::ProPriceIds { monthly: monthly.clone(), yearly: yearly.clone() };
        test_mode(&mut config, &stripe.url(), Some(prices));
        let parts = rigmark::app::Parts { http: false, workers: false };
        let error = rigmark::app::start(config, parts).await.err().expect("the program must not start");
        assert_eq!(error.detail(), fault);
    }
}
