//! Listings in the words and figures of their pages. Prices are shown exactly; only the price per million tokens is rounded, to three decimals.

use std::borrow::Cow;

use super::super::{
    model::{Badge, ListingView, Unavailable, WorkloadMatch},
    state::ListingState,
};
use crate::{
    base::{Money, money::MICROS_PER_UNIT},
    benchmarks::{LevelMark, Quantization, StatusMark, cell_name},
    catalog::Catalog,
    web::html::{Key, Messages, Reader},
};

/// Names and values of a block.
type Rows = Vec<(Cow<'static, str>, String)>;

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
    pub obstacle: Option<Cow<'static, str>>,
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
    /// With its words.
    pub per_user: String,
    pub ttft: String,
    /// With its words.
    pub warm_ttft: String,
    pub per_million: String,
    /// Length of the price's bar, in percent of the dearest on the page.
    pub share: String,
}

pub(super) fn rows(reader: &Reader, listings: &[ListingView]) -> Vec<Row> {
    let prices = listings.iter().filter_map(|l| l.matched.as_ref()?.price_per_million_output_tokens);
    let dearest = prices.max().unwrap_or(Money::ZERO);
    listings.iter().map(|listing| row(reader, listing, dearest)).collect()
}

fn row(reader: &Reader, listing: &ListingView, dearest: Money) -> Row {
    let t = reader.t;
    Row {
        path: format!("{}/{}", reader.path_of("listings"), listing.id),
        gpu: gpu(listing),
        by: listing.by.clone(),
        vram: vram(t, listing),
        region: listing.machine.region.clone().unwrap_or_else(|| t.count(None)),
        price: t.money(listing.price_per_hour),
        run: run_link(reader, listing),
        measured: listing.matched.as_ref().map(|matched| measured(reader, matched, dearest)),
        status: listing.badge.map(|badge| status(t, badge)),
        level: LevelMark::of(t, listing.run.as_ref().map_or("", |run| &run.evidence_level)),
        obstacle: listing.unavailable_because.map(|because| match because {
            Unavailable::Taken => t.text("obstacle-taken"),
            Unavailable::MachineSilent => t.text("obstacle-silent"),
            Unavailable::NotPublished | Unavailable::NotMeasured => t.text("obstacle-other"),
        }),
    }
}

pub(super) fn gpu(listing: &ListingView) -> String {
    format!("{} × {}", listing.machine.gpu, listing.machine.gpu_count)
}

/// Of each GPU, as the count stands beside the name.
fn vram(t: Messages, listing: &ListingView) -> String {
    let Some(gib) = listing.machine.vram_gib else { return t.count(None) };
    let gib = t.figure(Some(gib), 0);
    if listing.machine.gpu_count > 1 { t.with("memory-each", &[("gib", gib.into())]) } else { t.with("memory", &[("gib", gib.into())]) }
}

pub(super) fn status(t: Messages, badge: Badge) -> StatusMark {
    match badge {
        Badge::Measured => StatusMark::measured(t),
        Badge::Stale => StatusMark::stale(t),
    }
}

pub(super) fn run_link(reader: &Reader, listing: &ListingView) -> Option<RunLink> {
    let run = listing.run.as_ref()?;
    let model = Catalog::builtin().model(&run.model).map_or_else(|| run.model.clone(), |row| row.name.clone());
    let quantization = run.quantization.as_deref().map(|text| Quantization::parse(text).name().to_owned());
    let note: Vec<String> = quantization.into_iter().chain(run.engine.clone()).collect();
    Some(RunLink { path: format!("{}/{}", reader.path_of("runs"), run.id), model, note: note.join(" · ") })
}

fn measured(reader: &Reader, matched: &WorkloadMatch, dearest: Money) -> Measured {
    let t = reader.t;
    let price = matched.price_per_million_output_tokens;
    Measured {
        run: format!("{}/{}", reader.path_of("runs"), matched.run_id),
        cell: cell_name(t, u64::try_from(matched.cell.context_tokens).unwrap_or(0), u32::try_from(matched.cell.concurrency).unwrap_or(0)),
        total: t.figure(Some(matched.cell.total_tokens_per_second), 1),
        per_user: t.with("per-user", &[("speed", t.figure(Some(matched.tokens_per_second_per_user), 1).into())]),
        ttft: t.figure(matched.cold_ttft_ms, 0),
        warm_ttft: t.with("ttft-cached", &[("ms", t.figure(matched.ttft_ms, 0).into())]),
        per_million: price.map_or_else(|| t.count(None), |price| t.digits(&three_decimals(price))),
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
pub(super) fn obstacle(t: Messages, listing: &ListingView) -> Option<String> {
    if listing.available {
        return None;
    }
    let key = match listing.state {
        ListingState::Draft => Key("obstacle-draft"),
        ListingState::Paused => Key("obstacle-paused"),
        ListingState::OffMarket => Key("obstacle-off-market"),
        ListingState::Published => match listing.unavailable_because {
            Some(Unavailable::Taken) => Key("obstacle-taken-detail"),
            Some(Unavailable::MachineSilent) => Key("obstacle-silent-detail"),
            _ => Key("obstacle-evidence"),
        },
    };
    let reason = listing.off_market_reason.as_deref().map(|reason| t.text(off_market_key(reason)));
    Some(match reason {
        Some(reason) => format!("{} {reason}", t.text(key)),
        None => t.text(key).into_owned(),
    })
}

/// The conditions of `market::gate`, in a sentence each.
fn off_market_key(code: &str) -> Key {
    match code {
        "account_closed" => Key("off-account-closed"),
        "availability_ended" => Key("off-availability-ended"),
        "endpoint_missing" | "endpoint_unreachable" | "engine_simulated" => Key("off-endpoint"),
        "endpoint_changed" => Key("off-endpoint-changed"),
        "hardware_changed" | "hardware_differs" => Key("off-hardware"),
        "machine_deleted" => Key("off-machine-deleted"),
        "run_expired" => Key("off-run-expired"),
        "run_rejected" | "run_in_review" => Key("off-run-rejected"),
        _ => Key("off-evidence"),
    }
}

/// Names and values of what stands under the title.
pub(super) fn hardware(t: Messages, listing: &ListingView) -> Rows {
    let machine = &listing.machine;
    let gib = |gib: Option<f64>| gib.map(|v| t.with("memory", &[("gib", t.figure(Some(v), 0).into())]));
    let rows = [
        (Key("spec-gpu"), Some(gpu(listing))),
        (Key("spec-vram"), machine.vram_gib.map(|_| vram(t, listing))),
        (Key("spec-cpu"), machine.cpu.clone()),
        (Key("spec-ram"), gib(machine.ram_gib)),
        (Key("region"), machine.region.clone()),
    ];
    rows.into_iter().filter_map(|(name, value)| value.map(|value| (t.text(name), value))).collect()
}

pub(super) fn terms(t: Messages, listing: &ListingView) -> Rows {
    let hours = |hours: i32| t.with("hours", &[("hours", hours.into())]);
    let at_least = if listing.min_hours > 0 { hours(listing.min_hours) } else { t.text("terms-no-minimum").into_owned() };
    let rows = [
        (Key("price"), Some(t.with("terms-price", &[("price", t.money(listing.price_per_hour).into())]))),
        (Key("terms-at-least"), Some(at_least)),
        (Key("terms-at-most"), listing.max_hours.map(hours)),
        (Key("terms-until"), listing.available_until.as_ref().map(|until| t.instant(until))),
    ];
    rows.into_iter().filter_map(|(name, value)| value.map(|value| (t.text(name), value))).collect()
}

pub(super) fn reliability(t: Messages, listing: &ListingView) -> Rows {
    let machine = &listing.machine;
    let seen = machine.last_seen_at.as_ref().map_or_else(|| t.text("never").into_owned(), |at| t.instant(at));
    let answer = if machine.is_answering { Key("probe-answered") } else { Key("probe-silent") };
    let failures = u64::try_from(machine.start_failures).unwrap_or(0);
    vec![
        (t.text("probe-last"), t.text(answer).into_owned()),
        (t.text("probe-last-seen"), seen),
        (t.text("start-failures"), t.count(Some(failures))),
    ]
}
