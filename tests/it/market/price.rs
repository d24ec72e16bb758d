//! The price of a million output tokens: in Rust, in SQL, and by definition.

use diesel::{QueryableByName, sql_query, sql_types as sql};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rigmark::base::Money;
use rigmark::market::price::{CellSpeed, per_million_output_tokens, per_million_sql};
use rigmark::market::workload::{MeasuredCell, micro_tokens_per_second, parse_context};

use crate::support::database;

fn price(micros: i64, total: f64, concurrency: i32, users: i32) -> Option<i64> {
    let cell = MeasuredCell { context_tokens: 0, concurrency, total_tokens_per_second: total, ttft_ms: None, cold_ttft_ms: None };
    cell.price_per_million_output_tokens(Money::usd_micros(micros), users).map(Money::micros)
}

#[test]
fn the_figures_of_a_rental() {
    // 0.37 $/h at 400 tokens/s of eight users, all of them ours: 1.44 million tokens an hour.
    assert_eq!(price(370_000, 400.0, 8, 8), Some(256_944));
    // One user of the eight gets 50 tokens/s: 0.18 million an hour.
    assert_eq!(price(370_000, 400.0, 8, 1), Some(2_055_556));
    // 1 token/s for 3600 s: exact halves go to the even neighbour. 9 µ$ × 10^6 ÷ 3600 = 2500; 1 µ$ ÷ (2 × 10^6 tokens/h) = 0.5 → 0.
    assert_eq!(price(9, 1.0, 1, 1), Some(2_500));
    let half = CellSpeed { total_micro_tokens_per_second: 2_000_000_000_000, concurrency: 3_600 };
    assert_eq!(per_million_output_tokens(Money::usd_micros(1), half, 1), Some(Money::usd_micros(0)));
    assert_eq!(per_million_output_tokens(Money::usd_micros(3), half, 1), Some(Money::usd_micros(2)));
    assert_eq!(price(1_000_000_000_000, 0.000_001, 4_096, 1), None, "more than 64 bits hold");
    for none in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9, 1e16] {
        assert_eq!(micro_tokens_per_second(none), None, "{none}");
    }
}

#[test]
fn contexts_as_people_write_them() {
    for (text, tokens) in [("0", 0), ("16384", 16_384), ("16k", 16_384), ("16K", 16_384), ("1m", 1_048_576), ("1", 1)] {
        assert_eq!(parse_context(text), Some(tokens), "{text}");
    }
    for text in ["", "k", "-1", "+1", "1.5k", "16 k", "16kb", "99999999999", "17m", "０"] {
        assert_eq!(parse_context(text), None, "{text}");
    }
}

#[derive(QueryableByName)]
struct Priced {
    #[diesel(sql_type = sql::BigInt)]
    micros: i64,
}

async fn in_sql(conn: &mut AsyncPgConnection, rows: &[(i64, f64, i32, i32)]) -> Vec<i64> {
    let text = format!(
        "SELECT per_million.micros FROM unnest($1, $2, $3, $4) WITH ORDINALITY AS row(price, total, concurrency, users, number)
         CROSS JOIN LATERAL (SELECT price AS price_per_hour_micros) l
         CROSS JOIN LATERAL (SELECT concurrency, total AS total_tokens_per_second) cell
         {} ORDER BY number",
        per_million_sql("users")
    );
    let priced: Vec<Priced> = sql_query(text)
        .bind::<sql::Array<sql::BigInt>, _>(rows.iter().map(|row| row.0).collect::<Vec<_>>())
        .bind::<sql::Array<sql::Double>, _>(rows.iter().map(|row| row.1).collect::<Vec<_>>())
        .bind::<sql::Array<sql::Integer>, _>(rows.iter().map(|row| row.2).collect::<Vec<_>>())
        .bind::<sql::Array<sql::Integer>, _>(rows.iter().map(|row| row.3).collect::<Vec<_>>())
        .load(conn)
        .await
        .unwrap();
    priced.into_iter().map(|row| row.micros).collect()
}

/// The definition in whole numbers of any size: is `micros` the half-even quotient?
fn is_by_definition(micros: i64, (price, total, concurrency, users): (i64, f64, i32, i32)) -> bool {
    let rate = i128::from(micro_tokens_per_second(total).unwrap());
    let dividend = i128::from(price) * i128::from(concurrency) * 1_000_000_000_000;
    let divisor = rate * i128::from(users) * 3_600;
    let twice_off = 2 * (dividend - i128::from(micros) * divisor);
    twice_off.abs() < divisor || (twice_off.abs() == divisor && micros % 2 == 0)
}

#[tokio::test]
async fn rust_and_sql_and_the_definition_agree() {
    let database = database().await;
    let mut conn = database.connect().await;
    // Whole rates and small prices give many exact halves, the others exercise the rounding of rates.
    let rates = prop_oneof![
        (1_u32..5_000).prop_map(f64::from),
        (1_u32..4_000_000).prop_map(|n| f64::from(n) / 1_024.0),
        0.000_001_f64..1_000_000.0,
        (1_u32..1_000_000).prop_map(|n| f64::from(n) * 1e-6),
    ];
    let prices = prop_oneof![1_i64..2_000, 1_i64..100_000_000, 1_i64..=1_000_000_000_000];
    let row = (prices, rates, 1..=4_096_i32, 1..=4_096_i32);
    let mut runner = TestRunner::default();
    for _ in 0..20 {
        let rows: Vec<_> = (0..500).map(|_| row.new_tree(&mut runner).unwrap().current()).collect();
        let sql = in_sql(&mut conn, &rows).await;
        for (row, sql) in rows.into_iter().zip(sql) {
            match price(row.0, row.1, row.2, row.3) {
                Some(rust) => {
                    assert_eq!(rust, sql, "{row:?}");
                    assert!(is_by_definition(rust, row), "{row:?}: {rust}");
                }
                // Where no amount fits, SQL sorts last.
                None => assert_eq!(sql, i64::MAX, "{row:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_rate_becomes_the_same_whole_number_in_rust_and_in_sql() {
    let database = database().await;
    let mut conn = database.connect().await;
    let mut runner = TestRunner::default();
    // Halves of a micro-token, where rounding to even and away from zero differ.
    let rates = prop_oneof![(1_u64..1 << 40).prop_map(|n| (n as f64 + 0.5) * 1e-6), 0.000_001_f64..9_000_000_000.0];
    let rates: Vec<f64> = (0..5_000).map(|_| rates.new_tree(&mut runner).unwrap().current()).collect();
    let text = "SELECT round(rate * 1e6)::bigint AS micros FROM unnest($1) WITH ORDINALITY AS row(rate, number) ORDER BY number";
    let sql: Vec<Priced> = sql_query(text).bind::<sql::Array<sql::Double>, _>(&rates).load(&mut conn).await.unwrap();
    for (rate, sql) in rates.into_iter().zip(sql) {
        assert_eq!(micro_tokens_per_second(rate), Some(sql.micros), "{rate}");
    }
}
