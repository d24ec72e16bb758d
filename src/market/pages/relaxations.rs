//! What to offer when no machine meets everything that is asked: the search without one condition, or with one of them a step easier, each with
//! how many machines it finds. One statement counts them all.

use super::{
    super::{
        service::{self, ListingQuery},
        workload::parse_context,
    },
    form,
};
use crate::{
    base::Result,
    ctx::Ctx,
    web::{
        Query,
        html::{Messages, form::Form},
    },
};

/// Counting ends here: it is enough to know that there are many.
const COUNTED_MAX: i64 = 100;
/// Larger than any form makes; bounds the statement.
const WAYS_MAX: usize = 24;

/// An easier search, and how many it finds.
pub(super) struct Relaxation {
    pub text: String,
    pub path: String,
    pub count: String,
}

/// How near the market came.
pub(super) struct Nearness {
    /// Listed machines that have run the model at all; `None` without a workload.
    pub of_model: Option<String>,
    /// What excludes most first.
    pub relaxations: Vec<Relaxation>,
}

/// One condition made easier; of its steps the first that finds anything is offered.
struct Way {
    steps: Vec<(String, Form)>,
}

pub(super) async fn nearness(ctx: &Ctx, t: Messages, form: &Form) -> Result<Nearness> {
    let ways = ways(t, form);
    let of_model = form::has_workload(form).then(|| {
        let model = Form::of("", &[("model".to_owned(), form.value("model").to_owned())]);
        model.with(&[("context", "0"), ("concurrency", "1"), ("include_unavailable", "true")])
    });
    let searches = ways.iter().flat_map(|way| &way.steps).map(|(_, form)| form).chain(&of_model);
    let queries: Vec<Query<ListingQuery>> = searches.map(|form| form.without(&["limit"]).query(|_| Ok(()))).collect::<Result<_>>()?;
    let queries: Vec<&ListingQuery> = queries.iter().map(|query| &**query).collect();
    let mut counts = service::count(ctx, &queries, COUNTED_MAX + 1).await?.into_iter();
    let mut found: Vec<(i64, Relaxation)> = Vec::new();
    for way in &ways {
        let steps: Vec<i64> = counts.by_ref().take(way.steps.len()).collect();
        let first = way.steps.iter().zip(steps).find(|(_, count)| *count > 0);
        found.extend(first.map(|((text, form), count)| {
            let path = form.without(&["limit"]).address();
            (count, Relaxation { text: text.clone(), path, count: machines(t, count) })
        }));
    }
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let of_model = counts.next().map(|count| t.with("empty-of-model", &[("machines", machines(t, count).into())]));
    Ok(Nearness { of_model, relaxations: found.into_iter().map(|(_, relaxation)| relaxation).collect() })
}

fn machines(t: Messages, count: i64) -> String {
    let shown = u64::try_from(count.min(COUNTED_MAX)).unwrap_or(0);
    if count > COUNTED_MAX {
        t.with("machines-more-than", &[("count", shown.into())])
    } else {
        t.with("machines", &[("count", shown.into())])
    }
}

fn ways(t: Messages, form: &Form) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    for (text, without) in form::conditions(t, form) {
        ways.push(Way { steps: vec![(t.with("empty-without", &[("condition", text.into())]), without)] });
    }
    if form.value("include_unavailable") != "true" {
        let with = form.with(&[("include_unavailable", "true")]);
        ways.push(Way { steps: vec![(t.text("empty-with-unavailable").into_owned(), with)] });
    }
    if form::has_workload(form) {
        ways.extend([users(t, form), context(t, form), ttft(t, form), speed(t, form)].into_iter().filter(|way| !way.steps.is_empty()));
    }
    let mut room = WAYS_MAX;
    ways.retain(|way| {
        let fits = way.steps.len() <= room;
        room = room.saturating_sub(way.steps.len());
        fits
    });
    ways
}

/// Half the users, a quarter, one.
fn users(t: Messages, form: &Form) -> Way {
    let asked = form.value("concurrency").parse::<u32>().unwrap_or(1);
    let mut steps: Vec<u32> = [asked / 2, asked / 4, 1].into_iter().filter(|users| (1..asked).contains(users)).collect();
    steps.dedup();
    let step = |users: u32| {
        let text = t.with("empty-fewer-users", &[("users", users.into()), ("asked", asked.into())]);
        (text, form.with(&[("concurrency", &users.to_string())]))
    };
    Way { steps: steps.into_iter().map(step).collect() }
}

/// Half the context, a quarter, none.
fn context(t: Messages, form: &Form) -> Way {
    let asked = parse_context(form.value("context")).and_then(|tokens| u64::try_from(tokens).ok()).unwrap_or(0);
    let mut steps: Vec<u64> =
        [asked / 2, asked / 4, 0].into_iter().filter(|tokens| *tokens < asked && (*tokens == 0 || *tokens >= 1_024)).collect();
    steps.dedup();
    let step = |tokens: u64| {
        let text = t.with("empty-less-context", &[("context", t.context(tokens).into()), ("asked", t.context(asked).into())]);
        (text, form.with(&[("context", &tokens.to_string())]))
    };
    Way { steps: steps.into_iter().map(step).collect() }
}

fn ttft(t: Messages, form: &Form) -> Way {
    let Ok(asked) = form.value("max_ttft_ms").parse::<f64>() else { return Way { steps: Vec::new() } };
    let step = |factor: f64| {
        let ms = format!("{:.0}", asked * factor);
        (t.with("empty-later-token", &[("ms", t.digits(&ms).into())]), form.with(&[("max_ttft_ms", &ms)]))
    };
    Way { steps: [2.0, 5.0, 20.0].into_iter().map(step).collect() }
}

fn speed(t: Messages, form: &Form) -> Way {
    let Ok(asked) = form.value("min_tokens_per_second").parse::<f64>() else { return Way { steps: Vec::new() } };
    let step = |factor: f64| {
        let speed = format!("{:.1}", asked * factor);
        (t.with("empty-slower", &[("speed", t.digits(&speed).into())]), form.with(&[("min_tokens_per_second", &speed)]))
    };
    Way { steps: [0.75, 0.5, 0.25].into_iter().map(step).collect() }
}

/// What is asked, as one sentence's list.
pub(super) fn asked(t: Messages, form: &Form) -> String {
    let all: Vec<String> = form::conditions(t, form).into_iter().map(|(text, _)| text).collect();
    if all.is_empty() { t.text("empty-any").into_owned() } else { all.join(", ") }
}
