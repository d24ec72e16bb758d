//! Rows of `saved_searches` and what the API shows of them.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::{
        Error, Money, Result,
        id::{AccountId, ListingId, SavedSearchId},
        shape::{ContextText, LimitText, NameText, RegionText},
    },
    db::schema::saved_searches,
    market::search::ListingQuery,
    web::Limit,
};

/// What to search for: the parameters of `GET /api/v1/listings` that narrow. `model`, `context` and `concurrency` belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedQuery {
    /// Any usual name of a GPU or SoC; it must mean one hardware model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub hardware: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub gpu_count: Option<i32>,
    /// Nominal memory of one GPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0)]
    pub vram_gib: Option<f64>,
    /// A country finds its subdivisions too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RegionText>)]
    pub region: Option<String>,
    /// Per hour, for the whole machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<LimitText>)]
    pub max_price: Option<Money>,
    /// Name, slug or repository of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 200)]
    pub model: Option<String>,
    /// Any spelling of a quantization.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 80)]
    pub quantization: Option<String>,
    /// Tokens of context for each user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ContextText>)]
    pub context: Option<String>,
    /// Users at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 4096)]
    pub concurrency: Option<i32>,
    /// Per user. Needs a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0)]
    pub min_tokens_per_second: Option<f64>,
    /// Of a prompt never seen before. Needs a workload.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0)]
    pub max_ttft_ms: Option<f64>,
    /// Only this account's listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 40)]
    pub by: Option<String>,
    /// Also machines that cannot be rented now.
    #[serde(default)]
    pub include_unavailable: bool,
}

impl SavedQuery {
    pub(super) fn listing_query(&self) -> ListingQuery {
        let Self { hardware, gpu_count, vram_gib, region, max_price, model, quantization, context, concurrency, .. } = self.clone();
        ListingQuery {
            hardware,
            gpu_count,
            vram_gib,
            region,
            max_price,
            model,
            quantization,
            context,
            concurrency,
            min_tokens_per_second: self.min_tokens_per_second,
            max_ttft_ms: self.max_ttft_ms,
            by: self.by.clone(),
            include_unavailable: self.include_unavailable,
            sort: None,
            limit: Limit::default(),
            cursor: None,
        }
    }
}

/// A search to keep.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SaveSearch {
    #[schema(value_type = NameText)]
    pub name: String,
    pub query: SavedQuery,
}

/// One row of `saved_searches`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = saved_searches, check_for_backend(diesel::pg::Pg))]
pub struct SavedSearch {
    pub id: SavedSearchId,
    pub account_id: AccountId,
    pub name: String,
    pub query: String,
    pub hardware_slug: Option<String>,
    pub model: Option<String>,
    pub created_at: DateTime<Utc>,
}

impl SavedSearch {
    /// # Errors
    /// `internal` for what this program has not written.
    pub fn query(&self) -> Result<SavedQuery> {
        serde_json::from_str(&self.query).map_err(Error::internal)
    }
}

/// A saved search as the API shows it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SavedSearchView {
    pub id: SavedSearchId,
    pub name: String,
    pub query: SavedQuery,
    pub created_at: DateTime<Utc>,
}

impl SavedSearchView {
    /// # Errors
    /// As [`SavedSearch::query`].
    pub fn of(row: &SavedSearch) -> Result<Self> {
        Ok(Self { id: row.id, name: row.name.clone(), query: row.query()?, created_at: row.created_at })
    }
}

/// Payload of the job `listing_offered`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListingOffered {
    pub listing_id: ListingId,
}
