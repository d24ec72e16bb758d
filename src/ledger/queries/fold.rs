//! A period's charges, rental by rental.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Bool, Nullable, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;

use super::super::{model::RentalFold, period::Period};
use crate::{
    base::{
        Money, Result,
        id::{AccountId, RentalId},
    },
    db::Conn,
};

/// `mine` has the transfers of rentals that changed what the account has in all; the other postings of each say the gross and the fee.
const RENTALS: &str = "
WITH mine AS (
    SELECT p.transfer_id, sum(p.amount_micros) AS own, bool_or(a.kind IN ('available', 'held')) AS is_renter
    FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id
    WHERE p.account_id = $1 AND p.business_at >= coalesce($2, '-infinity') AND p.business_at < coalesce($3, 'infinity')
    GROUP BY p.transfer_id HAVING sum(p.amount_micros) <> 0
), parts AS (
    SELECT t.rental_id, m.is_renter, m.own,
        (SELECT -sum(p.amount_micros) FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id
         WHERE p.transfer_id = t.id AND a.kind IN ('available', 'held')) AS gross,
        (SELECT coalesce(sum(p.amount_micros), 0) FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id
         WHERE p.transfer_id = t.id AND a.kind = 'platform:fees') AS fee
    FROM mine m JOIN transfers t ON t.id = m.transfer_id
    WHERE t.rental_id IS NOT NULL AND t.code IN ('rental_charge', 'correction')
)
SELECT rental_id, is_renter, sum(own)::bigint AS own, sum(gross)::bigint AS gross, sum(fee)::bigint AS fee
FROM parts GROUP BY rental_id, is_renter ORDER BY rental_id, is_renter LIMIT $4";

#[derive(QueryableByName)]
struct FoldRow {
    #[diesel(sql_type = SqlUuid)]
    rental_id: RentalId,
    #[diesel(sql_type = Bool)]
    is_renter: bool,
    #[diesel(sql_type = BigInt)]
    own: Money,
    #[diesel(sql_type = BigInt)]
    gross: Money,
    #[diesel(sql_type = BigInt)]
    fee: Money,
}

pub(in super::super) async fn rental_list(conn: &mut Conn, account: AccountId, period: Period, limit: i64) -> Result<Vec<RentalFold>> {
    let rows: Vec<FoldRow> = sql_query(RENTALS)
        .bind::<SqlUuid, _>(account)
        .bind::<Nullable<Timestamptz>, _>(period.from)
        .bind::<Nullable<Timestamptz>, _>(period.to)
        .bind::<BigInt, _>(limit)
        .load(conn)
        .await?;
    let fold = |row: FoldRow| RentalFold { rental: row.rental_id, is_renter: row.is_renter, gross: row.gross, fee: row.fee, own: row.own };
    Ok(rows.into_iter().map(fold).collect())
}
