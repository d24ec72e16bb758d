//! Saved cards: SetupIntents, checkouts that save a card, and payment methods.

use std::collections::BTreeMap;

use miniserde::Deserialize;
use stripe_checkout::checkout_session::{CreateCheckoutSession, CreateCheckoutSessionSetupIntentData};
use stripe_core::{
    payment_intent::RetrievePaymentIntent,
    setup_intent::{
        CreateSetupIntent, CreateSetupIntentAutomaticPaymentMethods, CreateSetupIntentAutomaticPaymentMethodsAllowRedirects,
        CreateSetupIntentUsage, ListSetupIntent, RetrieveSetupIntent,
    },
};
use stripe_payment::payment_method::{DetachPaymentMethod, RetrievePaymentMethod};
use stripe_shared::CheckoutSessionMode;

use super::{
    client::{Stripe, StripeFault},
    objects::{self, Checkout, CheckoutFields, Listed, SetupStatus},
    payments::{Find, PAGE_ROWS, metadata},
};
use crate::base::secret::Secret;

/// A card to be saved for payments that nobody is there for.
#[derive(Debug, Clone)]
pub struct NewSetup<'a> {
    /// Our own row: the idempotency key follows from it, and the object's metadata names it.
    pub row_id: &'a str,
    pub customer: &'a str,
    /// Saved with this request. None: a browser gives it, with the client secret.
    pub payment_method: Option<&'a str>,
}

/// A checkout that saves a card.
#[derive(Debug, Clone)]
pub struct NewSetupCheckout<'a> {
    pub row_id: &'a str,
    pub customer: &'a str,
    /// Where the browser goes afterwards, whether a card was saved or not.
    pub return_url: &'a str,
}

/// A SetupIntent.
#[derive(Debug, Clone)]
pub struct Setup {
    pub id: String,
    pub status: SetupStatus,
    pub client_secret: Option<Secret<String>>,
    pub row_id: Option<String>,
    pub payment_method: Option<String>,
    /// Why the last try failed.
    pub failure_code: Option<String>,
}

/// A payment method.
#[derive(Debug, Clone)]
pub struct SavedMethod {
    pub id: String,
    /// Whose it is; none once it is detached.
    pub customer: Option<String>,
    pub card: CardMark,
}

/// What a card is known by; nothing that pays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardMark {
    /// Or the kind of payment method, for what is no card.
    pub brand: String,
    pub last4: Option<String>,
    /// Month and year.
    pub expires: Option<(i16, i16)>,
}

#[derive(Deserialize)]
struct SetupFields {
    id: String,
    status: String,
    client_secret: Option<String>,
    payment_method: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    last_setup_error: Option<SetupErrorFields>,
}

#[derive(Deserialize)]
struct SetupErrorFields {
    code: Option<String>,
    decline_code: Option<String>,
}

#[derive(Deserialize)]
struct MethodFields {
    id: String,
    customer: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    card: Option<CardFields>,
}

#[derive(Deserialize)]
struct CardFields {
    brand: Option<String>,
    last4: Option<String>,
    exp_month: Option<i16>,
    exp_year: Option<i16>,
}

#[derive(Deserialize)]
struct ChargedFields {
    latest_charge: Option<ChargeFields>,
}

#[derive(Deserialize)]
struct ChargeFields {
    payment_method_details: Option<ChargedMethodFields>,
}

#[derive(Deserialize)]
struct ChargedMethodFields {
    #[serde(rename = "type")]
    kind: String,
    card: Option<CardFields>,
}

impl TryFrom<SetupFields> for Setup {
    type Error = StripeFault;
    fn try_from(fields: SetupFields) -> Result<Self, StripeFault> {
        Ok(Self {
            status: SetupStatus::parse(&fields.status)?,
            id: fields.id,
            client_secret: fields.client_secret.map(Secret::new),
            row_id: objects::row_id(fields.metadata),
            payment_method: fields.payment_method,
            failure_code: fields.last_setup_error.and_then(|error| error.decline_code.or(error.code)),
        })
    }
}

impl From<MethodFields> for SavedMethod {
    fn from(fields: MethodFields) -> Self {
        Self { id: fields.id, customer: fields.customer, card: mark(fields.kind, fields.card) }
    }
}

fn mark(kind: String, card: Option<CardFields>) -> CardMark {
    let Some(card) = card else { return CardMark { brand: kind, last4: None, expires: None } };
    CardMark { brand: card.brand.unwrap_or(kind), last4: card.last4, expires: card.exp_month.zip(card.exp_year) }
}

impl Listed for SetupFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, row_id: &str) -> bool {
        objects::is_of(self.metadata.as_ref(), row_id)
    }
}

impl Stripe {
    /// Makes a SetupIntent; with a payment method it is confirmed too, which attaches it to the customer. Sent again for the same row it gives
    /// the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::setup_find`]. `Declined`: it is there, see its `setup_id`.
    pub async fn setup_create(&self, new: &NewSetup<'_>) -> Result<Setup, StripeFault> {
        let mut methods = CreateSetupIntentAutomaticPaymentMethods::new(true);
        // What is saved is to be charged while nobody is there.
        methods.allow_redirects = Some(CreateSetupIntentAutomaticPaymentMethodsAllowRedirects::Never);
        let mut request = CreateSetupIntent::new()
            .customer(new.customer)
            .metadata(metadata(new.row_id))
            .automatic_payment_methods(methods)
            .usage(CreateSetupIntentUsage::OffSession);
        if let Some(method) = new.payment_method {
            request = request.payment_method(method).confirm(true);
        }
        self.change::<SetupFields>(&request, &format!("{}:setup", new.row_id)).await?.try_into()
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn setup_fetch(&self, id: &str) -> Result<Setup, StripeFault> {
        self.read::<SetupFields>(&RetrieveSetupIntent::new(id)).await?.try_into()
    }

    /// The SetupIntent that names the row, if one was made.
    ///
    /// # Errors
    /// No answer.
    pub async fn setup_find(&self, find: Find<'_>) -> Result<Option<Setup>, StripeFault> {
        let page = |after: Option<String>| {
            let request = ListSetupIntent::new().created(find.created()).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListSetupIntent::starting_after)
        };
        self.find::<SetupFields, _>(find.row_id, page).await?.map(Setup::try_from).transpose()
    }

    /// Makes a checkout that saves a card. Sent again for the same row it gives the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::checkout_find`].
    pub async fn setup_checkout_create(&self, new: &NewSetupCheckout<'_>) -> Result<Checkout, StripeFault> {
        let mut setup = CreateCheckoutSessionSetupIntentData::new();
        setup.metadata = Some(metadata(new.row_id));
        let request = CreateCheckoutSession::new()
            .mode(CheckoutSessionMode::Setup)
            .currency(stripe_types::Currency::USD)
            .customer(new.customer)
            .success_url(new.return_url)
            .cancel_url(new.return_url)
            .client_reference_id(new.row_id)
            .metadata(metadata(new.row_id))
            .setup_intent_data(setup);
        self.change::<CheckoutFields>(&request, &format!("{}:checkout", new.row_id)).await?.try_into()
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn method_fetch(&self, id: &str) -> Result<SavedMethod, StripeFault> {
        self.read::<MethodFields>(&RetrievePaymentMethod::new(id)).await.map(SavedMethod::from)
    }

    /// Takes a payment method off its customer, for good.
    ///
    /// # Errors
    /// `Refused` when it is on none.
    pub async fn method_detach(&self, id: &str) -> Result<SavedMethod, StripeFault> {
        self.change::<MethodFields>(&DetachPaymentMethod::new(id), &format!("{id}:detach")).await.map(SavedMethod::from)
    }

    /// What paid a payment; none when nothing has.
    ///
    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn payment_card(&self, payment_id: &str) -> Result<Option<CardMark>, StripeFault> {
        let request = RetrievePaymentIntent::new(payment_id).expand(vec!["latest_charge".to_owned()]);
        let charge = self.read::<ChargedFields>(&request).await?.latest_charge;
        Ok(charge.and_then(|charge| charge.payment_method_details).map(|details| mark(details.kind, details.card)))
    }
}
