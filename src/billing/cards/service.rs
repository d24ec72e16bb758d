//! Saving cards, and writing down what Stripe says of them.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    super::{
        automatic, customers,
        model::Outcome,
        service::{check_address, check_method, refused_method, require_stripe},
    },
    jobs::{DETACH, Detach},
    model::{CardSetup, CardSetupRequest, CardSetupStatus, CardSetupView, PaymentMethod, PaymentMethodView, UpdatePaymentMethod},
    queries,
};
use crate::{
    base::{
        Code, Error, Result,
        faults::Faults,
        id::{AccountId, CardSetupId},
    },
    ctx::Ctx,
    db::{Conn, Tx},
    integrations::stripe::{
        Checkout, CheckoutStatus, Find, NewSetup, NewSetupCheckout, Refusal, SavedMethod, Setup, SetupStatus, Stripe, StripeFault,
    },
    jobs::{self, Job},
};

/// A request of ours has long ended after this.
const ENDED_AFTER: TimeDelta = TimeDelta::minutes(30);

/// What Stripe said of a payment method.
#[derive(Debug, Clone)]
pub(in crate::billing) struct MethodSeen {
    /// When the question was sent, wall time.
    asked_at: DateTime<Utc>,
    method: SavedMethod,
}

/// What Stripe said of the saving of a card.
#[derive(Debug, Clone)]
pub(in crate::billing) struct SetupSeen {
    asked_at: DateTime<Utc>,
    checkout: Option<Checkout>,
    setup: Option<Setup>,
    /// The card, once it is saved.
    method: Option<MethodSeen>,
}

/// Commits a row, then asks Stripe to save a card.
///
/// # Errors
/// `no_payment_provider`, `invalid_input`; `unavailable` when nobody knows whether Stripe did it: then a webhook finds out, and another request
/// does no harm.
pub async fn setup_begin(ctx: &Ctx, account: AccountId, request: &CardSetupRequest) -> Result<CardSetupView> {
    let stripe = require_stripe(ctx)?;
    check(request)?;
    if let Some(method) = &request.payment_method {
        let known = queries::method_fetch(&mut *ctx.db.conn().await?, method).await?;
        if known.is_some_and(|known| known.account_id != account || known.removed_at.is_some()) {
            return Err(refused_method());
        }
    }
    let customer = customers::customer_of(ctx, account).await?;
    let row = CardSetup {
        id: CardSetupId::new(),
        account_id: account,
        payment_method: request.payment_method.clone(),
        return_url: request.return_url.clone(),
        status: CardSetupStatus::Pending.as_str().to_owned(),
        setup_intent_id: None,
        checkout_session_id: None,
        saved_payment_method: None,
        failure_code: None,
        observed_at: None,
        created_at: ctx.clock.wall_now(),
    };
    queries::setup_insert(&mut *ctx.db.conn().await?, &row).await?;
    let seen = match create(ctx, stripe, &row, &customer).await {
        Ok(seen) => Some(seen),
        Err(StripeFault::Refused(refusal)) => return Err(refused(ctx, row.id, refusal).await?),
        Err(fault) => {
            tracing::warn!(setup = %row.id, %fault, "asking Stripe what became of a card");
            ask(ctx, stripe, &row).await?
        }
    };
    let seen = seen.ok_or_else(|| Error::new(Code::Unavailable, "Stripe gave no answer. Try again in a moment.").with_retry_after(5))?;
    write(ctx, row.id, &seen).await
}

fn check(request: &CardSetupRequest) -> Result<()> {
    let mut faults = Faults::default();
    check_method(&mut faults, request.payment_method.as_deref());
    check_address(&mut faults, request.return_url.as_deref());
    if request.payment_method.is_some() && request.return_url.is_some() {
        faults.add("/return_url", "not_both", "Give a payment method or an address to return to, not both.");
    }
    faults.finish()
}

async fn create(ctx: &Ctx, stripe: &Stripe, row: &CardSetup, customer: &str) -> Result<SetupSeen, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let row_id = row.id.to_string();
    if let Some(return_url) = &row.return_url {
        let new = NewSetupCheckout { row_id: &row_id, customer, return_url };
        let checkout = stripe.setup_checkout_create(&new).await?;
        return Ok(SetupSeen { asked_at, checkout: Some(checkout), setup: None, method: None });
    }
    let new = NewSetup { row_id: &row_id, customer, payment_method: row.payment_method.as_deref() };
    let setup = match stripe.setup_create(&new).await {
        // Declined: it is there, and says so itself.
        Err(StripeFault::Declined { setup_id: Some(id), .. }) => stripe.setup_fetch(&id).await?,
        other => other?,
    };
    with_method(ctx, stripe, asked_at, None, Some(setup)).await
}

async fn with_method(
    ctx: &Ctx,
    stripe: &Stripe,
    asked_at: DateTime<Utc>,
    checkout: Option<Checkout>,
    setup: Option<Setup>,
) -> Result<SetupSeen, StripeFault> {
    let saved = setup.as_ref().filter(|setup| setup.status == SetupStatus::Succeeded).and_then(|setup| setup.payment_method.as_deref());
    let method = match saved {
        Some(id) => Some(method_seen(ctx, stripe, id).await?),
        None => None,
    };
    Ok(SetupSeen { asked_at, checkout, setup, method })
}

/// A payment method as it is now.
///
/// # Errors
/// `NotFound`, or no answer.
pub(in crate::billing) async fn method_seen(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<MethodSeen, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    Ok(MethodSeen { asked_at, method: stripe.method_fetch(id).await? })
}

/// A SetupIntent as it is now, with the card that it has saved.
///
/// # Errors
/// `NotFound`, or no answer.
pub(in crate::billing) async fn setup_seen(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<SetupSeen, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let setup = stripe.setup_fetch(id).await?;
    with_method(ctx, stripe, asked_at, None, Some(setup)).await
}

/// What became of a checkout that saves a card.
///
/// # Errors
/// `NotFound`, or no answer.
pub(in crate::billing) async fn setup_checkout_seen(
    ctx: &Ctx,
    stripe: &Stripe,
    asked_at: DateTime<Utc>,
    checkout: Checkout,
) -> Result<SetupSeen, StripeFault> {
    let setup = match &checkout.setup_id {
        Some(id) => Some(stripe.setup_fetch(id).await?),
        None => None,
    };
    with_method(ctx, stripe, asked_at, Some(checkout), setup).await
}

/// What Stripe says of it now; `None` when it knows nothing of it.
async fn ask(ctx: &Ctx, stripe: &Stripe, row: &CardSetup) -> Result<Option<SetupSeen>, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let row_id = row.id.to_string();
    let until = row.created_at.checked_add_signed(ENDED_AFTER).unwrap_or(asked_at);
    let find = Find { row_id: &row_id, from: row.created_at, until };
    if row.return_url.is_some() {
        let checkout = match &row.checkout_session_id {
            Some(id) => Some(stripe.checkout_fetch(id).await?),
            None => stripe.checkout_find(find).await?,
        };
        return match checkout {
            Some(checkout) => setup_checkout_seen(ctx, stripe, asked_at, checkout).await.map(Some),
            None => Ok(None),
        };
    }
    let setup = match &row.setup_intent_id {
        Some(id) => Some(stripe.setup_fetch(id).await?),
        None => stripe.setup_find(find).await?,
    };
    match setup {
        Some(setup) => with_method(ctx, stripe, asked_at, None, Some(setup)).await.map(Some),
        None => Ok(None),
    }
}

async fn write(ctx: &Ctx, id: CardSetupId, seen: &SetupSeen) -> Result<CardSetupView> {
    let write = async |tx: &mut Tx<'_>| {
        let mut row = queries::setup_lock(tx, id).await?.ok_or_else(|| Error::internal("a card setup is gone"))?;
        apply(ctx, tx, &mut row, seen).await?;
        Ok(row)
    };
    let row = ctx.db.tx("card_setup", write).await?;
    view(&row, Some(seen))
}

fn view(row: &CardSetup, seen: Option<&SetupSeen>) -> Result<CardSetupView> {
    let status = row.status()?;
    let open = seen.filter(|_| !status.is_over());
    let setup = open.filter(|_| row.return_url.is_none()).and_then(|seen| seen.setup.as_ref());
    Ok(CardSetupView {
        id: row.id,
        status,
        payment_method: row.saved_payment_method.clone(),
        failure_code: row.failure_code.clone().filter(|_| status != CardSetupStatus::Succeeded),
        client_secret: setup.and_then(|setup| setup.client_secret.as_ref()).map(|secret| secret.expose().clone()),
        checkout_url: open.and_then(|seen| seen.checkout.as_ref()).and_then(|checkout| checkout.url.clone()),
        created_at: row.created_at,
    })
}

/// Stripe will never take this request. Returns what to answer.
async fn refused(ctx: &Ctx, id: CardSetupId, refusal: Refusal) -> Result<Error> {
    let cancel = async |tx: &mut Tx<'_>| {
        let Some(mut row) = queries::setup_lock(tx, id).await? else { return Ok(()) };
        CardSetupStatus::Canceled.as_str().clone_into(&mut row.status);
        row.failure_code = Some(refusal.code.clone().unwrap_or_else(|| "refused".to_owned()));
        queries::setup_update(tx, &row).await
    };
    ctx.db.tx("card_setup_refused", cancel).await?;
    Ok(match refusal.param.as_deref() {
        // Without a parameter it is about what was named: a method that is somebody else's cannot be attached.
        Some("success_url" | "cancel_url") => Error::invalid("/return_url", "refused_by_stripe", "Stripe does not take this."),
        None => refused_method(),
        Some(param) if param.starts_with("payment_method") => refused_method(),
        Some(_) => Error::internal(StripeFault::Refused(refusal)),
    })
}

/// The saving of a card, as Stripe has it now while it is open.
///
/// # Errors
/// `not_found` for one that is not the account's.
pub async fn setup_fetch(ctx: &Ctx, account: AccountId, id: CardSetupId) -> Result<CardSetupView> {
    let row = queries::setup_fetch(&mut *ctx.db.conn().await?, id).await?;
    let row = row.filter(|row| row.account_id == account).ok_or_else(|| Error::not_found("card setup"))?;
    let Some(stripe) = ctx.stripe.as_ref().filter(|_| row.status().is_ok_and(|status| !status.is_over())) else {
        return view(&row, None);
    };
    match ask(ctx, stripe, &row).await {
        Ok(Some(seen)) => write(ctx, id, &seen).await,
        Ok(None) => view(&row, None),
        Err(fault) => {
            tracing::warn!(setup = %row.id, %fault, "showing the saving of a card as it was last seen");
            view(&row, None)
        }
    }
}

/// Writes down what was seen of a SetupIntent or its checkout: of the row that it names, and of the card.
///
/// # Errors
/// `not_found` for a row or a customer that is not known (yet).
pub(in crate::billing) async fn record_setup(ctx: &Ctx, tx: &mut Tx<'_>, seen: &SetupSeen) -> Result<Outcome> {
    let named = seen.setup.as_ref().and_then(|setup| setup.row_id.as_deref());
    let named = named.or_else(|| seen.checkout.as_ref().and_then(|checkout| checkout.row_id.as_deref()));
    if let Some(id) = named.and_then(|text| text.parse::<CardSetupId>().ok()) {
        let mut row = queries::setup_lock(tx, id).await?.ok_or_else(|| Error::not_found("card setup"))?;
        return apply(ctx, tx, &mut row, seen).await;
    }
    // Made for something else, such as a subscription: the card is what counts.
    match &seen.method {
        Some(method) => record_method(ctx, tx, method).await,
        None => Ok(Outcome::Noted),
    }
}

/// `row` is locked by this transaction.
async fn apply(ctx: &Ctx, tx: &mut Tx<'_>, row: &mut CardSetup, seen: &SetupSeen) -> Result<Outcome> {
    if let Some(checkout) = &seen.checkout {
        row.checkout_session_id.get_or_insert_with(|| checkout.id.clone());
    }
    if let Some(setup) = &seen.setup {
        row.setup_intent_id.get_or_insert_with(|| setup.id.clone());
    }
    let next = status_of(seen);
    let is_newer = row.observed_at.is_none_or(|at| seen.asked_at > at);
    let changes = row.status()?.may_become(next, is_newer);
    if changes {
        next.as_str().clone_into(&mut row.status);
        row.failure_code = seen.setup.as_ref().and_then(|setup| setup.failure_code.clone());
        row.observed_at = Some(seen.asked_at);
        row.saved_payment_method = seen.method.as_ref().map(|seen| seen.method.id.clone());
    }
    queries::setup_update(tx, row).await?;
    if let Some(method) = &seen.method {
        record_method(ctx, tx, method).await?;
    }
    Ok(if changes { Outcome::Applied } else { Outcome::Unchanged })
}

fn status_of(seen: &SetupSeen) -> CardSetupStatus {
    if let Some(setup) = &seen.setup {
        return CardSetupStatus::of(setup.status);
    }
    match seen.checkout.as_ref().map(|checkout| checkout.status) {
        Some(CheckoutStatus::Expired) => CardSetupStatus::Canceled,
        Some(CheckoutStatus::Complete) => CardSetupStatus::Processing,
        Some(CheckoutStatus::Open) | None => CardSetupStatus::RequiresPaymentMethod,
    }
}

/// Writes down what was seen of a payment method.
///
/// # Errors
/// `not_found` when it is attached to a customer that is not known (yet).
pub(in crate::billing) async fn record_method(ctx: &Ctx, tx: &mut Tx<'_>, seen: &MethodSeen) -> Result<Outcome> {
    let MethodSeen { asked_at, method } = seen;
    let Some(customer) = &method.customer else { return record_detached(ctx, tx, &method.id, *asked_at).await };
    let account = customers::lock_customer(tx, customer).await?.ok_or_else(|| Error::not_found("customer"))?;
    if !queries::method_upsert(tx, &PaymentMethod::seen(account, method, *asked_at)).await? {
        return Ok(Outcome::Unchanged);
    }
    queries::method_default_if_none(tx, account, &method.id).await?;
    Ok(Outcome::Applied)
}

async fn record_detached(ctx: &Ctx, tx: &mut Tx<'_>, id: &str, asked_at: DateTime<Utc>) -> Result<Outcome> {
    let Some(row) = queries::method_lock(tx, id).await? else { return Ok(Outcome::Noted) };
    if row.removed_at.is_some() || row.observed_at >= asked_at {
        return Ok(Outcome::Unchanged);
    }
    remove(ctx, tx, id).await?;
    Ok(Outcome::Applied)
}

async fn remove(ctx: &Ctx, tx: &mut Tx<'_>, id: &str) -> Result<()> {
    queries::method_remove(tx, id, ctx.clock.wall_now()).await?;
    automatic::card_removed(ctx, tx, id).await
}

/// Somebody has deleted the customer at Stripe: its cards are gone, and the account needs another one.
///
/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn customer_deleted(ctx: &Ctx, tx: &mut Tx<'_>, customer: &str) -> Result<Outcome> {
    let Some(account) = customers::lock_customer(tx, customer).await? else { return Ok(Outcome::Noted) };
    for card in queries::methods_lock(tx, account).await? {
        remove(ctx, tx, &card.id).await?;
    }
    customers::forget(ctx, tx, account).await?;
    Ok(Outcome::Applied)
}

/// Whether a payment method may be charged for an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::billing) enum Saved {
    /// Not saved by anybody here: Stripe knows whether it can be charged.
    Unknown,
    /// Another account's, or removed.
    Refused,
    /// With this customer.
    With(String),
}

/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn saved_method(conn: &mut Conn, account: AccountId, id: &str) -> Result<Saved> {
    let Some(row) = queries::method_fetch(conn, id).await? else { return Ok(Saved::Unknown) };
    if row.account_id != account || row.removed_at.is_some() {
        return Ok(Saved::Refused);
    }
    Ok(customers::known_customer(conn, account).await?.map_or(Saved::Refused, Saved::With))
}

/// The account's default card.
///
/// # Errors
/// The database's own faults.
pub(in crate::billing) async fn default_method(conn: &mut Conn, account: AccountId) -> Result<Option<String>> {
    Ok(queries::method_default(conn, account).await?.map(|row| row.id))
}

/// # Errors
/// The database's own faults.
pub async fn method_list(
    ctx: &Ctx,
    account: AccountId,
    after: Option<(DateTime<Utc>, String)>,
    limit: i64,
) -> Result<Vec<PaymentMethodView>> {
    let rows = queries::method_list(&mut *ctx.db.conn().await?, account, after, limit).await?;
    Ok(rows.into_iter().map(PaymentMethodView::from).collect())
}

/// # Errors
/// `not_found` for a card that is not the account's, `invalid_input` for taking the default away.
pub async fn method_update(ctx: &Ctx, account: AccountId, id: &str, update: &UpdatePaymentMethod) -> Result<PaymentMethodView> {
    let change = async |tx: &mut Tx<'_>| {
        customers::lock_account(tx, account).await?;
        let cards = queries::methods_lock(tx, account).await?;
        let card = cards.into_iter().find(|card| card.id == id).ok_or_else(not_there)?;
        if update.is_default {
            queries::method_set_default(tx, account, id).await?;
        } else if card.is_default {
            return Err(Error::invalid("/is_default", "invalid", "Make another card the default instead."));
        }
        Ok(PaymentMethodView { is_default: update.is_default, ..card.into() })
    };
    ctx.db.tx("payment_method_update", change).await
}

fn not_there() -> Error {
    Error::not_found("payment method")
}

/// Charges the card no more from now on; a job takes it off the customer at Stripe.
///
/// # Errors
/// `not_found` for a card that is not the account's.
pub async fn method_remove(ctx: &Ctx, account: AccountId, id: &str) -> Result<()> {
    let change = async |tx: &mut Tx<'_>| {
        customers::lock_account(tx, account).await?;
        let card = queries::method_lock(tx, id).await?;
        card.filter(|card| card.account_id == account && card.removed_at.is_none()).ok_or_else(not_there)?;
        remove(ctx, tx, id).await?;
        let payload = serde_json::to_value(Detach { payment_method: id.to_owned() }).map_err(Error::internal)?;
        jobs::enqueue(tx, Job { kind: DETACH, payload, dedupe_key: None, run_at: ctx.clock.wall_now() }).await
    };
    ctx.db.tx("payment_method_remove", change).await
}

/// Takes a removed card off its customer. Done twice it does nothing more.
///
/// # Errors
/// `unavailable` while Stripe gives no answer.
pub(super) async fn detach_at_stripe(ctx: &Ctx, id: &str) -> Result<()> {
    let Some(stripe) = &ctx.stripe else { return Ok(()) };
    match stripe.method_detach(id).await {
        Ok(_) => Ok(()),
        // It is on no customer any more, or gone with it.
        Err(StripeFault::Refused(_) | StripeFault::NotFound) => Ok(()),
        Err(fault) => Err(fault.into()),
    }
}
