//! All SQL of reconciliation. Each comparison is one statement, so that all it compares is of one moment.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::{
    QueryableByName,
    prelude::*,
    sql_query,
    sql_types::{BigInt, Timestamptz},
    upsert::excluded,
};
use diesel_async::RunQueryDsl;

use super::model::{BalanceRow, FindingRow, Found, Outcome};
use crate::{
    base::{Money, Result},
    db::{
        Conn, JsonText, Tx,
        schema::{reconciliation_findings, reconciliations, stripe_balance_transactions, top_ups},
    },
};

/// Takes the lease when nobody has it and the latest reconciliation began before `began_before`; false otherwise.
pub async fn lease_take(conn: &mut Conn, now: DateTime<Utc>, until: DateTime<Utc>, began_before: DateTime<Utc>) -> Result<bool> {
    let rested = reconciliations::started_at.is_null().or(reconciliations::started_at.le(began_before).assume_not_null());
    let free = reconciliations::table.filter(reconciliations::leased_until.le(now)).filter(rested.assume_not_null());
    let taken = diesel::update(free).set(reconciliations::leased_until.eq(until)).execute(conn).await?;
    Ok(taken == 1)
}

/// Gives the lease back, if it is still this one.
pub async fn lease_end(conn: &mut Conn, until: DateTime<Utc>, now: DateTime<Utc>) -> Result<()> {
    let mine = reconciliations::table.filter(reconciliations::leased_until.eq(until));
    diesel::update(mine).set(reconciliations::leased_until.eq(now)).execute(conn).await?;
    Ok(())
}

pub async fn read_through(conn: &mut Conn) -> Result<Option<DateTime<Utc>>> {
    Ok(reconciliations::table.select(reconciliations::stripe_read_through).first(conn).await?)
}

/// The position only moves forward.
pub async fn read_through_raise(conn: &mut Conn, through: DateTime<Utc>) -> Result<()> {
    let behind = reconciliations::stripe_read_through.is_null().or(reconciliations::stripe_read_through.lt(through).assume_not_null());
    diesel::update(reconciliations::table.filter(behind.assume_not_null()))
        .set(reconciliations::stripe_read_through.eq(through))
        .execute(conn)
        .await?;
    Ok(())
}

/// When the first money was asked for through Stripe.
pub async fn first_top_up_at(conn: &mut Conn) -> Result<Option<DateTime<Utc>>> {
    Ok(top_ups::table.select(diesel::dsl::min(top_ups::created_at)).first(conn).await?)
}

/// What is there stays as it is: an amount at Stripe never changes.
pub async fn balance_insert(conn: &mut Conn, rows: Vec<BalanceRow>) -> Result<()> {
    diesel::insert_into(stripe_balance_transactions::table).values(rows).on_conflict_do_nothing().execute(conn).await?;
    Ok(())
}

/// Of each kind, at most `$1` in the order of the subjects, with how many there are.
macro_rules! listed {
    ($with:literal) => {
        concat!(
            $with,
            " SELECT kind, subject, expected, found, of_kind FROM (
                SELECT f.*, count(*) OVER (PARTITION BY kind) AS of_kind, row_number() OVER (PARTITION BY kind ORDER BY subject) AS place
                FROM found f
            ) numbered WHERE place <= $1 ORDER BY kind, subject"
        )
    };
}

/// `$2` is the instant before which the meter should have looked, business time.
const SESSIONS: &str = listed!(
    "WITH live AS (
        SELECT r.*, id_text('rnt', r.id) AS name FROM rentals r WHERE r.status NOT IN ('ended', 'failed')
    ), found AS (
        SELECT 'rental_without_hold' AS kind, r.name AS subject, 'an open hold' AS expected, coalesce(h.state, 'none') AS found
            FROM live r LEFT JOIN holds h ON h.id = r.hold_id AND h.rental_id = r.id WHERE h.state IS DISTINCT FROM 'open'
        UNION ALL SELECT 'rental_without_machine', r.name, id_text('lst', l.id) || ' taken', 'free'
            FROM live r JOIN listings l ON l.id = r.listing_id WHERE NOT l.is_taken
        UNION ALL SELECT 'rental_without_watch', r.name, id_text('mch', r.machine_id) || ' watched', 'not'
            FROM live r LEFT JOIN machine_watches w ON w.machine_id = r.machine_id AND w.reason = r.name WHERE w.reason IS NULL
        UNION ALL SELECT 'rental_without_span', r.name, CASE WHEN r.paused_at IS NULL THEN '1 open span' ELSE '0 open spans' END,
                count(s.rental_id) || ' open'
            FROM live r LEFT JOIN rental_segments s ON s.rental_id = r.id AND s.ended_at IS NULL
            WHERE r.status = 'active' GROUP BY r.name, r.paused_at HAVING (r.paused_at IS NULL) <> (count(s.rental_id) > 0)
        UNION ALL SELECT 'rental_not_metered', r.name, 'after ' || to_char($2 AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS\"Z\"'),
                to_char(least(r.next_due_at, CASE WHEN r.paused_at IS NULL THEN r.settled_through END) AT TIME ZONE 'UTC',
                    'YYYY-MM-DD HH24:MI:SS\"Z\"')
            FROM live r WHERE least(r.next_due_at, CASE WHEN r.paused_at IS NULL THEN r.settled_through END) < $2
        UNION ALL SELECT 'hold_without_rental', id_text('hld', h.id), 'closed: ' || id_text('rnt', h.rental_id) || ' ' || coalesce(r.status, 'unknown'),
                h.amount_micros - h.captured_micros - h.released_micros || ' micro-dollars open'
            FROM holds h LEFT JOIN rentals r ON r.id = h.rental_id AND r.hold_id = h.id
            WHERE h.state = 'open' AND h.rental_id IS NOT NULL AND (r.id IS NULL OR r.status IN ('ended', 'failed'))
        UNION ALL SELECT 'machine_without_rental', id_text('lst', l.id), 'free', 'taken'
            FROM listings l WHERE l.is_taken AND NOT EXISTS (SELECT FROM live r WHERE r.machine_id = l.machine_id)
        UNION ALL SELECT 'watch_without_rental', id_text('mch', w.machine_id), 'not watched for ' || w.reason, 'watched'
            FROM machine_watches w
            WHERE w.reason LIKE 'rnt\\_%' AND NOT EXISTS (SELECT FROM live r WHERE r.machine_id = w.machine_id AND r.name = w.reason)
        UNION ALL SELECT 'span_without_rental', id_text('rnt', s.rental_id), 'no open span: ' || r.status, 'open since '
                || to_char(s.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS\"Z\"')
            FROM rental_segments s JOIN rentals r ON r.id = s.rental_id WHERE s.ended_at IS NULL AND r.status <> 'active'
    )"
);

pub async fn sessions_compare(conn: &mut Conn, metered_after: DateTime<Utc>, limit: i64) -> Result<Vec<Found>> {
    Ok(sql_query(SESSIONS).bind::<BigInt, _>(limit).bind::<Timestamptz, _>(metered_after).load(conn).await?)
}

pub async fn live_rental_count(conn: &mut Conn) -> Result<i64> {
    let row: CountRow = sql_query("SELECT count(*) AS count FROM rentals WHERE status NOT IN ('ended', 'failed')").get_result(conn).await?;
    Ok(row.count)
}

#[derive(QueryableByName)]
struct CountRow {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// `differences` has a row for each payment, transfer or other subject about which Stripe and the books differ. A transfer of ours names its
/// subject by a payment, a refund, a row of ours or a Stripe transfer; `aliases` brings all of them to what Stripe's side is grouped by.
macro_rules! compared {
    ($rest:literal) => {
        concat!(
            "WITH entries AS (
                SELECT b.*, coalesce(b.parent_id, b.source_id, b.id) AS subject, b.kind NOT IN (
                    'charge', 'payment', 'payment_refund', 'payment_reversal', 'payment_failure_refund', 'refund', 'refund_failure', 'adjustment',
                    'transfer', 'transfer_refund', 'transfer_cancel', 'transfer_failure') AS is_own
                FROM stripe_balance_transactions b
            ), aliases AS (
                SELECT name, min(subject) AS subject FROM (
                    SELECT source_id AS name, subject FROM entries UNION ALL SELECT row_id, subject FROM entries
                ) named WHERE name IS NOT NULL GROUP BY name
            ), at_stripe AS (
                SELECT subject, sum(amount_micros) AS amount, max(created_at) AS moved_at
                FROM entries WHERE NOT is_own AND amount_micros IS NOT NULL GROUP BY subject
            ), moved AS (
                SELECT coalesce(t.payment_ref, l.payment_ref, id_text('trf', t.id)) AS name, -p.amount_micros AS amount, t.created_at
                FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id JOIN transfers t ON t.id = p.transfer_id
                LEFT JOIN transfers l ON l.id = t.linked_transfer_id
                WHERE a.kind IN ('stripe:clearing', 'stripe:refunds_in_transit')
            ), in_books AS (
                SELECT coalesce(n.subject, m.name) AS subject, sum(m.amount) AS amount, max(m.created_at) AS moved_at
                FROM moved m LEFT JOIN aliases n ON n.name = m.name GROUP BY 1
            ), differences AS (
                SELECT coalesce(b.subject, s.subject) AS subject, b.amount AS books, s.amount AS stripe,
                    coalesce(b.amount, 0) - coalesce(s.amount, 0) AS difference, greatest(b.moved_at, s.moved_at) AS moved_at
                FROM in_books b FULL JOIN at_stripe s ON s.subject = b.subject WHERE coalesce(b.amount, 0) <> coalesce(s.amount, 0)
            )",
            $rest
        )
    };
}

/// `$2` is the instant since which nothing may have moved a difference, wall time. Amounts are in dollars.
const STRIPE: &str = compared!(
    ", found AS (
        SELECT CASE WHEN stripe IS NULL THEN 'books_only' WHEN books IS NULL THEN 'stripe_only' ELSE 'amount_differs' END AS kind,
            subject, coalesce((stripe / 1000000.0)::numeric(20, 6)::text || ' usd at Stripe', 'nothing at Stripe') AS expected,
            coalesce((books / 1000000.0)::numeric(20, 6)::text || ' usd in the books', 'nothing in the books') AS found
        FROM differences WHERE moved_at <= $2
        UNION ALL SELECT 'other_currency', id, 'usd', amount_minor_units || ' ' || currency FROM entries WHERE NOT is_own AND amount_micros IS NULL
    ) SELECT kind, subject, expected, found, of_kind FROM (
        SELECT f.*, count(*) OVER (PARTITION BY kind) AS of_kind, row_number() OVER (PARTITION BY kind ORDER BY subject) AS place FROM found f
    ) numbered WHERE place <= $1 ORDER BY kind, subject"
);

pub async fn stripe_compare(conn: &mut Conn, unmoved_since: DateTime<Utc>, limit: i64) -> Result<Vec<Found>> {
    Ok(sql_query(STRIPE).bind::<BigInt, _>(limit).bind::<Timestamptz, _>(unmoved_since).load(conn).await?)
}

const SUMS: &str = compared!(
    "SELECT (SELECT coalesce(sum(amount), 0)::bigint FROM in_books) AS books,
        (SELECT coalesce(sum(amount), 0)::bigint FROM at_stripe) AS stripe,
        (SELECT coalesce(sum(fee_micros), 0)::bigint FROM entries WHERE NOT is_own) AS fees,
        (SELECT coalesce(sum(amount_micros - fee_micros), 0)::bigint FROM entries WHERE is_own) AS own,
        (SELECT coalesce(sum(difference), 0)::bigint FROM differences WHERE moved_at > $1) AS waiting,
        (SELECT count(*) FROM entries) AS transactions"
);

#[derive(QueryableByName)]
pub(super) struct SumsRow {
    #[diesel(sql_type = BigInt)]
    pub books: Money,
    #[diesel(sql_type = BigInt)]
    pub stripe: Money,
    #[diesel(sql_type = BigInt)]
    pub fees: Money,
    #[diesel(sql_type = BigInt)]
    pub own: Money,
    #[diesel(sql_type = BigInt)]
    pub waiting: Money,
    #[diesel(sql_type = BigInt)]
    pub transactions: i64,
}

pub async fn stripe_sums(conn: &mut Conn, unmoved_since: DateTime<Utc>) -> Result<SumsRow> {
    Ok(sql_query(SUMS).bind::<Timestamptz, _>(unmoved_since).get_result(conn).await?)
}

/// Puts these findings in the place of all earlier ones, but for those of the kinds `kept`; what was found before keeps since when. False when a
/// later reconciliation was faster.
pub async fn result_store(
    tx: &mut Tx<'_>,
    (started_at, finished_at): (DateTime<Utc>, DateTime<Utc>),
    outcome: &Outcome,
    findings: &[FindingRow],
    kept: &[&str],
) -> Result<bool> {
    let earlier = reconciliations::started_at.is_null().or(reconciliations::started_at.lt(started_at).assume_not_null());
    let written = diesel::update(reconciliations::table.filter(earlier.assume_not_null()))
        .set((
            reconciliations::started_at.eq(started_at),
            reconciliations::finished_at.eq(finished_at),
            reconciliations::result.eq(JsonText::of(outcome)?),
        ))
        .execute(&mut **tx)
        .await?;
    if written == 0 {
        return Ok(false);
    }
    for rows in findings.chunks(500) {
        diesel::insert_into(reconciliation_findings::table)
            .values(rows)
            .on_conflict((reconciliation_findings::kind, reconciliation_findings::subject))
            .do_update()
            .set((
                reconciliation_findings::expected.eq(excluded(reconciliation_findings::expected)),
                reconciliation_findings::found.eq(excluded(reconciliation_findings::found)),
                reconciliation_findings::last_seen_at.eq(excluded(reconciliation_findings::last_seen_at)),
            ))
            .execute(&mut **tx)
            .await?;
    }
    let gone = reconciliation_findings::table
        .filter(reconciliation_findings::last_seen_at.ne(started_at))
        .filter(reconciliation_findings::kind.ne_all(kept));
    diesel::delete(gone).execute(&mut **tx).await?;
    Ok(true)
}

pub(super) type Latest = (Option<DateTime<Utc>>, Option<DateTime<Utc>>, Option<JsonText>);

pub async fn latest_fetch(conn: &mut Conn) -> Result<Latest> {
    let columns = (reconciliations::started_at, reconciliations::finished_at, reconciliations::result);
    Ok(reconciliations::table.select(columns).first(conn).await?)
}

/// Oldest first.
pub async fn finding_list(conn: &mut Conn) -> Result<Vec<FindingRow>> {
    Ok(reconciliation_findings::table
        .order((reconciliation_findings::first_seen_at, reconciliation_findings::kind, reconciliation_findings::subject))
        .select(FindingRow::as_select())
        .load(conn)
        .await?)
}

/// `at` less `length`; as far back as instants go when that is too far.
pub(super) fn before(at: DateTime<Utc>, length: TimeDelta) -> DateTime<Utc> {
    at.checked_sub_signed(length).unwrap_or(DateTime::<Utc>::MIN_UTC)
}
