//! Ten thousand rentals without a database, some hundreds with one: host + fee = gross, and every statement closes to the micro-dollar.

use proptest::{prelude::*, strategy::ValueTree};
use rigmark::base::{
    Money,
    id::{AccountId, TransferId},
};
use rigmark::ledger::{
    Charge, Period,
    model::{Capture, Statement},
    service,
};

use super::{Books, at, hold_request, micros, usd};

/// A rental as the meter sees it: spans of billed time, each looked at a number of times.
#[derive(Debug, Clone)]
struct Rental {
    price_per_hour: i64,
    fee_basis_points: u16,
    /// The seconds of each segment's ticks.
    segments: Vec<Vec<i64>>,
}

fn rentals() -> impl Strategy<Value = Rental> {
    let price = prop_oneof![Just(370_000), 0..10_i64, 1..100_000_000_i64, 1..1_000_000_000_000_i64];
    let fee = prop_oneof![Just(1_000_u16), Just(500), Just(0), Just(10_000), 0..=10_000_u16];
    let ticks = prop::collection::vec(prop_oneof![Just(60_i64), 0..5_i64, 0..100_000_i64], 1..10);
    (price, fee, prop::collection::vec(ticks, 1..4)).prop_map(|(price_per_hour, fee_basis_points, segments)| Rental {
        price_per_hour,
        fee_basis_points,
        segments,
    })
}

impl Rental {
    /// The charge of each tick, as the meter posts them.
    fn charges(&self) -> Vec<Charge> {
        let price = micros(self.price_per_hour);
        let mut posted = Charge::NOTHING;
        let mut charges = Vec::new();
        for ticks in &self.segments {
            let (mut seconds, mut segment_gross) = (0, Money::ZERO);
            for tick in ticks {
                seconds += tick;
                let owed = price.charge_for_seconds(seconds).unwrap();
                let more = Charge::after(posted, owed.minus(segment_gross).unwrap(), self.fee_basis_points).unwrap();
                segment_gross = owed;
                posted = posted.plus(more).unwrap();
                charges.push(more);
            }
        }
        charges
    }

    /// What it costs, by integers alone: the floor of each segment.
    fn gross(&self) -> i128 {
        self.segments.iter().map(|ticks| i128::from(self.price_per_hour) * i128::from(ticks.iter().sum::<i64>()) / 3_600).sum()
    }
}

fn sum(amounts: impl Iterator<Item = Money>) -> i128 {
    amounts.map(|amount| i128::from(amount.micros())).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn host_and_fee_are_the_gross(rental in rentals()) {
        let charges = rental.charges();
        for charge in &charges {
            prop_assert!(!charge.gross().is_negative() && !charge.fee().is_negative());
            prop_assert!(!charge.host_share().unwrap().is_negative());
        }
        let gross = sum(charges.iter().map(|c| c.gross()));
        let fee = sum(charges.iter().map(|c| c.fee()));
        let host = sum(charges.iter().map(|c| c.host_share().unwrap()));
        prop_assert_eq!(gross, rental.gross());
        prop_assert_eq!(host + fee, gross);
        // The fee of the sum, not the sum of rounded fees: at most half a micro-dollar off.
        let miss = (fee * 10_000 - gross * i128::from(rental.fee_basis_points)).abs();
        prop_assert!(miss <= 5_000, "the fee is off by {}", miss);
    }

    /// The number of ticks does not matter to any of the three.
    #[test]
    fn ticks_matter_to_nobody(rental in rentals()) {
        let merged = Rental { segments: rental.segments.iter().map(|ticks| vec![ticks.iter().sum()]).collect(), ..rental.clone() };
        let total = |charges: Vec<Charge>| charges.into_iter().fold(Charge::NOTHING, |a, b| a.plus(b).unwrap());
        prop_assert_eq!(total(rental.charges()), total(merged.charges()));
    }

    /// A clock that went back, or a tick that comes late, charges nothing and never less than nothing.
    #[test]
    fn a_late_tick_charges_nothing(price in 0..1_000_000_000_i64, fee in 0..=10_000_u16, now in 0..1_000_000_i64, back in 0..2_000_000_i64) {
        let posted = Charge::for_seconds(micros(price), now, fee).unwrap();
        let late = Charge::for_seconds(micros(price), now - back, fee).unwrap();
        prop_assert_eq!(late.beyond(posted).unwrap(), Charge::NOTHING);
    }
}

#[test]
fn sixty_minutes_are_one_hour() {
    let mut posted = Charge::NOTHING;
    for minute in 1..=60 {
        let more = Charge::for_seconds(usd("0.37"), minute * 60, 1_000).unwrap().beyond(posted).unwrap();
        posted = posted.plus(more).unwrap();
    }
    assert_eq!(posted, Charge::new(usd("0.37"), usd("0.037")).unwrap());
    assert_eq!(posted.host_share().unwrap(), usd("0.333"));
}

#[test]
fn what_is_no_charge_is_refused() {
    assert!(Charge::new(micros(-1), micros(0)).is_err());
    assert!(Charge::new(micros(1), micros(2)).is_err());
    assert!(Charge::new(micros(1), micros(-1)).is_err());
    assert!(Charge::in_all(micros(1), 10_001).is_err());
    assert!(Charge::after(Charge::NOTHING, micros(-5), 1_000).unwrap().is_nothing());
    // Posted at a higher fee than asked for now.
    let posted = Charge::in_all(usd("1"), 5_000).unwrap();
    assert!(Charge::after(posted, micros(1), 1_000).is_err());
}

/// 200 rentals of 10 renters and 5 hosts through the books, with holds, renewals and releases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_of_hundreds_of_rentals_close() {
    const TICKS_MAX: usize = 3;
    let books = Books::new().await;
    let mut renters = Vec::new();
    for _ in 0..10 {
        renters.push(books.account_with("100000").await);
    }
    let mut hosts = Vec::new();
    for _ in 0..5 {
        hosts.push(books.account().await);
    }
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut charged = vec![0_i128; renters.len()];
    let mut earned = vec![0_i128; hosts.len()];
    let mut fees = 0_i128;
    for number in 0..200 {
        let mut rental = rentals().new_tree(&mut runner).unwrap().current();
        rental.price_per_hour %= 50_000_000;
        rental.segments.truncate(2);
        rental.segments.iter_mut().for_each(|ticks| ticks.truncate(TICKS_MAX));
        let (renter, host) = (number % renters.len(), number / 7 % hosts.len());
        let charges = rental.charges();
        rent(&books, renters[renter], hosts[host], &charges, number).await;
        charged[renter] += sum(charges.iter().map(|c| c.gross()));
        earned[host] += sum(charges.iter().map(|c| c.host_share().unwrap()));
        fees += sum(charges.iter().map(|c| c.fee()));
    }
    assert_eq!(charged.iter().sum::<i128>(), earned.iter().sum::<i128>() + fees);
    for (renter, charged) in renters.iter().zip(charged) {
        let statement = closing(&books, *renter).await;
        assert_eq!((i128::from(statement.charges.micros()), statement.credits), (charged, usd("100000")));
        assert_eq!(books.balance(*renter).await.held, Money::ZERO);
    }
    for (host, earned) in hosts.iter().zip(earned) {
        let statement = closing(&books, *host).await;
        assert_eq!((i128::from(statement.credits.micros()), statement.charges), (earned, Money::ZERO));
    }
    books.assert_right().await;
}

async fn rent(books: &Books, renter: AccountId, host: AccountId, charges: &[Charge], number: usize) {
    let start = i64::try_from(number).unwrap() * 10_000;
    let request = hold_request(renter, charges.first().map_or(Money::ZERO, |c| c.gross()));
    books
        .in_tx(async |tx| {
            service::hold(tx, request.clone()).await?;
            for (tick, charge) in (1..).zip(charges) {
                let remaining = service::hold_remaining(tx, request.id).await?;
                let missing = charge.gross().minus(remaining)?;
                if missing.is_positive() {
                    service::hold_increase(tx, request.id, TransferId::new(), missing, at(start)).await?;
                }
                let capture = Capture {
                    hold: request.id,
                    transfer_id: service::derived_id(&["test", &number.to_string(), &tick.to_string()]),
                    charge: *charge,
                    host,
                    business_at: at(start + tick * 60),
                };
                service::capture(tx, capture).await?;
            }
            service::release(tx, request.id, TransferId::new(), at(start + 9_999)).await
        })
        .await
        .unwrap();
}

/// The statement over all time, checked against its own lines and the balance, and cut in two at some instants.
async fn closing(books: &Books, account: AccountId) -> Statement {
    let mut connection = books.connect().await;
    let whole = service::statement(&mut connection, account, Period::default(), None, 100_000).await.unwrap();
    assert_eq!(whole.opening, Money::ZERO);
    assert_eq!(whole.opening.plus(whole.credits).unwrap().minus(whole.charges).unwrap(), whole.closing);
    let balance = books.balance(account).await;
    assert_eq!((whole.closing, whole.closing_balance), (balance.total().unwrap(), balance));
    assert_eq!(sum(whole.lines.iter().map(|line| line.amount)), i128::from(whole.closing.micros()));
    for seconds in [0, 1, 86_400, 500_000, 1_234_567] {
        let before = Period { from: None, to: Some(at(seconds)) };
        let after = Period { from: Some(at(seconds)), to: None };
        let before = service::statement(&mut connection, account, before, None, 100_000).await.unwrap();
        let after = service::statement(&mut connection, account, after, None, 100_000).await.unwrap();
        assert_eq!((before.closing, after.closing), (after.opening, whole.closing));
        assert_eq!(before.credits.plus(after.credits).unwrap(), whole.credits);
        assert_eq!(before.charges.plus(after.charges).unwrap(), whole.charges);
    }
    whole
}
