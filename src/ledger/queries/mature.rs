//! What has become payable, read once each: a cursor over the postings of a host's `earnings`.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    ExpressionMethods, OptionalExtension, QueryDsl, QueryableByName, sql_query,
    sql_types::{BigInt, Nullable, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;

use super::super::model::LedgerAccount;
use crate::{
    base::{Money, Result, id::AccountId},
    db::{Conn, Tx, schema::earnings_maturity},
};

/// Hosts who have earned for the first time.
pub(in super::super) async fn hosts_insert(conn: &mut Conn, now: DateTime<Utc>) -> Result<()> {
    let new = "INSERT INTO earnings_maturity (account_id, due_at)
        SELECT a.account_id, $1 FROM ledger_accounts a LEFT JOIN earnings_maturity m ON m.account_id = a.account_id
        WHERE a.kind = 'earnings' AND m.account_id IS NULL
        ON CONFLICT DO NOTHING";
    sql_query(new).bind::<Timestamptz, _>(now).execute(conn).await?;
    Ok(())
}

/// The host whose earnings are due first and whom nobody else is looking at, locked, and how far they were read.
pub(in super::super) async fn host_lock_due(tx: &mut Tx<'_>, now: DateTime<Utc>) -> Result<Option<(AccountId, i64)>> {
    use earnings_maturity::dsl;
    let due = dsl::earnings_maturity.filter(dsl::due_at.le(now)).order(dsl::due_at).limit(1).select((dsl::account_id, dsl::sequence));
    Ok(due.for_update().skip_locked().first(&mut **tx).await.optional()?)
}

pub(in super::super) async fn host_update(tx: &mut Tx<'_>, account: AccountId, sequence: i64, due_at: DateTime<Utc>) -> Result<()> {
    use earnings_maturity::dsl;
    let row = dsl::earnings_maturity.filter(dsl::account_id.eq(account));
    diesel::update(row).set((dsl::sequence.eq(sequence), dsl::due_at.eq(due_at))).execute(&mut **tx).await?;
    Ok(())
}

pub(in super::super) async fn next_due(conn: &mut Conn, after: DateTime<Utc>) -> Result<Option<DateTime<Utc>>> {
    use earnings_maturity::dsl;
    let next = dsl::earnings_maturity.filter(dsl::due_at.gt(after)).order(dsl::due_at).select(dsl::due_at);
    Ok(next.first(conn).await.optional()?)
}

/// What stands in a host's `earnings` beyond the cursor.
#[derive(Debug, QueryableByName)]
pub(in super::super) struct Window {
    /// The last posting before the first that is still young; none when there is nothing new.
    #[diesel(sql_type = Nullable<BigInt>)]
    pub through: Option<i64>,
    /// Whether something was earned up to there.
    #[diesel(sql_type = diesel::sql_types::Bool)]
    pub has_income: bool,
    /// What may still be corrected: the earnings after it, less what was given back of the same rentals meanwhile.
    #[diesel(sql_type = BigInt)]
    pub young: Money,
    /// The last of the earnings that are taken together next; none when nothing is young.
    #[diesel(sql_type = Nullable<Timestamptz>)]
    pub next: Option<DateTime<Utc>>,
}

/// In the order of the sequence, which within one ledger account is the order in which they were committed: nothing can come to stand before
/// the cursor. What was earned stays young until all that was written before it is mature.
const WINDOW: &str = "
WITH fresh AS (
    SELECT sequence, transfer_id, business_at, amount_micros FROM postings WHERE ledger_account_id = $1 AND sequence > $2
), first AS (
    SELECT sequence, business_at FROM fresh WHERE amount_micros > 0 AND business_at > $3 ORDER BY sequence LIMIT 1
), young AS (
    SELECT greatest(sum(f.amount_micros), 0) AS amount FROM fresh f JOIN transfers t ON t.id = f.transfer_id
    WHERE f.sequence >= (SELECT sequence FROM first) AND t.code <> 'earnings_matured'
    GROUP BY coalesce(t.rental_id, t.id)
)
SELECT
    (SELECT max(sequence) FROM fresh WHERE sequence < coalesce((SELECT sequence FROM first), 9223372036854775807)) AS through,
    EXISTS (SELECT FROM fresh WHERE amount_micros > 0 AND sequence < coalesce((SELECT sequence FROM first), 9223372036854775807)) AS has_income,
    coalesce((SELECT sum(amount) FROM young), 0)::bigint AS young,
    (SELECT max(f.business_at) FROM fresh f, first WHERE f.amount_micros > 0 AND f.sequence >= first.sequence
        AND f.business_at BETWEEN first.business_at AND first.business_at + $4 * interval '1 second') AS next";

/// `cut`: what was earned later is young. `together`: what is earned within this span becomes payable in one transfer, with the last of it.
pub(in super::super) async fn window(
    tx: &mut Tx<'_>,
    account: AccountId,
    after: i64,
    cut: DateTime<Utc>,
    together: TimeDelta,
) -> Result<Window> {
    Ok(sql_query(WINDOW)
        .bind::<SqlUuid, _>(LedgerAccount::Earnings(account).id())
        .bind::<BigInt, _>(after)
        .bind::<Timestamptz, _>(cut)
        .bind::<BigInt, _>(together.num_seconds())
        .get_result(&mut **tx)
        .await?)
}
