//! Amounts: reading, printing, charging by the second, splitting off the fee (money.md 1–5). Each rule is checked against integer arithmetic
//! written another way.

use proptest::prelude::*;
use rigmark::base::Money;
use rigmark::base::money::{Currency, ParseMoneyError};

fn usd(text: &str) -> Money {
    text.parse().unwrap()
}
fn micros(micros: i64) -> Money {
    Money::usd_micros(micros)
}

#[test]
fn amounts_are_read_exactly() {
    for (text, expected) in [
        ("0", 0),
        ("0.0", 0),
        ("0.37", 370_000),
        ("3.6", 3_600_000),
        ("3.60", 3_600_000),
        ("0.000001", 1),
        ("12.345678", 12_345_678),
        ("1000000000", 1_000_000_000_000_000),
        ("1000000000.000000", 1_000_000_000_000_000),
    ] {
        assert_eq!(text.parse(), Ok(micros(expected)), "{text}");
    }
}

#[test]
fn what_is_no_amount_is_refused() {
    use ParseMoneyError::{Syntax, TooLarge, TooPrecise};
    let syntax = [
        "", " ", ".", "0.", ".5", "-1", "-0", "+1", "1 ", " 1", "1e3", "1E3", "0x10", "1,5", "1_000", "00", "01.5", "1.2.3", "1.-5", "NaN",
        "inf", "$1", "1 usd", "٣", "１", "1.٣", "0.5\n", "\0",
    ];
    for text in syntax {
        assert_eq!(text.parse::<Money>(), Err(Syntax), "{text:?}");
    }
    for text in ["0.0000001", "1.0000000", "100.0000010"] {
        assert_eq!(text.parse::<Money>(), Err(TooPrecise), "{text}");
    }
    for text in ["1000000000.000001", "9223372036854", "9223372036854.775808", "99999999999999999999999999", "9".repeat(5_000).as_str()] {
        assert_eq!(text.parse::<Money>(), Err(TooLarge), "{text}");
    }
}

#[test]
fn json_takes_strings_only() {
    assert_eq!(serde_json::to_string(&micros(-6_269)).unwrap(), r#""-0.006269""#);
    assert_eq!(serde_json::from_str::<Money>(r#""0.37""#).unwrap(), micros(370_000));
    // An escape in the text takes another path through serde.
    assert_eq!(serde_json::from_str::<Money>(r#""\u0030.37""#).unwrap(), micros(370_000));
    for json in ["0.37", "1", "null", "true", "[]", r#"{"amount":"1"}"#, r#""-1""#, r#""1e2""#, r#""0.1234567""#] {
        assert!(serde_json::from_str::<Money>(json).is_err(), "{json}");
    }
    assert_eq!(serde_json::from_str::<Currency>(r#""usd""#).unwrap(), Currency::Usd);
    for json in [r#""eur""#, r#""USD""#, r#""jpy""#, r#""""#, "null"] {
        assert!(serde_json::from_str::<Currency>(json).is_err(), "{json}");
    }
}

#[test]
fn amounts_are_printed_shortest_with_two_decimals() {
    for (amount, text) in [
        (0, "0.00"),
        (1, "0.000001"),
        (-1, "-0.000001"),
        (10_000, "0.01"),
        (100_000, "0.10"),
        (6_269, "0.006269"),
        (3_600_000, "3.60"),
        (-3_605_000, "-3.605"),
        (1_000_000, "1.00"),
        (i64::MAX, "9223372036854.775807"),
        (i64::MIN, "-9223372036854.775808"),
    ] {
        assert_eq!(micros(amount).to_string(), text);
    }
}

#[test]
fn a_balance_is_shown_rounded_down_to_cents() {
    for (amount, shown) in [(0, 0), (9_999, 0), (10_000, 10_000), (19_999, 10_000), (-1, -10_000), (-10_000, -10_000), (-10_001, -20_000)] {
        assert_eq!(micros(amount).floor_to_cents(), micros(shown), "{amount}");
    }
}

#[test]
fn arithmetic_that_leaves_64_bits_is_a_fault() {
    assert!(micros(i64::MAX).plus(micros(1)).is_err());
    assert!(micros(i64::MIN).minus(micros(1)).is_err());
    assert!(micros(i64::MIN).negated().is_err());
    assert!(micros(i64::MAX).charge_for_seconds(3_601).is_err());
    assert_eq!(micros(i64::MAX).charge_for_seconds(3_600).unwrap(), micros(i64::MAX));
    assert_eq!(micros(i64::MAX).fee(10_000).unwrap(), micros(i64::MAX));
    assert!(micros(1).fee(10_001).is_err());
}

/// money.md 3, with its own numbers.
#[test]
fn thirty_seven_cents_an_hour() {
    let rate = usd("0.37");
    assert_eq!(rate.charge_for_seconds(3_600).unwrap(), micros(370_000));
    assert_eq!(rate.charge_for_seconds(61).unwrap(), micros(6_269));
    for ticks in [1, 60, 3_600] {
        let posted = (1..=ticks).fold(Money::ZERO, |posted, tick| {
            let owed = rate.charge_for_seconds(3_600 / ticks * tick).unwrap();
            posted.plus(owed.minus(posted).unwrap()).unwrap()
        });
        assert_eq!(posted, micros(370_000), "{ticks} ticks");
    }
    assert_eq!(rate.charge_for_seconds(-1).unwrap(), Money::ZERO);
    assert_eq!(rate.charge_for_seconds(i64::MIN).unwrap(), Money::ZERO);
}

/// Ties go to the even neighbour, whichever side of zero.
#[test]
fn the_fee_is_rounded_half_even() {
    for (gross, basis_points, fee) in [
        (370_000, 1_000, 37_000),
        (5, 1_000, 0),
        (15, 1_000, 2),
        (25, 1_000, 2),
        (26, 1_000, 3),
        (35, 1_000, 4),
        (-5, 1_000, 0),
        (-15, 1_000, -2),
        (-25, 1_000, -2),
        (123, 0, 0),
        (123, 10_000, 123),
    ] {
        assert_eq!(micros(gross).fee(basis_points).unwrap(), micros(fee), "{gross} at {basis_points}");
    }
}

#[test]
fn a_budget_lasts_to_its_last_microdollar() {
    assert_eq!(usd("3.60").seconds_covered_by(usd("3.60")), Some(3_600));
    assert_eq!(usd("0").seconds_covered_by(usd("1")), None);
    assert_eq!(usd("1").seconds_covered_by(micros(-1)), Some(0));
    // A price so small that a second costs less than a micro-dollar.
    assert_eq!(micros(1).seconds_covered_by(Money::ZERO), Some(3_599));
    assert_eq!(micros(1).seconds_covered_by(micros(i64::MAX)), Some(i64::MAX));
}

#[test]
fn the_price_of_tokens() {
    // 0.37 $/h at 100 tok/s for each of 1: 360,000 tokens an hour.
    assert_eq!(usd("0.37").per_million_tokens(360_000 * 1_000_000), Some(micros(1_027_778)));
    assert_eq!(usd("0.37").per_million_tokens(0), None);
    // 1 µ$ an hour and 2 or 6 million tokens an hour are half a micro-dollar and a sixth.
    assert_eq!(micros(1).per_million_tokens(2_000_000 * 1_000_000), Some(micros(0)));
    assert_eq!(micros(3).per_million_tokens(2_000_000 * 1_000_000), Some(micros(2)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_is_printed_is_read_back(amount in 0..=1_000_000_000_000_000_i64) {
        prop_assert_eq!(micros(amount).to_string().parse(), Ok(micros(amount)));
    }

    /// Every text of the grammar has the value that its digits say.
    #[test]
    fn digits_say_the_value(units in 0..1_000_000_000_u64, decimals in "[0-9]{1,6}") {
        let expected = i128::from(units) * 1_000_000 + format!("{decimals:0<6}").parse::<i128>().unwrap();
        prop_assert_eq!(i128::from(format!("{units}.{decimals}").parse::<Money>().unwrap().micros()), expected);
    }

    #[test]
    fn reading_never_panics(text in ".*") {
        let _ = text.parse::<Money>();
    }

    /// A shown amount is zero only when it is.
    #[test]
    fn nothing_is_shown_as_zero_but_zero(amount in any::<i64>()) {
        let shown = micros(amount).to_string();
        let digits_only_zero = shown.bytes().all(|b| !b.is_ascii_digit() || b == b'0');
        prop_assert_eq!(digits_only_zero, amount == 0);
        let decimals = shown.split_once('.').unwrap().1.len();
        prop_assert!((2..=6).contains(&decimals));
    }

    /// The largest whole number that is not above rate × seconds ÷ 3600.
    #[test]
    fn a_charge_is_the_floor(rate in 0..1_000_000_000_000_i64, seconds in 0..400_000_000_i64) {
        if let Ok(charge) = micros(rate).charge_for_seconds(seconds) {
            let (charge, exact) = (i128::from(charge.micros()) * 3_600, i128::from(rate) * i128::from(seconds));
            prop_assert!(charge <= exact && exact < charge + 3_600);
        } else {
            prop_assert!(i128::from(rate) * i128::from(seconds) / 3_600 > i128::from(i64::MAX));
        }
    }

    /// However the time is cut, the pieces sum to the whole.
    #[test]
    fn ticks_never_matter(rate in 0..100_000_000_i64, cuts in prop::collection::vec(0..5_000_i64, 1..60)) {
        let (mut seconds, mut posted) = (0, Money::ZERO);
        for cut in &cuts {
            seconds += cut;
            let more = micros(rate).charge_for_seconds(seconds).unwrap().minus(posted).unwrap();
            prop_assert!(!more.is_negative());
            posted = posted.plus(more).unwrap();
        }
        prop_assert_eq!(posted, micros(rate).charge_for_seconds(seconds).unwrap());
    }

    /// Nearest, and even when two are nearest.
    #[test]
    fn the_fee_is_the_nearest(gross in -1_000_000_000_000..1_000_000_000_000_i64, basis_points in 0..=10_000_u16) {
        let fee = i128::from(micros(gross).fee(basis_points).unwrap().micros());
        let miss = (fee * 10_000 - i128::from(gross) * i128::from(basis_points)).abs();
        prop_assert!(miss < 5_000 || (miss == 5_000 && fee % 2 == 0), "{} misses by {}", fee, miss);
        if gross >= 0 {
            prop_assert!(0 <= fee && fee <= i128::from(gross));
        }
    }

    /// The budget covers these seconds and not one more.
    #[test]
    fn a_budget_covers_exactly_so_long(rate in 1..1_000_000_000_i64, budget in 0..1_000_000_000_000_i64) {
        let seconds = micros(rate).seconds_covered_by(micros(budget)).unwrap();
        prop_assert!(micros(rate).charge_for_seconds(seconds).unwrap() <= micros(budget));
        prop_assert!(micros(rate).charge_for_seconds(seconds + 1).unwrap() > micros(budget));
    }

    #[test]
    fn a_shown_balance_is_never_more_than_there_is(amount in any::<i64>()) {
        let shown = micros(amount).floor_to_cents();
        prop_assert!(shown <= micros(amount));
        prop_assert!(i128::from(amount) - i128::from(shown.micros()) < 10_000);
    }
}
