//! Customers: who owns saved cards and subscriptions at Stripe.

use std::collections::BTreeMap;

use miniserde::Deserialize;
use stripe_core::customer::{CreateCustomer, ListCustomer, RetrieveCustomer};

use super::{
    client::{Stripe, StripeFault},
    objects::{self, Listed},
    payments::{Find, PAGE_ROWS, metadata},
};

/// A customer to be made.
#[derive(Debug, Clone)]
pub struct NewCustomer<'a> {
    /// Our own row: the idempotency key follows from it, and the object's metadata names it.
    pub row_id: &'a str,
    /// For people who look at Stripe's own pages.
    pub name: &'a str,
}

/// A Customer.
#[derive(Debug, Clone)]
pub struct Customer {
    pub id: String,
    /// Somebody has deleted it at Stripe; its cards are gone with it.
    pub is_deleted: bool,
}

#[derive(Deserialize)]
struct CustomerFields {
    id: String,
    deleted: Option<bool>,
    metadata: Option<BTreeMap<String, String>>,
}

impl From<CustomerFields> for Customer {
    fn from(fields: CustomerFields) -> Self {
        Self { id: fields.id, is_deleted: fields.deleted.unwrap_or(false) }
    }
}

impl Listed for CustomerFields {
    fn id(&self) -> &str {
        &self.id
    }
    fn is_of(&self, row_id: &str) -> bool {
        objects::is_of(self.metadata.as_ref(), row_id)
    }
}

impl Stripe {
    /// Makes a customer. Sent again for the same row it gives the same one.
    ///
    /// # Errors
    /// `Unknown`: ask with [`Self::customer_find`].
    pub async fn customer_create(&self, new: &NewCustomer<'_>) -> Result<Customer, StripeFault> {
        let request = CreateCustomer::new().name(new.name).metadata(metadata(new.row_id));
        self.change::<CustomerFields>(&request, &format!("{}:customer", new.row_id)).await.map(Customer::from)
    }

    /// # Errors
    /// `NotFound`, or no answer.
    pub async fn customer_fetch(&self, id: &str) -> Result<Customer, StripeFault> {
        self.read::<CustomerFields>(&RetrieveCustomer::new(id)).await.map(Customer::from)
    }

    /// The customer that names the row, if one was made.
    ///
    /// # Errors
    /// No answer.
    pub async fn customer_find(&self, find: Find<'_>) -> Result<Option<Customer>, StripeFault> {
        let page = |after: Option<String>| {
            let request = ListCustomer::new().created(find.created()).limit(PAGE_ROWS);
            after.into_iter().fold(request, ListCustomer::starting_after)
        };
        Ok(self.find::<CustomerFields, _>(find.row_id, page).await?.map(Customer::from))
    }
}
