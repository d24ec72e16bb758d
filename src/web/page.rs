//! Lists by keyset: `limit`, `cursor`, and `{data, next_cursor}`.

use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

use super::cursor;
use crate::{base::Result, ctx::Ctx};

const LIMIT_DEFAULT: u16 = 20;
const LIMIT_MAX: u16 = 100;

/// How many rows a page has: 1 to 100, 20 when not said. In a query struct: `#[serde(default)] limit: Limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(u16);

impl Limit {
    /// How many rows to ask the database for: one more than shown tells whether there is a next page.
    pub fn rows_to_fetch(self) -> i64 {
        i64::from(self.0) + 1
    }
    pub fn get(self) -> usize {
        usize::from(self.0)
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self(LIMIT_DEFAULT)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u16::deserialize(deserializer)? {
            limit @ 1..=LIMIT_MAX => Ok(Self(limit)),
            other => Err(de::Error::custom(format_args!("the limit must be between 1 and {LIMIT_MAX}, not {other}"))),
        }
    }
}

impl utoipa::PartialSchema for Limit {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        utoipa::openapi::schema::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::Integer)
            .minimum(Some(1))
            .maximum(Some(LIMIT_MAX))
            .default(Some(LIMIT_DEFAULT.into()))
            .into()
    }
}
impl ToSchema for Limit {}

/// One page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct Page<T> {
    pub data: Vec<T>,
    /// To be sent back as `cursor` with the same other parameters; null on the last page.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Out of rows fetched with [`Limit::rows_to_fetch`]. `position` gives what the next page starts after: the values of the sort columns
    /// and the id. `bound_to` is [`super::Query::binding`].
    ///
    /// # Errors
    /// `internal` when the position is no JSON.
    pub fn new<R, P: Serialize>(
        ctx: &Ctx,
        bound_to: &str,
        limit: Limit,
        mut rows: Vec<R>,
        position: impl Fn(&R) -> P,
        view: impl FnMut(R) -> T,
    ) -> Result<Self> {
        let more = rows.len() > limit.get();
        rows.truncate(limit.get());
        let last = rows.last().filter(|_| more);
        let next_cursor = last.map(|row| cursor::seal(ctx, bound_to, &position(row))).transpose()?;
        Ok(Self { data: rows.into_iter().map(view).collect(), next_cursor })
    }
}
