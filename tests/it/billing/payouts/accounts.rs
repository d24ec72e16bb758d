//! Setting up a payout account, and what becomes of it.

use serde_json::{Value, json};

use super::{Hosting, RETURN_URL};
use crate::support::{
    TestApp,
    hosts::person,
    stripe_double::{Fault, Kind, Release},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_host_answers_stripes_questions_and_is_then_paid() {
    let hosting = Hosting::new().await;
    let none = hosting.account().await;
    assert_eq!((&none["status"], &none["schedule"], &none["payable"]), (&json!("none"), &json!("manual"), &json!("0.00")));
    hosting.shop.ada.http.patch("/api/v1/payout-account").json(&json!({ "schedule": "weekly" })).expect_problem(404, "not_found").await;

    let first = hosting.onboard().await;
    assert_eq!((&first["status"], &first["country"], &first["payouts_enabled"]), (&json!("onboarding"), &json!("US"), &json!(false)));
    assert!(first["onboarding_url"].as_str().unwrap().contains("/onboard/acct_") && first["expires_at"].is_string(), "{first}");
    assert!(!first["requirements_due"].as_array().unwrap().is_empty());
    hosting.onboard().await;
    let calls = hosting.shop.stripe.calls();
    let made: Vec<&Value> = calls.iter().filter(|call| call["method"] == "POST" && call["path"] == "/v1/accounts").collect();
    assert_eq!(made.len(), 1);
    assert_eq!(made[0]["params"]["type"], "express");
    let key = made[0]["idempotency_key"].as_str().unwrap();
    assert_eq!(Some(made[0]["params"]["metadata"]["rigmark_id"].as_str().unwrap()), key.strip_suffix(":account"));
    assert!(key.starts_with("pac_"), "{key}");
    let links: Vec<&Value> = calls.iter().filter(|call| call["path"] == "/v1/account_links").collect();
    assert!(links.len() == 2 && links[0]["idempotency_key"] != links[1]["idempotency_key"], "{links:?}");

    hosting.at_stripe_becomes("complete").await;
    assert_eq!(hosting.release("account.updated").await, [200, 200]);
    assert_eq!(hosting.shop.text("SELECT status FROM payout_accounts").await, "enabled");
    let account = hosting.account().await;
    assert_eq!(
        (&account["status"], &account["requirements_due"], &account["payouts_enabled"]),
        (&json!("enabled"), &json!([]), &json!(true))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_whose_making_is_unclear_is_made_once() {
    let hosting = Hosting::new().await;
    let fault = |kind, method: &str, times| Fault {
        method: Some(method.to_owned()),
        path: Some("/v1/accounts".to_owned()),
        times,
        ..Fault::new(kind)
    };
    let request = || hosting.shop.ada.http.post("/api/v1/payout-account").json(&json!({ "return_url": RETURN_URL }));
    hosting.shop.stripe.fault(fault(Kind::DropAfter, "POST", 2));
    hosting.shop.stripe.fault(fault(Kind::DropBefore, "GET", 2));
    request().expect_problem(503, "unavailable").await;
    assert_eq!(hosting.shop.count("payout_accounts WHERE stripe_account_id IS NULL").await, 1);
    // Its events may come before anybody has asked.
    hosting.shop.stripe.fault(fault(Kind::DropAfter, "POST", 2));
    assert_eq!(request().expect(201).await["status"], "onboarding");
    assert_eq!(hosting.shop.stripe.with(|world| world.all("account").len()), 1);
    assert_eq!(hosting.shop.count("payout_accounts").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_came_to_nothing_does_not_stand_in_the_way() {
    let hosting = Hosting::new().await;
    let path = Some("/v1/accounts".to_owned());
    hosting.shop.stripe.fault(Fault { method: Some("POST".to_owned()), path, kept: true, ..Fault::new(Kind::Status) });
    let request = || hosting.shop.ada.http.post("/api/v1/payout-account").json(&json!({ "return_url": RETURN_URL }));
    request().expect_problem(503, "unavailable").await;
    request().expect_problem(503, "unavailable").await;
    hosting.shop.execute("UPDATE payout_accounts SET created_at = created_at - interval '31 minutes'").await;
    request().expect(201).await;
    assert_eq!(hosting.shop.count("payout_accounts WHERE is_current").await, 1);
    assert_eq!(hosting.shop.stripe.with(|world| world.all("account").len()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_stripe_restricts_or_rejects_is_not_paid() {
    let hosting = Hosting::with_payable("9.00").await;
    hosting.at_stripe_becomes("restrict").await;
    assert_eq!(hosting.release("account.updated").await, [200; 4]);
    let account = hosting.account().await;
    assert_eq!((&account["status"], &account["requirements_due"]), (&json!("restricted"), &json!(["external_account"])));
    hosting.request("a", &json!({})).expect_problem(409, "payouts_not_enabled").await;
    hosting.at_stripe_becomes("reject").await;
    assert_eq!(hosting.account().await["status"], "disabled");
    hosting.request("b", &json!({})).expect_problem(409, "payouts_not_enabled").await;
    let again = hosting.shop.ada.http.post("/api/v1/payout-account").json(&json!({ "return_url": RETURN_URL }));
    again.expect_problem(409, "invalid_state").await;
    assert_eq!(hosting.release("account.updated").await, [200, 200]);
    assert_eq!(hosting.letters().await, ["Your payout account is closed"]);
    hosting.assert_payable("9.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_gone_stays_gone_and_another_may_follow() {
    let hosting = Hosting::with_payable("9.00").await;
    let old = hosting.stripe_account().await;
    let delete = reqwest::Client::new().delete(format!("{}/v1/accounts/{old}", hosting.shop.stripe.url())).bearer_auth("sk_test_other");
    delete.send().await.unwrap();
    assert_eq!(hosting.release("account.application.deauthorized").await, [200, 200]);
    let account = hosting.account().await;
    assert_eq!((&account["status"], &account["disabled_reason"]), (&json!("disabled"), &json!("gone")));
    // Of the time before.
    assert_eq!(hosting.release("account.updated").await, [200, 200]);
    assert_eq!(hosting.account().await["status"], "disabled");
    assert_eq!(hosting.letters().await, ["Your payout account is closed"]);
    hosting.request("a", &json!({})).expect_problem(409, "payouts_not_enabled").await;
    assert_eq!(hosting.onboard().await["status"], "onboarding");
    assert_ne!(hosting.stripe_account().await, old);
    hosting.at_stripe_becomes("complete").await;
    assert_eq!(hosting.account().await["status"], "enabled");
    assert_eq!(hosting.pay_out("b", "9.00").await["status"], "sent");
    hosting.assert_payable("0.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_of_nobody_makes_stripe_come_again() {
    let hosting = Hosting::enabled().await;
    let patch = [("/data/object/id".to_owned(), json!("acct_nobody"))].into();
    let how = Release { events: vec!["account.updated".to_owned()], patch, ..Release::default() };
    assert_eq!(hosting.shop.release(how).await, [404]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_request_is_said_before_stripe_hears_of_it() {
    let hosting = Hosting::new().await;
    let rows = [
        (json!({ "return_url": "javascript:alert(1)" }), "/return_url"),
        (json!({ "return_url": RETURN_URL, "refresh_url": "nowhere" }), "/refresh_url"),
        (json!({ "return_url": RETURN_URL, "country": "USA" }), "/country"),
        (json!({ "return_url": RETURN_URL, "schedule": "weekly" }), "/schedule"),
        (json!({}), "/return_url"),
    ];
    for (form, pointer) in rows {
        let problem = hosting.shop.ada.http.post("/api/v1/payout-account").json(&form).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{form}");
    }
    assert_eq!(hosting.shop.stripe.calls().len(), 0);
    let german = json!({ "return_url": RETURN_URL, "country": "de" });
    assert_eq!(hosting.shop.ada.http.post("/api/v1/payout-account").json(&german).expect(201).await["country"], "DE");
    let american = json!({ "return_url": RETURN_URL, "country": "US" });
    hosting.shop.ada.http.post("/api/v1/payout-account").json(&american).expect_problem(409, "invalid_state").await;
    hosting.shop.ada.http.patch("/api/v1/payout-account").json(&json!({ "schedule": "daily" })).expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn the_sandbox_pays_nothing_out() {
    let app = TestApp::new().await;
    let ada = person(&app, "ada").await;
    assert_eq!(ada.http.get("/api/v1/payout-account").expect(200).await["status"], "none");
    let request = ada.http.post("/api/v1/payout-account").json(&json!({ "return_url": RETURN_URL }));
    request.expect_problem(409, "no_payment_provider").await;
    ada.http.patch("/api/v1/payout-account").json(&json!({ "schedule": "weekly" })).expect_problem(409, "no_payment_provider").await;
    let request = ada.http.post("/api/v1/payouts").idempotency_key("k").json(&json!({ "amount": "1.00" }));
    request.expect_problem(409, "no_payment_provider").await;
}
