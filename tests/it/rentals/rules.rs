//! The pure rules: moves between states, the arithmetic of spans, silence and holds. No database.

use chrono::{DateTime, TimeDelta, Utc};
use proptest::prelude::*;
use rigmark::base::Money;
use rigmark::ledger::Charge;
use rigmark::rentals::state::{
    EndReason, Funds, Segment, Signs, Status, Step, Terms, exhausted_at, first_hold, midnights, min_hours_remainder, renewal,
    segment_gross, step_paused, step_running,
};

fn at(seconds: i64) -> DateTime<Utc> {
    "2026-11-30T10:00:00.123456Z".parse::<DateTime<Utc>>().unwrap() + TimeDelta::seconds(seconds)
}
fn usd(text: &str) -> Money {
    text.parse().unwrap()
}
fn micros(micros: i64) -> Money {
    Money::usd_micros(micros)
}
fn terms(price: Money) -> Terms {
    Terms { price_per_hour: price, min_hours: 0, max_spend: None, ends_at: None }
}
fn segment(started: i64, posted: Money) -> Segment {
    Segment { started_at: at(started), gross_posted: posted }
}
/// Signs of a machine last seen then, and failing since then.
fn signs(seen: i64, failing: Option<i64>) -> Signs {
    Signs {
        last_seen_at: at(seen),
        failing_since: failing.map(at),
        pause_after: TimeDelta::seconds(60),
        end_after: TimeDelta::seconds(900),
    }
}
fn funds(held: &str) -> Funds {
    Funds { held: usd(held), at_cap: false }
}

#[test]
fn the_moves_are_these_and_no_others() {
    use Status::{Active, Ended, Failed, Held, Provisioning, Reserved, Stopping};
    let legal = [
        (Reserved, Held),
        (Reserved, Provisioning),
        (Reserved, Ended),
        (Held, Provisioning),
        (Held, Ended),
        (Held, Failed),
        (Provisioning, Active),
        (Provisioning, Ended),
        (Provisioning, Failed),
        (Active, Stopping),
        (Active, Ended),
        (Stopping, Ended),
    ];
    for from in Status::ALL {
        for to in Status::ALL {
            assert_eq!(from.may_become(to), legal.contains(&(from, to)), "{from:?} to {to:?}");
        }
        assert_eq!(from.is_over(), !Status::ALL.iter().any(|to| from.may_become(*to)), "{from:?}");
        assert_eq!(Status::parse(from.as_str()), Some(from));
        assert_eq!(serde_json::to_value(from).unwrap(), from.as_str());
    }
    assert_eq!(Status::parse("starting"), None);
}

#[test]
fn reasons_are_distinct_and_only_a_renter_who_stops_owes_the_least_length() {
    let names: std::collections::BTreeSet<_> = EndReason::ALL.iter().map(|r| r.as_str()).collect();
    assert_eq!(names.len(), 8);
    for reason in EndReason::ALL {
        assert_eq!(EndReason::parse(reason.as_str()), Some(reason));
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        assert_eq!(reason.bills_min_hours(), reason == EndReason::RenterStopped);
    }
}

/// Charges posted at these seconds after the start: gross and fee of all.
fn metered(price: Money, basis_points: u16, ticks: &[i64]) -> (Money, Money) {
    let (mut posted, mut segment_posted) = (Charge::NOTHING, Money::ZERO);
    for tick in ticks {
        let total = segment_gross(price, at(0), at(*tick)).unwrap();
        let charge = Charge::after(posted, total.minus(segment_posted).unwrap(), basis_points).unwrap();
        posted = posted.plus(charge).unwrap();
        segment_posted = segment_posted.max(total);
    }
    (posted.gross(), posted.fee())
}

#[test]
fn the_number_of_ticks_never_matters() {
    for step in [3_600, 60, 1] {
        let ticks: Vec<i64> = (1..=3_600 / step).map(|n| n * step).collect();
        assert_eq!(metered(usd("0.37"), 1_000, &ticks), (micros(370_000), micros(37_000)), "ticks of {step} s");
    }
    assert_eq!(metered(usd("0.37"), 1_000, &[61]).0, micros(6_269));
    assert_eq!(metered(usd("0.37"), 1_000, &[1, 2, 30, 61]).0, micros(6_269));
}

#[test]
fn a_span_that_would_end_before_it_starts_costs_nothing() {
    assert_eq!(segment_gross(usd("3.60"), at(10), at(3)).unwrap(), Money::ZERO);
    assert_eq!(segment_gross(usd("3.60"), at(10), at(10)).unwrap(), Money::ZERO);
}

#[test]
fn the_first_hold_is_an_hour_or_less() {
    let price = usd("3.60");
    let of = |min_hours, cap: Option<&str>, whole: Option<i64>| {
        let terms = Terms { min_hours, max_spend: cap.map(usd), ..terms(price) };
        first_hold(&terms, whole).unwrap().to_string()
    };
    assert_eq!(of(0, None, None), "3.60");
    assert_eq!(of(1, None, None), "3.60");
    assert_eq!(of(5, None, None), "18.00");
    assert_eq!(of(0, None, Some(1_800)), "1.80");
    assert_eq!(of(0, None, Some(36_000)), "3.60");
    assert_eq!(of(5, None, Some(18_000)), "18.00");
    assert_eq!(of(0, Some("0.50"), None), "0.50");
    assert_eq!(of(0, Some("0.50"), Some(60)), "0.06");
    assert_eq!(of(5, Some("100"), None), "18.00");
}

#[test]
fn what_comes_first_ends_it() {
    let priced = Terms { ends_at: Some(at(1_000)), ..terms(usd("3.60")) };
    let seen = signs(5_000, None);
    let step = |terms: &Terms, held: &str, at_cap| {
        step_running(at(5_000), terms, segment(0, Money::ZERO), Funds { held: usd(held), at_cap }, &seen)
    };
    let end = |seconds, reason| Step::End { bill_through: at(seconds), at: at(seconds), reason };
    assert_eq!(step(&priced, "2", false), end(1_000, EndReason::Deadline));
    assert_eq!(step(&priced, "1", false), end(1_000, EndReason::Deadline), "together the deadline is the reason");
    // A deadline between two seconds: the money for the whole ones is enough.
    let between = Terms { ends_at: Some(at(1_000) + TimeDelta::milliseconds(900)), ..priced };
    let at_deadline = at(1_000) + TimeDelta::milliseconds(900);
    assert_eq!(step(&between, "1", false), Step::End { bill_through: at_deadline, at: at_deadline, reason: EndReason::Deadline });
    assert_eq!(step(&between, "0.9999", false), end(999, EndReason::InsufficientFunds));
    assert_eq!(step(&priced, "0.999", false), end(999, EndReason::InsufficientFunds));
    assert_eq!(step(&priced, "0.999", true), end(999, EndReason::SpendCap));
    let open = terms(usd("3.60"));
    assert_eq!(step(&open, "3.60", false), end(3_600, EndReason::InsufficientFunds));
    assert_eq!(step(&open, "3.60", true), end(3_600, EndReason::SpendCap));
    assert_eq!(step(&open, "5.001", false), Step::Bill { through: at(5_000) });
}

#[test]
fn a_machine_that_nobody_asked_is_not_silent_but_what_it_did_is_not_known_either() {
    let open = terms(usd("3.60"));
    let step = |now, held: &str, signs: Signs| step_running(at(now), &open, segment(0, Money::ZERO), funds(held), &signs);
    // Asked at 500, workers away until 4,600: the end at 3,600 waits for the next sign …
    assert_eq!(step(4_600, "3.60", signs(500, None)), Step::Bill { through: at(500) });
    // … which says that it was there …
    let end = Step::End { bill_through: at(3_600), at: at(3_600), reason: EndReason::InsufficientFunds };
    assert_eq!(step(4_600, "3.60", signs(4_600, None)), end);
    // … or that it fails now: a first failure is no silence of an hour.
    assert_eq!(step(4_600, "3.60", signs(500, Some(4_600))), Step::Bill { through: at(500) });
    assert_eq!(step(4_629, "3.60", signs(500, Some(4_600))), Step::Bill { through: at(500) });
    assert_eq!(step(4_630, "3.60", signs(500, Some(4_600))), Step::Pause { at: at(500) });
    // While probes run, a sign is some seconds old at the end.
    assert_eq!(step(3_600, "3.60", signs(3_585, None)), end);
}

#[test]
fn silence_pauses_at_the_last_sign_and_ends_after_a_while() {
    let open = terms(usd("3.60"));
    let running = |now, signs: Signs| step_running(at(now), &open, segment(0, Money::ZERO), funds("9"), &signs);
    assert_eq!(running(159, signs(100, Some(115))), Step::Bill { through: at(100) });
    assert_eq!(running(160, signs(100, Some(115))), Step::Pause { at: at(100) });
    let paused = |now, terms: &Terms, signs: Signs| step_paused(at(now), terms, at(100), &signs);
    assert_eq!(paused(160, &open, signs(100, Some(115))), Step::Wait);
    assert_eq!(paused(999, &open, signs(100, Some(115))), Step::Wait);
    let lost = Step::End { bill_through: at(100), at: at(1_000), reason: EndReason::HostLost };
    assert_eq!(paused(1_000, &open, signs(100, Some(115))), lost);
    assert_eq!(paused(9_000, &open, signs(100, Some(115))), lost);
    assert_eq!(paused(400, &open, signs(390, None)), Step::Resume { at: at(390) });
    // The deadline comes in the silence, before or after the host is lost.
    let early = Terms { ends_at: Some(at(700)), ..open };
    assert_eq!(paused(800, &early, signs(100, Some(115))), Step::End { bill_through: at(100), at: at(700), reason: EndReason::Deadline });
    assert_eq!(paused(800, &early, signs(790, None)), Step::End { bill_through: at(100), at: at(700), reason: EndReason::Deadline });
    let late = Terms { ends_at: Some(at(1_700)), ..open };
    assert_eq!(paused(1_800, &late, signs(100, Some(115))), lost);
}

#[test]
fn the_least_length_is_billed_without_the_silent_seconds_and_within_the_cap() {
    let two = Terms { min_hours: 2, ..terms(usd("3.60")) };
    let rest = |terms: &Terms, reason, idle, posted: &str| min_hours_remainder(terms, reason, idle, usd(posted)).unwrap().to_string();
    assert_eq!(rest(&two, EndReason::RenterStopped, 0, "0.60"), "6.60");
    assert_eq!(rest(&two, EndReason::RenterStopped, 600, "0.60"), "6.00");
    assert_eq!(rest(&two, EndReason::RenterStopped, 99_999, "0.60"), "0.00");
    assert_eq!(rest(&two, EndReason::RenterStopped, 0, "7.20"), "0.00");
    assert_eq!(rest(&two, EndReason::RenterStopped, 0, "9"), "0.00");
    for reason in EndReason::ALL.into_iter().filter(|r| *r != EndReason::RenterStopped) {
        assert_eq!(rest(&two, reason, 0, "0.60"), "0.00", "{reason:?}");
    }
    let capped = Terms { max_spend: Some(usd("5")), ..two };
    assert_eq!(rest(&capped, EndReason::RenterStopped, 0, "0.60"), "4.40");
}

#[test]
fn days_end_at_midnight_utc() {
    let day = |text: &str| text.parse::<DateTime<Utc>>().unwrap();
    let found: Vec<_> = midnights(day("2026-02-27T23:59:59.999999Z"), day("2026-03-02T00:00:00Z")).collect();
    assert_eq!(found, [day("2026-02-28T00:00:00Z"), day("2026-03-01T00:00:00Z"), day("2026-03-02T00:00:00Z")]);
    assert_eq!(midnights(day("2026-03-01T00:00:00Z"), day("2026-03-01T23:59:59Z")).count(), 0);
    assert_eq!(midnights(day("2026-03-01T12:00:00Z"), day("2026-03-01T11:00:00Z")).count(), 0);
}

/// Runs a rental over these ticks, with the machine answering at each: what was billed, and the end if there was one.
fn run(price: Money, held: Money, deadline_ms: Option<i64>, ticks: &[i64]) -> (Money, Option<(DateTime<Utc>, EndReason)>) {
    let terms = Terms { ends_at: deadline_ms.map(|ms| at(0) + TimeDelta::milliseconds(ms)), ..terms(price) };
    let mut open = segment(0, Money::ZERO);
    for tick in ticks {
        let left = Funds { held: held.minus(open.gross_posted).unwrap(), at_cap: false };
        match step_running(at(*tick), &terms, open, left, &signs(*tick, None)) {
            Step::Bill { through } => open.gross_posted = segment_gross(price, open.started_at, through).unwrap().max(open.gross_posted),
            Step::End { bill_through, at, reason } => {
                return (segment_gross(price, open.started_at, bill_through).unwrap().max(open.gross_posted), Some((at, reason)));
            }
            other => panic!("{other:?}"),
        }
    }
    (open.gross_posted, None)
}

proptest! {
    #[test]
    fn ticks_change_neither_charge_nor_fee(
        price in 1_i64..50_000_000, basis_points in 0_u16..=3_000, mut ticks in prop::collection::vec(0_i64..200_000, 1..40),
    ) {
        ticks.sort_unstable();
        let last = *ticks.last().unwrap();
        let (gross, fee) = metered(micros(price), basis_points, &ticks);
        prop_assert_eq!((gross, fee), metered(micros(price), basis_points, &[last]));
        prop_assert_eq!(i128::from(gross.micros()), i128::from(price) * i128::from(last) / 3_600);
        prop_assert!(fee <= gross);
    }

    /// However the ticks fall, a rental ends at the same instant, for the same reason and at the same cost, and never above what was held.
    #[test]
    fn ticks_change_no_end(
        price in 1_i64..50_000_000, held in 0_i64..20_000_000, deadline_ms in prop::option::of(1_i64..99_000_000),
        mut ticks in prop::collection::vec(0_i64..100_000, 0..30),
    ) {
        ticks.sort_unstable();
        ticks.push(100_000);
        let many = run(micros(price), micros(held), deadline_ms, &ticks);
        prop_assert_eq!(many, run(micros(price), micros(held), deadline_ms, &[100_000]));
        prop_assert!(many.0 <= micros(held));
        if let Some((end, reason)) = many.1 {
            prop_assert_eq!(many.0, segment_gross(micros(price), at(0), end).unwrap());
            if reason == EndReason::InsufficientFunds {
                // Not a second earlier than needed.
                prop_assert!(segment_gross(micros(price), at(0), end + TimeDelta::seconds(1)).unwrap() > micros(held));
            }
        }
    }

    /// Whatever the signs: nothing is billed beyond now, the deadline, the money, or a minute after the last sign.
    #[test]
    fn nothing_is_billed_that_is_not_known(
        now in 0_i64..10_000, seen in 0_i64..10_000, failing in prop::option::of(0_i64..10_000), started in 0_i64..10_000,
        deadline in prop::option::of(0_i64..20_000), held in 0_i64..10_000_000,
    ) {
        prop_assume!(started <= now && seen <= now && failing.is_none_or(|f| seen <= f && f <= now));
        let priced = Terms { ends_at: deadline.map(at), ..terms(usd("3.60")) };
        let (open, left) = (segment(started, Money::ZERO), Funds { held: micros(held), at_cap: false });
        let signs = signs(seen, failing);
        let (through, is_end) = match step_running(at(now), &priced, open, left, &signs) {
            Step::Bill { through } => (through, false),
            Step::Pause { at: paused } => {
                prop_assert!(failing.is_some() && at(now) - at(seen) >= signs.pause_after);
                (paused, false)
            }
            Step::End { bill_through, at: ended, reason } => {
                prop_assert_eq!(bill_through, ended);
                prop_assert!(matches!(reason, EndReason::Deadline | EndReason::InsufficientFunds));
                (bill_through, true)
            }
            other => panic!("{other:?}"),
        };
        prop_assert!(through <= at(now).max(open.started_at));
        prop_assert!(through <= at(seen + 60).max(open.started_at));
        prop_assert!(failing.is_none() || through <= at(seen).max(open.started_at));
        if !is_end && let Some(deadline) = deadline {
            prop_assert!(at(deadline) > through || at(deadline) <= open.started_at || failing.is_some());
        }
    }

    /// A renewed hold lasts as long as was asked, never beyond the deadline by more than nothing, and the cap holds.
    #[test]
    fn a_renewal_reaches_ahead_within_the_cap(
        price in 1_i64..50_000_000, posted in 0_i64..5_000_000, held in 0_i64..5_000_000, now in 0_i64..50_000,
        deadline in prop::option::of(0_i64..60_000), cap in prop::option::of(1_i64..20_000_000),
    ) {
        prop_assume!(cap.is_none_or(|cap| posted + held <= cap));
        let priced = Terms { ends_at: deadline.map(at), max_spend: cap.map(micros), ..terms(micros(price)) };
        let open = segment(0, micros(posted));
        let more = renewal(at(now), TimeDelta::hours(1), &priced, open, micros(posted), micros(held)).unwrap();
        prop_assert!(!more.is_negative());
        let committed = posted + held + more.micros();
        prop_assert!(cap.is_none_or(|cap| committed <= cap));
        let until = deadline.map_or(now + 3_600, |d| d.min(now + 3_600));
        let enough = segment_gross(micros(price), at(0), at(until)).unwrap().micros();
        prop_assert!(committed >= enough.min(cap.unwrap_or(i64::MAX)));
        prop_assert!(committed <= enough.max(posted + held));
        if cap.is_none() {
            let lasts = exhausted_at(micros(price), open, micros(held).plus(more).unwrap());
            prop_assert!(lasts.is_none_or(|lasts| lasts >= at(until)));
        }
    }
}
