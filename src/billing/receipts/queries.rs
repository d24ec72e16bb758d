//! What receipts write into `top_ups`.

use diesel::prelude::*;
use diesel_async::RunQueryDsl;

use crate::{
    base::{Result, id::TopUpId},
    db::{Conn, schema::top_ups},
};

/// Notes what paid a top-up; it never changes.
pub async fn card_set(conn: &mut Conn, id: TopUpId, brand: &str, last4: Option<&str>) -> Result<()> {
    diesel::update(top_ups::table.find(id.uuid()).filter(top_ups::card_brand.is_null()))
        .set((top_ups::card_brand.eq(brand), top_ups::card_last4.eq(last4)))
        .execute(conn)
        .await?;
    Ok(())
}
