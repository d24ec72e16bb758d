//! The gate, condition by condition.

use chrono::{DateTime, TimeDelta, Utc};
use rigmark::base::id::RunId;
use rigmark::benchmarks::model::EvidenceLevel;
use rigmark::market::gate::{Engine, Facts, MachineFacts, Rules, RunFacts, UnmetCode, check};
use rigmark::market::state::{ListingState, Move};

fn at(day: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000 + day)
}

fn good_run() -> RunFacts {
    RunFacts {
        id: RunId::new(),
        status: "verified".to_owned(),
        level: EvidenceLevel::Challenged,
        is_public: true,
        hardware_slug: Some("rtx-3090".to_owned()),
        gpu_count: Some(2),
        model: "gpt-oss-20b".to_owned(),
        quantization: None,
        created_at: at(0),
        expires_at: at(90),
        stale_reason: None,
        is_stale: false,
        stale_until: None,
        disputed_at: None,
        remeasured_at: None,
    }
}

fn good_facts() -> Facts {
    Facts {
        is_account_closed: false,
        machine: MachineFacts {
            is_deleted: false,
            hardware_slug: "rtx-3090".to_owned(),
            gpu_count: 2,
            hardware_changed_at: None,
            endpoint_changed_at: None,
        },
        engine: Engine::Reachable { is_simulated: true },
        has_price: true,
        available_until: None,
        runs: vec![good_run()],
    }
}

fn sandbox(day: i64) -> Rules {
    Rules { now: at(day), wanted: EvidenceLevel::Challenged, is_sandbox: true, is_publishing: false }
}

fn live(day: i64) -> Rules {
    Rules { now: at(day), wanted: EvidenceLevel::Remeasured, is_sandbox: false, is_publishing: false }
}

fn codes(facts: &Facts, rules: &Rules) -> Vec<&'static str> {
    check(facts, rules).err().unwrap_or_default().iter().map(|unmet| unmet.code.as_str()).collect()
}

#[test]
fn what_meets_every_condition_passes() {
    let facts = good_facts();
    assert_eq!(check(&facts, &sandbox(1)).unwrap().id, facts.runs[0].id);
    let mut facts = good_facts();
    facts.engine = Engine::Reachable { is_simulated: false };
    facts.runs[0].level = EvidenceLevel::Remeasured;
    assert!(check(&facts, &live(1)).is_ok());
    // What a run does not say does not contradict.
    facts.runs[0].hardware_slug = None;
    facts.runs[0].gpu_count = None;
    assert!(check(&facts, &live(1)).is_ok());
}

/// A change of one fact, and the one condition that it leaves unmet.
#[test]
fn each_condition_has_its_code() {
    type Change = fn(&mut Facts);
    let cases: [(Change, &str); 19] = [
        (|f| f.machine.is_deleted = true, "machine_deleted"),
        (|f| f.is_account_closed = true, "account_closed"),
        (|f| f.has_price = false, "price_missing"),
        (|f| f.available_until = Some(at(1)), "availability_ended"),
        (|f| f.engine = Engine::Missing, "endpoint_missing"),
        (|f| f.engine = Engine::Unreachable("It is off.".to_owned()), "endpoint_unreachable"),
        (|f| f.runs.clear(), "run_missing"),
        (|f| f.runs[0].status = "rejected".to_owned(), "run_rejected"),
        (|f| f.runs[0].status = "needs_review".to_owned(), "run_in_review"),
        (|f| f.machine.hardware_changed_at = Some(at(0) + TimeDelta::seconds(1)), "hardware_changed"),
        (|f| f.machine.hardware_slug = "rtx-3090-ti".to_owned(), "hardware_differs"),
        (|f| f.machine.gpu_count = 1, "hardware_differs"),
        (|f| f.runs[0].is_stale = true, "run_stale"),
        (|f| f.runs[0].disputed_at = Some(at(0)), "remeasure_disagreed"),
        (|f| f.runs[0].expires_at = at(1), "run_expired"),
        (|f| f.runs[0].is_public = false, "run_unlisted"),
        (|f| f.runs[0].level = EvidenceLevel::Document, "evidence_too_low"),
        (|f| f.runs[0].level = EvidenceLevel::Reported, "evidence_too_low"),
        (|f| f.engine = Engine::NotAsked, ""),
    ];
    for (number, (change, code)) in cases.into_iter().enumerate() {
        let mut facts = good_facts();
        change(&mut facts);
        let expected: &[&str] = if code.is_empty() { &[] } else { &[code] };
        assert_eq!(codes(&facts, &sandbox(1)), expected, "case {number}");
    }
}

#[test]
fn outside_the_sandbox_engines_are_real_and_evidence_is_of_the_registered_one() {
    let mut facts = good_facts();
    assert_eq!(codes(&facts, &live(1)), ["engine_simulated", "evidence_too_low"]);
    facts.runs[0].level = EvidenceLevel::Remeasured;
    facts.engine = Engine::Reachable { is_simulated: false };
    facts.machine.endpoint_changed_at = Some(at(0) + TimeDelta::seconds(1));
    assert_eq!(codes(&facts, &live(1)), ["endpoint_changed"]);
    // A document that answers a challenge never spoke of the engine's address.
    assert!(check(&facts, &sandbox(1)).is_ok());
    // The server has measured the new address since.
    facts.runs[0].remeasured_at = Some(at(1));
    assert!(check(&facts, &live(1)).is_ok());
    facts.runs[0].remeasured_at = None;
    facts.machine.endpoint_changed_at = Some(at(0));
    facts.machine.hardware_changed_at = Some(at(0));
    assert!(check(&facts, &live(1)).is_ok());
}

#[test]
fn a_stale_run_keeps_a_listing_for_its_days_of_grace_and_brings_none_to_the_market() {
    let mut facts = good_facts();
    facts.runs[0].is_stale = true;
    facts.runs[0].stale_until = Some(at(8));
    assert_eq!(check(&facts, &sandbox(7)).unwrap().backs_until(), at(8));
    assert_eq!(codes(&facts, &sandbox(8)), ["run_stale"]);
    assert_eq!(codes(&facts, &Rules { is_publishing: true, ..sandbox(7) }), ["run_stale"]);
}

#[test]
fn everything_unmet_comes_at_once_of_the_run_that_misses_least() {
    let mut facts = good_facts();
    facts.has_price = false;
    facts.engine = Engine::Missing;
    facts.runs[0].status = "rejected".to_owned();
    facts.runs[0].is_public = false;
    assert_eq!(codes(&facts, &sandbox(91)), ["price_missing", "endpoint_missing", "run_rejected", "run_expired", "run_unlisted"]);
    let mut older = good_run();
    older.created_at = at(-10);
    older.expires_at = at(80);
    facts.runs.push(older);
    assert_eq!(codes(&facts, &sandbox(91)), ["price_missing", "endpoint_missing", "run_expired"]);
}

#[test]
fn the_newest_run_that_will_do_backs_it() {
    let mut facts = good_facts();
    facts.runs[0].status = "rejected".to_owned();
    let (older, oldest) = (good_run(), good_run());
    let expected = older.id;
    facts.runs.extend([older, oldest]);
    assert_eq!(check(&facts, &sandbox(1)).unwrap().id, expected);
}

#[test]
fn codes_are_snake_case_and_differ() {
    let mut texts: Vec<&str> = UnmetCode::ALL.iter().map(|code| code.as_str()).collect();
    assert!(texts.iter().all(|text| text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), UnmetCode::ALL.len());
}

#[test]
fn moves_of_a_listing() {
    use ListingState::{Draft, OffMarket, Paused, Published};
    let table = [
        (Draft, Some(Published), None, None),
        (Published, Some(Published), Some(Paused), Some(OffMarket)),
        (Paused, Some(Published), Some(Paused), None),
        (OffMarket, Some(Published), None, Some(OffMarket)),
    ];
    for (state, publish, pause, take_off) in table {
        let found = (state.after(Move::Publish), state.after(Move::Pause), state.after(Move::TakeOff));
        assert_eq!(found, (publish, pause, take_off), "{state:?}");
        assert_eq!(ListingState::parse(state.as_str()), Some(state));
    }
}
