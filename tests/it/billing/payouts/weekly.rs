//! Weekly payouts.

use chrono::{Datelike, Weekday};
use futures::future::join_all;
use rigmark::billing::payouts::service::pay_weekly;
use serde_json::json;

use super::{DAY, Hosting};
use crate::support::{hosts::business_now, renting::instant};

/// Moves to a minute after the next Monday's start, as the workers would live through it.
async fn next_monday(hosting: &Hosting) {
    let account = hosting.account().await;
    let monday = instant(&account["weekly_at"]);
    assert_eq!(monday.weekday(), Weekday::Mon);
    let now = business_now(&hosting.shop.app).await;
    hosting.advance((monday - now).num_seconds() + 60).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_mondays_all_that_is_payable_is_paid_once() {
    let hosting = Hosting::with_payable("27.00").await;
    hosting.schedule("weekly").await;
    assert_eq!(hosting.shop.count("payouts").await, 0);
    next_monday(&hosting).await;
    let payouts = hosting.shop.ada.http.get("/api/v1/payouts").expect(200).await;
    let payout = &payouts["data"][0];
    assert_eq!((&payout["status"], &payout["amount"], payouts["data"].as_array().unwrap().len()), (&json!("sent"), &json!("27.00"), 1));
    assert_eq!(payout["week"].as_str().unwrap().parse::<chrono::NaiveDate>().unwrap().weekday(), Weekday::Mon);
    hosting.assert_payable("0.00").await;
    // More in the same week waits for the next.
    hosting.make_payable("36.00").await;
    let now = business_now(&hosting.shop.app).await;
    assert_eq!(pay_weekly(hosting.shop.app.ctx(), now).await.unwrap(), 0);
    next_monday(&hosting).await;
    assert_eq!(hosting.shop.count("payouts WHERE week IS NOT NULL AND status = 'sent'").await, 2);
    hosting.assert_payable("0.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_at_once_and_again_begin_one_payout_a_week() {
    let hosting = Hosting::with_payable("27.00").await;
    hosting.schedule("weekly").await;
    let now = business_now(&hosting.shop.app).await + chrono::TimeDelta::days(8);
    let ctx = hosting.shop.app.ctx();
    let begun: usize = join_all((0..6).map(|_| pay_weekly(ctx, now))).await.into_iter().map(Result::unwrap).sum();
    assert_eq!((begun, hosting.shop.count("payouts").await), (1, 1));
    // As if the mark of the last week had been lost.
    hosting.make_payable("27.00").await;
    hosting.shop.execute("UPDATE payout_accounts SET weekly_at = now() - interval '1 day'").await;
    assert_eq!(pay_weekly(ctx, now).await.unwrap(), 0);
    assert_eq!(hosting.shop.count("payouts").await, 1);
    hosting.poll().await;
    assert_eq!(hosting.transfers().len(), 1);
    hosting.assert_payable("27.00").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_little_waits_and_manual_is_never_paid() {
    let hosting = Hosting::with_payable("24.30").await;
    hosting.schedule("weekly").await;
    next_monday(&hosting).await;
    assert_eq!(hosting.shop.count("payouts").await, 0);
    hosting.make_payable("0.90").await;
    assert_eq!(hosting.schedule("manual").await["weekly_at"], json!(null));
    hosting.advance(8 * DAY).await;
    assert_eq!(hosting.shop.count("payouts").await, 0);
    hosting.schedule("weekly").await;
    next_monday(&hosting).await;
    assert_eq!(hosting.shop.text("SELECT amount_micros FROM payouts").await, "25200000");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_account_that_is_not_enabled_is_not_paid() {
    let hosting = Hosting::with_payable("27.00").await;
    hosting.schedule("weekly").await;
    hosting.at_stripe_becomes("restrict").await;
    hosting.account().await;
    hosting.advance(8 * DAY).await;
    assert_eq!(hosting.shop.count("payouts").await, 0);
    hosting.at_stripe_becomes("complete").await;
    hosting.account().await;
    hosting.advance(7 * DAY).await;
    assert_eq!(hosting.shop.count("payouts").await, 1);
    hosting.assert_payable("0.00").await;
}
