//! The form with which an uploader answers an operator.

use askama::Template;

use super::{super::model::RunView, marks::StatusMark, view::CheckRow};
use crate::{
    base::FieldError,
    ctx::Ctx,
    web::html::{
        Key, Layout, Messages, Reader,
        form::{Controls, FaultSummary, Form, TextArea, Words},
    },
};

const WORDS: Words = Words { label, fault };
const CHARS_MAX: usize = 2_000;

fn label(name: &str) -> Option<Key> {
    (name == "text").then_some(Key("answer-text"))
}

fn fault(t: Messages, _name: &str, fault: &FieldError) -> Option<String> {
    (fault.code == "wrong_length").then(|| t.text("fault-answer-length").into_owned())
}

#[derive(Template)]
#[template(path = "answer.html")]
pub(super) struct AnswerPage<'a> {
    layout: Layout,
    t: Messages,
    path: String,
    run_path: String,
    run: &'a RunView,
    status: StatusMark,
    findings: Vec<CheckRow>,
    /// Nothing when nobody waits for an answer.
    text: Option<TextArea>,
    faults: Option<FaultSummary>,
}

impl<'a> AnswerPage<'a> {
    pub fn new(ctx: &Ctx, reader: &Reader, form: &Form, run: &'a RunView, may_answer: bool) -> Self {
        let t = reader.t;
        let controls = Controls { t, form, id: "answer", words: WORDS };
        let benchmarks_path = reader.path_of("benchmarks");
        let run_path = reader.path_of(&format!("runs/{}", run.id));
        Self {
            layout: Layout::new(ctx, reader, "runs", t.text("answer"), t.text("answer-lede")).hidden_from_search_engines(true),
            t,
            path: format!("{run_path}/answer"),
            run_path,
            status: StatusMark::of(t, run.status, false),
            findings: run.checks.iter().map(|finding| CheckRow::of(t, finding, &benchmarks_path)).collect(),
            text: may_answer.then(|| controls.text_area("text", CHARS_MAX)),
            faults: controls.faults(),
            run,
        }
    }
}
