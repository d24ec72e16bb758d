//! The books: what the database refuses, what the service does, and that nothing is lost or spent twice.

mod api;
mod arithmetic;
mod concurrency;
mod corrections;
mod enforcement;
mod folds;
mod holds;
mod maturity;
mod period;
mod posting;
mod reconcile;
mod statements;

use chrono::{DateTime, TimeDelta, Utc};
use diesel::sql_types::Uuid as SqlUuid;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use rigmark::base::{
    Money, Result,
    id::{AccountId, HoldId, RentalId, TransferId},
};
use rigmark::db::{Db, Tx};
use rigmark::ledger::{
    Actor, Charge, LedgerAccount, TransferCode,
    model::{Balance, Capture, Hold, HoldRequest, Posted, Posting, TransferRequest},
    service,
};

use crate::support::{TestDatabase, database};

pub fn usd(text: &str) -> Money {
    text.parse().unwrap()
}
pub fn micros(micros: i64) -> Money {
    Money::usd_micros(micros)
}
/// An instant `seconds` after a day's start.
pub fn at(seconds: i64) -> DateTime<Utc> {
    "2026-11-30T00:00:00Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::seconds(seconds)
}

/// Empty books in a database of their own.
pub struct Books {
    pub database: TestDatabase,
    pub db: Db,
}

impl Books {
    pub async fn new() -> Self {
        let database = database().await;
        let db = database.pool();
        Self { database, db }
    }

    pub async fn connect(&self) -> AsyncPgConnection {
        self.database.connect().await
    }

    /// A new account without money.
    pub async fn account(&self) -> AccountId {
        let id = AccountId::new();
        diesel::sql_query(
            "INSERT INTO accounts (id, kind, handle, handle_skeleton, display_name, created_at)
             VALUES ($1, 'user', 'a' || md5($1::text), 'a' || md5($1::text), 'A', now())",
        )
        .bind::<SqlUuid, _>(id.uuid())
        .execute(&mut self.connect().await)
        .await
        .unwrap();
        id
    }

    /// A new account with play money.
    pub async fn account_with(&self, amount: &str) -> AccountId {
        let id = self.account().await;
        assert_eq!(self.post(credit(id, usd(amount))).await.unwrap(), Posted::New);
        id
    }

    pub async fn post(&self, request: TransferRequest) -> Result<Posted> {
        self.db.tx("test", async |tx| service::post(tx, request.clone()).await).await
    }

    pub async fn balance(&self, account: AccountId) -> Balance {
        service::balance(&mut self.connect().await, account).await.unwrap()
    }

    /// Sets money aside for a new rental.
    pub async fn hold(&self, account: AccountId, amount: Money) -> Result<Hold> {
        let request = hold_request(account, amount);
        self.db.tx("test", async |tx| service::hold(tx, request.clone()).await).await
    }

    pub async fn capture(&self, hold: HoldId, transfer: TransferId, charge: Charge, host: AccountId) -> Result<()> {
        let capture = Capture { hold, transfer_id: transfer, charge, host, business_at: at(3_600) };
        self.db.tx("test", async |tx| service::capture(tx, capture).await).await
    }

    pub async fn release(&self, hold: HoldId) -> Result<Money> {
        let id = TransferId::new();
        self.db.tx("test", async |tx| service::release(tx, hold, id, at(7_200)).await).await
    }

    pub async fn in_tx<T>(&self, work: impl AsyncFn(&mut Tx<'_>) -> Result<T>) -> Result<T> {
        self.db.tx("test", work).await
    }

    /// The books agree with the postings.
    pub async fn assert_right(&self) {
        let report = service::reconcile(&mut self.connect().await).await.unwrap();
        assert!(report.differences.is_empty(), "{:#?}", report.differences);
    }
}

pub fn credit(account: AccountId, amount: Money) -> TransferRequest {
    TransferRequest {
        id: TransferId::new(),
        code: TransferCode::SandboxCredit,
        postings: Posting::between(LedgerAccount::SandboxMint, LedgerAccount::Available(account), amount).unwrap(),
        rental: None,
        payment: None,
        actor: Actor::User(account),
        business_at: at(0),
        linked: None,
    }
}

pub fn hold_request(account: AccountId, amount: Money) -> HoldRequest {
    HoldRequest {
        id: HoldId::new(),
        transfer_id: TransferId::new(),
        account,
        rental: Some(RentalId::new()),
        amount,
        actor: Actor::User(account),
        business_at: at(0),
        expires_at: None,
    }
}

pub fn charge(gross: &str, basis_points: u16) -> Charge {
    Charge::in_all(usd(gross), basis_points).unwrap()
}
