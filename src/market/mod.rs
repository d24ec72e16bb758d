//! stub
pub mod service {
    use crate::{
        base::{id::*, *},
        ctx::Ctx,
        db::*,
    };
    use chrono::*;
    pub struct QuoteTerms {
        pub listing_id: ListingId,
        pub price_per_hour: Money,
    }
    pub struct ListingTerms {
        pub listing_id: ListingId,
        pub machine_id: MachineId,
        pub host_account_id: AccountId,
        pub price_per_hour: Money,
        pub min_hours: i32,
        pub max_hours: Option<i32>,
        pub available_until: Option<DateTime<Utc>>,
        pub run_id: Option<RunId>,
    }
    fn no<T>() -> Result<T> {
        Err(Error::internal("stub"))
    }
    pub fn open_quote(_: &Ctx, _: DateTime<Utc>, _: &str) -> Result<QuoteTerms> {
        no()
    }
    pub async fn take_terms(_: &mut Tx<'_>, _: ListingId, _: DateTime<Utc>) -> Result<ListingTerms> {
        no()
    }
    pub async fn set_taken(_: &mut Tx<'_>, _: ListingId, _: bool) -> Result<()> {
        no()
    }
}
