//! What owners see: balances, entries and statements.

use chrono::{DateTime, NaiveDate, Utc};
use diesel::{
    BoolExpressionMethods, ExpressionMethods, QueryDsl, Queryable, QueryableByName, sql_query,
    sql_types::{BigInt, Date, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::RunQueryDsl;
use uuid::Uuid;

use super::super::{
    code::TransferCode,
    model::{Actor, Balance, Entry, EntryFilter, EntryKey, LedgerAccount, LedgerAccountKind, LineKey, Statement, StatementLine},
    period::Period,
};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, LedgerAccountId, RentalId, TransferId},
    },
    db::{Conn, schema},
};

pub(in super::super) async fn balance_fetch(conn: &mut Conn, account: AccountId) -> Result<Balance> {
    use schema::ledger_accounts::dsl;
    let of = |make: fn(AccountId) -> LedgerAccount| make(account).id();
    let (available, held) = (of(LedgerAccount::Available), of(LedgerAccount::Held));
    let (earnings, payable) = (of(LedgerAccount::Earnings), of(LedgerAccount::Payable));
    let query = dsl::ledger_accounts.filter(dsl::id.eq_any([available, held, earnings, payable])).select((dsl::id, dsl::balance_micros));
    let rows: Vec<(LedgerAccountId, Money)> = query.load(conn).await?;
    let find = |id| rows.iter().find(|(other, _)| *other == id).map_or(Money::ZERO, |(_, balance)| *balance);
    Ok(Balance { available: find(available), held: find(held), earnings: find(earnings), payable: find(payable) })
}

fn code(text: &str) -> Result<TransferCode> {
    TransferCode::parse(text).ok_or_else(|| Error::internal(format!("the transfer code {text}")))
}

#[derive(Queryable)]
struct EntryRow {
    sequence: i64,
    transfer: TransferId,
    code: String,
    kind: String,
    amount: Money,
    balance_after: Money,
    actor_kind: String,
    actor_id: Option<Uuid>,
    rental: Option<RentalId>,
    payment: Option<String>,
    linked: Option<TransferId>,
    business_at: DateTime<Utc>,
    created_at: DateTime<Utc>,
}

impl EntryRow {
    fn into_entry(self) -> Result<Entry> {
        Ok(Entry {
            sequence: self.sequence,
            transfer: self.transfer,
            code: code(&self.code)?,
            kind: LedgerAccountKind::parse(&self.kind).ok_or_else(|| Error::internal(format!("the ledger account kind {}", self.kind)))?,
            amount: self.amount,
            balance_after: self.balance_after,
            actor: Actor::from_row(&self.actor_kind, self.actor_id)?,
            rental: self.rental,
            payment: self.payment,
            linked: self.linked,
            business_at: self.business_at,
            created_at: self.created_at,
        })
    }
}

/// An account's entries, the latest first, from before `before` on.
pub(in super::super) async fn entry_list(
    conn: &mut Conn,
    account: AccountId,
    filter: &EntryFilter,
    before: Option<EntryKey>,
    limit: i64,
) -> Result<Vec<Entry>> {
    use schema::{ledger_accounts, postings, transfers};
    let mut query = postings::table
        .inner_join(transfers::table)
        .inner_join(ledger_accounts::table)
        .filter(postings::account_id.eq(account))
        .into_boxed();
    if let Some(from) = filter.period.from {
        query = query.filter(postings::business_at.ge(from));
    }
    if let Some(to) = filter.period.to {
        query = query.filter(postings::business_at.lt(to));
    }
    if let Some(code) = filter.code {
        query = query.filter(transfers::code.eq(code.as_str()));
    }
    if let Some(rental) = filter.rental {
        query = query.filter(transfers::rental_id.eq(rental));
    }
    if let Some(key) = before {
        let earlier = postings::business_at.lt(key.business_at);
        let same = postings::business_at.eq(key.business_at).and(postings::sequence.lt(key.sequence));
        // The first condition follows from the second; it is what the index can use.
        query = query.filter(postings::business_at.le(key.business_at)).filter(earlier.or(same));
    }
    let columns = (
        postings::sequence,
        postings::transfer_id,
        transfers::code,
        ledger_accounts::kind,
        postings::amount_micros,
        postings::balance_after_micros,
        transfers::actor_kind,
        transfers::actor_id,
        transfers::rental_id,
        transfers::payment_ref,
        transfers::linked_transfer_id,
        postings::business_at,
        transfers::created_at,
    );
    let order = (postings::business_at.desc(), postings::sequence.desc());
    let rows: Vec<EntryRow> = query.order(order).limit(limit).select(columns).load(conn).await?;
    rows.into_iter().map(EntryRow::into_entry).collect()
}

/// One statement for all of it, so that the lines and the sums are of one moment. `effects` has one row for each transfer that changed what
/// the account has in all; days are UTC whatever time zone the session has. Without any line the sums still come, in one row.
const STATEMENT: &str = "
WITH folded AS (
    SELECT
        coalesce(sum(p.amount_micros) FILTER (WHERE p.business_at < $2), 0)::bigint AS opening,
        coalesce(sum(p.amount_micros) FILTER (WHERE a.kind = 'available'), 0)::bigint AS available,
        coalesce(sum(p.amount_micros) FILTER (WHERE a.kind = 'held'), 0)::bigint AS held,
        coalesce(sum(p.amount_micros) FILTER (WHERE a.kind = 'earnings'), 0)::bigint AS earnings,
        coalesce(sum(p.amount_micros) FILTER (WHERE a.kind = 'payable'), 0)::bigint AS payable
    FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id
    WHERE p.account_id = $1 AND p.business_at < coalesce($3, 'infinity')
), effects AS (
    SELECT p.transfer_id, min(p.sequence) AS sequence, min(p.business_at) AS business_at, sum(p.amount_micros) AS amount,
        bool_or(a.kind IN ('earnings', 'payable')) AS is_hosts
    FROM postings p JOIN ledger_accounts a ON a.id = p.ledger_account_id
    WHERE p.account_id = $1 AND p.business_at >= coalesce($2, '-infinity') AND p.business_at < coalesce($3, 'infinity')
    GROUP BY p.transfer_id HAVING sum(p.amount_micros) <> 0
), priced AS (
    SELECT e.*, t.code, t.rental_id, t.payment_ref,
        CASE WHEN e.is_hosts AND t.code IN ('rental_charge', 'correction') THEN coalesce(f.amount_micros, 0) END AS fee
    FROM effects e JOIN transfers t ON t.id = e.transfer_id
    LEFT JOIN postings f ON f.transfer_id = e.transfer_id AND f.ledger_account_id = $7 AND e.is_hosts
), sums AS (
    SELECT
        coalesce(sum(amount) FILTER (WHERE amount > 0), 0)::bigint AS credits,
        coalesce(-sum(amount) FILTER (WHERE amount < 0), 0)::bigint AS charges,
        coalesce(sum(amount + fee), 0)::bigint AS earned_gross,
        coalesce(sum(fee), 0)::bigint AS earned_fee
    FROM priced
), grouped AS (
    SELECT (business_at AT TIME ZONE 'UTC')::date AS day, min(sequence) AS sequence, code, rental_id, payment_ref,
        count(*) AS transfer_count, sum(amount) AS amount, sum(fee) AS fee
    FROM priced
    GROUP BY 1, code, rental_id, payment_ref, amount > 0
), lines AS (
    SELECT g.*, f.opening + sum(g.amount) OVER (ORDER BY g.day, g.sequence) AS balance_after FROM grouped g CROSS JOIN folded f
), page AS (
    SELECT * FROM lines WHERE $4::date IS NULL OR (day, sequence) > ($4, $5) ORDER BY day, sequence LIMIT $6
)
SELECT f.opening, f.available, f.held, f.earnings, f.payable, s.credits, s.charges, s.earned_gross, s.earned_fee, p.day, p.sequence, p.code,
    p.rental_id, p.payment_ref, p.transfer_count, p.amount::bigint AS amount, p.fee::bigint AS fee, p.balance_after::bigint AS balance_after
FROM folded f CROSS JOIN sums s LEFT JOIN page p ON true ORDER BY p.day, p.sequence";

#[derive(QueryableByName)]
struct StatementRow {
    #[diesel(sql_type = BigInt)]
    opening: Money,
    #[diesel(sql_type = BigInt)]
    available: Money,
    #[diesel(sql_type = BigInt)]
    held: Money,
    #[diesel(sql_type = BigInt)]
    earnings: Money,
    #[diesel(sql_type = BigInt)]
    payable: Money,
    #[diesel(sql_type = BigInt)]
    credits: Money,
    #[diesel(sql_type = BigInt)]
    charges: Money,
    #[diesel(sql_type = BigInt)]
    earned_gross: Money,
    #[diesel(sql_type = BigInt)]
    earned_fee: Money,
    #[diesel(sql_type = Nullable<Date>)]
    day: Option<NaiveDate>,
    #[diesel(sql_type = Nullable<BigInt>)]
    sequence: Option<i64>,
    #[diesel(sql_type = Nullable<Text>)]
    code: Option<String>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    rental_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<Text>)]
    payment_ref: Option<String>,
    #[diesel(sql_type = Nullable<BigInt>)]
    transfer_count: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    amount: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    fee: Option<i64>,
    #[diesel(sql_type = Nullable<BigInt>)]
    balance_after: Option<i64>,
}

impl StatementRow {
    /// None for the one row that stands for a statement without lines.
    fn line(&self) -> Result<Option<StatementLine>> {
        let (Some(day), Some(sequence), Some(text)) = (self.day, self.sequence, &self.code) else { return Ok(None) };
        let missing = || Error::internal("a line without an amount");
        Ok(Some(StatementLine {
            key: LineKey { day, sequence },
            code: code(text)?,
            rental: self.rental_id.map(RentalId::from_uuid),
            payment: self.payment_ref.clone(),
            transfer_count: self.transfer_count.ok_or_else(missing)?,
            amount: self.amount.map(Money::usd_micros).ok_or_else(missing)?,
            fee: self.fee.map(Money::usd_micros),
            balance_after: self.balance_after.map(Money::usd_micros).ok_or_else(missing)?,
        }))
    }
}

/// A statement with at most `limit` lines after `after`.
pub(in super::super) async fn statement_fetch(
    conn: &mut Conn,
    account: AccountId,
    period: Period,
    after: Option<LineKey>,
    limit: i64,
) -> Result<Statement> {
    let rows: Vec<StatementRow> = sql_query(STATEMENT)
        .bind::<SqlUuid, _>(account)
        .bind::<Nullable<Timestamptz>, _>(period.from)
        .bind::<Nullable<Timestamptz>, _>(period.to)
        .bind::<Nullable<Date>, _>(after.map(|key| key.day))
        .bind::<Nullable<BigInt>, _>(after.map(|key| key.sequence))
        .bind::<BigInt, _>(limit.saturating_add(1))
        .bind::<SqlUuid, _>(LedgerAccount::PlatformFees.id())
        .load(conn)
        .await?;
    let first = rows.as_slice().first().ok_or_else(|| Error::internal("a statement without sums"))?;
    let closing_balance = Balance { available: first.available, held: first.held, earnings: first.earnings, payable: first.payable };
    let mut statement = Statement {
        period,
        opening: first.opening,
        credits: first.credits,
        charges: first.charges,
        earned_gross: first.earned_gross,
        earned_fee: first.earned_fee,
        closing: closing_balance.total()?,
        closing_balance,
        lines: Vec::new(),
        next: None,
    };
    for row in &rows {
        statement.lines.extend(row.line()?);
    }
    let limit = usize::try_from(limit).map_err(Error::internal)?;
    if statement.lines.len() > limit {
        statement.lines.truncate(limit);
        statement.next = statement.lines.last().map(|line| line.key);
    }
    Ok(statement)
}

/// What a rental was charged and given back: gross and fee of either, and the parties.
#[derive(QueryableByName)]
pub(in super::super) struct RentalSums {
    #[diesel(sql_type = BigInt)]
    pub charged_gross: Money,
    #[diesel(sql_type = BigInt)]
    pub charged_fee: Money,
    #[diesel(sql_type = BigInt)]
    pub corrected_gross: Money,
    #[diesel(sql_type = BigInt)]
    pub corrected_fee: Money,
}

const RENTAL_SUMS: &str = "
SELECT
    coalesce(-sum(p.amount_micros) FILTER (WHERE t.code = 'rental_charge' AND a.kind = 'held'), 0)::bigint AS charged_gross,
    coalesce(sum(p.amount_micros) FILTER (WHERE t.code = 'rental_charge' AND a.kind = 'platform:fees'), 0)::bigint AS charged_fee,
    coalesce(sum(p.amount_micros) FILTER (WHERE t.code = 'correction' AND a.kind = 'available'), 0)::bigint AS corrected_gross,
    coalesce(-sum(p.amount_micros) FILTER (WHERE t.code = 'correction' AND a.kind = 'platform:fees'), 0)::bigint AS corrected_fee
FROM transfers t JOIN postings p ON p.transfer_id = t.id JOIN ledger_accounts a ON a.id = p.ledger_account_id
WHERE t.rental_id = $1";

pub(in super::super) async fn rental_sums(conn: &mut Conn, rental: RentalId) -> Result<RentalSums> {
    Ok(sql_query(RENTAL_SUMS).bind::<SqlUuid, _>(rental).get_result(conn).await?)
}

/// Who paid a charge and who earned it; nobody earned one that was all fee.
pub(in super::super) async fn charge_parties(conn: &mut Conn, charge: TransferId) -> Result<(Option<AccountId>, Option<AccountId>)> {
    use schema::{ledger_accounts, postings};
    let query = postings::table
        .inner_join(ledger_accounts::table)
        .filter(postings::transfer_id.eq(charge))
        .filter(postings::account_id.is_not_null())
        .select((ledger_accounts::kind, postings::account_id));
    let rows: Vec<(String, Option<AccountId>)> = query.load(conn).await?;
    let of = |kind: LedgerAccountKind| rows.iter().find(|(text, _)| text == kind.as_str()).and_then(|(_, owner)| *owner);
    Ok((of(LedgerAccountKind::Held), of(LedgerAccountKind::Earnings)))
}
