//! Balance, entries and statements over HTTP.

use actix_web::{
    HttpRequest, HttpResponse, Responder, get,
    http::header::{self, ContentDisposition, DispositionParam, DispositionType},
};
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    code::TransferCode,
    document::{self, Heading},
    model::{Actor, Balance, Entry, EntryFilter, LineKey, Statement, StatementLine},
    period::Period,
    service,
};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, RentalId, TransferId, account_text},
        money::Currency,
        shape::{AccountIdText, HandleText, InstantOrDateText},
    },
    ctx::Ctx,
    identity::{Auth, Caller, scope},
    web::{AuthProblems, Limit, Page, Query, QueryProblems, accept, cursor, html},
};

/// What the account has.
#[derive(Debug, Serialize, ToSchema)]
pub struct BalanceView {
    #[serde(flatten)]
    pub balance: Balance,
    pub currency: Currency,
}

impl From<Balance> for BalanceView {
    fn from(balance: Balance) -> Self {
        Self { balance, currency: Currency::Usd }
    }
}

/// Who caused an entry.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActorView {
    /// `user`, `api_key` or `system`.
    #[schema(pattern = "^(?:user|api_key|system)$")]
    pub kind: &'static str,
    /// The user or the key; null for the program itself.
    pub id: Option<String>,
}

impl From<Actor> for ActorView {
    fn from(actor: Actor) -> Self {
        let id = match actor {
            Actor::User(id) => Some(account_text(id, false)),
            Actor::ApiKey(id) => Some(id.to_string()),
            Actor::System => None,
        };
        Self { kind: actor.kind(), id }
    }
}

/// A change of one of the account's balances. A transfer between two of them has two entries.
#[derive(Debug, Serialize, ToSchema)]
pub struct EntryView {
    pub transfer_id: TransferId,
    /// Why the money moved.
    pub code: TransferCode,
    /// Whose money it is.
    #[schema(value_type = AccountIdText)]
    pub account_id: String,
    /// Which of the account's balances: `available`, `held`, `earnings` or `payable`.
    #[schema(pattern = "^(?:available|held|earnings|payable)$")]
    pub ledger_account: &'static str,
    /// Positive when the balance grew.
    pub amount: Money,
    /// That balance after this entry, in the order in which entries were written.
    pub balance_after: Money,
    pub currency: Currency,
    pub actor: ActorView,
    pub rental_id: Option<RentalId>,
    /// The provider's name of the payment.
    pub payment: Option<String>,
    /// The transfer that this one corrects, settles or reverses.
    pub linked_transfer_id: Option<TransferId>,
    /// When it happened, business time.
    pub at: DateTime<Utc>,
    /// When it was written, wall time.
    pub created_at: DateTime<Utc>,
}

impl EntryView {
    fn of(caller: &Caller, entry: Entry) -> Self {
        Self {
            transfer_id: entry.transfer,
            code: entry.code,
            account_id: account_text(caller.account_id, caller.is_organization),
            ledger_account: entry.kind.as_str(),
            amount: entry.amount,
            balance_after: entry.balance_after,
            currency: entry.amount.currency(),
            actor: entry.actor.into(),
            rental_id: entry.rental,
            payment: entry.payment,
            linked_transfer_id: entry.linked,
            at: entry.business_at,
            created_at: entry.created_at,
        }
    }
}

/// All transfers of one UTC day, code, rental and payment.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatementLineView {
    pub day: NaiveDate,
    pub code: TransferCode,
    pub rental_id: Option<RentalId>,
    pub payment: Option<String>,
    pub transfers: i64,
    /// Positive for a credit, negative for a charge.
    pub amount: Money,
    /// What the renter paid for what the account earned as a host: `amount` and `fee`. Null for any other line.
    pub gross: Option<Money>,
    /// The platform's part of `gross`; negative where it was given back.
    pub fee: Option<Money>,
    /// What the account had in all after this line.
    pub balance_after: Money,
}

impl TryFrom<StatementLine> for StatementLineView {
    type Error = Error;
    fn try_from(line: StatementLine) -> Result<Self> {
        Ok(Self {
            gross: line.gross()?,
            fee: line.fee,
            day: line.key.day,
            code: line.code,
            rental_id: line.rental,
            payment: line.payment,
            transfers: line.transfer_count,
            amount: line.amount,
            balance_after: line.balance_after,
        })
    }
}

/// What the account earned as a host in the period, less what was given back. `net` + `fee` = `gross`.
#[derive(Debug, Serialize, ToSchema)]
pub struct EarnedView {
    /// What renters paid.
    pub gross: Money,
    /// The platform's part.
    pub fee: Money,
    /// The host's part.
    pub net: Money,
}

/// A statement: opening + credits − charges = closing, to the micro-dollar, over all that the account has. What moves between its own balances
/// (a hold, its release) is no line of it. The sums are those of the whole period on every page of lines.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatementView {
    #[schema(value_type = AccountIdText)]
    pub account_id: String,
    /// Handle of the account, with `@`.
    #[schema(value_type = HandleText)]
    pub account: String,
    pub currency: Currency,
    /// The first instant of the period; null for the beginning of the account.
    pub from: Option<DateTime<Utc>>,
    /// The instant before which the period ends; null for all that is booked.
    pub to: Option<DateTime<Utc>>,
    /// When the statement was made, business time.
    pub made_at: DateTime<Utc>,
    pub opening: Money,
    pub credits: Money,
    pub charges: Money,
    pub earned: EarnedView,
    pub closing: Money,
    /// What `closing` consists of.
    pub closing_balance: Balance,
    pub lines: Vec<StatementLineView>,
    /// To be sent back as `cursor` with the same other parameters; null on the last page of lines.
    pub next_cursor: Option<String>,
}

/// Which entries, the latest first.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct EntryListQuery {
    /// An instant (RFC 3339), or a date for the whole UTC day.
    #[param(value_type = Option<InstantOrDateText>)]
    pub from: Option<String>,
    /// An instant, itself not included, or a date, included as a whole UTC day.
    #[param(value_type = Option<InstantOrDateText>)]
    pub to: Option<String>,
    /// Why the money moved.
    pub code: Option<TransferCode>,
    /// Only what belongs to this rental.
    pub rental_id: Option<RentalId>,
    #[serde(default)]
    #[param(inline)]
    pub limit: Limit,
    pub cursor: Option<String>,
}

/// Which period. `limit` and `cursor` are about the lines of the JSON form; CSV and HTML have all lines.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StatementQuery {
    /// An instant (RFC 3339), or a date for the whole UTC day. Without it: the beginning of the account.
    #[param(value_type = Option<InstantOrDateText>)]
    pub from: Option<String>,
    /// An instant, itself not included, or a date, included as a whole UTC day. Without it: up to now.
    #[param(value_type = Option<InstantOrDateText>)]
    pub to: Option<String>,
    #[param(inline)]
    pub limit: Option<Limit>,
    pub cursor: Option<String>,
}

/// Which period of a statement in one document.
#[derive(Debug, Deserialize, IntoParams, ToSchema)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PeriodQuery {
    /// An instant (RFC 3339), or a date for the whole UTC day. Without it: the beginning of the account.
    #[param(value_type = Option<InstantOrDateText>)]
    pub from: Option<String>,
    /// An instant, itself not included, or a date, included as a whole UTC day. Without it: up to now.
    #[param(value_type = Option<InstantOrDateText>)]
    pub to: Option<String>,
}

/// Read the balance
#[utoipa::path(tag = "Money", responses((status = 200, body = BalanceView), AuthProblems), security(("bearer" = [])))]
#[get("/api/v1/balance")]
pub async fn balance_show(auth: Auth<scope::BillingRead>, ctx: Ctx) -> Result<impl Responder> {
    let mut conn = ctx.db.conn().await?;
    Ok(HttpResponse::Ok().json(BalanceView::from(service::balance(&mut conn, auth.caller.account_id).await?)))
}

/// List ledger entries
///
/// Every change of the account's balances, the latest first.
#[utoipa::path(tag = "Money", params(EntryListQuery), responses((status = 200, body = Page<EntryView>), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/ledger-entries")]
pub async fn entry_list(auth: Auth<scope::BillingRead>, query: Query<EntryListQuery>, ctx: Ctx) -> Result<impl Responder> {
    let period = Period::parse(query.from.as_deref(), query.to.as_deref())?;
    let filter = EntryFilter { period, code: query.code, rental: query.rental_id };
    let binding = binding(auth.caller.account_id, query.binding());
    let after = cursor::open_opt(&ctx, &binding, query.cursor.as_deref())?;
    let rows = {
        let mut conn = ctx.db.conn().await?;
        service::entries(&mut conn, auth.caller.account_id, &filter, after, query.limit.rows_to_fetch()).await?
    };
    let page = Page::new(&ctx, &binding, query.limit, rows, |entry: &Entry| entry.key(), |entry| EntryView::of(&auth.caller, entry))?;
    Ok(HttpResponse::Ok().json(page))
}

/// Read a statement
///
/// JSON, or CSV or HTML when `Accept` asks for `text/csv` or `text/html`. `/api/v1/statements.csv` and `.html` are the same documents.
#[utoipa::path(tag = "Money", params(StatementQuery),
    responses((status = 200, content((StatementView = "application/json"), (String = "text/csv"), (String = "text/html"))), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/statements")]
pub async fn statement_show(
    auth: Auth<scope::BillingRead>,
    query: Query<StatementQuery>,
    request: HttpRequest,
    ctx: Ctx,
) -> Result<impl Responder> {
    let period = Period::parse(query.from.as_deref(), query.to.as_deref())?;
    let form = Form::asked_for(&request);
    let mut response = match form {
        Form::Json => statement_json(&ctx, &auth.caller, period, &query).await?,
        Form::Csv | Form::Html if query.limit.is_some() || query.cursor.is_some() => {
            return Err(Error::invalid("?limit", "unknown_field", "Only the JSON form comes in pages."));
        }
        Form::Csv | Form::Html => whole_statement(&ctx, &auth.caller, period, form).await?,
    };
    response.headers_mut().append(header::VARY, header::HeaderValue::from_static("accept"));
    Ok(response)
}

/// Read a statement as CSV
///
/// Texts that a spreadsheet would run are escaped.
#[utoipa::path(tag = "Money", params(PeriodQuery), responses((status = 200, content_type = "text/csv", body = String), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/statements.csv")]
pub async fn statement_csv(auth: Auth<scope::BillingRead>, query: Query<PeriodQuery>, ctx: Ctx) -> Result<impl Responder> {
    let period = Period::parse(query.from.as_deref(), query.to.as_deref())?;
    whole_statement(&ctx, &auth.caller, period, Form::Csv).await
}

/// Read a statement as HTML
///
/// Laid out for printing and for saving as PDF.
#[utoipa::path(tag = "Money", params(PeriodQuery), responses((status = 200, content_type = "text/html", body = String), AuthProblems, QueryProblems),
    security(("bearer" = [])))]
#[get("/api/v1/statements.html")]
pub async fn statement_html(auth: Auth<scope::BillingRead>, query: Query<PeriodQuery>, ctx: Ctx) -> Result<impl Responder> {
    let period = Period::parse(query.from.as_deref(), query.to.as_deref())?;
    whole_statement(&ctx, &auth.caller, period, Form::Html).await
}

/// What a cursor is bound to: it names the account beside the query.
fn binding(account: AccountId, query: &str) -> String {
    format!("{account} {query}")
}

async fn statement_json(ctx: &Ctx, caller: &Caller, period: Period, query: &Query<StatementQuery>) -> Result<HttpResponse> {
    let binding = binding(caller.account_id, query.binding());
    let after: Option<LineKey> = cursor::open_opt(ctx, &binding, query.cursor.as_deref())?;
    let limit = i64::try_from(query.limit.unwrap_or_default().get()).map_err(Error::internal)?;
    let (statement, heading) = read(ctx, caller, period, after, limit).await?;
    let next_cursor = statement.next.map(|key| cursor::seal(ctx, &binding, &key)).transpose()?;
    Ok(HttpResponse::Ok().json(StatementView {
        account_id: heading.account_id,
        account: heading.account,
        currency: Currency::Usd,
        from: period.from,
        to: period.to,
        made_at: heading.made_at,
        opening: statement.opening,
        credits: statement.credits,
        charges: statement.charges,
        earned: EarnedView {
            gross: statement.earned_gross,
            fee: statement.earned_fee,
            net: statement.earned_gross.minus(statement.earned_fee)?,
        },
        closing: statement.closing,
        closing_balance: statement.closing_balance,
        lines: statement.lines.into_iter().map(StatementLineView::try_from).collect::<Result<_>>()?,
        next_cursor,
    }))
}

async fn read(ctx: &Ctx, caller: &Caller, period: Period, after: Option<LineKey>, limit: i64) -> Result<(Statement, Heading)> {
    let mut conn = ctx.db.conn().await?;
    let statement = service::statement(&mut conn, caller.account_id, period, after, limit).await?;
    let heading = Heading {
        account: format!("@{}", caller.account_handle),
        account_id: account_text(caller.account_id, caller.is_organization),
        made_at: ctx.business_now(&mut conn).await?,
        is_sandbox: ctx.config.mode.is_sandbox(),
    };
    Ok((statement, heading))
}

/// The most lines that one document has.
const LINES_MAX: i64 = 50_000;

async fn whole_statement(ctx: &Ctx, caller: &Caller, period: Period, form: Form) -> Result<HttpResponse> {
    let (statement, heading) = read(ctx, caller, period, None, LINES_MAX).await?;
    if statement.next.is_some() {
        return Err(Error::invalid("?from", "too_long", format!("This period has more than {LINES_MAX} lines; ask for a shorter one.")));
    }
    if form == Form::Html {
        return html::page(&document::StatementPage::new(statement, heading));
    }
    let disposition = ContentDisposition {
        disposition: DispositionType::Attachment,
        parameters: vec![DispositionParam::Filename("rigmark-statement.csv".to_owned())],
    };
    let csv = document::csv(&statement)?;
    Ok(HttpResponse::Ok().content_type("text/csv; charset=utf-8").insert_header(disposition).body(csv))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
    Html,
}

impl Form {
    /// The form that `Accept` likes best; JSON when it likes several alike or none.
    fn asked_for(request: &HttpRequest) -> Self {
        match accept::liked_best(request, &["text/csv", "text/html"]) {
            Some("text/csv") => Self::Csv,
            Some(_) => Self::Html,
            None => Self::Json,
        }
    }
}
