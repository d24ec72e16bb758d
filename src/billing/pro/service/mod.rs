//! Use cases of Pro.

mod change;
mod plans;
mod sandbox;
mod settle;
mod subscribe;

pub use change::{pro_cancel, pro_portal, pro_resume, pro_set_plan, pro_set_seats};
pub use plans::{check_prices, pro_view};
pub use sandbox::pro_buy_with_play_money;
pub use settle::pro_ask_due;
pub(in crate::billing) use settle::{apply, seen_by_checkout, seen_by_invoice, seen_by_payment, seen_by_subscription};
pub use subscribe::{Begun, pro_begin, pro_record};

use super::{model::ProSubscription, queries};
use crate::{
    base::{Code, Error, Result, id::AccountId},
    ctx::Ctx,
    db::Conn,
    identity::{self, Caller},
};

/// The most members that one subscription is for.
const SEATS_MAX: i32 = 500;

fn not_for_sale() -> Error {
    Error::new(Code::NoPaymentProvider, "Pro is not for sale on this server.")
}

/// How many seats the account needs and may buy: one for a person, at least one for each member for an organization.
async fn checked_seats(conn: &mut Conn, caller: &Caller, asked: Option<i32>) -> Result<i32> {
    if !caller.is_organization {
        return match asked {
            None | Some(1) => Ok(1),
            Some(_) => Err(Error::invalid("/seats", "out_of_range", "A person has one seat; an organization has one for each member.")),
        };
    }
    let members = i32::try_from(identity::service::member_count(conn, caller.account_id).await?).unwrap_or(i32::MAX);
    let seats = asked.unwrap_or(members.max(1));
    if seats < members {
        return Err(Error::invalid("/seats", "too_few", format!("The organization has {members} members.")));
    }
    if !(1..=SEATS_MAX).contains(&seats) {
        return Err(Error::invalid("/seats", "out_of_range", format!("seats is from 1 to {SEATS_MAX}.")));
    }
    Ok(seats)
}

/// The account's newest subscription, if it is open.
async fn open_of(ctx: &Ctx, account: AccountId) -> Result<ProSubscription> {
    let mut conn = ctx.db.conn().await?;
    let row = queries::pro_latest(&mut conn, account).await?;
    let open = row.filter(|row| row.status().is_ok_and(|status| !status.is_over()));
    open.ok_or_else(|| Error::new(Code::InvalidState, "The account has no subscription that is open."))
}
