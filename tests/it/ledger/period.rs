//! Spans of time in queries: half-open, a date is a whole UTC day.

use chrono::{DateTime, Utc};
use rigmark::ledger::Period;

fn instant(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}
fn period(from: &str, to: &str) -> Period {
    Period { from: Some(instant(from)), to: Some(instant(to)) }
}

#[test]
fn a_date_is_its_whole_utc_day() {
    let day = period("2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z");
    assert_eq!(Period::parse(Some("2026-11-30"), Some("2026-11-30")).unwrap(), day);
    let leap = period("2028-02-28T00:00:00Z", "2028-03-01T00:00:00Z");
    assert_eq!(Period::parse(Some("2028-02-28"), Some("2028-02-29")).unwrap(), leap);
    assert_eq!(Period::parse(None, None).unwrap(), Period::default());
    assert_eq!(Period::parse(None, Some("2026-11-30")).unwrap(), Period { from: None, ..day });
    assert_eq!(Period::parse(Some("2026-11-30"), None).unwrap(), Period { to: None, ..day });
}

/// The nights on which New York changes its clocks have three hours and one between these instants.
#[test]
fn instants_are_what_they_say_in_any_zone() {
    let autumn = Period::parse(Some("2026-11-01T00:30:00-04:00"), Some("2026-11-01T02:30:00-05:00")).unwrap();
    assert_eq!(autumn, period("2026-11-01T04:30:00Z", "2026-11-01T07:30:00Z"));
    let spring = Period::parse(Some("2026-03-08T01:30:00-05:00"), Some("2026-03-08T03:30:00-04:00")).unwrap();
    assert_eq!(spring, period("2026-03-08T06:30:00Z", "2026-03-08T07:30:00Z"));
    let same = "2026-11-30T12:00:00.123456Z";
    assert_eq!(Period::parse(Some(same), Some(same)).unwrap(), period(same, same));
}

#[test]
fn what_is_neither_is_refused_where_it_stands() {
    let wrong = [
        "",
        "yesterday",
        "2026-11",
        "2026-02-30",
        "2026-13-01",
        "26-11-30",
        "2026-1-1",
        "2026/11/30",
        "20261130",
        "+026-11-30",
        "2026-11-30T12:00:00",
        "2026-11-30 ",
        "1764460800",
        "12026-11-30",
        "2026-11-30T25:00:00Z",
    ];
    for text in wrong {
        for (from, to, pointer) in [(Some(text), None, "?from"), (None, Some(text), "?to")] {
            let error = Period::parse(from, to).unwrap_err();
            assert_eq!((error.fields()[0].pointer.as_str(), error.fields()[0].code.as_ref()), (pointer, "invalid_instant"), "{text:?}");
        }
    }
    assert_eq!(Period::parse(Some("x"), Some("y")).unwrap_err().fields().len(), 2);
    let backward = Period::parse(Some("2026-11-30"), Some("2026-11-29T23:59:59Z")).unwrap_err();
    assert_eq!(backward.fields()[0].code, "too_early");
    for (from, to) in
        [("2026-11-30", "2026-11-29"), ("2026-11-30T00:00:00Z", "2026-11-29"), ("2026-11-30T00:00:01Z", "2026-11-30T00:00:00Z")]
    {
        assert_eq!(Period::parse(Some(from), Some(to)).unwrap_err().fields()[0].code, "too_early", "{from} {to}");
    }
    assert!(Period::parse(Some("2026-11-30T23:59:59Z"), Some("2026-11-30")).is_ok());
    // The last day that four digits can write.
    assert!(Period::parse(None, Some("9999-12-31")).is_ok());
}
