//! What must be true of all books whenever everything has come to rest.

use std::collections::BTreeSet;

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use serde_json::Value;

use super::World;
use crate::support::renting;

/// A movement of money: what Stripe calls it, and how much.
#[derive(QueryableByName, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Movement {
    #[diesel(sql_type = sql::Text)]
    id: String,
    #[diesel(sql_type = sql::BigInt)]
    cents: i64,
}

/// Every posting that credited a payment.
const CREDITS: &str =
    "SELECT t.payment_ref AS id, p.amount_micros / 10000 AS cents FROM transfers t JOIN postings p ON p.transfer_id = t.id
    JOIN ledger_accounts a ON a.id = p.ledger_account_id WHERE t.code = 'top_up' AND a.kind = 'available'";
/// Every refund with an outcome, and every posting that settled one: both must be Stripe's refunds.
const REFUNDS: &str = "SELECT stripe_refund_id AS id, amount_micros / 10000 AS cents FROM refunds WHERE status = 'succeeded'";
const REFUNDS_SETTLED: &str =
    "SELECT t.payment_ref AS id, p.amount_micros / 10000 AS cents FROM transfers t JOIN postings p ON p.transfer_id = t.id
    JOIN ledger_accounts a ON a.id = p.ledger_account_id WHERE t.code = 'refund_settled' AND a.kind = 'stripe:clearing'";
const PAYOUTS: &str = "SELECT stripe_transfer_id AS id, (amount_micros - reversed_micros) / 10000 AS cents FROM payouts
    WHERE stripe_transfer_id IS NOT NULL";
/// What Stripe has of ours by our books, as a debt. All amounts are whole cents.
const CLEARING: &str = "SELECT 'clearing' AS id, (coalesce(sum(balance_micros), 0) / 10000)::bigint AS cents FROM ledger_accounts
    WHERE kind = 'stripe:clearing'";
/// What is still open, or needs somebody, though all the time that it may take has passed.
const OPEN: &str = "
SELECT 'top-up ' || id || ' is ' || status AS id, 0::bigint AS cents FROM top_ups WHERE status IN ('pending', 'processing') OR alarm IS NOT NULL
UNION ALL SELECT 'refund ' || id || ' is ' || status, 0 FROM refunds WHERE status = 'pending' OR alarm IS NOT NULL
UNION ALL SELECT 'payout ' || id || ' is ' || status, 0 FROM payouts WHERE status = 'pending' OR alarm IS NOT NULL
UNION ALL SELECT 'in transit', balance_micros FROM ledger_accounts WHERE kind = 'stripe:refunds_in_transit' AND balance_micros <> 0
UNION ALL SELECT 'frozen', 0 FROM account_freezes
UNION ALL SELECT 'dead job ' || kind, 0 FROM jobs WHERE state = 'dead'";

/// Postings sum to zero and make every balance; no hold is orphaned; what Stripe has done is what is booked, each thing once; nothing is open.
pub(super) async fn assert_books(world: &World) {
    let mut conn = world.app.connect().await;
    renting::assert_books(&mut conn).await;
    assert_eq!(movements(&mut conn, OPEN).await, []);
    let payments = at_stripe(world, "payment_intent", "id", "amount_received");
    assert_eq!(movements(&mut conn, CREDITS).await, payments);
    let refunds = at_stripe(world, "refund", "id", "amount");
    assert_eq!(movements(&mut conn, REFUNDS).await, refunds);
    assert_eq!(movements(&mut conn, REFUNDS_SETTLED).await, at_stripe(world, "refund", "payment_intent", "amount"));
    let transfers = at_stripe(world, "transfer", "id", "amount");
    assert_eq!(movements(&mut conn, PAYOUTS).await, transfers);
    let sum = |movements: &[Movement]| movements.iter().map(|movement| movement.cents).sum::<i64>();
    let clearing = Movement { id: "clearing".to_owned(), cents: sum(&refunds) + sum(&transfers) - sum(&payments) };
    assert_eq!(movements(&mut conn, CLEARING).await, [clearing]);
}

/// What Stripe has of our rows' payments, less what it gave back, took back for disputes and transferred to hosts; in cents.
pub(super) fn at_stripe_in_all(world: &World) -> i64 {
    let sum = |kind: &str, id: &str, amount: &str| at_stripe(world, kind, id, amount).iter().map(|movement| movement.cents).sum::<i64>();
    let disputes = world.stripe.with(|world| world.all("dispute"));
    let taken: i64 = disputes.iter().filter(|dispute| dispute["status"] != "won").map(|dispute| dispute["amount"].as_i64().unwrap()).sum();
    sum("payment_intent", "id", "amount_received") - sum("refund", "id", "amount") - sum("transfer", "id", "amount") - taken
}

async fn movements(conn: &mut AsyncPgConnection, query: &str) -> Vec<Movement> {
    let mut found: Vec<Movement> = sql_query(query).load(conn).await.unwrap();
    found.sort();
    found
}

/// Stripe's objects that came about for a row of ours; no two of one row.
fn at_stripe(world: &World, kind: &str, id: &str, amount: &str) -> Vec<Movement> {
    let objects = world.stripe.with(|world| world.all(kind));
    let of_rows: Vec<&Value> = objects.iter().filter(|object| object["metadata"]["rigmark_id"].is_string()).collect();
    let rows: BTreeSet<&str> = of_rows.iter().map(|object| object["metadata"]["rigmark_id"].as_str().unwrap()).collect();
    assert_eq!(rows.len(), of_rows.len(), "{kind}: two of one row");
    let done = of_rows.into_iter().filter(|object| object["status"].as_str().is_none_or(|status| status == "succeeded"));
    let movement = |object: &Value| Movement { id: object[id].as_str().unwrap().to_owned(), cents: object[amount].as_i64().unwrap() };
    let mut found: Vec<Movement> = done.map(movement).collect();
    found.sort();
    found
}
