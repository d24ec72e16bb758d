//! Every sweep and job handler. The order of the sweeps is the order in which moving the clock runs them: signs of life come first, so that
//! a machine that is there is never taken for silent; then the meter; then the market.

use std::sync::Arc;

use crate::{benchmarks, billing, identity, jobs::Registry, ledger, machines, market, rentals, web::idempotency, webhooks};

pub fn registry() -> Registry {
    Registry {
        sweeps: vec![
            Arc::new(machines::SignsOfLife::default()),
            Arc::new(rentals::jobs::Meter),
            Arc::new(rentals::jobs::Starter::default()),
            Arc::new(ledger::jobs::MatureEarnings),
            Arc::new(billing::jobs::AskTopUps),
            Arc::new(billing::refunds::jobs::AskRefunds),
            Arc::new(billing::disputes::jobs::AskDisputes),
            Arc::new(billing::automatic::jobs::TopUpAutomatically),
            Arc::new(billing::payouts::jobs::PayWeekly),
            Arc::new(billing::payouts::jobs::AskPayouts),
            Arc::new(billing::jobs::AskPro),
            Arc::new(ledger::jobs::ExpireHolds),
            Arc::new(billing::reconcile::jobs::Reconcile),
            Arc::new(benchmarks::EngineIdentity::default()),
            Arc::new(market::ListingEvidence),
            Arc::new(benchmarks::Remeasure),
            Arc::new(identity::Cleanup),
            Arc::new(webhooks::Deliver::default()),
            Arc::new(webhooks::ForgetEvents),
            Arc::new(idempotency::ExpireKeys),
        ],
        handlers: vec![
            Arc::new(identity::Letters),
            Arc::new(market::MachineChangedHandler),
            Arc::new(market::RunChangedHandler),
            Arc::new(market::ListingOfferedHandler),
            Arc::new(benchmarks::RemeasureHandler),
            Arc::new(billing::cards::jobs::DetachCards),
        ],
    }
}
