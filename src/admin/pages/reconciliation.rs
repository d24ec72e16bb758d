//! The latest reconciliation: what was looked at, what Stripe has and should have, and what differs.

use askama::Template;

use crate::{
    base::Money,
    billing::{FindingKind, ReconciliationView, StripeSums},
    ctx::Ctx,
    web::html::{Key, Layout, Messages, Reader},
};

struct Row {
    what: String,
    subject: String,
    expected: String,
    found: String,
    since: String,
}

#[derive(Template)]
#[template(path = "reconciliation.html")]
pub(super) struct ReconciliationPage {
    layout: Layout,
    t: Messages,
    /// None before the first reconciliation.
    started: Option<String>,
    finished: Option<String>,
    ledger_accounts: String,
    transfers: String,
    holds: String,
    rentals: String,
    stripe: Option<StripeSums>,
    stripe_unanswered: bool,
    finding_count: u64,
    /// Findings that are counted and not listed.
    unlisted: Option<u64>,
    rows: Vec<Row>,
}

impl ReconciliationPage {
    pub fn new(ctx: &Ctx, reader: &Reader, view: ReconciliationView) -> Self {
        let t = reader.t;
        let count = |count: i64| t.count(u64::try_from(count).ok());
        let listed = i64::try_from(view.findings.len()).unwrap_or(i64::MAX);
        let title = t.text("menu-reconciliation");
        Self {
            layout: Layout::new(ctx, reader, "reconciliation", title, t.text("reconciliation-lede")).hidden_from_search_engines(true),
            t,
            started: view.started_at.as_ref().map(|at| t.instant(at)),
            finished: view.finished_at.as_ref().map(|at| t.instant(at)),
            ledger_accounts: count(view.ledger_accounts),
            transfers: count(view.transfers),
            holds: count(view.holds),
            rentals: count(view.rentals),
            stripe: view.stripe,
            stripe_unanswered: view.stripe_unanswered,
            finding_count: u64::try_from(view.finding_count).unwrap_or(0),
            unlisted: u64::try_from(view.finding_count.saturating_sub(listed)).ok().filter(|unlisted| *unlisted > 0),
            rows: view
                .findings
                .into_iter()
                .map(|finding| Row {
                    what: t.text(kind_key(finding.kind)).into_owned(),
                    since: t.instant(&finding.first_seen_at),
                    subject: finding.subject,
                    expected: finding.expected,
                    found: finding.found,
                })
                .collect(),
        }
    }

    fn amount(&self, amount: &Money) -> String {
        self.t.money(*amount)
    }

    fn count(&self, count: &i64) -> String {
        self.t.count(u64::try_from(*count).ok())
    }
}

const fn kind_key(kind: FindingKind) -> Key {
    match kind {
        FindingKind::Books => Key("finding-books"),
        FindingKind::RentalWithoutHold => Key("finding-rental-without-hold"),
        FindingKind::RentalWithoutMachine => Key("finding-rental-without-machine"),
        FindingKind::RentalWithoutWatch => Key("finding-rental-without-watch"),
        FindingKind::RentalWithoutSpan => Key("finding-rental-without-span"),
        FindingKind::RentalNotMetered => Key("finding-rental-not-metered"),
        FindingKind::HoldWithoutRental => Key("finding-hold-without-rental"),
        FindingKind::MachineWithoutRental => Key("finding-machine-without-rental"),
        FindingKind::WatchWithoutRental => Key("finding-watch-without-rental"),
        FindingKind::SpanWithoutRental => Key("finding-span-without-rental"),
        FindingKind::StripeOnly => Key("finding-stripe-only"),
        FindingKind::BooksOnly => Key("finding-books-only"),
        FindingKind::AmountDiffers => Key("finding-amount-differs"),
        FindingKind::OtherCurrency => Key("finding-other-currency"),
    }
}
