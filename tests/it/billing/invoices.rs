//! A month's invoice: JSON, CSV and the page to print say the same, and add up.

use rigmark::base::Money;
use serde_json::{Value, json};

use crate::support::{
    hosts::{Person, person},
    renting::{Stage, instant},
};

const HOUR_SECONDS: i64 = 3_600;

/// An amount of either sign.
#[track_caller]
fn money(value: &Value) -> Money {
    signed(value.as_str().unwrap_or_else(|| panic!("{value} is no amount")))
}

#[track_caller]
fn signed(text: &str) -> Money {
    match text.strip_prefix('-') {
        Some(positive) => positive.parse::<Money>().unwrap().negated().unwrap(),
        None => text.parse().unwrap(),
    }
}

fn sum(amounts: impl Iterator<Item = Money>) -> Money {
    amounts.fold(Money::ZERO, |sum, amount| sum.plus(amount).unwrap())
}

async fn invoice(of: &Person, month: &str) -> Value {
    let invoice = of.http.get(&format!("/api/v1/invoices/{month}")).expect(200).await;
    assert_adds_up(&invoice);
    invoice
}

fn assert_adds_up(invoice: &Value) {
    let rows = |name: &str| invoice[name].as_array().unwrap().iter();
    let changed = sum(rows("rentals").chain(rows("lines")).map(|row| money(&row["amount"])));
    assert_eq!(changed, money(&invoice["credits"]).minus(money(&invoice["charges"])).unwrap(), "{invoice}");
    assert_eq!(money(&invoice["opening"]).plus(changed).unwrap(), money(&invoice["closing"]), "{invoice}");
    for row in rows("rentals") {
        assert_eq!(money(&row["net"]).plus(money(&row["fee"])).unwrap(), money(&row["gross"]), "{row}");
        let own = if row["side"] == "host" { money(&row["net"]) } else { money(&row["gross"]).negated().unwrap() };
        assert_eq!(money(&row["amount"]), own, "{row}");
    }
}

/// The month of an instant.
fn month(at: chrono::DateTime<chrono::Utc>) -> String {
    at.format("%Y-%m").to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn renter_and_host_see_the_same_rental_from_their_sides() {
    let stage = Stage::new("50").await;
    stage.renter.http.patch("/api/v1/me").json(&json!({ "display_name": "=HYPERLINK(1)" })).expect(200).await;
    let rental = stage.rent_active(json!({})).await;
    stage.app.advance(HOUR_SECONDS).await;
    let ended = stage.stop(&rental).await;
    let now = month(instant(&ended["ended_at"]));
    let started = month(instant(&ended["active_at"]));
    assert!(now == started || !started.is_empty());
    let renters = invoice(&stage.renter, &now).await;
    let row = renters["rentals"].as_array().unwrap().iter().find(|row| row["rental_id"] == rental["id"]).unwrap().clone();
    assert_eq!((&row["side"], &row["with"], &row["machine"]), (&json!("renter"), &json!("@host"), &json!("1 × RTX 3090")));
    assert_eq!((&row["price_per_hour"], &row["ended_at"]), (&json!("3.60"), &ended["ended_at"]));
    let hosts = invoice(&stage.host, &now).await;
    let other = &hosts["rentals"][0];
    assert_eq!((&other["side"], &other["with"], &other["with_name"]), (&json!("host"), &json!("@renter"), &json!("=HYPERLINK(1)")));
    for name in ["gross", "fee", "net", "seconds", "started_at", "ended_at"] {
        assert_eq!(row[name], other[name], "{name}");
    }
    assert_eq!(hosts["stripe_invoices"], json!([]));
    // The rental's own account of itself, over the months that it touched.
    if now == started {
        assert_eq!((&row["gross"], &row["seconds"]), (&ended["spend"], &ended["billed_seconds"]));
    }
    // The same as a table, inert for a spreadsheet, and as a page.
    let csv = stage.host.http.get(&format!("/api/v1/invoices/{now}/invoice.csv")).answer().await;
    assert!(csv.header("content-disposition").unwrap().contains(&format!("rigmark-invoice-{now}.csv")));
    let mut reader = csv::Reader::from_reader(csv.body.as_bytes());
    let headers = reader.headers().unwrap().clone();
    let records: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let cell = |record: &csv::StringRecord, name: &str| record[headers.iter().position(|header| header == name).unwrap()].to_owned();
    let amounts = records.iter().map(|record| (cell(record, "kind"), signed(&cell(record, "amount"))));
    let (closing, parts): (Vec<_>, Vec<_>) = amounts.partition(|(kind, _)| kind == "closing");
    assert_eq!(sum(parts.into_iter().map(|(_, amount)| amount)), closing[0].1);
    let rented = records.iter().find(|record| cell(record, "kind") == "rental").unwrap();
    assert_eq!(cell(rented, "with_name"), "'=HYPERLINK(1)");
    assert_eq!(cell(rented, "with"), "'@renter");
    let page = stage.renter.http.get(&format!("/api/v1/invoices/{now}/invoice.html")).answer().await.body;
    for text in [rental["id"].as_str().unwrap(), "Rented from", "=HYPERLINK(1)", "1 × RTX 3090", "Sandbox: play money."] {
        assert!(page.contains(text), "{text}: {page}");
    }
}

/// A rental over the end of a month is on two invoices, each with its own days, and the second opens where the first closes.
#[tokio::test(flavor = "multi_thread")]
async fn a_rental_over_the_end_of_a_month_is_on_both_invoices() {
    let stage = Stage::new("4000").await;
    let rental = stage.rent_active(json!({})).await;
    let started = instant(&rental["active_at"]);
    stage.app.advance(35 * 24 * HOUR_SECONDS).await;
    let ended = stage.stop(&rental).await;
    let mut months: Vec<String> = (0..=35).map(|day| month(started + chrono::TimeDelta::days(day))).collect();
    months.push(month(instant(&ended["ended_at"])));
    months.dedup();
    assert!(months.len() >= 2, "{months:?}");
    let mut closing = Money::ZERO;
    let (mut gross, mut seconds) = (Money::ZERO, 0);
    for (place, month) in months.iter().enumerate() {
        let invoice = invoice(&stage.renter, month).await;
        assert_eq!(money(&invoice["opening"]), closing, "{month}");
        assert_eq!(invoice["is_complete"], json!(place + 1 < months.len()), "{month}");
        let row = &invoice["rentals"][0];
        gross = gross.plus(money(&row["gross"])).unwrap();
        seconds += row["seconds"].as_i64().unwrap();
        closing = money(&invoice["closing"]);
    }
    assert_eq!((gross, json!(seconds)), (money(&ended["spend"]), ended["billed_seconds"].clone()));
    assert_eq!(stage.renter.http.get("/api/v1/balance").expect(200).await["available"], json!(closing.to_string()));
}

#[tokio::test]
async fn what_is_no_month_has_no_invoice_and_an_empty_one_is_empty() {
    let stage = Stage::new("0").await;
    let ada = person(&stage.app, "ada").await;
    for text in ["2026", "2026-13", "2026-00", "26-11", "2026-1", "2026-11-01", "9999-12", "+026-11", "2026_11"] {
        ada.http.get(&format!("/api/v1/invoices/{text}")).expect_problem(404, "not_found").await;
    }
    let empty = invoice(&ada, "2024-02").await;
    assert_eq!((&empty["from"], &empty["to"]), (&json!("2024-02-01T00:00:00Z"), &json!("2024-03-01T00:00:00Z")));
    assert_eq!((&empty["rentals"], &empty["lines"], &empty["is_complete"]), (&json!([]), &json!([]), &json!(true)));
    stage.app.http.get("/api/v1/invoices/2024-02").expect_problem(401, "unauthenticated").await;
}
