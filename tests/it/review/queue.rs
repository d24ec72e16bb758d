//! The queue: longest waiting first, page by page, by what an operator looks for.

use serde_json::{Value, json};

use super::{Stage, finding, needs_review};
use crate::support::hosts::{RunRow, execute};

impl Stage {
    async fn queue(&self, query: &str) -> Value {
        self.olga.http.get(&format!("/api/v1/admin/review-queue{query}")).expect(200).await
    }

    async fn ids(&self, query: &str) -> Vec<String> {
        ids(&self.queue(query).await)
    }
}

fn ids(page: &Value) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(|item| item["run"]["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn runs_wait_in_the_order_in_which_they_came() {
    let stage = Stage::new().await;
    let mut runs = Vec::new();
    for age_seconds in [50, 400, 300, 100, 200] {
        runs.push((age_seconds, stage.run(&RunRow { age_seconds, ..needs_review() }, json!([])).await));
    }
    // Of the same instant.
    execute(&stage.app, "UPDATE runs SET created_at = (SELECT min(created_at) FROM runs) WHERE created_at < now() - interval '250 s'")
        .await;
    stage.run(&RunRow::default(), json!([])).await;
    let mut oldest: Vec<_> = runs.iter().filter(|(age, _)| *age >= 300).map(|(_, id)| *id).collect();
    oldest.sort();
    let young = [200, 100, 50].iter().map(|age| runs.iter().find(|(found, _)| found == age).unwrap().1);
    let expected: Vec<String> = oldest.into_iter().chain(young).map(|id| id.to_string()).collect();
    assert_eq!(stage.ids("").await, expected);

    let mut paged = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let page = stage.queue(&query).await;
        paged.extend(ids(&page));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("?limit=2&cursor={cursor}");
        assert!(paged.len() < 10, "{paged:?}");
    }
    assert_eq!(paged, expected);
    let cursor = stage.queue("?limit=2").await["next_cursor"].as_str().unwrap().to_owned();
    let foreign = format!("/api/v1/admin/review-queue?cause=dispute&cursor={cursor}");
    stage.olga.http.get(&foreign).expect_problem(400, "invalid_cursor").await;
}

#[tokio::test]
async fn the_queue_is_narrowed_by_why_and_how_long_a_run_waits() {
    let stage = Stage::new().await;
    let copied =
        stage.run(&RunRow { age_seconds: 7_200, ..needs_review() }, json!([finding("near_duplicate"), finding("run_replayed")])).await;
    let odd = stage.run(&RunRow { age_seconds: 1_800, visibility: "unlisted", ..needs_review() }, json!([finding("total_mismatch")])).await;
    let disputed = stage.run(&RunRow { age_seconds: 9_000, ..needs_review() }, json!([])).await;
    execute(
        &stage.app,
        &format!("INSERT INTO run_events (run_id, at, kind) SELECT id, created_at + interval '8000 s', 'sent_to_review' FROM runs WHERE id = '{}'", disputed.uuid()),
    )
    .await;
    let [copied, odd, disputed] = [copied, odd, disputed].map(|id| id.to_string());
    let all = stage.queue("").await;
    // The disputed one waits since it was sent here, not since it was uploaded.
    assert_eq!(ids(&all), [&copied, &odd, &disputed].map(String::clone));
    assert_eq!(
        (all["data"][1]["visibility"].as_str(), &all["data"][0]["findings"]),
        (Some("unlisted"), &json!(["near_duplicate", "run_replayed"]))
    );
    assert_eq!(all["data"][0]["run"]["by"], "@host");
    assert_eq!(stage.ids("?cause=dispute").await, [disputed.as_str()]);
    assert_eq!(stage.ids("?cause=findings").await, [copied.as_str(), &odd]);
    assert_eq!(stage.ids("?finding=run_replayed").await, [copied.as_str()]);
    assert_eq!(stage.ids("?waiting_hours=1").await, [copied.as_str()]);
    assert_eq!(stage.ids("?answered=true").await, Vec::<String>::new());
    stage.host.http.post(&format!("/api/v1/matrix-runs/{odd}/answer")).json(&json!({ "text": "A slow disk." })).expect(201).await;
    assert_eq!(stage.ids("?answered=true").await, [odd.as_str()]);
    assert_eq!(stage.ids("?answered=false&cause=findings").await, [copied.as_str()]);
    assert!(stage.queue("?answered=true").await["data"][0]["answered_at"].is_string());
    stage.olga.http.get("/api/v1/admin/review-queue?waiting_hours=99999").expect_problem(422, "invalid_input").await;
    stage.olga.http.get("/api/v1/admin/review-queue?cause=envy").expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn an_operator_reads_what_a_check_means() {
    let stage = Stage::new().await;
    let run = stage.run(&needs_review(), json!([finding("total_mismatch"), finding("a_check_of_yore")])).await;
    let shown = stage.olga.http.get(&format!("/api/v1/admin/matrix-runs/{run}")).expect(200).await;
    let found = &shown["findings"][0];
    assert_eq!((found["title"].as_str(), found["expected"].as_str()), (Some("The total is not tokens divided by seconds"), Some("1")));
    assert!(found["explanation"].as_str().unwrap().contains("They must agree"), "{found}");
    assert_eq!(found["cells"][0], json!({"phase": "decode", "context_tokens": 0, "concurrency": 1}));
    assert_eq!((&shown["findings"][1]["title"], &shown["findings"][1]["code"]), (&Value::Null, &json!("a_check_of_yore")));
    assert_eq!((&shown["waiting"]["cause"], &shown["waiting"]["since"]), (&json!("findings"), &shown["run"]["created_at"]));
    assert_eq!((&shown["is_own"], &shown["is_decided"], &shown["answer"]), (&json!(false), &json!(false), &Value::Null));
    stage.decide(&stage.olga, run, "reject", "It is a copy.").await;
    let shown = stage.olga.http.get(&format!("/api/v1/admin/matrix-runs/{run}")).expect(200).await;
    assert_eq!((&shown["waiting"], &shown["is_decided"]), (&Value::Null, &json!(true)));
    assert_eq!(shown["history"][0]["kind"], "reviewed");
}
