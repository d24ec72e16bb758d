//! Rows of Stripe's customers.

use chrono::{DateTime, Utc};
use diesel::prelude::*;

use crate::{
    base::id::{AccountId, StripeCustomerId},
    db::schema::stripe_customers,
};

/// One row of `stripe_customers`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = stripe_customers, check_for_backend(diesel::pg::Pg))]
pub(super) struct CustomerRow {
    pub id: StripeCustomerId,
    pub account_id: AccountId,
    pub customer_id: Option<String>,
    pub created_at: DateTime<Utc>,
}
