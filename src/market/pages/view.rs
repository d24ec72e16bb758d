//! Listings in the words and figures of their pages. Prices are shown exactly; only the price per million tokens is rounded, to three decimals.

use super::super::{
    model::{Badge, ListingView, Unavailable, WorkloadMatch},
    state::ListingState,
};
use crate::{
    base::{Money, money::MICROS_PER_UNIT},
    benchmarks::{LevelMark, Quantization, StatusMark, context_name},
    catalog::Catalog,
    web::html::figure,
};

/// A listing in the list of results.
pub(super) struct Row {
    pub path: String,
    pub gpu: String,
    pub by: String,
    pub vram: String,
    pub region: String,
    pub price: String,
    pub run: Option<RunLink>,
    pub measured: Option<Measured>,
    pub status: Option<StatusMark>,
    pub level: LevelMark,
    /// Why it cannot be rented now, in two words.
    pub obstacle: Option<&'static str>,
}

pub(super) struct RunLink {
    pub path: String,
    pub model: String,
    pub note: String,
}

/// The cell that answers the workload.
pub(super) struct Measured {
    pub run: String,
    pub cell: String,
    pub total: String,
    pub per_user: String,
    pub ttft: String,
    pub warm_ttft: String,
    pub per_million: String,
    /// Length of the price's bar, in percent of the dearest on the page.
    pub share: String,
}

pub(super) fn rows(listings: &[ListingView]) -> Vec<Row> {
    let prices = listings.iter().filter_map(|l| l.matched.as_ref()?.price_per_million_output_tokens);
    let dearest = prices.max().unwrap_or(Money::ZERO);
    listings.iter().map(|listing| row(listing, dearest)).collect()
}

fn row(listing: &ListingView, dearest: Money) -> Row {
    Row {
        path: format!("/en/listings/{}", listing.id),
        gpu: gpu(listing),
        by: listing.by.clone(),
        vram: vram(listing),
        region: listing.machine.region.clone().unwrap_or_else(|| "—".to_owned()),
        price: listing.price_per_hour.to_string(),
        run: run_link(listing),
        measured: listing.matched.as_ref().map(|matched| measured(matched, dearest)),
        status: listing.badge.map(status),
        level: LevelMark::of(listing.run.as_ref().map_or("", |run| &run.evidence_level)),
        obstacle: listing.unavailable_because.map(|because| match because {
            Unavailable::Taken => "Taken now",
            Unavailable::MachineSilent => "Not answering",
            Unavailable::NotPublished | Unavailable::NotMeasured => "Not available",
        }),
    }
}

pub(super) fn gpu(listing: &ListingView) -> String {
    format!("{} × {}", listing.machine.gpu, listing.machine.gpu_count)
}

/// Of each GPU, as the count stands beside the name.
pub(super) fn vram(listing: &ListingView) -> String {
    let each = if listing.machine.gpu_count > 1 { " each" } else { "" };
    listing.machine.vram_gib.map_or_else(|| "—".to_owned(), |gib| format!("{}\u{a0}GiB{each}", figure(Some(gib), 0)))
}

pub(super) const fn status(badge: Badge) -> StatusMark {
    match badge {
        Badge::Measured => StatusMark::MEASURED,
        Badge::Stale => StatusMark::STALE,
    }
}

pub(super) fn run_link(listing: &ListingView) -> Option<RunLink> {
    let run = listing.run.as_ref()?;
    let model = Catalog::builtin().model(&run.model).map_or_else(|| run.model.clone(), |row| row.name.clone());
    let quantization = run.quantization.as_deref().map(|text| Quantization::parse(text).name().to_owned());
    let note: Vec<String> = quantization.into_iter().chain(run.engine.clone()).collect();
    Some(RunLink { path: format!("/en/runs/{}", run.id), model, note: note.join(" · ") })
}

pub(super) fn cell_name(context_tokens: i32, concurrency: i32) -> String {
    let context = u64::try_from(context_tokens).map_or_else(|_| context_tokens.to_string(), context_name);
    format!("{context} × {concurrency}")
}

fn measured(matched: &WorkloadMatch, dearest: Money) -> Measured {
    let price = matched.price_per_million_output_tokens;
    Measured {
        run: format!("/en/runs/{}", matched.run_id),
        cell: cell_name(matched.cell.context_tokens, matched.cell.concurrency),
        total: figure(Some(matched.cell.total_tokens_per_second), 1),
        per_user: figure(Some(matched.tokens_per_second_per_user), 1),
        ttft: figure(matched.cold_ttft_ms, 0),
        warm_ttft: figure(matched.ttft_ms, 0),
        per_million: price.map_or_else(|| "—".to_owned(), three_decimals),
        share: share(price.unwrap_or(Money::ZERO), dearest),
    }
}

/// Half up to a thousandth of a dollar; a price is never shown as zero.
fn three_decimals(price: Money) -> String {
    const STEP: i64 = MICROS_PER_UNIT / 1_000;
    let thousandths = price.micros().saturating_add(STEP / 2).div_euclid(STEP);
    if thousandths == 0 {
        return price.to_string();
    }
    format!("{}.{:03}", thousandths.div_euclid(1_000), thousandths.rem_euclid(1_000))
}

fn share(price: Money, dearest: Money) -> String {
    let tenths = i128::from(price.micros()).saturating_mul(1_000).checked_div(i128::from(dearest.micros())).unwrap_or(0);
    format!("{}.{}", tenths.div_euclid(10), tenths.rem_euclid(10))
}

/// Why it cannot be rented, when it cannot.
pub(super) fn obstacle(listing: &ListingView) -> Option<String> {
    if listing.available {
        return None;
    }
    Some(match listing.state {
        ListingState::Draft => "Not on the market yet.".to_owned(),
        ListingState::Paused => "Its host has taken it off the market.".to_owned(),
        ListingState::OffMarket => match &listing.off_market_reason {
            Some(reason) => format!("Taken off the market: {}.", reason.replace('_', " ")),
            None => "Taken off the market.".to_owned(),
        },
        ListingState::Published => match listing.unavailable_because {
            Some(Unavailable::Taken) => "Taken now: another rental has the machine or has reserved it.".to_owned(),
            Some(Unavailable::MachineSilent) => "Its machine has not answered for a quarter of an hour.".to_owned(),
            _ => "Its evidence no longer holds.".to_owned(),
        },
    })
}

/// Names and values of what stands under the title.
pub(super) fn hardware(listing: &ListingView) -> Vec<(&'static str, String)> {
    let machine = &listing.machine;
    let gib = |gib: Option<f64>| gib.map(|v| format!("{} GiB", figure(Some(v), 0)));
    let rows = [
        ("GPU", Some(gpu(listing))),
        ("VRAM", machine.vram_gib.map(|_| vram(listing))),
        ("CPU", machine.cpu.clone()),
        ("RAM", gib(machine.ram_gib)),
        ("Region", machine.region.clone()),
    ];
    rows.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}

pub(super) fn terms(listing: &ListingView) -> Vec<(&'static str, String)> {
    let hours = |hours: i32| if hours == 1 { "1 hour".to_owned() } else { format!("{hours} hours") };
    let at_least = if listing.min_hours > 0 { hours(listing.min_hours) } else { "None: billed to the second".to_owned() };
    let rows = [
        ("Price", Some(format!("$ {} per hour, for the whole machine", listing.price_per_hour))),
        ("Billed at least", Some(at_least)),
        ("At most", listing.max_hours.map(hours)),
        ("Until", listing.available_until.map(|until| until.format("%Y-%m-%d %H:%M UTC").to_string())),
    ];
    rows.into_iter().filter_map(|(name, value)| value.map(|value| (name, value))).collect()
}

pub(super) fn reliability(listing: &ListingView) -> Vec<(&'static str, String)> {
    let machine = &listing.machine;
    let seen = machine.last_seen_at.map_or_else(|| "never".to_owned(), |at| at.format("%Y-%m-%d %H:%M UTC").to_string());
    let answer = if machine.is_answering { "Answered" } else { "Did not answer" };
    vec![("Last probe", answer.to_owned()), ("Last seen", seen), ("Rentals not started", machine.start_failures.to_string())]
}
