//! Every reader of a short text: ids, handles, addresses, amounts, sizes, spans. What is read is written as it was, or as what reads the same.
#![no_main]

use std::{fmt::Display, str::FromStr};

use libfuzzer_sys::fuzz_target;
use rigmark::{
    base::{
        Id, Money,
        id::{Account, ApiKey, Kind, Machine, Run},
    },
    benchmarks::{Quantization, claim::Claim},
    engines::EngineAddress,
    identity::{Email, Handle},
    ledger::Period,
    machines::Region,
    market::workload::parse_context,
    measure::matrix::parse_tokens,
    web::{Limit, Query, json},
};
use rigmark_fuzz::{Bounded, within};
use serde::Deserialize;

#[global_allocator]
static BOUNDED: Bounded = Bounded;

const BYTES_MAX: usize = 32 << 20;

/// A list's query, as most lists have it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    #[serde(default)]
    #[expect(dead_code, reason = "read, and that is all")]
    limit: Limit,
    #[expect(dead_code, reason = "read, and that is all")]
    cursor: Option<String>,
}

fn id<K: Kind>(text: &str) {
    if let Ok(id) = text.parse::<Id<K>>() {
        assert_eq!(id.to_string(), text, "an id has one spelling");
    }
}

/// What is read and written is read as the same again.
fn settles<T: FromStr + Display>(text: &str) {
    let Ok(read) = text.parse::<T>() else { return };
    let written = read.to_string();
    let Ok(again) = written.parse::<T>() else { panic!("{text:?} is written as {written:?}, which cannot be read") };
    assert_eq!(again.to_string(), written);
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else { return };
    within(BYTES_MAX, || {
        id::<Account>(text);
        id::<ApiKey>(text);
        id::<Machine>(text);
        id::<Run>(text);
        settles::<Handle>(text);
        settles::<Region>(text);
        settles::<EngineAddress>(text);
        settles::<Money>(text);
        if let Ok(email) = text.parse::<Email>() {
            assert_eq!(email.expose().parse::<Email>().ok().map(|again| again.expose().to_owned()).as_deref(), Some(email.expose()));
        }
        let quantization = Quantization::parse(text);
        assert_eq!(Quantization::parse(quantization.as_str()), quantization);
        if let (Some(context), Ok(tokens)) = (parse_context(text), parse_tokens(text)) {
            assert_eq!(u64::try_from(context), Ok(tokens), "the two ways to write a context mean the same");
        }
        let (from, to) = text.split_once('\n').unwrap_or((text, text));
        let _ = Period::parse(Some(from), Some(to));
        let _ = Query::<ListQuery>::parse("/", text);
        let _ = json::parse::<Claim>(data);
    });
});
