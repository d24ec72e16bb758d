//! The review queue with its filters. The address is the whole list.

use askama::Template;
use chrono::{DateTime, Utc};

use crate::{
    base::FieldError,
    benchmarks::{
        CHECKS,
        service::{ReviewCause, ReviewQueueItem},
    },
    ctx::Ctx,
    web::html::{
        Key, Layout, Messages, Reader,
        form::{Applied, Condition, Controls, FaultSummary, Form, Input, Paging, Select, Words},
    },
};

const WORDS: Words = Words { label, fault };
const CONDITIONS: [&str; 4] = ["finding", "cause", "answered", "waiting_hours"];

fn label(name: &str) -> Option<Key> {
    Some(match name {
        "finding" => Key("field-finding"),
        "cause" => Key("field-cause"),
        "answered" => Key("field-answered"),
        "waiting_hours" => Key("field-waiting"),
        _ => return None,
    })
}

fn fault(t: Messages, name: &str, fault: &FieldError) -> Option<String> {
    match name {
        "waiting_hours" => Some(t.text("fault-hours").into_owned()),
        _ if fault.code == "unknown_field" => Some(t.with("fault-unknown-field", &[("name", name.into())])),
        _ => None,
    }
}

/// A page of the queue.
pub(super) struct Found {
    pub items: Vec<ReviewQueueItem>,
    /// Cursor of the next page.
    pub next: Option<String>,
    pub now: DateTime<Utc>,
}

struct Row {
    path: String,
    title: String,
    summary: String,
    by: String,
    is_unlisted: bool,
    waiting: String,
    since: String,
    cause: String,
    findings: String,
    answered: String,
}

struct Fields {
    finding: Input,
    cause: Select,
    answered: Select,
    waiting_hours: Input,
}

#[derive(Template)]
#[template(path = "review-queue.html")]
pub(super) struct QueuePage {
    layout: Layout,
    t: Messages,
    path: String,
    fields: Fields,
    faults: Option<FaultSummary>,
    applied: Applied,
    is_narrowed: bool,
    rows: Vec<Row>,
    paging: Paging,
}

impl QueuePage {
    pub fn new(ctx: &Ctx, reader: &Reader, form: &Form, found: Option<Found>) -> Self {
        let t = reader.t;
        let path = reader.path_of(super::PART);
        let controls = Controls { t, form, id: "filter", words: WORDS };
        let next = found.as_ref().and_then(|found| found.next.clone());
        let rows = found.map(|found| found.items.iter().map(|item| row(t, item, &path, found.now)).collect()).unwrap_or_default();
        Self {
            layout: Layout::new(ctx, reader, "review", t.text("menu-review"), t.text("review-lede")).hidden_from_search_engines(true),
            t,
            fields: fields(&controls),
            faults: controls.faults(),
            applied: Applied { t, conditions: conditions(t, form), clear: path.clone() },
            is_narrowed: CONDITIONS.iter().any(|name| form.has(name)),
            rows,
            paging: Paging::of(t, form, next.as_deref()),
            path,
        }
    }
}

fn row(t: Messages, item: &ReviewQueueItem, path: &str, now: DateTime<Utc>) -> Row {
    Row {
        path: format!("{path}/{}", item.run.id),
        title: item.run.title.clone(),
        summary: item.run.summary.clone(),
        by: item.run.by.clone(),
        is_unlisted: item.visibility != "public",
        waiting: waited(t, now, item.waiting_since),
        since: t.instant(&item.waiting_since),
        cause: t.text(cause_key(item.cause)).into_owned(),
        findings: item.findings.join(", "),
        answered: item.answered_at.as_ref().map_or_else(|| t.count(None), |at| t.date(at)),
    }
}

/// Days once there are two, else hours.
fn waited(t: Messages, now: DateTime<Utc>, since: DateTime<Utc>) -> String {
    let hours = u64::try_from((now - since).num_hours()).unwrap_or(0);
    if hours >= 48 { t.with("waited-days", &[("days", (hours / 24).into())]) } else { t.with("waited-hours", &[("hours", hours.into())]) }
}

pub(super) const fn cause_key(cause: ReviewCause) -> Key {
    match cause {
        ReviewCause::Findings => Key("cause-findings"),
        ReviewCause::Dispute => Key("cause-dispute"),
        ReviewCause::Reopened => Key("cause-reopened"),
    }
}

fn cause_words(t: Messages) -> Vec<(String, String)> {
    ReviewCause::ALL.iter().map(|cause| (cause.as_str().to_owned(), t.text(cause_key(*cause)).into_owned())).collect()
}

fn answered_words(t: Messages) -> Vec<(String, String)> {
    vec![("true".to_owned(), t.text("answered-yes").into_owned()), ("false".to_owned(), t.text("answered-no").into_owned())]
}

fn fields(controls: &Controls<'_>) -> Fields {
    let t = controls.t;
    Fields {
        finding: controls.input("finding", "text").offering(CHECKS.iter().map(|check| check.code).collect()),
        cause: controls.select("cause", &t.text("any"), cause_words(t), None),
        answered: controls.select("answered", &t.text("any"), answered_words(t), None),
        waiting_hours: controls.input("waiting_hours", "numeric").unit(t.text("unit-hours")),
    }
}

fn conditions(t: Messages, form: &Form) -> Vec<Condition> {
    let given = CONDITIONS.iter().filter(|name| form.has(name));
    let condition = |name: &&str| Condition { text: condition_text(t, name, form.value(name)), without: form.without(&[name]).address() };
    given.map(condition).collect()
}

fn condition_text(t: Messages, name: &str, value: &str) -> String {
    let word = |words: Vec<(String, String)>| words.into_iter().find(|(code, _)| code == value).map(|(_, word)| word);
    let found = match name {
        "cause" => word(cause_words(t)),
        "answered" => word(answered_words(t)),
        "waiting_hours" => value.parse::<u32>().ok().map(|hours| t.with("condition-waiting", &[("hours", hours.into())])),
        _ => None,
    };
    found.unwrap_or_else(|| value.to_owned())
}
