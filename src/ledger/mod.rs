//! stub
pub mod service {
    use crate::{
        base::{id::*, *},
        db::*,
        identity::Actor,
    };
    use chrono::*;
    pub struct HoldRequest {
        pub id: HoldId,
        pub transfer_id: TransferId,
        pub account: AccountId,
        pub rental: Option<RentalId>,
        pub amount: Money,
        pub actor: Actor,
        pub business_at: DateTime<Utc>,
    }
    pub struct Balance {
        pub available: Money,
    }
    fn no<T>() -> Result<T> {
        Err(Error::internal("stub"))
    }
    pub fn derived_id(_: &[&str]) -> TransferId {
        TransferId::new()
    }
    pub async fn hold(_: &mut Tx<'_>, _: HoldRequest) -> Result<()> {
        no()
    }
    pub async fn hold_remaining(_: &mut Tx<'_>, _: HoldId) -> Result<Money> {
        no()
    }
    pub async fn holds_remaining(_: &mut Conn, _: &[HoldId]) -> Result<std::collections::HashMap<HoldId, Money>> {
        no()
    }
    pub async fn hold_increase(_: &mut Tx<'_>, _: HoldId, _: TransferId, _: Money, _: DateTime<Utc>) -> Result<Money> {
        no()
    }
    pub async fn capture(_: &mut Tx<'_>, _: HoldId, _: TransferId, _: Money, _: Money, _: AccountId, _: DateTime<Utc>) -> Result<()> {
        no()
    }
    pub async fn release(_: &mut Tx<'_>, _: HoldId, _: TransferId, _: DateTime<Utc>) -> Result<()> {
        no()
    }
    pub async fn balance(_: &mut Conn, _: AccountId) -> Result<Balance> {
        no()
    }
}
