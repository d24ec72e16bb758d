//! Connected accounts of hosts (Express), transfers to them and their reversals, and what became of them at a bank.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use miniserde::Deserialize;
use stripe_client_core::{RequestBuilder, StripeMethod, StripeRequest};
use stripe_connect::{
    account::{
        CreateAccount, CreateAccountCapabilities, CreateAccountCapabilitiesTransfers, CreateAccountType, ListAccount, RetrieveAccount,
    },
    account_link::{CreateAccountLink, CreateAccountLinkType},
    transfer::{CreateTransfer, ListTransfer, RetrieveTransfer},
    transfer_reversal::CreateIdTransferReversal,
};

use super::{
    client::{Stripe, StripeFault},
    objects::{BankPayoutStatus, Listed, is_of, row_id},
    payments::{Find, PAGE_ROWS, metadata, minor_units},
};
use crate::base::Money;

/// A connected account.
#[derive(Debug, Clone)]
pub struct ConnectedAccount {
    pub id: String,
    /// Our own row, as its metadata names it.
    pub row_id: Option<String>,
    pub country: Option<String>,
    /// Nothing else is known of one that is gone.
    pub is_deleted: bool,
    /// Whether its owner has been through the onboarding.
    pub details_submitted: bool,
    pub payouts_enabled: bool,
    /// Whether transfers to it are possible.
    pub may_receive: bool,
    /// Stripe's code, such as `requirements.past_due` or `rejected.fraud`.
    pub disabled_reason: Option<String>,
    /// Names of what Stripe wants to know now.
    pub requirements_due: Vec<String>,
}

/// The page on which the owner of a connected account tells Stripe what it wants to know; good for one visit.
#[derive(Debug, Clone)]
pub struct OnboardingLink {
    pub url: String,
    pub expires_at: DateTime<Utc>,
}

/// A transfer to be made.
#[derive(Debug, Clone)]
pub struct NewTransfer<'a> {
    pub row_id: &'a str,
    /// The idempotency key follows from it too: another one only when the last is known to have done nothing.
    pub attempt: i32,
    pub amount: Money,
    pub destination: &'a str,
}

/// A transfer to a connected account.
#[derive(Debug, Clone)]
pub struct StripeTransfer {
    pub id: String,
    pub row_id: Option<String>,
    pub currency: String,
    pub minor_units: i64,
    /// What was taken back in all.
    pub reversed_minor_units: i64,
    pub destination: Option<String>,
    pub created: DateTime<Utc>,
}

/// A payout of a connected account to its bank.
#[derive(Debug, Clone)]
pub struct BankPayout {
    pub id: String,
    pub status: BankPayoutStatus,
    pub failure_code: Option<String>,
    pub created: DateTime<Utc>,
}

#[derive(Deserialize)]
struct AccountFields {
    id: String,
    deleted: Option<bool>,
    country: Option<String>,
    details_submitted: Option<bool>,
    payouts_enabled: Option<bool>,
    capabilities: Option<CapabilityFields>,
    requirements: Option<RequirementFields>,
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct CapabilityFields {
    transfers: Option<String>,
}

#[derive(Deserialize)]
struct RequirementFields {
    currently_due: Option<Vec<String>>,
    past_due: Option<Vec<String>>,
    disabled_reason: Option<String>,
}

#[derive(Deserialize)]
struct LinkFields {
    url: String,
    expires_at: i64,
}

#[derive(Deserialize)]
struct TransferFields {
    id: String,
    currency: String,
    amount: i64,
    amount_reversed: i64,
    destination: Option<String>,
    created: i64,
    metadata: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize)]
struct ReversalFields {}

#[derive(Deserialize)]
struct BankPayoutFields {
    id: String,
    status: String,
    failure_code: Option<String>,
    created: i64,
}

fn instant(seconds: i64) -> Result<DateTime<Utc>, StripeFault> {
    DateTime::from_timestamp(seconds, 0).ok_or_else(|| StripeFault::Unreadable(format!("no instant: {seconds}")))
}

impl From<AccountFields> for ConnectedAccount {
    fn from(fields: AccountFields) -> Self {
        let (mut due, mut disabled_reason) = (Vec::new(), None);
        if let Some(requirements) = fields.requirements {
            due = requirements.currently_due.unwrap_or_default();
            due.extend(requirements.past_due.unwrap_or_default());
            disabled_reason = requirements.disabled_reason;
        }
        due.sort_unstable();
        due.dedup();
        Self {
            id: fields.id,
            row_id: row_id(fields.metadata),
            country: fields.country,
            is_deleted: fields.deleted.unwrap_or(false),
            details_submitted: fields.details_submitted.unwrap_or(false),
            payouts_enabled: fields.payouts_enabled.unwrap_or(false),
            may_receive: fields.capabilities.and_then(|all| all.transfers).is_some_and(|status| status == "active"),
            disabled_reason,
            requirements_due: due,
        }
    }
}

impl TryFrom<TransferFields> for StripeTransfer {
    type Error = StripeFault;
    fn try_from(fields: TransferFields) -> Result<Self, StripeFault> {
        Ok(Self {
            created: instant(fields.created)?,
            id: fields.id,
            row_id: row_id(fields.metadata),
            currency: fields.currency,
            minor_units: fields.amount,
            reversed_minor_units: fields.amount_reversed,
            destination: fields.destination,
        })
    }
}

impl Listed for AccountFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, row_id: &str) -> bool {
        is_of(self.metadata.as_ref(), row_id)
    }
}

impl Listed for TransferFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, row_id: &str) -> bool {
        is_of(self.metadata.as_ref(), row_id)
    }
}

/// Payouts of the bank are only read, so that nothing more of the crate is built for them.
struct RetrieveBankPayout<'a>(&'a str);

impl StripeRequest for RetrieveBankPayout<'_> {
    type Output = ();
    fn build(&self) -> RequestBuilder {
        RequestBuilder::new(StripeMethod::Get, format!("/payouts/{}", self.0))
    }
}

impl Stripe {
    /// Makes an Express account that may receive transfers. Sent again for the same row it gives the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::account_find`].
    pub async fn account_create(&self, row_id: &str, country: Option<&str>) -> Result<ConnectedAccount, StripeFault> {
        let mut transfers = CreateAccountCapabilitiesTransfers::new();
        transfers.requested = Some(true);
        let mut capabilities = CreateAccountCapabilities::new();
        capabilities.transfers = Some(transfers);
        let request = CreateAccount::new().type_(CreateAccountType::Express).capabilities(capabilities).metadata(metadata(row_id));
        let request = country.into_iter().fold(request, CreateAccount::country);
        Ok(self.change::<AccountFields>(&request, &format!("{row_id}:account")).await?.into())
    }

    /// # Errors
    /// `NotFound`, also for one that no longer lets us see it; or no answer.
    pub async fn account_fetch(&self, id: &str) -> Result<ConnectedAccount, StripeFault> {
        Ok(self.read::<AccountFields>(&RetrieveAccount::new(id)).await?.into())
    }

    /// The connected account that names the row, if one was made.
    ///
    /// # Errors
    /// No answer.
    pub async fn account_find(&self, find: Find<'_>) -> Result<Option<ConnectedAccount>, StripeFault> {
        let page = |after: Option<String>| {
            let request = ListAccount::new().created(find.created()).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListAccount::starting_after)
        };
        Ok(self.find::<AccountFields, _>(find.row_id, page).await?.map(ConnectedAccount::from))
    }

    /// Makes a link to the onboarding. `key` is a new one each time: a link is good for one visit.
    ///
    /// # Errors
    /// No answer, or `Refused`.
    pub async fn onboarding_link(
        &self,
        account: &str,
        return_url: &str,
        refresh_url: &str,
        key: &str,
    ) -> Result<OnboardingLink, StripeFault> {
        let request = CreateAccountLink::new(account, CreateAccountLinkType::AccountOnboarding);
        let request = request.return_url(return_url).refresh_url(refresh_url);
        let fields: LinkFields = self.change(&request, key).await?;
        Ok(OnboardingLink { expires_at: instant(fields.expires_at)?, url: fields.url })
    }

    /// Moves money to a connected account. Sent again for the same row and attempt it gives the same transfer.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::transfer_find`].
    pub async fn transfer_create(&self, new: &NewTransfer<'_>) -> Result<StripeTransfer, StripeFault> {
        let (units, currency) = minor_units(new.amount)?;
        let request = CreateTransfer::new(currency, new.destination)
            .amount(units)
            .transfer_group(new.row_id)
            .metadata(metadata(new.row_id))
            .description("Rigmark payout");
        self.change::<TransferFields>(&request, &format!("{}:transfer:{}", new.row_id, new.attempt)).await?.try_into()
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn transfer_fetch(&self, id: &str) -> Result<StripeTransfer, StripeFault> {
        self.read::<TransferFields>(&RetrieveTransfer::new(id)).await?.try_into()
    }

    /// The transfer that names the row, if one was made. Its group is the row, so that this is one short list.
    ///
    /// # Errors
    /// No answer.
    pub async fn transfer_find(&self, row_id: &str) -> Result<Option<StripeTransfer>, StripeFault> {
        let page = |after: Option<String>| {
            let request = ListTransfer::new().transfer_group(row_id).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListTransfer::starting_after)
        };
        self.find::<TransferFields, _>(row_id, page).await?.map(StripeTransfer::try_from).transpose()
    }

    /// Takes back what is left of a transfer, as far as the connected account still has it. `reversed_minor_units` is what was taken back
    /// before: so a repeat takes back nothing twice.
    ///
    /// # Errors
    /// `Refused` when the account does not have it, or when nothing is left.
    pub async fn transfer_reverse(&self, transfer: &StripeTransfer) -> Result<(), StripeFault> {
        let key = format!("{}:reversal:{}", transfer.id, transfer.reversed_minor_units);
        let left = transfer.minor_units.saturating_sub(transfer.reversed_minor_units);
        let request = CreateIdTransferReversal::new(transfer.id.as_str()).amount(left);
        self.change::<ReversalFields>(&request, &key).await.map(drop)
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn bank_payout_fetch(&self, account: &str, id: &str) -> Result<BankPayout, StripeFault> {
        let fields: BankPayoutFields = self.read_of(&RetrieveBankPayout(id), account).await?;
        Ok(BankPayout {
            status: BankPayoutStatus::parse(&fields.status)?,
            created: instant(fields.created)?,
            id: fields.id,
            failure_code: fields.failure_code,
        })
    }
}
