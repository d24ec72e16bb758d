//! What is measured and how a document is judged: every check with what it looks at and how much it counts. A finding on a run's page leads to
//! its check here.

use std::borrow::Cow;

use askama::Template;

use super::{
    super::{
        checks::{CHECKS, CheckInfo, Group, Weight},
        verdict::RULES_VERSION,
    },
    marks::{Ladder, Rung},
};
use crate::web::html::{Key, Layout, Messages};

/// Each group with its name and what it is, in the order of evidence.md.
const GROUPS: [(Group, Key, Key); 8] = [
    (Group::Exact, Key("checks-exact"), Key("checks-exact-lede")),
    (Group::Tolerance, Key("checks-tolerance"), Key("checks-tolerance-lede")),
    (Group::Physical, Key("checks-physical"), Key("checks-physical-lede")),
    (Group::Structure, Key("checks-structure"), Key("checks-structure-lede")),
    (Group::Document, Key("checks-document"), Key("checks-document-lede")),
    (Group::Hardware, Key("checks-hardware"), Key("checks-hardware-lede")),
    (Group::Challenge, Key("checks-challenge"), Key("checks-challenge-lede")),
    (Group::Duplicate, Key("checks-duplicate"), Key("checks-duplicate-lede")),
];

/// Path of a check's explanation below the reader's language.
pub(super) fn check_path(benchmarks_path: &str, code: &str) -> String {
    format!("{benchmarks_path}#{code}")
}

#[derive(Template)]
#[template(path = "benchmarks.html")]
pub(super) struct BenchmarksPage {
    layout: Layout,
    t: Messages,
    rules_version: &'static str,
    check_count: usize,
    levels: Vec<Rung>,
    weights: Vec<(Cow<'static, str>, Cow<'static, str>)>,
    groups: Vec<CheckGroup>,
}

struct CheckGroup {
    name: Cow<'static, str>,
    lede: Cow<'static, str>,
    checks: Vec<Check>,
}

struct Check {
    info: &'static CheckInfo,
    weight: Cow<'static, str>,
}

impl BenchmarksPage {
    pub fn new(layout: Layout, t: Messages) -> Self {
        let check = |info: &'static CheckInfo| Check { info, weight: t.text(weight_key(info.weight)) };
        let group = |(group, name, lede): &(Group, Key, Key)| CheckGroup {
            name: t.text(*name),
            lede: t.text(*lede),
            checks: CHECKS.iter().filter(|info| info.group == *group).map(check).collect(),
        };
        let weight = |weight: Weight, meaning: Key| (t.text(weight_key(weight)), t.text(meaning));
        Self {
            layout,
            t,
            rules_version: RULES_VERSION,
            check_count: CHECKS.len(),
            levels: Ladder::all(t),
            weights: vec![
                weight(Weight::Reject, Key("weight-reject-means")),
                weight(Weight::Relation, Key("weight-relation-means")),
                weight(Weight::Review, Key("weight-review-means")),
                weight(Weight::Note, Key("weight-note-means")),
            ],
            groups: GROUPS.iter().map(group).collect(),
        }
    }
}

const fn weight_key(weight: Weight) -> Key {
    match weight {
        Weight::Note => Key("weight-note"),
        Weight::Review => Key("weight-review"),
        Weight::Relation => Key("weight-relation"),
        Weight::Reject => Key("weight-reject"),
    }
}
