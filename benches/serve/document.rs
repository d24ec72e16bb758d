//! Reading and judging the reference document against only parsing it.

use anyhow::{Context as _, Result};
use rigmark::benchmarks::{AssessContext, Claim, assess};
use serde_json::Value;

use crate::{
    ROUNDS,
    table::{Goal, Row},
    time_ms,
};

const TIMES: usize = 40;

pub fn measure() -> Result<Row> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents");
    let bytes = std::fs::read(folder.join("reference-run.json"))?;
    let claim: Claim = serde_json::from_slice(&std::fs::read(folder.join("reference-run.meta.json"))?)?;
    let context = AssessContext::default();
    assess(&bytes, &claim, &context).ok().context("the reference document is no run document")?;
    let round = |_| {
        let ours = time_ms(TIMES, || drop(std::hint::black_box(assess(&bytes, &claim, &context))));
        let parsed = time_ms(TIMES, || drop(std::hint::black_box(serde_json::from_slice::<Value>(&bytes))));
        (ours, parsed)
    };
    // The first warms.
    let rounds: Vec<_> = (0..=ROUNDS).map(round).skip(1).collect();
    Ok(Row::of_times("judging the reference document", "serde_json", &rounds, Goal::AtMost(3.0)))
}
