//! The list of runs with its filters. The address is the whole list.

use askama::Template;

use super::{
    super::{model::RunSummaryView, quantization::Quantization, service::RunSort, verdict::Verdict},
    marks::{LevelMark, StatusMark},
};
use crate::{
    base::FieldError,
    catalog::Catalog,
    web::html::{
        Key, Layout, Messages, Reader,
        form::{Applied, Condition, Controls, FaultSummary, Form, Input, Paging, Select, Words},
    },
};

pub(super) const WORDS: Words = Words { label, fault };
/// What narrows the list, in the order of the form.
const CONDITIONS: [&str; 8] = ["model", "publisher", "quantization", "hardware", "gpu_count", "engine", "by", "status"];

fn label(name: &str) -> Option<Key> {
    Some(match name {
        "model" => Key("field-model"),
        "publisher" => Key("field-publisher"),
        "quantization" => Key("quantization"),
        "hardware" => Key("field-gpu"),
        "gpu_count" => Key("field-gpus"),
        "engine" => Key("spec-engine"),
        "by" => Key("field-uploader"),
        "status" => Key("field-verdict"),
        "sort" => Key("field-sort"),
        _ => return None,
    })
}

fn fault(t: Messages, name: &str, fault: &FieldError) -> Option<String> {
    let key = match name {
        "gpu_count" => Key("fault-whole-number"),
        "by" => Key("fault-account"),
        _ if fault.code == "ambiguous_name" => Key("fault-ambiguous"),
        "hardware" if fault.code == "unknown_hardware" => Key("fault-hardware"),
        _ if fault.code == "unknown_field" => return Some(t.with("fault-unknown-field", &[("name", name.into())])),
        _ => return None,
    };
    Some(t.text(key).into_owned())
}

/// A page of the list.
pub(super) struct Found {
    pub rows: Vec<RunSummaryView>,
    /// Cursor of the next page.
    pub next: Option<String>,
    pub sort: RunSort,
}

#[derive(Template)]
#[template(path = "runs.html")]
pub(super) struct RunsPage {
    layout: Layout,
    t: Messages,
    /// Of the form, and of the list without conditions.
    path: String,
    fields: Fields,
    faults: Option<FaultSummary>,
    applied: Applied,
    is_narrowed: bool,
    is_first: bool,
    rows: Vec<RunLine>,
    paging: Paging,
    sort: Option<RunSort>,
    heads: Heads,
}

struct Fields {
    model: Input,
    publisher: Input,
    quantization: Select,
    hardware: Input,
    gpu_count: Input,
    engine: Input,
    by: Input,
    status: Select,
    sort: Select,
}

/// Addresses of the same list in other orders.
struct Heads {
    single: String,
    peak: String,
    prefill: String,
    newest: String,
}

/// A run in the list.
struct RunLine {
    path: String,
    title: String,
    summary: String,
    status: StatusMark,
    level: LevelMark,
    single: String,
    peak: String,
    prefill: String,
    by: String,
    on: String,
}

impl RunLine {
    fn of(t: Messages, run: &RunSummaryView, runs_path: &str) -> Self {
        Self {
            path: format!("{runs_path}/{}", run.id),
            title: run.title.clone(),
            summary: run.summary.clone(),
            status: StatusMark::of(t, run.status, false),
            level: LevelMark::of(t, &run.evidence_level),
            single: t.figure(run.decode_single_tokens_per_second, 1),
            peak: t.figure(run.decode_peak_tokens_per_second, 1),
            prefill: t.figure(run.prefill_peak_tokens_per_second, 0),
            by: run.by.clone(),
            on: t.date(&run.created_at),
        }
    }
}

impl RunsPage {
    /// `found` is nothing when the form is not valid.
    pub fn new(layout: Layout, reader: &Reader, form: &Form, found: Option<Found>) -> Self {
        let t = reader.t;
        let path = reader.path_of("runs");
        let controls = Controls { t, form, id: "filter", words: WORDS };
        let is_first = !form.has("cursor");
        let sort = found.as_ref().map(|found| found.sort);
        let (rows, next) = found.map(|found| (found.rows, found.next)).unwrap_or_default();
        let head = |sort: &str| form.with(&[("sort", sort)]).address();
        Self {
            layout,
            t,
            fields: fields(&controls),
            faults: controls.faults(),
            applied: Applied { t, conditions: conditions(t, form), clear: path.clone() },
            is_narrowed: CONDITIONS.iter().any(|name| form.has(name)),
            is_first,
            rows: rows.iter().map(|run| RunLine::of(t, run, &path)).collect(),
            paging: Paging {
                t,
                first: (!is_first).then(|| form.with(&[]).address()),
                next: next.map(|cursor| form.with(&[("cursor", &cursor)]).address()),
            },
            sort,
            heads: Heads { single: head("decode_single"), peak: head("decode_peak"), prefill: head("prefill_peak"), newest: head("") },
            path,
        }
    }

    fn is_by_single(&self) -> bool {
        self.sort == Some(RunSort::DecodeSingle)
    }
    fn is_by_peak(&self) -> bool {
        self.sort == Some(RunSort::DecodePeak)
    }
    fn is_by_prefill(&self) -> bool {
        self.sort == Some(RunSort::PrefillPeak)
    }
    fn is_by_day(&self) -> bool {
        self.sort == Some(RunSort::Newest)
    }
}

fn conditions(t: Messages, form: &Form) -> Vec<Condition> {
    let given = CONDITIONS.iter().filter(|name| form.has(name));
    let condition = |name: &&str| Condition { text: condition_text(t, name, form.value(name)), without: form.without(&[name]).address() };
    given.map(condition).collect()
}

fn condition_text(t: Messages, name: &str, value: &str) -> String {
    match name {
        "quantization" => Quantization::parse(value).name().to_owned(),
        "hardware" => Catalog::builtin().hardware(value).map_or_else(|| value.to_owned(), |row| row.name.clone()),
        "model" => Catalog::builtin().model(value).map_or_else(|| value.to_owned(), |row| row.name.clone()),
        "gpu_count" => value.parse::<u32>().map_or_else(|_| value.to_owned(), |count| t.with("condition-gpus", &[("count", count.into())])),
        "by" => format!("@{}", value.trim_start_matches('@')),
        "status" => status_words(t).into_iter().find(|(code, _)| code == value).map_or_else(|| value.to_owned(), |(_, word)| word),
        _ => value.to_owned(),
    }
}

fn fields(controls: &Controls<'_>) -> Fields {
    let t = controls.t;
    let catalog = Catalog::builtin();
    let models = catalog.models().iter().map(|row| row.name.as_str()).collect();
    let hardware = catalog.hardware_models().iter().map(|row| row.name.as_str()).collect();
    let known = Quantization::known_slugs().map(|slug| (slug.to_owned(), Quantization::parse(slug).name().to_owned()));
    let typed = controls.form.value("quantization");
    let quantization = (!typed.is_empty()).then(|| Quantization::parse(typed).as_str().to_owned());
    let sorts = [("decode_single", Key("one-request")), ("decode_peak", Key("total-best")), ("prefill_peak", Key("prefill-best"))];
    let sorts = sorts.iter().map(|(value, key)| ((*value).to_owned(), t.text(key).into_owned())).collect();
    Fields {
        model: controls.input("model", "text").offering(models),
        publisher: controls.input("publisher", "text"),
        quantization: controls.select("quantization", &t.text("any"), known.collect(), quantization),
        hardware: controls.input("hardware", "text").offering(hardware),
        gpu_count: controls.input("gpu_count", "numeric"),
        engine: controls.input("engine", "text"),
        by: controls.input("by", "text"),
        status: controls.select("status", &t.text("any"), status_words(t), None),
        sort: controls.select("sort", &t.text("sort-newest"), sorts, None),
    }
}

fn status_words(t: Messages) -> Vec<(String, String)> {
    let word = |verdict: Verdict, key: Key| (verdict.as_str().to_owned(), t.text(key).into_owned());
    vec![
        word(Verdict::Verified, Key("status-measured")),
        word(Verdict::NeedsReview, Key("status-needs-review")),
        word(Verdict::Rejected, Key("status-rejected")),
    ]
}
