//! Copies of other accounts' runs, found by the index over all of them: the newcomer is looked at, and only the newcomer.

use rigmark::benchmarks::service::Reverification;
use rigmark::benchmarks::{assess, is_near_duplicate};
use serde_json::{Value, json};

use super::forge::{Case, rows, scale, speed_up};
use crate::support::TestApp;
use crate::support::hosts::{Person, person};

const RUN: &str = "reference-run.json";

async fn upload(person: &Person, document: &Value) -> Value {
    person.http.post("/api/v1/matrix-runs").json(&json!({ "document": document })).expect(201).await
}

fn codes(run: &Value) -> Vec<&str> {
    run["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|check| check["severity"] != "note")
        .map(|check| check["code"].as_str().unwrap())
        .collect()
}

/// Every measured second one microsecond longer: no exact print is left.
fn stretched(document: &Value) -> Value {
    let mut copy = document.clone();
    for row in rows(&mut copy) {
        if let Some(seconds) = row["measurement_seconds"].as_f64() {
            row["measurement_seconds"] = json!(((seconds + 1e-6) * 1e6).round() / 1e6);
        }
    }
    copy
}

#[tokio::test]
async fn a_copy_is_looked_at_and_its_original_is_not() {
    let app = TestApp::new().await;
    let (ada, bob, eve) = (person(&app, "ada").await, person(&app, "bob").await, person(&app, "eve").await);
    let document = super::value(RUN);
    let original = upload(&ada, &document).await;
    assert_eq!(original["status"], "verified");
    let id = original["id"].as_str().unwrap();

    let same = upload(&bob, &document).await;
    assert_eq!((same["status"].as_str().unwrap(), codes(&same)), ("needs_review", vec!["duplicate_document"]));
    let public = app.http.get(&format!("/api/v1/matrix-runs/{id}/document")).expect(200).await;
    let published = upload(&eve, &public).await;
    assert!(codes(&published).contains(&"duplicate_document"), "a copy of what the public sees: {:?}", codes(&published));

    let mut work = Reverification::begin(app.ctx()).await.unwrap();
    while work.step().await.unwrap() {}
    assert_eq!((work.pass().runs_done, work.pass().runs_changed), (3, 0), "the original does not become a copy of its copies");
}

#[tokio::test]
async fn digits_changed_beyond_notice_do_not_hide_a_copy() {
    let app = TestApp::new().await;
    let (ada, bob, eve) = (person(&app, "ada").await, person(&app, "bob").await, person(&app, "eve").await);
    let document = super::value(RUN);
    upload(&ada, &document).await;
    let moved = upload(&bob, &stretched(&document)).await;
    assert!(codes(&moved).contains(&"near_duplicate"), "{:?}", codes(&moved));
    let mut faster = document.clone();
    speed_up(&mut faster, |_, _| 1.000_1);
    let faster = upload(&eve, &faster).await;
    assert!(codes(&faster).contains(&"near_duplicate"), "{:?}", codes(&faster));
}

#[tokio::test]
async fn two_copies_at_once_are_not_both_the_first() {
    let app = TestApp::new().await;
    let (ada, bob) = (person(&app, "ada").await, person(&app, "bob").await);
    let document = super::value(RUN);
    let (one, other) = tokio::join!(upload(&ada, &document), upload(&bob, &document));
    let verified = [&one, &other].iter().filter(|run| run["status"] == "verified").count();
    assert_eq!(verified, 1, "{} and {}", one["status"], other["status"]);
}

/// The rule in the database and the rule in the program are one; and honest runs of one machine are no copies.
#[test]
fn runs_of_one_machine_differ_by_more_than_copies_do() {
    let original = super::judge(RUN);
    let judged = |case: &Case| assess(case.document.to_string().as_bytes(), &case.claim, &case.context).unwrap();
    let mut case = Case::of(RUN);
    case.document = stretched(&case.document);
    assert!(is_near_duplicate(&original.fingerprint, &judged(&case).fingerprint));
    // Three tenths of a percent, as the same machine measures on another day.
    let mut again = Case::of(RUN);
    speed_up(&mut again.document, |context, level| if (context / 1_024 + level).is_multiple_of(2) { 1.003 } else { 0.997 });
    let other_walls = |case: &mut Case| {
        for row in rows(&mut case.document) {
            scale(row, "wall_time", 1.000_1);
        }
    };
    other_walls(&mut again);
    assert!(!is_near_duplicate(&original.fingerprint, &judged(&again).fingerprint));
    // The same speeds, other times to the first token.
    let mut warm = Case::of(RUN);
    for row in rows(&mut warm.document) {
        scale(row, "measurement_seconds", 1.000_001);
        scale(row, "ttft_p50", 1.03);
    }
    other_walls(&mut warm);
    assert!(!is_near_duplicate(&original.fingerprint, &judged(&warm).fingerprint));
}
