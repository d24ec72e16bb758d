//! Charges of many holds at once: a few statements however many there are.

use diesel::{
    ExpressionMethods, QueryDsl, QueryableByName, sql_query,
    sql_types::{Array, BigInt, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;

use super::super::model::{LedgerAccount, Posting, TransferRequest};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, HoldId, LedgerAccountId},
    },
    db::{Conn, KeptDsl, Tx, schema},
};

#[derive(QueryableByName)]
struct LockedHold {
    #[diesel(sql_type = SqlUuid)]
    id: HoldId,
    #[diesel(sql_type = SqlUuid)]
    account_id: AccountId,
    #[diesel(sql_type = BigInt)]
    remaining_micros: Money,
}

/// Locks open holds in the order of their ids; their owners and what is left in them. A hold that is closed is not among them.
pub(in super::super) async fn hold_lock(tx: &mut Tx<'_>, ids: &[HoldId]) -> Result<Vec<(HoldId, AccountId, Money)>> {
    let rows: Vec<LockedHold> = sql_query(
        "SELECT id, account_id, amount_micros - captured_micros - released_micros AS remaining_micros
         FROM holds WHERE id = ANY ($1) AND state = 'open' ORDER BY id FOR NO KEY UPDATE",
    )
    .bind::<Array<SqlUuid>, _>(ids)
    .kept()
    .load(&mut **tx)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.account_id, row.remaining_micros)).collect())
}

/// What these accounts have available; an account that never had money is not among them.
pub(in super::super) async fn available_list(conn: &mut Conn, accounts: &[AccountId]) -> Result<Vec<(AccountId, Money)>> {
    use schema::ledger_accounts::dsl;
    let ids: Vec<LedgerAccountId> = accounts.iter().map(|account| LedgerAccount::Available(*account).id()).collect();
    let query = dsl::ledger_accounts.filter(dsl::id.eq_any(ids)).select((dsl::account_id, dsl::balance_micros));
    let rows: Vec<(Option<AccountId>, Money)> = query.load(conn).await?;
    Ok(rows.into_iter().filter_map(|(account, balance)| Some((account?, balance))).collect())
}

/// Writes new transfers, each of one hold.
///
/// # Errors
/// `internal` when an id is taken.
pub(in super::super) async fn transfer_insert(tx: &mut Tx<'_>, transfers: &[(TransferRequest, HoldId)]) -> Result<()> {
    use schema::transfers::dsl;
    let rows: Vec<_> = transfers
        .iter()
        .map(|(request, hold)| {
            Ok((
                dsl::id.eq(request.id),
                dsl::code.eq(request.code.as_str()),
                dsl::posting_count.eq(i16::try_from(request.postings.len()).map_err(Error::internal)?),
                dsl::hold_id.eq(*hold),
                dsl::rental_id.eq(request.rental),
                dsl::actor_kind.eq(request.actor.kind()),
                dsl::actor_id.eq(request.actor.id()),
                dsl::business_at.eq(request.business_at),
            ))
        })
        .collect::<Result<_>>()?;
    let inserted = diesel::insert_into(dsl::transfers).values(rows).on_conflict_do_nothing().execute(&mut **tx).await?;
    if inserted == transfers.len() { Ok(()) } else { Err(Error::internal("a charge was posted before")) }
}

/// Row by row in the database: one statement posts to a ledger account once.
pub(in super::super) async fn posting_insert(tx: &mut Tx<'_>, transfers: &[(TransferRequest, HoldId)]) -> Result<()> {
    let all = || transfers.iter().flat_map(|(request, _)| request.postings.iter().map(move |posting: &Posting| (request.id, posting)));
    let ids: Vec<uuid::Uuid> = all().map(|(id, _)| id.uuid()).collect();
    let accounts: Vec<uuid::Uuid> = all().map(|(_, posting)| posting.account.id().uuid()).collect();
    let amounts: Vec<i64> = all().map(|(_, posting)| posting.amount.micros()).collect();
    sql_query("SELECT postings_insert($1, $2, $3)")
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<Array<SqlUuid>, _>(accounts)
        .bind::<Array<BigInt>, _>(amounts)
        .kept()
        .execute(&mut **tx)
        .await?;
    Ok(())
}
