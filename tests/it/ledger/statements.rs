//! What owners read: entries and statements.

use chrono::NaiveDate;
use diesel_async::SimpleAsyncConnection;
use rigmark::base::{
    Money,
    id::{AccountId, RentalId, TransferId},
};
use rigmark::ledger::{
    Actor, LedgerAccount, Period, TransferCode,
    model::{Capture, EntryFilter, HoldRequest, LedgerAccountKind, StatementLine, TransferRequest},
    service,
};

use super::{Books, at, charge, credit, hold_request, micros, usd};

const DAY: i64 = 86_400;

/// A renter who paid in 10 $ on day 0, rented twice across midnight, and was charged back 1 $ on day 2.
struct Story {
    books: Books,
    renter: AccountId,
    host: AccountId,
    rentals: [RentalId; 2],
}

impl Story {
    async fn new() -> Self {
        let books = Books::new().await;
        let (renter, host) = (books.account().await, books.account().await);
        let top_up = TransferRequest {
            code: TransferCode::TopUp,
            payment: Some("pi_1".to_owned()),
            postings: rigmark::ledger::model::Posting::between(LedgerAccount::StripeClearing, LedgerAccount::Available(renter), usd("10"))
                .unwrap(),
            ..credit(renter, usd("10"))
        };
        books.post(top_up.clone()).await.unwrap();
        let mut rentals = [RentalId::new(), RentalId::new()];
        for (number, rental) in (1..).zip(&mut rentals) {
            // The first second, the last of the day, and the first of the next.
            *rental = rent(&books, renter, host, &[number, DAY - 1, DAY]).await;
        }
        let chargeback = TransferRequest {
            id: TransferId::new(),
            code: TransferCode::Chargeback,
            postings: rigmark::ledger::model::Posting::between(LedgerAccount::Available(renter), LedgerAccount::StripeClearing, usd("1"))
                .unwrap(),
            actor: Actor::System,
            business_at: at(2 * DAY),
            linked: Some(top_up.id),
            ..top_up
        };
        books.post(chargeback).await.unwrap();
        Self { books, renter, host, rentals }
    }

    async fn lines(&self, account: AccountId, period: Period) -> Vec<(NaiveDate, TransferCode, i64, Money, Money)> {
        let statement = service::statement(&mut self.books.connect().await, account, period, None, 100).await.unwrap();
        statement.lines.into_iter().map(|l| (l.key.day, l.code, l.transfer_count, l.amount, l.balance_after)).collect()
    }
}

/// A rental charged 0.10 $ at each of these instants.
async fn rent(books: &Books, renter: AccountId, host: AccountId, charged_at: &[i64]) -> RentalId {
    let request = HoldRequest { business_at: at(charged_at[0]), ..hold_request(renter, usd("1")) };
    books
        .in_tx(async |tx| {
            service::hold(tx, request.clone()).await?;
            for seconds in charged_at {
                let capture = Capture {
                    hold: request.id,
                    transfer_id: service::derived_id(&["test", &request.id.to_string(), &seconds.to_string()]),
                    charge: charge("0.1", 1_000),
                    host,
                    business_at: at(*seconds),
                };
                service::capture(tx, capture).await?;
            }
            service::release(tx, request.id, TransferId::new(), at(DAY + 5)).await
        })
        .await
        .unwrap();
    request.rental.unwrap()
}

fn day(number: u32) -> NaiveDate {
    NaiveDate::from_ymd_opt(2026, 11, 30).unwrap() + chrono::Days::new(number.into())
}
fn days(from: u32, to: u32) -> Period {
    Period::parse(Some(&day(from).to_string()), Some(&day(to).to_string())).unwrap()
}

#[tokio::test]
async fn a_statement_has_a_line_for_each_day_code_and_rental() {
    use TransferCode::{Chargeback, RentalCharge, TopUp};
    let story = Story::new().await;
    let expected = vec![
        (day(0), TopUp, 1, usd("10"), usd("10")),
        (day(0), RentalCharge, 2, micros(-200_000), usd("9.8")),
        (day(0), RentalCharge, 2, micros(-200_000), usd("9.6")),
        (day(1), RentalCharge, 1, micros(-100_000), usd("9.5")),
        (day(1), RentalCharge, 1, micros(-100_000), usd("9.4")),
        (day(2), Chargeback, 1, micros(-1_000_000), usd("8.4")),
    ];
    assert_eq!(story.lines(story.renter, Period::default()).await, expected);
    assert_eq!(story.lines(story.renter, days(0, 2)).await, expected);
    assert_eq!(story.lines(story.renter, days(1, 1)).await, expected[3..5]);
    assert_eq!(story.lines(story.renter, days(3, 9)).await, []);

    let mut connection = story.books.connect().await;
    let middle = service::statement(&mut connection, story.renter, days(1, 1), None, 100).await.unwrap();
    assert_eq!((middle.opening, middle.credits, middle.charges, middle.closing), (usd("9.6"), usd("0"), usd("0.2"), usd("9.4")));
    let last = middle.lines.last().unwrap();
    assert_eq!((last.rental, last.payment.as_deref()), (Some(story.rentals[1]), None));
    let after = service::statement(&mut connection, story.renter, days(5, 9), None, 100).await.unwrap();
    assert_eq!((after.opening, after.closing, after.next), (usd("8.4"), usd("8.4"), None));
    // The host's side of it, and somebody who never had money.
    let host = service::statement(&mut connection, story.host, Period::default(), None, 100).await.unwrap();
    assert_eq!((host.credits, host.charges, host.closing_balance.earnings), (usd("0.54"), usd("0"), usd("0.54")));
    let nobody = service::statement(&mut connection, AccountId::new(), days(0, 2), None, 100).await.unwrap();
    assert_eq!((nobody.opening, nobody.closing, nobody.lines), (usd("0"), usd("0"), vec![]));
}

/// money.md 10: a statement day is a UTC day, whatever time zone the server runs in.
#[tokio::test]
async fn the_sessions_time_zone_does_not_matter() {
    let story = Story::new().await;
    let mut connection = story.books.connect().await;
    let utc = service::statement(&mut connection, story.renter, days(0, 1), None, 100).await.unwrap();
    for zone in ["Pacific/Auckland", "America/New_York", "Pacific/Kiritimati"] {
        connection.batch_execute(&format!("SET TIME ZONE '{zone}'")).await.unwrap();
        assert_eq!(service::statement(&mut connection, story.renter, days(0, 1), None, 100).await.unwrap(), utc, "{zone}");
    }
}

#[tokio::test]
async fn lines_come_in_pages_with_the_sums_of_the_whole() {
    let story = Story::new().await;
    let mut connection = story.books.connect().await;
    let whole = service::statement(&mut connection, story.renter, Period::default(), None, 100).await.unwrap();
    for limit in [1, 2, 4, 6] {
        let mut lines: Vec<StatementLine> = Vec::new();
        let mut after = None;
        loop {
            let page = service::statement(&mut connection, story.renter, Period::default(), after, limit).await.unwrap();
            assert_eq!(
                (page.opening, page.credits, page.charges, page.closing),
                (whole.opening, whole.credits, whole.charges, whole.closing)
            );
            assert!(i64::try_from(page.lines.len()).unwrap() <= limit);
            lines.extend(page.lines);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(lines, whole.lines, "pages of {limit}");
    }
}

#[tokio::test]
async fn entries_carry_all_that_a_posting_says() {
    let story = Story::new().await;
    let mut connection = story.books.connect().await;
    let all = service::entries(&mut connection, story.renter, &EntryFilter::default(), None, 100).await.unwrap();
    // One of the top-up, two of each hold, one of each charge, two of each release, one of the chargeback.
    assert_eq!(all.len(), 1 + 2 * (2 + 3 + 2) + 1);
    assert!(all.is_sorted_by(|a, b| a.key() > b.key()));
    let last = &all[0];
    assert_eq!(
        (last.code, last.kind, last.amount, last.balance_after),
        (TransferCode::Chargeback, LedgerAccountKind::Available, micros(-1_000_000), usd("8.4"))
    );
    assert_eq!((last.actor, last.payment.as_deref(), last.business_at), (Actor::System, Some("pi_1"), at(2 * DAY)));
    let first = all.last().unwrap();
    assert_eq!((first.code, first.actor, first.amount), (TransferCode::TopUp, Actor::User(story.renter), usd("10")));
    assert_eq!(last.linked, Some(first.transfer));
    // Each ledger account's entries sum to its balance.
    let balance = story.books.balance(story.renter).await;
    let sum = |kind| all.iter().filter(|e| e.kind == kind).fold(Money::ZERO, |sum, e| sum.plus(e.amount).unwrap());
    assert_eq!((sum(LedgerAccountKind::Available), sum(LedgerAccountKind::Held)), (balance.available, balance.held));
}

#[tokio::test]
async fn entries_are_filtered_and_come_in_pages() {
    let story = Story::new().await;
    let mut connection = story.books.connect().await;
    let filters = [
        (EntryFilter::default(), 16),
        (EntryFilter { period: days(1, 1), ..EntryFilter::default() }, 6),
        (EntryFilter { period: Period { from: Some(at(1)), to: Some(at(2)) }, ..EntryFilter::default() }, 3),
        (EntryFilter { code: Some(TransferCode::RentalCharge), ..EntryFilter::default() }, 6),
        (EntryFilter { rental: Some(story.rentals[0]), ..EntryFilter::default() }, 7),
        (EntryFilter { rental: Some(RentalId::new()), ..EntryFilter::default() }, 0),
    ];
    for (filter, count) in filters {
        let all = service::entries(&mut connection, story.renter, &filter, None, 100).await.unwrap();
        assert_eq!(all.len(), count, "{filter:?}");
        let mut paged = Vec::new();
        loop {
            let after = paged.last().map(rigmark::ledger::model::Entry::key);
            let page = service::entries(&mut connection, story.renter, &filter, after, 2).await.unwrap();
            if page.is_empty() {
                break;
            }
            paged.extend(page);
        }
        let sequences = |entries: &[rigmark::ledger::model::Entry]| entries.iter().map(|e| e.sequence).collect::<Vec<_>>();
        assert_eq!(sequences(&paged), sequences(&all), "{filter:?}");
    }
    // Another account's entries are not among them.
    let host = service::entries(&mut connection, story.host, &EntryFilter::default(), None, 100).await.unwrap();
    assert_eq!(host.len(), 6);
    assert!(host.iter().all(|entry| entry.kind == LedgerAccountKind::Earnings && entry.amount == usd("0.09")));
}

/// An entry that is written late belongs to the day it is about, and every statement still closes.
#[tokio::test]
async fn a_late_entry_stands_on_its_own_day() {
    let story = Story::new().await;
    story.books.post(TransferRequest { business_at: at(DAY - 1), ..credit(story.renter, usd("3")) }).await.unwrap();
    let mut connection = story.books.connect().await;
    let first = service::statement(&mut connection, story.renter, days(0, 0), None, 100).await.unwrap();
    let second = service::statement(&mut connection, story.renter, days(1, 1), None, 100).await.unwrap();
    assert_eq!((first.closing, second.opening), (usd("12.6"), usd("12.6")));
    story.books.assert_right().await;
}

/// Of what a host earned: what renters paid, the platform's fee and the host's share, per rental and in all; payouts and what comes back are
/// lines of their own.
#[tokio::test]
async fn a_hosts_statement_has_gross_fee_and_net_of_each_rental() {
    use TransferCode::{Correction, Payout, PayoutFailed, RentalCharge};
    let story = Story::new().await;
    let host = story.host;
    let (earnings, payable) = (LedgerAccount::Earnings(host), LedgerAccount::Payable(host));
    let moved = |code, from, to, amount| TransferRequest {
        id: TransferId::new(),
        code,
        postings: rigmark::ledger::model::Posting::between(from, to, amount).unwrap(),
        payment: Some("pay_1".to_owned()),
        actor: Actor::System,
        business_at: at(2 * DAY),
        ..credit(host, usd("1"))
    };
    let original = {
        let filter = EntryFilter { rental: Some(story.rentals[0]), ..EntryFilter::default() };
        service::entries(&mut story.books.connect().await, host, &filter, None, 1).await.unwrap()[0].transfer
    };
    let back = rigmark::ledger::model::Correction {
        id: TransferId::new(),
        original,
        gross: usd("0.1"),
        fee_basis_points: 1_000,
        actor: Actor::System,
        business_at: at(2 * DAY),
    };
    story.books.in_tx(async |tx| service::correct(tx, back).await).await.unwrap();
    story.books.post(moved(TransferCode::EarningsMatured, earnings, payable, usd("0.45"))).await.unwrap();
    let payout = moved(Payout, payable, LedgerAccount::StripeClearing, usd("0.4"));
    story.books.post(payout.clone()).await.unwrap();
    let returned = moved(PayoutFailed, LedgerAccount::StripeClearing, payable, usd("0.15"));
    story.books.post(TransferRequest { linked: Some(payout.id), ..returned }).await.unwrap();

    let mut connection = story.books.connect().await;
    let statement = service::statement(&mut connection, host, Period::default(), None, 100).await.unwrap();
    let lines: Vec<_> = statement.lines.iter().map(|l| (l.key.day, l.code, l.amount, l.fee, l.gross().unwrap())).collect();
    let earned = |day, code, net, fee, gross| (day, code, micros(net), Some(micros(fee)), Some(micros(gross)));
    assert_eq!(
        lines,
        [
            earned(day(0), RentalCharge, 180_000, 20_000, 200_000),
            earned(day(0), RentalCharge, 180_000, 20_000, 200_000),
            earned(day(1), RentalCharge, 90_000, 10_000, 100_000),
            earned(day(1), RentalCharge, 90_000, 10_000, 100_000),
            earned(day(2), Correction, -90_000, -10_000, -100_000),
            (day(2), Payout, usd("0.4").negated().unwrap(), None, None),
            (day(2), PayoutFailed, usd("0.15"), None, None),
        ]
    );
    assert_eq!((statement.earned_gross, statement.earned_fee), (usd("0.5"), usd("0.05")));
    assert_eq!((statement.credits, statement.charges, statement.closing), (usd("0.69"), usd("0.49"), usd("0.2")));
    let one_day = service::statement(&mut connection, host, days(1, 1), None, 1).await.unwrap();
    assert_eq!((one_day.earned_gross, one_day.earned_fee, one_day.lines.len()), (usd("0.2"), usd("0.02"), 1));
    // The renter's side of the same rentals shows what was paid and nothing of fees.
    let renter = service::statement(&mut connection, story.renter, Period::default(), None, 100).await.unwrap();
    assert_eq!((renter.earned_gross, renter.earned_fee), (usd("0"), usd("0")));
    assert!(renter.lines.iter().all(|line| line.fee.is_none()));
}
