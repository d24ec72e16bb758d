//! Asking Stripe what became of a subscription, and writing down what it said. The one way on which one changes, whoever saw it first.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        super::{model::Outcome, service::note_alarm},
        model::{ProInvoiceRow, ProSeen, ProStatus, ProSubscription},
        queries,
        state::{ask_next, pro_of},
    },
    plans::plan_of,
};
use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, ProSubscriptionId},
        money::Currency,
    },
    ctx::Ctx,
    db::{JsonText, Tx},
    identity::{self, service::ProSale},
    integrations::stripe::{Checkout, CheckoutStatus, Find, Invoice, InvoiceStatus, Stripe, StripeFault, Subscription},
    ledger::{
        self, LedgerAccount, TransferCode,
        model::Actor,
        service::{Posting, TransferRequest},
    },
};

/// A request of ours to make a subscription has long ended after this: what Stripe does not list by then was never made.
const NEVER_ARRIVED_AFTER: TimeDelta = TimeDelta::minutes(30);
/// How long the poller has for what it took.
const ASK_LEASE: TimeDelta = TimeDelta::minutes(5);
const ASK_ROWS: i64 = 20;

/// What Stripe says of the subscription now; `None` when it knows nothing of it.
///
/// # Errors
/// No answer.
pub(super) async fn ask(ctx: &Ctx, stripe: &Stripe, row: &ProSubscription) -> Result<Option<ProSeen>, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let row_id = row.id.to_string();
    let checkout = match (row.is_checkout(), &row.checkout_session_id) {
        (false, _) => None,
        (true, Some(id)) => Some(stripe.checkout_fetch(id).await?),
        (true, None) => {
            let until = row.created_at.checked_add_signed(NEVER_ARRIVED_AFTER).unwrap_or(asked_at);
            stripe.checkout_find(Find { row_id: &row_id, from: row.created_at, until }).await?
        }
    };
    let begun_there = checkout.as_ref().and_then(|checkout| checkout.subscription_id.clone());
    let subscription = match (row.subscription_id.clone().or(begun_there), &row.customer_id) {
        (Some(id), _) => Some(stripe.subscription_fetch(&id).await?),
        (None, Some(customer)) if !row.is_checkout() => stripe.subscription_find(&row_id, customer).await?,
        (None, _) => None,
    };
    if checkout.is_none() && subscription.is_none() {
        return Ok(None);
    }
    seen_of(stripe, asked_at, checkout, subscription).await.map(Some)
}

/// Completes what was seen with the subscription's invoices.
pub(super) async fn seen_of(
    stripe: &Stripe,
    asked_at: DateTime<Utc>,
    checkout: Option<Checkout>,
    subscription: Option<Subscription>,
) -> Result<ProSeen, StripeFault> {
    let Some(of) = &subscription else {
        return Ok(ProSeen { asked_at, checkout, subscription: None, invoices: Vec::new(), payable: None });
    };
    let invoices = stripe.invoices_of(&of.id).await?;
    let payable = match (ProStatus::of(of.status), &of.latest_invoice_id) {
        (ProStatus::Incomplete, Some(id)) => Some(stripe.invoice_fetch(id).await?),
        _ => None,
    };
    Ok(ProSeen { asked_at, checkout, subscription, invoices, payable })
}

/// For the webhook of a subscription.
pub(in crate::billing) async fn seen_by_subscription(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<ProSeen, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let subscription = stripe.subscription_fetch(id).await?;
    seen_of(stripe, asked_at, None, Some(subscription)).await
}

/// For the webhook of an invoice; nothing is seen where it is none of a subscription.
pub(in crate::billing) async fn seen_by_invoice(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<ProSeen, StripeFault> {
    match stripe.invoice_fetch(id).await?.subscription_id {
        Some(subscription) => seen_by_subscription(ctx, stripe, &subscription).await,
        None => Err(StripeFault::NotFound),
    }
}

/// For the webhook of a payment that names no row: it may be an invoice's.
pub(in crate::billing) async fn seen_by_payment(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<Option<ProSeen>, StripeFault> {
    match stripe.invoice_of_payment(id).await? {
        Some(invoice) => seen_by_invoice(ctx, stripe, &invoice).await.map(Some),
        None => Ok(None),
    }
}

/// For the webhook of a checkout; `None` when it is none of Pro's.
pub(in crate::billing) async fn seen_by_checkout(
    stripe: &Stripe,
    asked_at: DateTime<Utc>,
    checkout: &Checkout,
) -> Result<Option<ProSeen>, StripeFault> {
    if pro_id(checkout.row_id.as_deref()).is_none() {
        return Ok(None);
    }
    let subscription = match &checkout.subscription_id {
        Some(id) => Some(stripe.subscription_fetch(id).await?),
        None => None,
    };
    seen_of(stripe, asked_at, Some(checkout.clone()), subscription).await.map(Some)
}

fn pro_id(row_id: Option<&str>) -> Option<ProSubscriptionId> {
    row_id.and_then(|text| text.parse().ok())
}

/// Writes down what a webhook led to.
///
/// # Errors
/// `not_found` for a subscription that is not known (yet).
pub(in crate::billing) async fn apply(ctx: &Ctx, tx: &mut Tx<'_>, seen: &ProSeen) -> Result<Outcome> {
    let subscription = seen.subscription.as_ref();
    let named = pro_id(subscription.and_then(|of| of.row_id.as_deref()))
        .or_else(|| pro_id(seen.checkout.as_ref().and_then(|checkout| checkout.row_id.as_deref())));
    let id = match (named, subscription) {
        (Some(id), _) => Some(id),
        // Somebody has taken our name off it.
        (None, Some(of)) => queries::pro_by_subscription(tx, &of.id).await?,
        (None, None) => None,
    };
    let known = match id {
        Some(id) => queries::pro_fetch(tx, id).await?,
        None => None,
    };
    let row = known.ok_or_else(|| Error::not_found("subscription"))?;
    Ok(record(ctx, tx, row.id, seen).await?.1)
}

/// Writes down what was seen, and gives the row as it is then.
///
/// # Errors
/// The ledger's and the database's own.
pub(super) async fn record(ctx: &Ctx, tx: &mut Tx<'_>, id: ProSubscriptionId, seen: &ProSeen) -> Result<(ProSubscription, Outcome)> {
    let mut rows = queries::pro_lock_all(tx, id).await?;
    let at = rows.iter().position(|row| row.id == id).ok_or_else(|| Error::internal("a subscription is gone"))?;
    let others_open = rows.iter().any(|row| row.id != id && row.status().is_ok_and(|status| !status.is_over()));
    let Some(row) = rows.get_mut(at) else { return Err(Error::internal("a subscription is gone")) };
    if let Some(alarm) = alarm(row, seen, others_open)? {
        let row = raise(tx, row.clone(), alarm).await?;
        return Ok((row, Outcome::Alarm));
    }
    let was = row.status()?;
    let has_booked = book(ctx, tx, row, seen).await?;
    let outcome = move_on(ctx, row, seen)?;
    let now = ctx.clock.wall_now();
    let facts = row.facts()?;
    let given = pro_of(&facts, TimeDelta::days(ctx.config.tunables.pro_past_due_days));
    row.pro_until = given.map(|given| given.until);
    row.renews = given.is_some_and(|given| given.renews);
    row.ask_at = ask_next(&facts, row.created_at, now);
    let row = row.clone();
    queries::pro_update(tx, &row).await?;
    note_sale(tx, row.account_id, &rows).await?;
    write_to(ctx, tx, &row, was).await?;
    let outcome = if has_booked { Outcome::Applied } else { outcome };
    Ok((row, outcome))
}

/// What must not be settled by a program.
fn alarm(row: &ProSubscription, seen: &ProSeen, others_open: bool) -> Result<Option<&'static str>> {
    let Some(of) = &seen.subscription else { return Ok(None) };
    if Currency::parse(&of.currency).is_none() || seen.invoices.iter().any(|invoice| Currency::parse(&invoice.currency).is_none()) {
        return Ok(Some("other_currency"));
    }
    if row.subscription_id.as_ref().is_some_and(|id| *id != of.id) {
        return Ok(Some("second_subscription"));
    }
    // It came to nothing here, and the account has begun another.
    let would_be_second = others_open && row.status()?.is_over() && row.status()?.may_become(ProStatus::of(of.status), true);
    Ok((would_be_second && !ProStatus::of(of.status).is_over()).then_some("second_subscription"))
}

async fn raise(tx: &mut Tx<'_>, mut row: ProSubscription, alarm: &'static str) -> Result<ProSubscription> {
    if row.alarm.as_deref() != Some(alarm) {
        note_alarm(alarm, &row.id.to_string());
        row.alarm = Some(alarm.to_owned());
    }
    row.ask_at = None;
    queries::pro_update(tx, &row).await?;
    Ok(row)
}

/// The status that was seen, if it may follow, with all that belongs to it.
fn move_on(ctx: &Ctx, row: &mut ProSubscription, seen: &ProSeen) -> Result<Outcome> {
    if let Some(checkout) = &seen.checkout {
        row.checkout_session_id.get_or_insert_with(|| checkout.id.clone());
    }
    let is_newer = row.observed_at.is_none_or(|at| seen.asked_at > at);
    let next = match (&seen.subscription, &seen.checkout) {
        (Some(of), _) => ProStatus::of(of.status),
        (None, Some(checkout)) if checkout.status == CheckoutStatus::Expired => ProStatus::Failed,
        (None, _) => ProStatus::Incomplete,
    };
    if !row.status()?.may_become(next, is_newer) {
        return Ok(Outcome::Unchanged);
    }
    row.observed_at = Some(seen.asked_at);
    if next == ProStatus::Failed {
        row.fail("checkout_expired", seen.asked_at);
        return Ok(Outcome::Applied);
    }
    next.as_str().clone_into(&mut row.status);
    row.ended_at = next.is_over().then_some(seen.asked_at);
    row.failure_code = None;
    if let Some(of) = &seen.subscription {
        copy(ctx, row, of, seen);
    }
    Ok(Outcome::Applied)
}

fn copy(ctx: &Ctx, row: &mut ProSubscription, of: &Subscription, seen: &ProSeen) {
    row.subscription_id = Some(of.id.clone());
    row.item_id = Some(of.item_id.clone());
    if let Some(plan) = plan_of(ctx, &of.price_id) {
        plan.as_str().clone_into(&mut row.plan);
    }
    row.seats = i32::try_from(of.quantity).unwrap_or(i32::MAX).max(1);
    row.is_ending = of.is_ending;
    row.period_ends_at = Some(of.period_ends_at);
    let behind = matches!(ProStatus::of(of.status), ProStatus::PastDue | ProStatus::Unpaid);
    // By Stripe's own figures, so that it does not matter when it is noticed.
    let open_since = seen.invoices.iter().filter(|invoice| invoice.status == InvoiceStatus::Open).map(|invoice| invoice.created_at).min();
    row.past_due_since = behind.then(|| open_since.or(row.past_due_since).unwrap_or(seen.asked_at));
}

/// Books every invoice that is paid and was not booked, and notes how far all of them reach. True when there was one.
async fn book(ctx: &Ctx, tx: &mut Tx<'_>, row: &mut ProSubscription, seen: &ProSeen) -> Result<bool> {
    let mut has_booked = false;
    let paid: Vec<&Invoice> = seen.invoices.iter().filter(|invoice| invoice.status == InvoiceStatus::Paid).collect();
    for invoice in &paid {
        has_booked |= book_one(ctx, tx, row.id, invoice).await?;
    }
    // The newest: a change of plan has given back what an older one reached further.
    let newest =
        paid.iter().filter(|invoice| invoice.covers_until.is_some()).max_by_key(|invoice| (invoice.created_at, invoice.covers_until));
    if let Some(newest) = newest {
        row.paid_until = newest.covers_until;
    }
    Ok(has_booked)
}

async fn book_one(ctx: &Ctx, tx: &mut Tx<'_>, id: ProSubscriptionId, invoice: &Invoice) -> Result<bool> {
    let currency = Currency::parse(&invoice.currency).ok_or_else(|| Error::internal("an invoice in another currency"))?;
    let paid = Money::from_minor_units(invoice.paid_minor_units, currency)?;
    let mut taxes = Money::ZERO;
    for tax in &invoice.taxes {
        taxes = taxes.plus(Money::from_minor_units(tax.minor_units, currency)?)?;
    }
    let transfer = ledger::service::derived_id(&["pro_invoice", &invoice.id]);
    let row = ProInvoiceRow {
        invoice_id: invoice.id.clone(),
        pro_subscription_id: id,
        number: invoice.number.clone(),
        reason: invoice.reason.clone(),
        paid_micros: paid,
        tax_micros: taxes.max(Money::ZERO),
        taxes: JsonText::of(&invoice.taxes)?,
        transfer_id: paid.is_positive().then_some(transfer),
        created_at: invoice.created_at,
        booked_at: ctx.clock.wall_now(),
    };
    if !queries::invoice_insert(tx, &row).await? {
        return Ok(false);
    }
    if paid.is_positive() {
        let transfer = TransferRequest {
            id: transfer,
            code: TransferCode::ProPayment,
            postings: Posting::between(LedgerAccount::StripeClearing, LedgerAccount::PlatformFees, paid)?,
            rental: None,
            payment: Some(invoice.id.clone()),
            actor: Actor::System,
            business_at: ctx.business_now(tx).await?,
            linked: None,
        };
        ledger::service::post(tx, transfer).await?;
    }
    Ok(true)
}

/// What the account has of Pro follows from all its rows, which are locked.
pub(super) async fn note_sale(tx: &mut Tx<'_>, account: AccountId, rows: &[ProSubscription]) -> Result<()> {
    let giving = || rows.iter().filter(|row| row.pro_until.is_some());
    let sale = ProSale {
        until: giving().filter_map(|row| row.pro_until).max(),
        renews: giving().any(|row| row.renews),
        // What has long run out must not count for what runs now.
        seats: giving().max_by_key(|row| (row.renews, row.pro_until)).map(|row| row.seats),
    };
    identity::service::set_pro_sale(tx, account, sale).await
}

/// Tells the account of what it did not do itself.
async fn write_to(ctx: &Ctx, tx: &mut Tx<'_>, row: &ProSubscription, was: ProStatus) -> Result<()> {
    let now = row.status()?;
    let (subject, text) = match now {
        ProStatus::PastDue if was != now => {
            let until = row.pro_until.map_or_else(String::new, |at| format!(" Pro stays on until {}.", at.format("%Y-%m-%d %H:%M UTC")));
            let text = format!("The payment for Rigmark Pro failed and is tried again.{until} Another card: {}/en/pro", ctx.public_url);
            ("The payment for Pro failed", text)
        }
        ProStatus::Canceled if was == ProStatus::PastDue || was == ProStatus::Unpaid => (
            "Pro has ended",
            format!("The payment for Rigmark Pro failed too often, so Pro has ended. Subscribe again: {}/en/pro", ctx.public_url),
        ),
        _ => return Ok(()),
    };
    identity::service::notify(ctx, tx, row.account_id, subject, &text).await
}

/// Asks about every subscription that is due, and writes down the answers.
///
/// # Errors
/// The database's own faults. That Stripe does not answer is logged, and the rest is left for the next time.
pub async fn pro_ask_due(ctx: &Ctx) -> Result<()> {
    let Some(stripe) = &ctx.stripe else { return Ok(()) };
    let taken = {
        let mut conn = ctx.db.conn().await?;
        queries::pro_take_due(&mut conn, ctx.clock.wall_now(), ASK_LEASE, ASK_ROWS).await?
    };
    for id in taken {
        match ask_one(ctx, stripe, id).await {
            Ok(Ok(())) => {}
            // One row's trouble must not keep the others waiting; its lease brings it back.
            Err(error) => tracing::error!(pro = %id, error = ?error, "a subscription could not be settled"),
            Ok(Err(fault @ StripeFault::Unknown(_))) => {
                tracing::warn!(pro = %id, %fault, "Stripe cannot be asked");
                break;
            }
            Ok(Err(fault)) => tracing::error!(pro = %id, %fault, "a subscription could not be settled"),
        }
    }
    Ok(())
}

async fn ask_one(ctx: &Ctx, stripe: &Stripe, id: ProSubscriptionId) -> Result<Result<(), StripeFault>> {
    let row = {
        let mut conn = ctx.db.conn().await?;
        queries::pro_fetch(&mut conn, id).await?
    };
    let Some(row) = row else { return Ok(Ok(())) };
    match ask(ctx, stripe, &row).await {
        Ok(Some(seen)) => ctx.db.tx("pro_ask", async |tx| record(ctx, tx, id, &seen).await).await.map(|_| Ok(())),
        Ok(None) => record_nothing(ctx, &row).await.map(Ok),
        Err(fault) => Ok(Err(fault)),
    }
}

/// Stripe knows nothing of it: once every request of ours has ended, that is final.
async fn record_nothing(ctx: &Ctx, row: &ProSubscription) -> Result<()> {
    let age = ctx.clock.wall_now().signed_duration_since(row.created_at);
    if age < NEVER_ARRIVED_AFTER {
        // The lease asks again.
        return Ok(());
    }
    super::subscribe::came_to_nothing(ctx, row.id, "never_arrived").await
}
