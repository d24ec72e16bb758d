//! Taking in Stripe's webhooks (money.md 20).
//!
//! An event is believed only as far as it names an object: that is fetched again before the transaction, so late, early and doubled events
//! all lead to what is so now.

use serde::Deserialize;

use super::{
    super::{
        cards::{self, MethodSeen, SetupSeen},
        model::{Observation, Outcome, StripeEventRow},
        payouts::service as payouts,
        pro::{self, model::ProSeen},
        queries,
        refunds::history::{self, History},
    },
    require_stripe,
    settle::{note_alarm, record},
};
use crate::{
    base::{
        Code, Error, Result,
        id::{CardSetupId, TopUpId},
        money::Currency,
    },
    ctx::Ctx,
    db::Tx,
    integrations::stripe::{Stripe, StripeFault, is_signed},
};

const ID_BYTES_MAX: usize = 255;

/// What is read of an event.
#[derive(Deserialize)]
struct Event {
    id: String,
    #[serde(rename = "type")]
    event_type: String,
    /// The connected account that it happened to; none for what happened to us.
    account: Option<String>,
    data: EventData,
}

#[derive(Deserialize)]
struct EventData {
    object: EventObject,
}

#[derive(Deserialize)]
struct EventObject {
    id: Option<String>,
}

/// Takes in one event, once. `signature` is the header, `body` the bytes as they came.
///
/// # Errors
/// `invalid_signature`, `malformed_request`; `not_found` for an object that is not known (yet), `unavailable` when it cannot be fetched: then
/// Stripe sends the event again.
pub async fn event_take(ctx: &Ctx, signature: Option<&str>, body: &[u8]) -> Result<()> {
    let stripe = require_stripe(ctx)?;
    let now = ctx.clock.wall_now();
    if !signature.is_some_and(|header| is_signed(header, body, stripe.webhook_secrets(), now)) {
        return Err(Error::new(Code::InvalidSignature, "Stripe-Signature is missing, is not of this body, or is older than 5 minutes."));
    }
    let event: Event = serde_json::from_slice(body).map_err(|_| malformed())?;
    let object = event.data.object.id.as_deref();
    if ![Some(event.id.as_str()), Some(event.event_type.as_str()), object, event.account.as_deref()].into_iter().flatten().all(is_name) {
        return Err(malformed());
    }
    if queries::event_is_known(&mut *ctx.db.conn().await?, &event.id).await? {
        return Ok(());
    }
    let seen = look_up(ctx, stripe, &event).await?;
    let take = async |tx: &mut Tx<'_>| {
        let outcome = Outcome::Noted.as_str();
        let row =
            StripeEventRow { id: &event.id, event_type: &event.event_type, object_id: object, outcome, received_at: ctx.clock.wall_now() };
        if !queries::event_insert(tx, &row).await? {
            return Ok(());
        }
        let outcome = match &seen {
            Some(seen) => apply(ctx, tx, seen).await?,
            None => Outcome::Noted,
        };
        queries::event_set_outcome(tx, &event.id, outcome.as_str()).await
    };
    ctx.db.tx("stripe_event", take).await
}

fn malformed() -> Error {
    Error::new(Code::MalformedRequest, "The body is no event of Stripe's.")
}

/// Ids go into addresses of Stripe's API, so they are held to what Stripe's ids are made of.
fn is_name(text: &str) -> bool {
    (1..=ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

/// What an event's object is now.
enum Seen {
    TopUp(Observation),
    History(Box<History>),
    Card(MethodSeen),
    CardSetup(SetupSeen),
    /// By its id.
    CustomerDeleted(String),
    /// None of ours, or as it was.
    Nothing,
    PayoutAccount(payouts::AccountSeen),
    Payout(payouts::TransferSeen),
    BankPayout(payouts::BankSeen),
    Pro(ProSeen),
}

/// Which kind of object an event is about, as far as it means something here.
#[derive(Clone, Copy)]
enum Subject {
    Payment,
    Checkout,
    Charge,
    Refund,
    Dispute,
    Setup,
    Method,
    Customer,
    Account,
    /// Of a connected account that has let us go; the object is our own application.
    AccountLetGo,
    Transfer,
    /// To the bank of a connected account.
    BankPayout,
    Subscription,
    Invoice,
}

impl Subject {
    fn of(event_type: &str) -> Option<Self> {
        let (object, _) = event_type.rsplit_once('.')?;
        Some(match object {
            "payment_intent" => Self::Payment,
            "checkout.session" => Self::Checkout,
            "charge" if event_type == "charge.refunded" => Self::Charge,
            "charge.refund" | "refund" => Self::Refund,
            "charge.dispute" => Self::Dispute,
            "setup_intent" => Self::Setup,
            "payment_method" => Self::Method,
            "customer" if event_type == "customer.deleted" => Self::Customer,
            "account" => Self::Account,
            "account.application" => Self::AccountLetGo,
            "transfer" => Self::Transfer,
            "payout" => Self::BankPayout,
            "customer.subscription" => Self::Subscription,
            // An invoice that is only to come has no id, and one that was deleted is not there.
            "invoice" if !matches!(event_type, "invoice.upcoming" | "invoice.deleted") => Self::Invoice,
            _ => return None,
        })
    }
}

/// The object that the event is about, as it is now. `None` for a kind of event that means nothing here.
async fn look_up(ctx: &Ctx, stripe: &Stripe, event: &Event) -> Result<Option<Seen>> {
    let Some(subject) = Subject::of(&event.event_type) else { return Ok(None) };
    let id = event.data.object.id.as_deref().ok_or_else(malformed)?;
    let of_account = event.account.as_deref();
    let fetched = match subject {
        Subject::Account => payouts::account_seen(ctx, stripe, id).await.map(Seen::PayoutAccount),
        Subject::Transfer => payouts::transfer_seen(ctx, stripe, id).await.map(Seen::Payout),
        Subject::AccountLetGo | Subject::BankPayout if of_account.is_none() => return Ok(None),
        Subject::AccountLetGo => payouts::account_seen(ctx, stripe, of_account.unwrap_or(id)).await.map(Seen::PayoutAccount),
        Subject::BankPayout => payouts::bank_payout_seen(stripe, of_account.unwrap_or(id), id).await.map(Seen::BankPayout),
        Subject::Charge | Subject::Refund | Subject::Dispute => history_seen(ctx, stripe, subject, id).await,
        Subject::Checkout => checkout_seen(ctx, stripe, id).await,
        Subject::Setup => cards::setup_seen(ctx, stripe, id).await.map(Seen::CardSetup),
        Subject::Method => cards::method_seen(ctx, stripe, id).await.map(Seen::Card),
        Subject::Customer => stripe.customer_fetch(id).await.map(|found| match found.is_deleted {
            true => Seen::CustomerDeleted(found.id),
            false => Seen::Nothing,
        }),
        Subject::Payment => payment_seen(ctx, stripe, id).await,
        Subject::Subscription => pro::service::seen_by_subscription(ctx, stripe, id).await.map(Seen::Pro),
        Subject::Invoice => pro::service::seen_by_invoice(ctx, stripe, id).await.map(Seen::Pro),
    };
    match fetched {
        Ok(seen) => Ok(Some(seen)),
        Err(StripeFault::NotFound) => Err(Error::not_found("object at Stripe")),
        Err(fault) => Err(fault.into()),
    }
}

async fn payment_seen(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<Seen, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let payment = stripe.payment_fetch(id).await?;
    // Payments of invoices are Stripe's own, and name no row.
    if payment.row_id.is_none()
        && let Some(seen) = pro::service::seen_by_payment(ctx, stripe, id).await?
    {
        return Ok(Seen::Pro(seen));
    }
    Ok(Seen::TopUp(Observation { asked_at, checkout: None, payment: Some(payment) }))
}

async fn checkout_seen(ctx: &Ctx, stripe: &Stripe, id: &str) -> Result<Seen, StripeFault> {
    let asked_at = ctx.clock.wall_now();
    let checkout = stripe.checkout_fetch(id).await?;
    if checkout.row_id.as_ref().is_some_and(|row_id| row_id.parse::<CardSetupId>().is_ok()) {
        return cards::setup_checkout_seen(ctx, stripe, asked_at, checkout).await.map(Seen::CardSetup);
    }
    if let Some(seen) = pro::service::seen_by_checkout(stripe, asked_at, &checkout).await? {
        return Ok(Seen::Pro(seen));
    }
    let payment = match &checkout.payment_id {
        Some(id) => Some(stripe.payment_fetch(id).await?),
        None => None,
    };
    Ok(Seen::TopUp(Observation { asked_at, checkout: Some(checkout), payment }))
}

/// The whole history of the payment that the object belongs to.
async fn history_seen(ctx: &Ctx, stripe: &Stripe, subject: Subject, id: &str) -> Result<Seen, StripeFault> {
    let payment_id = match subject {
        Subject::Charge => stripe.charge_fetch(id).await?.payment_id,
        Subject::Dispute => stripe.dispute_fetch(id).await?.payment_id,
        _ => stripe.refund_fetch(id).await?.payment_id,
    };
    match payment_id {
        Some(payment_id) => Ok(Seen::History(Box::new(history::look(ctx, stripe, &payment_id).await?))),
        None => Ok(Seen::Nothing),
    }
}

async fn apply(ctx: &Ctx, tx: &mut Tx<'_>, seen: &Seen) -> Result<Outcome> {
    match seen {
        Seen::TopUp(seen) => apply_to_top_up(ctx, tx, seen).await,
        Seen::History(seen) => history::record(ctx, tx, seen).await,
        Seen::Card(seen) => cards::record_method(ctx, tx, seen).await,
        Seen::CardSetup(seen) => cards::record_setup(ctx, tx, seen).await,
        Seen::CustomerDeleted(id) => cards::customer_deleted(ctx, tx, id).await,
        Seen::Nothing => Ok(Outcome::Noted),
        Seen::PayoutAccount(seen) => payouts::apply_to_account(ctx, tx, seen).await,
        Seen::Payout(seen) => payouts::apply_to_payout(ctx, tx, seen).await,
        Seen::BankPayout(seen) => payouts::apply_to_bank_payout(ctx, tx, seen).await,
        Seen::Pro(seen) => pro::service::apply(ctx, tx, seen).await,
    }
}

async fn apply_to_top_up(ctx: &Ctx, tx: &mut Tx<'_>, seen: &Observation) -> Result<Outcome> {
    let named = seen.payment.as_ref().and_then(|payment| payment.row_id.as_deref());
    let named = named.or_else(|| seen.checkout.as_ref().and_then(|checkout| checkout.row_id.as_deref()));
    let id = named.and_then(|text| text.parse::<TopUpId>().ok());
    let row = match id {
        Some(id) => queries::top_up_lock(tx, id).await?,
        None => None,
    };
    if let Some(mut row) = row {
        return record(ctx, tx, &mut row, seen).await;
    }
    // Ours or not, money in a currency that the books do not have is for a person to look at; it will not become known by waiting.
    if let Some(payment) = seen.payment.as_ref().filter(|payment| Currency::parse(&payment.currency).is_none()) {
        note_alarm("other_currency", &payment.id);
        return Ok(Outcome::Alarm);
    }
    Err(Error::not_found("payment"))
}
