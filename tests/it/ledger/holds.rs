//! Money set aside, used and given back.

use rigmark::base::{
    Code, Money,
    id::{HoldId, TransferId},
};
use rigmark::ledger::{
    Charge,
    model::{Balance, HoldRequest},
    service,
};

use super::{Books, at, charge, credit, hold_request, micros, usd};

fn balance(available: &str, held: &str) -> Balance {
    Balance { available: usd(available), held: usd(held), earnings: micros(0), payable: micros(0) }
}

async fn increase(books: &Books, hold: HoldId, transfer: TransferId, wanted: Money) -> rigmark::base::Result<Money> {
    books.in_tx(async |tx| service::hold_increase(tx, hold, transfer, wanted, at(60)).await).await
}
async fn remaining(books: &Books, hold: HoldId) -> Money {
    service::hold_remaining(&mut books.connect().await, hold).await.unwrap()
}

#[tokio::test]
async fn a_rentals_money_goes_from_the_renter_to_host_and_platform() {
    let books = Books::new().await;
    let (renter, host) = (books.account_with("10").await, books.account().await);
    let hold = books.hold(renter, usd("2")).await.unwrap();
    assert_eq!((hold.amount, hold.captured, hold.released, hold.is_open), (usd("2"), micros(0), micros(0), true));
    assert_eq!(books.balance(renter).await, balance("8", "2"));

    books.capture(hold.id, TransferId::new(), charge("0.370000", 1_000), host).await.unwrap();
    assert_eq!(books.balance(renter).await, balance("8", "1.63"));
    assert_eq!(books.balance(host).await.earnings, usd("0.333"));
    assert_eq!(remaining(&books, hold.id).await, usd("1.63"));

    assert_eq!(books.release(hold.id).await.unwrap(), usd("1.63"));
    assert_eq!(books.balance(renter).await, balance("9.63", "0"));
    let closed = service::hold_fetch(&mut books.connect().await, hold.id).await.unwrap();
    assert_eq!((closed.captured, closed.released, closed.is_open), (usd("0.37"), usd("1.63"), false));
    books.assert_right().await;
}

#[tokio::test]
async fn a_hold_is_refused_when_it_is_made_not_when_it_is_used() {
    let books = Books::new().await;
    let renter = books.account_with("3.60").await;
    let error = books.hold(renter, usd("3.600001")).await.unwrap_err();
    assert_eq!(error.code(), Code::InsufficientFunds);
    assert_eq!((error.extra()["required"].as_str(), error.extra()["available"].as_str()), (Some("3.600001"), Some("3.60")));
    let poor = books.account().await;
    assert_eq!(books.hold(poor, micros(1)).await.unwrap_err().code(), Code::InsufficientFunds);
    let first = books.hold(renter, usd("3.60")).await.unwrap();
    assert_eq!(books.hold(renter, micros(1)).await.unwrap_err().code(), Code::InsufficientFunds);
    books.release(first.id).await.unwrap();
    books.hold(renter, micros(1)).await.unwrap();
    books.assert_right().await;
}

/// Every step may be repeated after a crash.
#[tokio::test]
async fn repeated_steps_change_nothing() {
    let books = Books::new().await;
    let (renter, host) = (books.account_with("10").await, books.account().await);
    let request = hold_request(renter, usd("2"));
    let (more, capture_id, release_id) = (TransferId::new(), TransferId::new(), TransferId::new());
    for round in 0..2 {
        let hold = books.in_tx(async |tx| service::hold(tx, request.clone()).await).await.unwrap();
        assert_eq!(hold.id, request.id);
        assert_eq!(increase(&books, request.id, more, usd("1")).await.unwrap(), usd("1"), "round {round}");
        books.capture(request.id, capture_id, charge("0.5", 1_000), host).await.unwrap();
        assert_eq!(remaining(&books, request.id).await, usd("2.5"));
        assert_eq!(books.balance(renter).await, balance("7", "2.5"));
    }
    for expected in ["2.5", "0"] {
        let released = books.in_tx(async |tx| service::release(tx, request.id, release_id, at(90)).await).await.unwrap();
        assert_eq!(released, usd(expected));
    }
    assert_eq!(books.balance(renter).await, balance("9.5", "0"));
    // Repeated when the hold is closed: still what was done then, and nothing new.
    assert_eq!(increase(&books, request.id, more, usd("1")).await.unwrap(), usd("1"));
    books.capture(request.id, capture_id, charge("0.5", 1_000), host).await.unwrap();
    assert!(increase(&books, request.id, TransferId::new(), usd("1")).await.is_err());
    assert!(books.capture(request.id, TransferId::new(), charge("0.5", 1_000), host).await.is_err());
    assert_eq!(books.balance(renter).await, balance("9.5", "0"));
    assert_eq!(books.balance(host).await.earnings, usd("0.45"));
    books.assert_right().await;
}

#[tokio::test]
async fn an_increase_adds_what_there_is() {
    let books = Books::new().await;
    let renter = books.account_with("3").await;
    let hold = books.hold(renter, usd("1")).await.unwrap();
    let (first, second) = (TransferId::new(), TransferId::new());
    assert_eq!(increase(&books, hold.id, first, usd("1.5")).await.unwrap(), usd("1.5"));
    assert_eq!(increase(&books, hold.id, second, usd("1.5")).await.unwrap(), usd("0.5"));
    assert_eq!(books.balance(renter).await, balance("0", "3"));
    let third = TransferId::new();
    assert_eq!(increase(&books, hold.id, third, usd("1")).await.unwrap(), usd("0"));
    // Nothing was posted under that id: when money has come it adds.
    books.post(credit(renter, usd("5"))).await.unwrap();
    assert_eq!(increase(&books, hold.id, third, usd("1")).await.unwrap(), usd("1"));
    // And repeating the second says what it was then.
    assert_eq!(increase(&books, hold.id, second, usd("1.5")).await.unwrap(), usd("0.5"));
    for wanted in [micros(0), micros(-1)] {
        assert_eq!(increase(&books, hold.id, TransferId::new(), wanted).await.unwrap(), usd("0"));
    }
    // An id of another transfer is not taken for an increase.
    assert!(increase(&books, books.hold(renter, usd("1")).await.unwrap().id, first, usd("1")).await.is_err());
    books.assert_right().await;
}

#[tokio::test]
async fn nothing_is_captured_beyond_the_hold() {
    let books = Books::new().await;
    let (renter, host) = (books.account_with("10").await, books.account().await);
    let hold = books.hold(renter, usd("1")).await.unwrap();
    // Money of another hold does not help.
    books.hold(renter, usd("5")).await.unwrap();
    books.capture(hold.id, TransferId::new(), charge("0.4", 1_000), host).await.unwrap();
    assert!(books.capture(hold.id, TransferId::new(), charge("0.600001", 1_000), host).await.is_err());
    books.capture(hold.id, TransferId::new(), charge("0.6", 1_000), host).await.unwrap();
    assert_eq!(remaining(&books, hold.id).await, micros(0));
    assert_eq!(books.release(hold.id).await.unwrap(), micros(0));
    assert!(!service::hold_fetch(&mut books.connect().await, hold.id).await.unwrap().is_open);
    assert_eq!(books.balance(renter).await, balance("4", "5"));
    books.assert_right().await;
}

#[tokio::test]
async fn charges_may_be_all_fee_or_none_or_nothing() {
    let books = Books::new().await;
    let (renter, host) = (books.account_with("10").await, books.account().await);
    let hold = books.hold(renter, usd("3")).await.unwrap();
    books.capture(hold.id, TransferId::new(), charge("1", 0), host).await.unwrap();
    assert_eq!(books.balance(host).await.earnings, usd("1"));
    books.capture(hold.id, TransferId::new(), charge("1", 10_000), host).await.unwrap();
    assert_eq!(books.balance(host).await.earnings, usd("1"));
    books.capture(hold.id, TransferId::new(), Charge::NOTHING, host).await.unwrap();
    assert_eq!(remaining(&books, hold.id).await, usd("1"));
    books.assert_right().await;
}

#[tokio::test]
async fn a_free_machine_needs_no_money() {
    let books = Books::new().await;
    let renter = books.account().await;
    let hold = books.hold(renter, usd("0")).await.unwrap();
    assert_eq!(remaining(&books, hold.id).await, micros(0));
    assert_eq!(books.release(hold.id).await.unwrap(), micros(0));
    books.assert_right().await;
}

#[tokio::test]
async fn a_hold_stays_with_its_account_and_rental() {
    let books = Books::new().await;
    let (renter, other) = (books.account_with("10").await, books.account_with("10").await);
    let request = hold_request(renter, usd("1"));
    books.in_tx(async |tx| service::hold(tx, request.clone()).await).await.unwrap();
    for changed in [
        HoldRequest { account: other, ..request.clone() },
        HoldRequest { rental: None, ..request.clone() },
        HoldRequest { amount: usd("2"), ..request.clone() },
        HoldRequest { amount: micros(-1), ..request.clone() },
    ] {
        assert_eq!(books.in_tx(async |tx| service::hold(tx, changed.clone()).await).await.unwrap_err().code(), Code::Internal);
    }
    assert_eq!(books.balance(other).await, balance("10", "0"));
    assert_eq!(books.balance(renter).await, balance("9", "1"));
}

#[tokio::test]
async fn many_holds_are_read_at_once() {
    let books = Books::new().await;
    let renter = books.account_with("10").await;
    let (one, two) = (books.hold(renter, usd("1")).await.unwrap(), books.hold(renter, usd("2")).await.unwrap());
    books.release(two.id).await.unwrap();
    let found = service::holds_remaining(&mut books.connect().await, &[one.id, two.id, HoldId::new()]).await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[&one.id], found[&two.id]), (usd("1"), usd("0")));
}
