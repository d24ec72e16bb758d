//! Charges rental by rental: whatever happened in whatever order, each month adds up by itself, to the micro-dollar.

use chrono::{DateTime, TimeDelta, Utc};
use rand::{Rng, SeedableRng, rngs::StdRng};
use rigmark::base::{
    Money,
    id::{AccountId, HoldId, RentalId, TransferId},
};
use rigmark::ledger::{
    Actor, Charge, Period, TransferCode,
    model::{Capture, Correction, HoldRequest, TransferRequest},
    service,
};

use super::{Books, credit, hold_request, micros};

const STEPS: usize = 400;

struct Rented {
    id: RentalId,
    hold: HoldId,
    host: AccountId,
    basis_points: u16,
    posted: Charge,
    charges: Vec<TransferId>,
}

/// A day of October, November or December.
fn some_instant(random: &mut StdRng) -> DateTime<Utc> {
    let start: DateTime<Utc> = "2026-10-01T00:00:00Z".parse().unwrap();
    start + TimeDelta::seconds(random.random_range(0..92 * 86_400))
}

fn month(from: &str, to: &str) -> Period {
    Period { from: Some(from.parse().unwrap()), to: Some(to.parse().unwrap()) }
}

async fn one_step(books: &Books, random: &mut StdRng, accounts: &[AccountId], rented: &mut Vec<Rented>) {
    let at = some_instant(random);
    let account = accounts[random.random_range(0..accounts.len())];
    match random.random_range(0..10) {
        0 => {
            let amount = micros(random.random_range(1..20_000_000));
            books.post(TransferRequest { business_at: at, ..credit(account, amount) }).await.unwrap();
        }
        1 | 2 => {
            let host = accounts[random.random_range(0..accounts.len())];
            let request = HoldRequest { business_at: at, ..hold_request(account, micros(random.random_range(1..5_000_000))) };
            let held = books.in_tx(async |tx| service::hold(tx, request.clone()).await).await;
            if host != account && held.is_ok() {
                let basis_points = [0, 500, 1_000, 9_999, 10_000][random.random_range(0..5)];
                let id = request.rental.unwrap();
                rented.push(Rented { id, hold: request.id, host, basis_points, posted: Charge::NOTHING, charges: Vec::new() });
            }
        }
        3 => {
            let Some(rental) = rented.iter().filter(|rental| !rental.charges.is_empty()).max_by_key(|rental| rental.posted.gross()) else {
                return;
            };
            let correction = Correction {
                id: TransferId::new(),
                original: rental.charges[0],
                gross: micros(random.random_range(1..50_000)),
                fee_basis_points: rental.basis_points,
                actor: Actor::System,
                business_at: at,
            };
            // What is more than was charged is refused, and changes nothing.
            drop(books.in_tx(async |tx| service::correct(tx, correction).await).await);
        }
        _ => {
            if rented.is_empty() {
                return;
            }
            let place = random.random_range(0..rented.len());
            let rental = &mut rented[place];
            let left = service::hold_remaining(&mut books.connect().await, rental.hold).await.unwrap();
            let gross = micros(random.random_range(1..100_000)).min(left);
            let charge = Charge::after(rental.posted, gross, rental.basis_points).unwrap();
            let capture = Capture { hold: rental.hold, transfer_id: TransferId::new(), charge, host: rental.host, business_at: at };
            books.in_tx(async |tx| service::capture(tx, capture).await).await.unwrap();
            if !charge.is_nothing() {
                rental.posted = rental.posted.plus(charge).unwrap();
                rental.charges.push(capture.transfer_id);
            }
        }
    }
}

#[tokio::test]
async fn every_month_adds_up_rental_by_rental() {
    let books = Books::new().await;
    let mut random = StdRng::seed_from_u64(0x00b0_0c05);
    let mut accounts = Vec::new();
    for _ in 0..5 {
        accounts.push(books.account_with("100").await);
    }
    let mut rented = Vec::new();
    for _ in 0..STEPS {
        one_step(&books, &mut random, &accounts, &mut rented).await;
    }
    assert!(rented.len() > 20 && rented.iter().filter(|rental| rental.charges.len() > 1).count() > 10);
    let months = [
        Period { from: None, to: Some("2026-10-01T00:00:00Z".parse().unwrap()) },
        month("2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"),
        month("2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        month("2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ];
    let mut connection = books.connect().await;
    let sum = |amounts: Vec<Money>| amounts.into_iter().try_fold(Money::ZERO, Money::plus).unwrap();
    let mut of_rental: std::collections::BTreeMap<RentalId, [Money; 3]> = std::collections::BTreeMap::new();
    for account in &accounts {
        let mut opening = Money::ZERO;
        for period in months {
            let statement = service::statement(&mut connection, *account, period, None, 10_000).await.unwrap();
            assert_eq!(statement.opening, opening);
            let folds = service::rental_folds(&mut connection, *account, period, 10_000).await.unwrap();
            let is_of_rental = |code| matches!(code, TransferCode::RentalCharge | TransferCode::Correction);
            let (rentals, others): (Vec<_>, Vec<_>) = statement.lines.iter().partition(|line| is_of_rental(line.code));
            assert_eq!(sum(folds.iter().map(|fold| fold.own).collect()), sum(rentals.iter().map(|line| line.amount).collect()));
            let change = sum(folds.iter().map(|fold| fold.own).chain(others.iter().map(|line| line.amount)).collect());
            assert_eq!(change, statement.credits.minus(statement.charges).unwrap());
            assert_eq!(opening.plus(change).unwrap(), statement.closing);
            for fold in folds {
                let net = fold.gross.minus(fold.fee).unwrap();
                assert_eq!(fold.own, if fold.is_renter { fold.gross.negated().unwrap() } else { net });
                let sums = of_rental.entry(fold.rental).or_insert([Money::ZERO; 3]);
                // The renter's side has all of it; a host of a rental that was all fee has no row.
                let parts = if fold.is_renter { [fold.gross, fold.fee, Money::ZERO] } else { [Money::ZERO, Money::ZERO, fold.own] };
                for (sum, part) in sums.iter_mut().zip(parts) {
                    *sum = sum.plus(part).unwrap();
                }
            }
            opening = statement.closing;
        }
    }
    for (rental, [gross, fee, host_share]) in &of_rental {
        assert_eq!(host_share.plus(*fee).unwrap(), *gross, "{rental}");
    }
    for rental in rented.iter().filter(|rental| !rental.charges.is_empty()) {
        assert!(of_rental[&rental.id][0] <= rental.posted.gross(), "{}", rental.id);
    }
    books.assert_right().await;
}
