//! Giving charges back.

use proptest::test_runner::{Config, TestRunner};
use rigmark::base::{
    Code, Money, Result,
    id::{AccountId, HoldId, TransferId},
};
use rigmark::ledger::{
    Actor, Charge, LedgerAccount, TransferCode,
    model::{Correction, Posted, Posting, TransferRequest},
    service,
};

use super::{Books, at, charge, credit, micros, usd};

const FEE: u16 = 1_000;

/// A rental that has cost 1 $ in two charges.
struct Rented {
    books: Books,
    renter: AccountId,
    host: AccountId,
    hold: HoldId,
    first: TransferId,
}

impl Rented {
    async fn new() -> Self {
        let books = Books::new().await;
        let (renter, host) = (books.account_with("10").await, books.account().await);
        let hold = books.hold(renter, usd("2")).await.unwrap().id;
        let first = TransferId::new();
        books.capture(hold, first, charge("0.4", FEE), host).await.unwrap();
        books.capture(hold, TransferId::new(), charge("0.6", FEE), host).await.unwrap();
        books.release(hold).await.unwrap();
        Self { books, renter, host, hold, first }
    }

    fn back(&self, gross: Money) -> Correction {
        Correction {
            id: TransferId::new(),
            original: self.first,
            gross,
            fee_basis_points: FEE,
            actor: Actor::System,
            business_at: at(9_000),
        }
    }
    async fn correct(&self, correction: Correction) -> Result<Posted> {
        self.books.in_tx(async |tx| service::correct(tx, correction).await).await
    }
    /// Moves the host's earnings on, as time and a payout would.
    async fn pay(&self, code: TransferCode, from: LedgerAccount, to: LedgerAccount, amount: &str) {
        let request = TransferRequest {
            id: TransferId::new(),
            code,
            postings: Posting::between(from, to, usd(amount)).unwrap(),
            payment: Some("po_1".to_owned()),
            ..credit(self.host, usd("1"))
        };
        self.books.post(request).await.unwrap();
    }
}

#[tokio::test]
async fn part_of_a_charge_goes_back_and_no_more_than_was_charged() {
    let rented = Rented::new().await;
    let part = rented.back(usd("0.25"));
    assert_eq!(rented.correct(part).await.unwrap(), Posted::New);
    assert_eq!(rented.correct(part).await.unwrap(), Posted::AlreadyPosted);
    assert_eq!(rented.books.balance(rented.renter).await.available, usd("9.25"));
    assert_eq!(rented.books.balance(rented.host).await.earnings, usd("0.675"));
    let other = Correction { gross: usd("0.26"), ..part };
    assert_eq!(rented.correct(other).await.unwrap_err().code(), Code::Internal);

    // The limit counts all charges of the rental and all that was given back.
    let error = rented.correct(rented.back(usd("0.750001"))).await.unwrap_err();
    assert_eq!((error.code(), error.fields()[0].code.as_ref()), (Code::InvalidInput, "too_large"));
    for amount in [micros(0), micros(-1)] {
        assert_eq!(rented.correct(rented.back(amount)).await.unwrap_err().fields()[0].code, "too_small");
    }
    rented.correct(rented.back(usd("0.75"))).await.unwrap();
    assert_eq!(rented.books.balance(rented.renter).await.available, usd("10"));
    assert_eq!(rented.books.balance(rented.host).await.earnings, micros(0));
    assert!(rented.correct(rented.back(micros(1))).await.is_err());
    rented.books.assert_right().await;
}

#[tokio::test]
async fn only_a_charge_is_given_back() {
    let rented = Rented::new().await;
    let hold_transfer = Correction { original: TransferId::new(), ..rented.back(usd("0.1")) };
    assert_eq!(rented.correct(hold_transfer).await.unwrap_err().code(), Code::Internal);
    let part = rented.back(usd("0.1"));
    rented.correct(part).await.unwrap();
    let of_a_correction = Correction { original: part.id, ..rented.back(usd("0.1")) };
    assert_eq!(rented.correct(of_a_correction).await.unwrap_err().code(), Code::Internal);
    let other_rate = Correction { fee_basis_points: 5_000, ..rented.back(usd("0.9")) };
    assert_eq!(rented.correct(other_rate).await.unwrap_err().code(), Code::Internal);
    assert_eq!(rented.books.balance(rented.renter).await.available, usd("9.1"));
    assert!(rented.books.capture(rented.hold, TransferId::new(), charge("0.1", FEE), rented.host).await.is_err());
}

/// money.md 22: what was paid out becomes the host's debt, and later earnings pay it.
#[tokio::test]
async fn a_correction_after_the_payout_is_recovered_from_later_earnings() {
    let rented = Rented::new().await;
    let (earnings, payable) = (LedgerAccount::Earnings(rented.host), LedgerAccount::Payable(rented.host));
    rented.pay(TransferCode::EarningsMatured, earnings, payable, "0.9").await;
    rented.pay(TransferCode::Payout, payable, LedgerAccount::StripeClearing, "0.7").await;
    rented.correct(rented.back(usd("1"))).await.unwrap();
    let balance = rented.books.balance(rented.host).await;
    assert_eq!((balance.earnings, balance.payable), (micros(-700_000), micros(0)));
    assert_eq!(rented.books.balance(rented.renter).await.available, usd("10"));

    let hold = rented.books.hold(rented.renter, usd("2")).await.unwrap();
    rented.books.capture(hold.id, TransferId::new(), charge("1", FEE), rented.host).await.unwrap();
    assert_eq!(rented.books.balance(rented.host).await.earnings, usd("0.2"));
    rented.books.assert_right().await;
}

#[tokio::test]
async fn earnings_pay_a_correction_before_what_is_payable() {
    let rented = Rented::new().await;
    let (earnings, payable) = (LedgerAccount::Earnings(rented.host), LedgerAccount::Payable(rented.host));
    rented.pay(TransferCode::EarningsMatured, earnings, payable, "0.6").await;
    rented.correct(rented.back(usd("0.5"))).await.unwrap();
    let balance = rented.books.balance(rented.host).await;
    assert_eq!((balance.earnings, balance.payable), (micros(0), usd("0.45")));
    // The same, although the host's ledger accounts now stand otherwise.
    let part = rented.back(usd("0.1"));
    rented.correct(part).await.unwrap();
    rented.pay(TransferCode::Payout, payable, LedgerAccount::StripeClearing, "0.3").await;
    assert_eq!(rented.correct(part).await.unwrap(), Posted::AlreadyPosted);
    rented.books.assert_right().await;
}

/// Given back in pieces of any size, the platform returns exactly its fee and the host exactly its share.
#[test]
fn pieces_given_back_sum_to_the_charge() {
    let mut runner = TestRunner::new(Config::with_cases(2_000));
    let input = (1..10_000_000_i64, 0..=10_000_u16, proptest::collection::vec(1..2_000_000_i64, 0..20));
    runner
        .run(&input, |(gross, basis_points, pieces)| {
            let whole = Charge::in_all(micros(gross), basis_points).unwrap();
            let mut back = Charge::NOTHING;
            for piece in pieces.into_iter().chain([i64::MAX]) {
                let piece = micros(piece).min(whole.gross().minus(back.gross()).unwrap());
                let more = Charge::after(back, piece, basis_points).unwrap();
                proptest::prop_assert!(!more.fee().is_negative() && more.fee() <= more.gross());
                back = back.plus(more).unwrap();
                proptest::prop_assert!(back.fee() <= whole.fee());
            }
            proptest::prop_assert_eq!(back, whole);
            Ok(())
        })
        .unwrap();
}
