//! Finding or making the customer of an account.

use chrono::TimeDelta;

use super::{super::service::require_stripe, model::CustomerRow, queries};
use crate::{
    base::{
        Code, Error, Result,
        id::{AccountId, StripeCustomerId},
    },
    ctx::Ctx,
    db::{Conn, Tx},
    identity,
    integrations::stripe::{Customer, Find, NewCustomer, Stripe, StripeFault},
};

/// A request of ours has long ended after this, and Stripe still remembers its idempotency key.
const ENDED_AFTER: TimeDelta = TimeDelta::minutes(10);

/// Stripe's id of the account's customer (`cus_…`), which is made when there is none. Asks Stripe, so not inside a transaction.
///
/// # Errors
/// `no_payment_provider` in the sandbox; `unavailable` when nobody knows whether Stripe made it: a later call finds out.
pub async fn customer_of(ctx: &Ctx, account: AccountId) -> Result<String> {
    let stripe = require_stripe(ctx)?;
    let row = committed_row(ctx, account).await?;
    if let Some(id) = row.customer_id {
        return Ok(id);
    }
    let row = settled_name(ctx, stripe, row).await?;
    let found = match row.customer_id {
        Some(id) => return Ok(id),
        None => make(ctx, stripe, &row).await?,
    };
    note(ctx, account, row.id, &found).await
}

async fn committed_row(ctx: &Ctx, account: AccountId) -> Result<CustomerRow> {
    let mut conn = ctx.db.conn().await?;
    if let Some(row) = queries::customer_fetch(&mut conn, account).await? {
        return Ok(row);
    }
    let new = CustomerRow { id: StripeCustomerId::new(), account_id: account, customer_id: None, created_at: ctx.clock.wall_now() };
    queries::customer_insert(&mut conn, &new).await?;
    row_of(queries::customer_fetch(&mut conn, account).await?)
}

fn row_of(found: Option<CustomerRow>) -> Result<CustomerRow> {
    found.ok_or_else(|| Error::internal("the row of a customer is gone"))
}

/// The row under whose name Stripe may be asked now. An old request has either made a customer, which is listed, or never will: then another is
/// sent under another name, since Stripe may keep the fault of the first under its key, or have forgotten it.
async fn settled_name(ctx: &Ctx, stripe: &Stripe, row: CustomerRow) -> Result<CustomerRow> {
    let now = ctx.clock.wall_now();
    if now.signed_duration_since(row.created_at) < ENDED_AFTER {
        return Ok(row);
    }
    if let Some(found) = stripe.customer_find(find(&row, &row.id.to_string())).await? {
        let customer_id = Some(note(ctx, row.account_id, row.id, &found).await?);
        return Ok(CustomerRow { customer_id, ..row });
    }
    let mut conn = ctx.db.conn().await?;
    queries::customer_rename(&mut conn, row.id, StripeCustomerId::new(), now).await?;
    row_of(queries::customer_fetch(&mut conn, row.account_id).await?)
}

fn find<'a>(row: &CustomerRow, row_id: &'a str) -> Find<'a> {
    let until = row.created_at.checked_add_signed(ENDED_AFTER).unwrap_or(row.created_at);
    Find { row_id, from: row.created_at, until }
}

async fn make(ctx: &Ctx, stripe: &Stripe, row: &CustomerRow) -> Result<Customer> {
    let account = {
        let mut conn = ctx.db.conn().await?;
        identity::service::account_summary(&mut conn, row.account_id).await?
    };
    let row_id = row.id.to_string();
    let name = format!("@{}", account.handle);
    match stripe.customer_create(&NewCustomer { row_id: &row_id, name: &name }).await {
        Ok(customer) => Ok(customer),
        Err(StripeFault::Refused(refusal)) => Err(Error::internal(StripeFault::Refused(refusal))),
        Err(fault) => {
            tracing::warn!(customer = %row.id, %fault, "asking Stripe what became of a customer");
            let detail = "Stripe gave no answer. Send the same request again in a moment; nothing is done twice.";
            let found = stripe.customer_find(find(row, &row_id)).await?;
            found.ok_or_else(|| Error::new(Code::Unavailable, detail).with_retry_after(5))
        }
    }
}

/// Writes down what was found, and gives what is written down: several that ask at once get one.
async fn note(ctx: &Ctx, account: AccountId, row: StripeCustomerId, found: &Customer) -> Result<String> {
    let mut conn = ctx.db.conn().await?;
    queries::customer_set(&mut conn, row, &found.id).await?;
    let noted = queries::customer_fetch(&mut conn, account).await?.and_then(|row| row.customer_id);
    noted.ok_or_else(|| Error::new(Code::Unavailable, "Stripe was asked twice at once.").with_retry_after(1))
}

/// The account of a customer of Stripe's, whose row is locked: who writes about an account's cards waits for others who do.
///
/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn lock_customer(tx: &mut Tx<'_>, customer: &str) -> Result<Option<AccountId>> {
    queries::customer_lock(tx, customer).await
}

/// As [`lock_customer`], by the account; one without a customer has no cards.
///
/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn lock_account(tx: &mut Tx<'_>, account: AccountId) -> Result<()> {
    queries::account_lock(tx, account).await
}

/// The account's customer, if Stripe has said it.
///
/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn known_customer(conn: &mut Conn, account: AccountId) -> Result<Option<String>> {
    Ok(queries::customer_fetch(conn, account).await?.and_then(|row| row.customer_id))
}

/// The customer is no more at Stripe: the next one gets another name.
///
/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn forget(ctx: &Ctx, tx: &mut Tx<'_>, account: AccountId) -> Result<()> {
    queries::customer_forget(tx, account, StripeCustomerId::new(), ctx.clock.wall_now()).await
}
