//! The page of one listing: the machine and its terms, the matrix that was measured on it, and how to rent it.

use std::borrow::Cow;

use askama::Template;

use super::{
    super::model::ListingView,
    PART,
    view::{self, RunLink},
};
use crate::{
    benchmarks::{Ladder, LevelMark, MatrixTable, Readings, StatusMark, model::RunView},
    ctx::Ctx,
    web::html::{Key, Layout, Messages, Reader, address},
};

#[derive(Template)]
#[template(path = "listing.html")]
pub(super) struct ListingPage<'a> {
    layout: Layout,
    t: Messages,
    market_path: String,
    /// The host's other listings.
    by_path: String,
    listing: &'a ListingView,
    gpu: String,
    price: String,
    status: Option<StatusMark>,
    level: LevelMark,
    ladder: Ladder,
    obstacle: Option<String>,
    run: Option<RunLink>,
    readings: Option<Readings>,
    matrix: Option<MatrixTable>,
    specs: [Spec; 3],
    commands: Vec<Command>,
}

/// A block of names and values.
struct Spec {
    name: Cow<'static, str>,
    rows: Vec<(Cow<'static, str>, String)>,
    note: Option<Cow<'static, str>>,
}

/// A command to copy, with what it is for.
struct Command {
    id: &'static str,
    purpose: String,
    text: String,
}

impl<'a> ListingPage<'a> {
    pub fn new(ctx: &Ctx, reader: &Reader, listing: &'a ListingView, run: Option<&RunView>) -> Self {
        let t = reader.t;
        let gpu = view::gpu(listing);
        let level = listing.run.as_ref().map_or("", |run| &run.evidence_level);
        let price = t.money(listing.price_per_hour);
        let title = t.with("listing-title", &[("gpu", (&gpu).into()), ("handle", (&listing.by).into())]);
        let description = t.with("listing-description", &[("price", (&price).into()), ("gpu", (&gpu).into())]);
        let spec = |name: Key, rows, note: Option<Key>| Spec { name: t.text(name), rows, note: note.map(|key| t.text(key)) };
        Self {
            layout: Layout::new(ctx, reader, PART, title, description),
            t,
            by_path: address(&reader.path_of(PART), [("by", &listing.by)]),
            market_path: reader.path_of(PART),
            status: listing.badge.map(|badge| view::status(t, badge)),
            level: LevelMark::of(t, level),
            ladder: Ladder::of(t, level),
            obstacle: view::obstacle(t, listing),
            run: view::run_link(reader, listing),
            readings: run.map(|run| Readings::of(t, run)),
            matrix: run.and_then(|run| MatrixTable::of(t, run)),
            specs: [
                spec(Key("spec-hardware"), view::hardware(t, listing), Some(Key("listing-hardware-reported"))),
                spec(Key("spec-terms"), view::terms(t, listing), None),
                spec(Key("spec-reliability"), view::reliability(t, listing), None),
            ],
            commands: commands(t, ctx, listing),
            gpu,
            price,
            listing,
        }
    }
}

fn commands(t: Messages, ctx: &Ctx, listing: &ListingView) -> Vec<Command> {
    let url = ctx.public_url.trim_end_matches('/');
    let hours = listing.min_hours.max(1);
    let key = "-H \"Authorization: Bearer $RIGMARK_KEY\"";
    let rent = format!(
        "curl -sS {url}/api/v1/rentals \\\n  {key} \\\n  -H \"Content-Type: application/json\" \\\n  \
         -H \"Idempotency-Key: rent-$(date +%s)\" \\\n  -d '{{\"listing_id\": \"{}\", \"hours\": {hours}}}'",
        listing.id
    );
    vec![
        Command { id: "rent", purpose: t.with("listing-rent-take", &[("hours", hours.into())]), text: rent },
        Command { id: "use", purpose: t.text("listing-rent-use").into_owned(), text: format!("curl -sS {url}/v1/models {key}") },
        Command {
            id: "stop",
            purpose: t.text("listing-rent-stop").into_owned(),
            text: format!("curl -sS -X POST {url}/api/v1/rentals/$RENTAL_ID/stop {key}"),
        },
    ]
}
