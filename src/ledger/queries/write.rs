//! Locking and writing. The triggers of `create_ledger` carry postings into balances and holds; nothing here sets an amount.

use diesel::{
    ExpressionMethods, Insertable, OptionalExtension, QueryDsl, Queryable, QueryableByName, sql_query,
    sql_types::{Array, BigInt, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;

use super::super::model::{Hold, HoldRequest, LedgerAccount, Posting, TransferRequest};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, HoldId, LedgerAccountId, RentalId, TransferId},
    },
    db::{Conn, KeptDsl, Tx, schema},
};

#[derive(Insertable)]
#[diesel(table_name = schema::ledger_accounts)]
struct NewLedgerAccount {
    id: LedgerAccountId,
    key: String,
    account_id: Option<AccountId>,
    kind: &'static str,
    currency: &'static str,
    may_be_negative: bool,
}

async fn ledger_account_insert(tx: &mut Tx<'_>, account: LedgerAccount) -> Result<()> {
    let row = NewLedgerAccount {
        id: account.id(),
        key: account.key(),
        account_id: account.owner(),
        kind: account.kind().as_str(),
        currency: "usd",
        may_be_negative: account.kind().may_be_negative(),
    };
    diesel::insert_into(schema::ledger_accounts::table).values(row).on_conflict_do_nothing().execute(tx).await?;
    Ok(())
}

/// All of them or none: while one is missing no row is locked, since the later ones must not be locked before it. Not `FOR UPDATE`: foreign keys
/// of postings take a key share, which this lets through.
const LOCK: &str = "
SELECT id, balance_micros FROM ledger_accounts
WHERE id = ANY ($1) AND (SELECT count(*) FROM ledger_accounts WHERE id = ANY ($1)) = cardinality($1)
ORDER BY id FOR NO KEY UPDATE";

#[derive(QueryableByName)]
struct LockedRow {
    #[diesel(sql_type = SqlUuid)]
    id: LedgerAccountId,
    #[diesel(sql_type = BigInt)]
    balance_micros: Money,
}

async fn lock_existing(tx: &mut Tx<'_>, ids: &[LedgerAccountId]) -> Result<Vec<LockedRow>> {
    Ok(sql_query(LOCK).bind::<Array<SqlUuid>, _>(ids).kept().load(tx).await?)
}

/// Locks ledger accounts in the order of their ids, opening those that do not exist, and returns their balances in that order.
pub(in super::super) async fn ledger_account_lock(tx: &mut Tx<'_>, accounts: &[LedgerAccount]) -> Result<Vec<(LedgerAccount, Money)>> {
    let mut wanted: Vec<(LedgerAccountId, LedgerAccount)> = accounts.iter().map(|account| (account.id(), *account)).collect();
    wanted.sort_unstable_by_key(|(id, _)| *id);
    wanted.dedup_by_key(|(id, _)| *id);
    let ids: Vec<LedgerAccountId> = wanted.iter().map(|(id, _)| *id).collect();
    let mut locked = lock_existing(tx, &ids).await?;
    if locked.is_empty() {
        // The first time only. One by one, so that opening one and locking the next keep the order.
        for (id, account) in &wanted {
            ledger_account_insert(tx, *account).await?;
            locked.extend(lock_existing(tx, &[*id]).await?);
        }
    }
    if locked.iter().map(|row| row.id).ne(ids) {
        return Err(Error::internal("a ledger account is under another id"));
    }
    Ok(wanted.into_iter().zip(locked).map(|((_, account), row)| (account, row.balance_micros)).collect())
}

#[derive(Insertable)]
#[diesel(table_name = schema::transfers)]
struct NewTransfer<'a> {
    id: TransferId,
    code: &'static str,
    posting_count: i16,
    linked_transfer_id: Option<TransferId>,
    hold_id: Option<HoldId>,
    rental_id: Option<RentalId>,
    payment_ref: Option<&'a str>,
    actor_kind: &'static str,
    actor_id: Option<uuid::Uuid>,
    business_at: chrono::DateTime<chrono::Utc>,
}

/// Whether the transfer is new; false when the id is taken, after waiting for whoever is just taking it.
pub(in super::super) async fn transfer_insert(tx: &mut Tx<'_>, request: &TransferRequest, hold: Option<HoldId>) -> Result<bool> {
    let row = NewTransfer {
        id: request.id,
        code: request.code.as_str(),
        posting_count: i16::try_from(request.postings.len()).map_err(Error::internal)?,
        linked_transfer_id: request.linked,
        hold_id: hold,
        rental_id: request.rental,
        payment_ref: request.payment.as_deref(),
        actor_kind: request.actor.kind(),
        actor_id: request.actor.id(),
        business_at: request.business_at,
    };
    let insert = diesel::insert_into(schema::transfers::table).values(row).on_conflict(schema::transfers::id).do_nothing().kept();
    Ok(insert.execute(tx).await? == 1)
}

#[derive(Insertable)]
#[diesel(table_name = schema::postings)]
struct NewPosting {
    transfer_id: TransferId,
    ledger_account_id: LedgerAccountId,
    amount_micros: Money,
}

pub(in super::super) async fn posting_insert(
    tx: &mut Tx<'_>,
    transfer: TransferId,
    postings: &[Posting],
) -> Result<(), diesel::result::Error> {
    let rows: Vec<NewPosting> = postings
        .iter()
        .map(|posting| NewPosting { transfer_id: transfer, ledger_account_id: posting.account.id(), amount_micros: posting.amount })
        .collect();
    diesel::insert_into(schema::postings::table).values(rows).kept().execute(tx).await?;
    Ok(())
}

/// A transfer as it was posted, as far as posting it again has to agree with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Stored {
    pub code: String,
    pub linked: Option<TransferId>,
    pub hold: Option<HoldId>,
    pub rental: Option<RentalId>,
    pub payment: Option<String>,
    /// In the order of the ledger accounts' ids.
    pub postings: Vec<(LedgerAccountId, Money)>,
}

pub(in super::super) async fn transfer_fetch(conn: &mut Conn, id: TransferId) -> Result<Option<Stored>> {
    use schema::{postings, transfers};
    type Row = (String, Option<TransferId>, Option<HoldId>, Option<RentalId>, Option<String>);
    let columns = (transfers::code, transfers::linked_transfer_id, transfers::hold_id, transfers::rental_id, transfers::payment_ref);
    let row: Option<Row> = transfers::table.find(id).select(columns).first(conn).await.optional()?;
    let Some((code, linked, hold, rental, payment)) = row else { return Ok(None) };
    let postings = postings::table
        .filter(postings::transfer_id.eq(id))
        .order(postings::ledger_account_id)
        .select((postings::ledger_account_id, postings::amount_micros))
        .load(conn)
        .await?;
    Ok(Some(Stored { code, linked, hold, rental, payment, postings }))
}

#[derive(Queryable)]
struct HoldRow {
    id: HoldId,
    account: AccountId,
    rental: Option<RentalId>,
    amount: Money,
    captured: Money,
    released: Money,
    state: String,
}

impl From<HoldRow> for Hold {
    fn from(row: HoldRow) -> Self {
        let HoldRow { id, account, rental, amount, captured, released, state } = row;
        Self { id, account, rental, amount, captured, released, is_open: state == "open" }
    }
}

type HoldColumns = (
    schema::holds::id,
    schema::holds::account_id,
    schema::holds::rental_id,
    schema::holds::amount_micros,
    schema::holds::captured_micros,
    schema::holds::released_micros,
    schema::holds::state,
);
const HOLD_COLUMNS: HoldColumns = (
    schema::holds::id,
    schema::holds::account_id,
    schema::holds::rental_id,
    schema::holds::amount_micros,
    schema::holds::captured_micros,
    schema::holds::released_micros,
    schema::holds::state,
);

#[derive(Insertable)]
#[diesel(table_name = schema::holds)]
struct NewHold {
    id: HoldId,
    account_id: AccountId,
    rental_id: Option<RentalId>,
    expires_at: Option<chrono::DateTime<chrono::Utc>>,
}

/// Makes an empty hold; one that is there stays as it is.
pub(in super::super) async fn hold_insert(tx: &mut Tx<'_>, request: &HoldRequest) -> Result<()> {
    let row = NewHold { id: request.id, account_id: request.account, rental_id: request.rental, expires_at: request.expires_at };
    diesel::insert_into(schema::holds::table).values(row).on_conflict(schema::holds::id).do_nothing().kept().execute(tx).await?;
    Ok(())
}

pub(in super::super) async fn hold_lock(tx: &mut Tx<'_>, id: HoldId) -> Result<Hold> {
    let row: Option<HoldRow> = schema::holds::table.find(id).select(HOLD_COLUMNS).for_no_key_update().first(tx).await.optional()?;
    row.map(Hold::from).ok_or_else(|| Error::internal(format!("no hold {id}")))
}

pub(in super::super) async fn hold_fetch(conn: &mut Conn, id: HoldId) -> Result<Hold> {
    let row: Option<HoldRow> = schema::holds::table.find(id).select(HOLD_COLUMNS).first(conn).await.optional()?;
    row.map(Hold::from).ok_or_else(|| Error::internal(format!("no hold {id}")))
}

pub(in super::super) async fn hold_list(conn: &mut Conn, ids: &[HoldId]) -> Result<Vec<Hold>> {
    let query = schema::holds::table.filter(schema::holds::id.eq_any(ids)).select(HOLD_COLUMNS);
    let rows: Vec<HoldRow> = query.load(conn).await?;
    Ok(rows.into_iter().map(Hold::from).collect())
}

/// Closes an open hold. The table's CHECK refuses while anything is left in it.
pub(in super::super) async fn hold_close(tx: &mut Tx<'_>, id: HoldId) -> Result<()> {
    use schema::holds::dsl;
    let open = dsl::holds.filter(dsl::id.eq(id)).filter(dsl::state.eq("open"));
    diesel::update(open).set(dsl::state.eq("closed")).kept().execute(tx).await?;
    Ok(())
}

/// Open holds that have expired by `now`, the earliest first.
pub(in super::super) async fn hold_list_expired(conn: &mut Conn, now: chrono::DateTime<chrono::Utc>, limit: i64) -> Result<Vec<HoldId>> {
    use schema::holds::dsl;
    let query = dsl::holds.filter(dsl::state.eq("open")).filter(dsl::expires_at.le(now)).order(dsl::expires_at).limit(limit);
    Ok(query.select(dsl::id).load(conn).await?)
}

/// When the next open hold expires after `after`.
pub(in super::super) async fn hold_next_expiry(
    conn: &mut Conn,
    after: chrono::DateTime<chrono::Utc>,
) -> Result<Option<chrono::DateTime<chrono::Utc>>> {
    use schema::holds::dsl;
    let query = dsl::holds.filter(dsl::state.eq("open")).filter(dsl::expires_at.gt(after)).order(dsl::expires_at);
    let next: Option<Option<chrono::DateTime<chrono::Utc>>> = query.select(dsl::expires_at).first(conn).await.optional()?;
    Ok(next.flatten())
}

pub(in super::super) async fn freeze_insert(tx: &mut Tx<'_>, account: AccountId, subject: &str) -> Result<()> {
    use schema::account_freezes::dsl;
    let row = (dsl::account_id.eq(account), dsl::subject.eq(subject));
    diesel::insert_into(dsl::account_freezes).values(row).on_conflict_do_nothing().execute(tx).await?;
    Ok(())
}

pub(in super::super) async fn freeze_delete(tx: &mut Tx<'_>, account: AccountId, subject: &str) -> Result<()> {
    use schema::account_freezes::dsl;
    let row = dsl::account_freezes.filter(dsl::account_id.eq(account)).filter(dsl::subject.eq(subject));
    diesel::delete(row).execute(tx).await?;
    Ok(())
}

pub(in super::super) async fn freeze_exists(tx: &mut Tx<'_>, account: AccountId) -> Result<bool> {
    use schema::account_freezes::dsl;
    let rows = dsl::account_freezes.filter(dsl::account_id.eq(account));
    Ok(diesel::select(diesel::dsl::exists(rows)).get_result(tx).await?)
}
