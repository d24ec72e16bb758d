//! Many at once: no dollar is spent twice, no two transactions wait for each other for ever, one id is one transfer.

use std::sync::Arc;

use rigmark::base::{
    Code, Money, Result,
    id::{AccountId, TransferId},
};
use rigmark::db::Db;
use rigmark::ledger::{
    LedgerAccount, TransferCode,
    model::{Capture, HoldRequest, Posted, Posting, TransferRequest},
    service,
};
use tokio::task::JoinSet;

use super::{Books, at, charge, credit, hold_request, micros, usd};

/// Runs the tasks at once, each with its number, and returns what they returned.
async fn at_once<T: Send + 'static, F>(count: usize, db: &Db, task: impl Fn(usize, Db) -> F) -> Vec<T>
where
    F: Future<Output = T> + 'static,
{
    let local = tokio::task::LocalSet::new();
    let mut tasks = JoinSet::new();
    for number in 0..count {
        // The futures of transactions are not `Send`.
        tasks.spawn_local_on(task(number, db.clone()), &local);
    }
    local.run_until(tasks.join_all()).await
}

#[tokio::test]
async fn fifty_holds_never_exceed_one_balance() {
    let books = Books::new().await;
    let renter = books.account_with("10").await;
    let made: Vec<Result<()>> = at_once(50, &books.db, |_, db| async move {
        let request = hold_request(renter, usd("0.3"));
        db.tx("test", async |tx| service::hold(tx, request.clone()).await.map(drop)).await
    })
    .await;
    let (good, bad): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    assert_eq!((good.len(), bad.len()), (33, 17));
    assert!(bad.into_iter().all(|error| error.unwrap_err().code() == Code::InsufficientFunds));
    let balance = books.balance(renter).await;
    assert_eq!((balance.available, balance.held), (usd("0.1"), usd("9.9")));
    books.assert_right().await;
}

/// Increases share what is left: together exactly all of it, none fails.
#[tokio::test]
async fn increases_share_what_is_left() {
    let books = Books::new().await;
    let renter = books.account_with("10").await;
    let mut holds = Vec::new();
    for _ in 0..20 {
        holds.push(books.hold(renter, usd("0.1")).await.unwrap().id);
    }
    let holds = Arc::new(holds);
    let added: Vec<Money> = at_once(20, &books.db, |number, db| {
        let hold = holds[number];
        let id = TransferId::new();
        async move { db.tx("test", async |tx| service::hold_increase(tx, hold, id, usd("0.7"), at(1)).await).await.unwrap() }
    })
    .await;
    assert_eq!(added.iter().fold(Money::ZERO, |sum, more| sum.plus(*more).unwrap()), usd("8"));
    assert_eq!(added.iter().filter(|more| **more == usd("0.7")).count(), 11);
    assert_eq!(books.balance(renter).await.held, usd("10"));
    books.assert_right().await;
}

/// Several parties report one payment.
#[tokio::test]
async fn one_id_at_once_is_one_transfer() {
    let books = Books::new().await;
    let account = books.account().await;
    let request = TransferRequest {
        code: TransferCode::TopUp,
        payment: Some("pi_1".to_owned()),
        postings: Posting::between(LedgerAccount::StripeClearing, LedgerAccount::Available(account), usd("50")).unwrap(),
        ..credit(account, usd("50"))
    };
    let posted: Vec<Posted> = at_once(20, &books.db, |_, db| {
        let request = request.clone();
        async move { db.tx("test", async |tx| service::post(tx, request.clone()).await).await.unwrap() }
    })
    .await;
    assert_eq!(posted.iter().filter(|posted| **posted == Posted::New).count(), 1);
    assert_eq!(books.balance(account).await.available, usd("50"));
    books.assert_right().await;
}

/// Two hundred transfers to and fro between two accounts, each locking both: none fails, not even to be tried again.
#[tokio::test]
async fn opposite_transfers_do_not_deadlock() {
    let books = Books::new().await;
    let (one, two) = (books.account_with("100").await, books.account_with("100").await);
    at_once(200, &books.db, |number, db| {
        let (from, to) = if number % 2 == 0 { (one, two) } else { (two, one) };
        let request = TransferRequest {
            id: TransferId::new(),
            code: TransferCode::Adjustment,
            postings: Posting::between(LedgerAccount::Available(from), LedgerAccount::Available(to), usd("1")).unwrap(),
            ..credit(from, usd("1"))
        };
        async move { assert_eq!(once(&db, async |tx| service::post(tx, request.clone()).await).await, Posted::New) }
    })
    .await;
    assert_eq!(books.balance(one).await, books.balance(two).await);
    assert_eq!(books.balance(one).await.available, usd("100"));
    books.assert_right().await;
}

/// Runs a transaction that must succeed at its first try: `Db::tx` would hide a deadlock by trying again.
async fn once<T>(db: &Db, work: impl AsyncFn(&mut rigmark::db::Tx<'_>) -> Result<T>) -> T {
    let tries = std::cell::Cell::new(0);
    let outcome = db
        .tx("test", async |tx| {
            tries.set(tries.get() + 1);
            work(tx).await
        })
        .await
        .unwrap();
    assert_eq!(tries.get(), 1, "the transaction was tried again");
    outcome
}

/// Two parties who rent from each other, thirty rentals each way at once, each going through all its steps in a few transactions of several
/// steps: the lock order holds across steps, so nothing is ever tried again.
#[tokio::test]
async fn rentals_both_ways_do_not_deadlock() {
    let books = Books::new().await;
    let parties = [books.account_with("100").await, books.account_with("100").await];
    at_once(60, &books.db, |number, db| {
        let (renter, host) = (parties[number % 2], parties[(number + 1) % 2]);
        rent(db, renter, host)
    })
    .await;
    for party in parties {
        let balance = books.balance(party).await;
        assert_eq!((balance.available, balance.held, balance.earnings), (usd("70"), micros(0), usd("27")));
    }
    books.assert_right().await;
}

async fn rent(db: Db, renter: AccountId, host: AccountId) {
    let request: HoldRequest = hold_request(renter, usd("0.5"));
    let hold = request.id;
    let capture = |gross: &str| Capture { hold, transfer_id: TransferId::new(), charge: charge(gross, 1_000), host, business_at: at(5) };
    once(&db, async |tx| service::hold(tx, request.clone()).await).await;
    let (charge_first, then) = (capture("0.4"), TransferId::new());
    once(&db, async |tx| {
        service::capture(tx, charge_first).await?;
        service::hold_increase(tx, hold, then, usd("0.7"), at(6)).await
    })
    .await;
    let (more, last, rest) = (TransferId::new(), capture("0.6"), TransferId::new());
    once(&db, async |tx| {
        service::hold_increase(tx, hold, more, usd("0.1"), at(7)).await?;
        service::capture(tx, last).await?;
        service::release(tx, hold, rest, at(8)).await
    })
    .await;
}

/// A transaction that is given up half way leaves nothing.
#[tokio::test]
async fn what_is_rolled_back_leaves_nothing() {
    let books = Books::new().await;
    let renter = books.account_with("10").await;
    let request = hold_request(renter, usd("3"));
    let outcome: Result<()> = books
        .in_tx(async |tx| {
            service::hold(tx, request.clone()).await?;
            Err(rigmark::base::Error::internal("changed my mind"))
        })
        .await;
    assert!(outcome.is_err());
    assert_eq!(books.balance(renter).await.held, micros(0));
    // The ids are free again.
    books.in_tx(async |tx| service::hold(tx, request.clone()).await).await.unwrap();
    assert_eq!(books.balance(renter).await.held, usd("3"));
    books.assert_right().await;
}
