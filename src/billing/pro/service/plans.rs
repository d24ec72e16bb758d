//! What Pro costs and gives.

use super::{
    super::{
        model::{PerksView, ProPlan, ProPlanView, ProSubscriptionView, ProView},
        queries,
    },
    not_for_sale,
};
use crate::{
    base::{Code, Error, Money, Result, money::Currency},
    config::ProPriceIds,
    ctx::Ctx,
    identity::{self, Caller},
    integrations::stripe::{Price, Stripe, StripeFault},
    web::rate_limit::API,
};

/// The id of a plan's price.
///
/// # Errors
/// `no_payment_provider` where Pro is not for sale.
pub(super) fn price_id(ctx: &Ctx, plan: ProPlan) -> Result<&str> {
    let prices = prices(ctx).ok_or_else(not_for_sale)?;
    Ok(match plan {
        ProPlan::Monthly => &prices.monthly,
        ProPlan::Yearly => &prices.yearly,
    })
}

fn prices(ctx: &Ctx) -> Option<&ProPriceIds> {
    ctx.config.stripe.as_ref().and_then(|stripe| stripe.pro_prices.as_ref())
}

/// The plan of a price; `None` for one that is no longer sold.
pub(super) fn plan_of(ctx: &Ctx, price_id: &str) -> Option<ProPlan> {
    ProPlan::ALL.into_iter().find(|plan| self::price_id(ctx, *plan).is_ok_and(|id| id == price_id))
}

/// What a plan costs in play money.
pub(super) fn sandbox_price(ctx: &Ctx, plan: ProPlan) -> Result<Money> {
    let tunables = &ctx.config.tunables;
    let cents = match plan {
        ProPlan::Monthly => tunables.pro_sandbox_monthly_cents,
        ProPlan::Yearly => tunables.pro_sandbox_yearly_cents,
    };
    Money::from_minor_units(cents, Currency::Usd)
}

/// Looks the prices up when the program starts: a mistake shows then, and not when somebody buys. That Stripe does not answer is no mistake.
///
/// # Errors
/// A sentence for the operator.
pub async fn check_prices(ctx: &Ctx) -> Result<()> {
    let (Some(stripe), Some(prices)) = (&ctx.stripe, prices(ctx)) else { return Ok(()) };
    for (name, id, interval) in
        [("STRIPE_PRICE_PRO_MONTHLY", &prices.monthly, "month"), ("STRIPE_PRICE_PRO_YEARLY", &prices.yearly, "year")]
    {
        let wrong = |what: String| Error::new(Code::InvalidInput, format!("{name}: {what}."));
        match stripe.price(id).await {
            Ok(price) => fault_of(&price, interval).map_or(Ok(()), |fault| Err(wrong(fault)))?,
            Err(StripeFault::NotFound) => return Err(wrong(format!("Stripe has no price {id}"))),
            Err(fault) => {
                tracing::warn!(%fault, "the prices of Pro cannot be looked up now");
                return Ok(());
            }
        }
    }
    Ok(())
}

fn fault_of(price: &Price, interval: &str) -> Option<String> {
    if !price.is_active {
        return Some("the price is not active".to_owned());
    }
    if Currency::parse(&price.currency).is_none() {
        return Some(format!("the price is in {}, not in US dollars", price.currency));
    }
    if price.interval.as_deref() != Some(interval) || price.interval_count != 1 {
        return Some(format!("the price must be paid once a {interval}"));
    }
    price.minor_units.filter(|units| *units > 0).is_none().then(|| "the price must be one amount for each seat".to_owned())
}

async fn sold_price(stripe: &Stripe, id: &str) -> Result<Money> {
    let price = stripe.price(id).await?;
    let units = price.minor_units.ok_or_else(|| Error::internal(format!("price {id} has no amount")))?;
    Money::from_minor_units(units, Currency::parse(&price.currency).unwrap_or(Currency::Usd))
}

async fn plans(ctx: &Ctx) -> Result<Vec<ProPlanView>> {
    let mut plans = Vec::new();
    for plan in ProPlan::ALL {
        let price = match &ctx.stripe {
            None => sandbox_price(ctx, plan)?,
            Some(_) if prices(ctx).is_none() => return Ok(Vec::new()),
            Some(stripe) => sold_price(stripe, price_id(ctx, plan)?).await?,
        };
        plans.push(ProPlanView { plan, price, currency: price.currency() });
    }
    Ok(plans)
}

/// What Pro costs, what it gives, and what the caller has of it.
///
/// # Errors
/// `unavailable` while Stripe has not said what Pro costs.
pub async fn pro_view(ctx: &Ctx, caller: Option<&Caller>) -> Result<ProView> {
    let plans = plans(ctx).await?;
    let tunables = &ctx.config.tunables;
    let perks = |is_pro: bool| PerksView {
        fee_basis_points: if is_pro { tunables.fee_basis_points_pro } else { tunables.fee_basis_points },
        requests_per_minute: API.times(if is_pro { tunables.pro_rate_factor } else { 1 }).limit,
        reservation_hours_ahead: if is_pro { tunables.pro_reservation_hours_ahead } else { tunables.reservation_hours_ahead },
        unlisted_runs: is_pro,
        bulk_export: is_pro,
        saved_searches: is_pro,
    };
    let mut view = ProView { plans, free: perks(false), pro: perks(true), is_pro: false, pro_until: None, subscription: None };
    if let Some(caller) = caller {
        let mut conn = ctx.db.conn().await?;
        let has = identity::service::entitlements(ctx, &mut conn, caller.account_id).await?;
        view.is_pro = has.is_pro;
        view.pro_until = has.pro_until;
        let latest = queries::pro_latest(&mut conn, caller.account_id).await?;
        view.subscription = latest.as_ref().map(|row| ProSubscriptionView::new(row, None)).transpose()?;
    }
    Ok(view)
}
