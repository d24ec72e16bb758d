//! Balance transactions: every movement of the money that Stripe has for the platform, with Stripe's own fees.

use chrono::{DateTime, Utc};
use miniserde::{
    Deserialize,
    json::{Object, Value},
};
use stripe_core::balance_transaction::ListBalanceTransaction;
use stripe_types::{RangeBoundsTs, RangeQueryTs};

use super::{
    client::{Stripe, StripeFault},
    objects::{PageFields, ROW_KEY},
};

const PAGE_ROWS: i64 = 100;

/// A movement of money at Stripe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalanceTransaction {
    pub id: String,
    /// Stripe's type, such as `charge` or `transfer`.
    pub kind: String,
    /// What moved it, such as a charge.
    pub source_id: Option<String>,
    /// The payment of a charge, refund or dispute; the transfer of a reversal.
    pub parent_id: Option<String>,
    /// The row of ours that the source's metadata name.
    pub row_id: Option<String>,
    /// Three letters, lower case.
    pub currency: String,
    /// Smallest units of the currency; positive when Stripe has more for us than before. `fee` is taken from it.
    pub amount_minor_units: i64,
    pub fee_minor_units: i64,
    pub net_minor_units: i64,
    pub available_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

/// Which balance transactions: those made in a span of Stripe's time, in pages.
#[derive(Debug, Clone)]
pub struct BalanceSpan {
    pub from: DateTime<Utc>,
    /// None: up to now.
    pub until: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct BalanceFields {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    currency: String,
    amount: i64,
    fee: i64,
    net: i64,
    available_on: i64,
    created: i64,
    source: Option<Value>,
}

impl Stripe {
    /// One page of the span, the newest first, after the one with the id `after`; and whether there are more.
    ///
    /// # Errors
    /// No answer, or one that cannot be read.
    pub async fn balance_transactions(
        &self,
        span: &BalanceSpan,
        after: Option<String>,
    ) -> Result<(Vec<BalanceTransaction>, bool), StripeFault> {
        let until = span.until.map(|until| until.timestamp());
        let created = RangeQueryTs::Bounds(RangeBoundsTs { gte: Some(span.from.timestamp()), lt: until, ..RangeBoundsTs::default() });
        let request = ListBalanceTransaction::new().created(created).limit(PAGE_ROWS).expand(["data.source".to_owned()]);
        let request = after.into_iter().fold(request, ListBalanceTransaction::starting_after);
        let page: PageFields<BalanceFields> = self.read(&request).await?;
        let rows = page.data.into_iter().map(BalanceTransaction::try_from).collect::<Result<Vec<_>, _>>()?;
        Ok((rows, page.has_more))
    }
}

impl TryFrom<BalanceFields> for BalanceTransaction {
    type Error = StripeFault;
    fn try_from(fields: BalanceFields) -> Result<Self, StripeFault> {
        let instant = |seconds: i64| {
            DateTime::from_timestamp(seconds, 0).ok_or_else(|| StripeFault::Unreadable(format!("the time of {}", fields.id)))
        };
        let (available_at, created_at) = (instant(fields.available_on)?, instant(fields.created)?);
        if fields.amount.checked_sub(fields.fee) != Some(fields.net) {
            return Err(StripeFault::Unreadable(format!("the net of {}", fields.id)));
        }
        let source = fields.source.as_ref();
        Ok(Self {
            source_id: source.and_then(id_of),
            parent_id: source.and_then(parent_of),
            row_id: source.and_then(row_of),
            id: fields.id,
            kind: fields.kind,
            currency: fields.currency,
            amount_minor_units: fields.amount,
            fee_minor_units: fields.fee,
            net_minor_units: fields.net,
            available_at,
            created_at,
        })
    }
}

fn object(value: &Value) -> Option<&Object> {
    match value {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

fn text(object: &Object, name: &str) -> Option<String> {
    match object.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        _ => None,
    }
}

/// An id, or that of an object that stands in its place.
fn id_of(value: &Value) -> Option<String> {
    match value {
        Value::String(id) => Some(id.clone()),
        other => object(other).and_then(|object| text(object, "id")),
    }
}

fn parent_of(source: &Value) -> Option<String> {
    let source = object(source)?;
    let names: &[&str] = match text(source, "object")?.as_str() {
        "charge" => &["payment_intent"],
        "refund" | "dispute" => &["payment_intent", "charge"],
        "transfer_reversal" => &["transfer"],
        _ => return None,
    };
    names.iter().find_map(|name| source.get(*name).and_then(id_of))
}

fn row_of(source: &Value) -> Option<String> {
    object(source)?.get("metadata").and_then(object).and_then(|metadata| text(metadata, ROW_KEY))
}
