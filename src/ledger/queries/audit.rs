//! Recomputing the books from the postings alone.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Text},
};
use diesel_async::RunQueryDsl;

use super::super::model::{Difference, Report};
use crate::{base::Result, db::Conn};

/// One statement, so that all comparisons are of one moment. Each part is one rule of the books; what it returns breaks it.
const DIFFERENCES: &str = "
WITH summed AS (
    SELECT ledger_account_id, sum(amount_micros) AS total, max(sequence) AS last FROM postings GROUP BY ledger_account_id
), moved AS (
    SELECT t.hold_id,
        coalesce(sum(p.amount_micros) FILTER (WHERE t.code IN ('hold', 'hold_increase')), 0) AS amount,
        coalesce(-sum(p.amount_micros) FILTER (WHERE t.code = 'rental_charge'), 0) AS captured,
        coalesce(-sum(p.amount_micros) FILTER (WHERE t.code IN ('hold_release', 'hold_expire')), 0) AS released
    FROM postings p JOIN transfers t ON t.id = p.transfer_id JOIN ledger_accounts a ON a.id = p.ledger_account_id
    WHERE a.kind = 'held' GROUP BY t.hold_id
), remaining AS (
    SELECT account_id, sum(amount_micros - captured_micros - released_micros) AS total FROM holds GROUP BY account_id
), running AS (
    SELECT p.sequence, p.balance_after_micros, sum(p.amount_micros) OVER (PARTITION BY p.ledger_account_id ORDER BY p.sequence) AS total
    FROM postings p
)
SELECT 'balance' AS what, a.key AS subject, coalesce(s.total, 0)::text AS expected, a.balance_micros::text AS found
    FROM ledger_accounts a LEFT JOIN summed s ON s.ledger_account_id = a.id WHERE a.balance_micros <> coalesce(s.total, 0)
UNION ALL SELECT 'limit', a.key, 'not negative', a.balance_micros::text
    FROM ledger_accounts a WHERE a.balance_micros < 0 AND NOT a.may_be_negative AND a.balance_micros <> -a.overdraft_micros
UNION ALL SELECT 'whole', a.currency, '0', sum(a.balance_micros)::text
    FROM ledger_accounts a GROUP BY a.currency HAVING sum(a.balance_micros) <> 0
UNION ALL SELECT 'transfer', t.id::text, t.posting_count || ' postings', count(p.sequence) || ' postings'
    FROM transfers t LEFT JOIN postings p ON p.transfer_id = t.id GROUP BY t.id HAVING count(p.sequence) <> t.posting_count
UNION ALL SELECT 'transfer', p.transfer_id::text, '0', sum(p.amount_micros)::text
    FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id GROUP BY p.transfer_id, a.currency HAVING sum(p.amount_micros) <> 0
UNION ALL SELECT 'hold', h.id::text,
        concat_ws(' ', coalesce(m.amount, 0), coalesce(m.captured, 0), coalesce(m.released, 0)),
        concat_ws(' ', h.amount_micros, h.captured_micros, h.released_micros)
    FROM holds h LEFT JOIN moved m ON m.hold_id = h.id
    WHERE (h.amount_micros, h.captured_micros, h.released_micros)
        IS DISTINCT FROM (coalesce(m.amount, 0), coalesce(m.captured, 0), coalesce(m.released, 0))
UNION ALL SELECT 'held', a.key, coalesce(r.total, 0)::text, a.balance_micros::text
    FROM ledger_accounts a LEFT JOIN remaining r ON r.account_id = a.account_id
    WHERE a.kind = 'held' AND a.balance_micros <> coalesce(r.total, 0)
UNION ALL SELECT 'posting', p.sequence::text, concat_ws(' ', a.account_id, t.business_at), concat_ws(' ', p.account_id, p.business_at)
    FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id JOIN transfers t ON t.id = p.transfer_id
    WHERE (p.account_id, p.business_at) IS DISTINCT FROM (a.account_id, t.business_at)
UNION ALL SELECT 'running', sequence::text, total::text, balance_after_micros::text FROM running WHERE total <> balance_after_micros
LIMIT 1000";

const COUNTS: &str = "
SELECT (SELECT count(*) FROM ledger_accounts) AS ledger_accounts, (SELECT count(*) FROM transfers) AS transfers,
    (SELECT count(*) FROM holds) AS holds";

#[derive(QueryableByName)]
struct DifferenceRow {
    #[diesel(sql_type = Text)]
    what: String,
    #[diesel(sql_type = Text)]
    subject: String,
    #[diesel(sql_type = Text)]
    expected: String,
    #[diesel(sql_type = Text)]
    found: String,
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    ledger_accounts: i64,
    #[diesel(sql_type = BigInt)]
    transfers: i64,
    #[diesel(sql_type = BigInt)]
    holds: i64,
}

pub(in super::super) async fn report_fetch(conn: &mut Conn) -> Result<Report> {
    let counts: CountRow = sql_query(COUNTS).get_result(conn).await?;
    let rows: Vec<DifferenceRow> = sql_query(DIFFERENCES).load(conn).await?;
    let differences =
        rows.into_iter().map(|row| Difference { what: row.what, subject: row.subject, expected: row.expected, found: row.found }).collect();
    Ok(Report { ledger_accounts: counts.ledger_accounts, transfers: counts.transfers, holds: counts.holds, differences })
}
