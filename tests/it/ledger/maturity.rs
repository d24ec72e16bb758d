//! Earnings become payable a week after they were earned, each once (money.md 22).

use chrono::{DateTime, TimeDelta, Utc};
use futures::future::join_all;
use rigmark::base::{
    Money,
    id::{AccountId, HoldId, TransferId},
};
use rigmark::ledger::{
    Actor, Charge, LedgerAccount, TransferCode,
    model::{Balance, Capture, Correction, HoldRequest, Posting, TransferRequest},
    service,
};

use super::{credit, hold_request, micros, usd};
use crate::support::{
    TestApp,
    hosts::{account_id, business_now, person},
};

const DAY: i64 = 86_400;
const FEE: u16 = 1_000;

struct Host {
    app: TestApp,
    id: AccountId,
    renter: AccountId,
}

/// A rental that is being charged.
struct Rental {
    hold: HoldId,
    first: Option<TransferId>,
}

impl Host {
    async fn new() -> Self {
        let app = TestApp::new().await;
        let (host, renter) = (person(&app, "host").await, person(&app, "renter").await);
        let (id, renter) = (account_id(&app, &host).await, account_id(&app, &renter).await);
        app.ctx().db.tx("test", async |tx| service::post(tx, credit(renter, usd("1000"))).await).await.unwrap();
        Self { app, id, renter }
    }

    async fn now(&self) -> DateTime<Utc> {
        business_now(&self.app).await
    }

    async fn rental(&self) -> Rental {
        let request = HoldRequest { business_at: self.now().await, ..hold_request(self.renter, usd("100")) };
        self.app.ctx().db.tx("test", async |tx| service::hold(tx, request.clone()).await).await.unwrap();
        Rental { hold: request.id, first: None }
    }

    /// Charges `gross`, of which nine tenths are the host's.
    async fn charge(&self, rental: &mut Rental, gross: &str, at: DateTime<Utc>) {
        let charge = Charge::in_all(usd(gross), FEE).unwrap();
        let capture = Capture { hold: rental.hold, transfer_id: TransferId::new(), charge, host: self.id, business_at: at };
        self.app.ctx().db.tx("test", async |tx| service::capture(tx, capture).await).await.unwrap();
        rental.first.get_or_insert(capture.transfer_id);
    }

    async fn earn(&self, gross: &str) -> Rental {
        let mut rental = self.rental().await;
        let now = self.now().await;
        self.charge(&mut rental, gross, now).await;
        rental
    }

    async fn give_back(&self, rental: &Rental, gross: &str) {
        let business_at = self.now().await;
        let (id, original) = (TransferId::new(), rental.first.unwrap());
        let correction = Correction { id, original, gross: usd(gross), fee_basis_points: FEE, actor: Actor::System, business_at };
        self.app.ctx().db.tx("test", async |tx| service::correct(tx, correction).await).await.unwrap();
    }

    async fn pay_out(&self, amount: &str) {
        let request = TransferRequest {
            code: TransferCode::Payout,
            payment: Some("pay_1".to_owned()),
            postings: Posting::between(LedgerAccount::Payable(self.id), LedgerAccount::StripeClearing, usd(amount)).unwrap(),
            ..credit(self.id, usd("1"))
        };
        self.app.ctx().db.tx("test", async |tx| service::post(tx, request.clone()).await).await.unwrap();
    }

    async fn balance(&self) -> Balance {
        service::balance(&mut self.app.connect().await, self.id).await.unwrap()
    }

    async fn assert_earned(&self, earnings: i64, payable: &str) {
        let balance = self.balance().await;
        assert_eq!((balance.earnings, balance.payable), (micros(earnings), usd(payable)));
        let report = service::reconcile(&mut self.app.connect().await).await.unwrap();
        assert!(report.differences.is_empty(), "{:#?}", report.differences);
    }

    async fn matured(&self) -> usize {
        let filter = rigmark::ledger::model::EntryFilter { code: Some(TransferCode::EarningsMatured), ..Default::default() };
        let entries = service::entries(&mut self.app.connect().await, self.id, &filter, None, 1_000).await.unwrap();
        entries.iter().filter(|entry| entry.amount > Money::ZERO).count()
    }
}

#[tokio::test]
async fn earnings_are_payable_after_a_week_and_not_a_second_before() {
    let host = Host::new().await;
    host.earn("10").await;
    host.app.advance(7 * DAY - 5).await;
    host.assert_earned(9_000_000, "0").await;
    host.app.advance(6).await;
    host.assert_earned(0, "9").await;
    host.app.advance(30 * DAY).await;
    host.app.work().await;
    host.assert_earned(0, "9").await;
    assert_eq!(host.matured().await, 1);
}

#[tokio::test]
async fn many_sweeps_at_once_move_it_once() {
    let host = Host::new().await;
    for _ in 0..5 {
        host.earn("1").await;
    }
    let later = host.now().await + TimeDelta::days(8);
    let moved: usize = join_all((0..8).map(|_| service::mature_due(host.app.ctx(), later))).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(moved, 1);
    host.assert_earned(0, "4.5").await;
}

/// A meter charges every minute; the week's transfers stay few, and the last charge is payable when its own week is over.
#[tokio::test]
async fn an_hours_charges_become_payable_together_and_the_last_on_time() {
    let host = Host::new().await;
    let mut rental = host.rental().await;
    let start = host.now().await;
    for minute in 0..180 {
        host.charge(&mut rental, "0.1", start + TimeDelta::minutes(minute)).await;
    }
    let last = start + TimeDelta::minutes(179) + TimeDelta::days(7);
    let at = async |now: DateTime<Utc>| {
        service::mature_due(host.app.ctx(), now).await.unwrap();
        host.balance().await.payable
    };
    assert_eq!(at(start + TimeDelta::days(7) - TimeDelta::seconds(1)).await, usd("0"));
    // None before its time, whatever the moment.
    for minute in (0..240).step_by(7) {
        let ripe = i64::from(minute).min(179) + 1;
        let payable = at(start + TimeDelta::days(7) + TimeDelta::minutes(i64::from(minute))).await;
        assert!(payable <= micros(90_000 * ripe), "{payable} after {minute} minutes");
        assert!(payable >= micros(90_000 * (ripe - 61)), "{payable} after {minute} minutes");
    }
    assert_eq!(at(last).await, usd("16.2"));
    assert!(host.matured().await <= 4, "{} transfers", host.matured().await);
    host.assert_earned(0, "16.2").await;
}

#[tokio::test]
async fn what_was_given_back_before_never_becomes_payable() {
    let host = Host::new().await;
    let rental = host.earn("10").await;
    host.app.advance(DAY).await;
    host.give_back(&rental, "4").await;
    host.assert_earned(5_400_000, "0").await;
    host.app.advance(7 * DAY).await;
    host.assert_earned(0, "5.4").await;
    host.give_back(&rental, "1").await;
    host.assert_earned(0, "4.5").await;
    host.app.advance(7 * DAY).await;
    host.assert_earned(0, "4.5").await;
}

/// A later rental that is given back does not keep an earlier one's earnings waiting.
#[tokio::test]
async fn giving_back_a_young_rental_does_not_hold_up_an_old_one() {
    let host = Host::new().await;
    host.earn("10").await;
    host.app.advance(3 * DAY).await;
    let young = host.earn("10").await;
    host.app.advance(DAY).await;
    host.give_back(&young, "10").await;
    host.app.advance(3 * DAY + 60).await;
    host.assert_earned(0, "9").await;
    host.app.advance(7 * DAY).await;
    host.assert_earned(0, "9").await;
}

/// What was paid out and given back after is paid by later earnings before anything of them is payable, however many there are.
#[tokio::test]
async fn later_earnings_pay_a_debt_first() {
    let host = Host::new().await;
    let refunded = host.earn("10").await;
    host.app.advance(8 * DAY).await;
    host.pay_out("9").await;
    host.give_back(&refunded, "10").await;
    host.assert_earned(-9_000_000, "0").await;
    host.earn("6").await;
    host.app.advance(DAY).await;
    host.earn("6").await;
    host.app.advance(6 * DAY + 60).await;
    // The first of them is mature, and pays.
    host.assert_earned(1_800_000, "0").await;
    host.app.advance(DAY).await;
    host.assert_earned(0, "1.8").await;
}

/// A charge that is written late belongs to its own time.
#[tokio::test]
async fn a_charge_that_comes_late_is_not_lost() {
    let host = Host::new().await;
    host.earn("1").await;
    host.app.advance(8 * DAY).await;
    host.assert_earned(0, "0.9").await;
    let mut late = host.rental().await;
    let then = host.now().await - TimeDelta::days(8);
    host.charge(&mut late, "1", then).await;
    host.earn("1").await;
    host.app.advance(7 * DAY + 60).await;
    host.assert_earned(0, "2.7").await;
}
