//! The table of forgeries: each is made by code from an honest document, and is caught by a named check, refused as unreadable, or written
//! down as only catchable by re-measuring. A forgery of the last kind that a check learns to catch fails here too, so the notes stay true.

mod numbers;
mod origin;
mod shape;
mod spelling;

use rigmark::benchmarks::checks::info;
use rigmark::benchmarks::{Severity, Verdict};

use super::codes;
use super::forge::Case;

pub enum Outcome {
    /// By a finding that is suspicious or an error.
    Caught(&'static str),
    /// As no run document, with this code.
    Refused(&'static str),
    /// Verified as a document; and why nothing in the file can tell.
    OnlyRemeasuring(&'static str),
}
use Outcome::{Caught, OnlyRemeasuring, Refused};

/// Name, source, what the forger does, and what becomes of it.
pub type Forgery = (&'static str, &'static str, fn(&mut Case), Outcome);

const RUN: &str = "reference-run.json";
/// The same with its whole log.
const WHOLE: &str = "reference-run.nonce.json";
const SMALL: &str = "v04_all_valid.json";
const OVER: &str = "v04_over_capacity.json";
const WRAPPED: &str = "synthetic_lil_bench_wrapped.json";
const K: u64 = 1_024;

const ALL: &[(&str, &[Forgery])] = &[
    ("speeds", numbers::SPEEDS),
    ("prefill", numbers::PREFILL),
    ("structure", shape::STRUCTURE),
    ("identity", origin::IDENTITY),
    ("replays", origin::REPLAYS),
    ("versions", spelling::VERSIONS),
    ("spellings", spelling::SPELLINGS),
];

/// What went otherwise than the table says, or `None`.
fn fault(source: &str, forge: fn(&mut Case), outcome: &Outcome) -> Option<String> {
    let mut case = Case::of(source);
    forge(&mut case);
    let run = match (case.judge(), outcome) {
        (Err(error), Refused(code)) => return (error.code.as_str() != *code).then(|| format!("refused as {error}")),
        (Err(error), _) => return Some(format!("refused: {error}")),
        (Ok(run), _) => run,
    };
    let too_severe = run.findings.iter().find(|found| info(&found.code).is_none_or(|row| found.severity > row.weight.severity_max(true)));
    if let Some(finding) = too_severe {
        return Some(format!("{} counts more than its row says, or has none", finding.code));
    }
    let doubted: Vec<_> = run.findings.iter().filter(|finding| finding.severity > Severity::Note).cloned().collect();
    let right = match outcome {
        Caught(code) => run.verdict != Verdict::Verified && doubted.iter().any(|finding| finding.code == *code),
        OnlyRemeasuring(why) => !why.is_empty() && run.verdict == Verdict::Verified,
        Refused(_) => false,
    };
    (!right).then(|| format!("{:?} with {:?}", run.verdict, codes(&doubted)))
}

#[test]
fn every_forgery_has_the_outcome_that_is_written_down() {
    let mut faults = Vec::new();
    let (mut caught, mut only) = (0, 0);
    for (group, forgeries) in ALL {
        for (index, (name, source, forge, outcome)) in forgeries.iter().enumerate() {
            assert!(forgeries.iter().skip(index + 1).all(|(other, ..)| other != name), "{group}: {name} stands twice");
            faults.extend(fault(source, *forge, outcome).map(|fault| format!("{group}: {name}: {fault}")));
            match outcome {
                Caught(_) | Refused(_) => caught += 1,
                OnlyRemeasuring(why) => {
                    only += 1;
                    println!("only by re-measuring: {group}: {name}: {why}");
                }
            }
        }
    }
    println!("{caught} caught or refused, {only} only by re-measuring");
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(caught >= 40 && only < caught / 4);
}
