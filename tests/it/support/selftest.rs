//! The harness keeps its own promises.

use std::time::Duration;

use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use redis::AsyncCommands;

use super::{TempDir, TestApp, database, postgres, redis as test_redis, wait_for};

#[tokio::test]
async fn two_databases_share_nothing_and_go_at_the_end() {
    let (one, two) = tokio::join!(database(), database());
    one.connect().await.batch_execute("CREATE TABLE only_here (n int)").await.unwrap();
    let there = diesel::sql_query("SELECT * FROM only_here").execute(&mut two.connect().await).await;
    assert!(there.is_err());

    let url = one.url().to_owned();
    let name = url.rsplit_once('/').unwrap().1.to_owned();
    let mut open = one.connect().await;
    drop(one);
    let other = postgres().empty_database().await;
    let mut admin = other.connect().await;
    wait_for("the end of the database", Duration::from_secs(20), async || {
        let found = diesel::sql_query("SELECT 1 FROM pg_database WHERE datname = $1").bind::<diesel::sql_types::Text, _>(&name);
        found.execute(&mut admin).await.is_ok_and(|rows| rows == 0)
    })
    .await;
    assert!(diesel::sql_query("SELECT 1").execute(&mut open).await.is_err());
}

#[tokio::test]
async fn redis_answers_and_prefixes_differ() {
    let (one, two) = (test_redis(), test_redis());
    assert_ne!(one.prefix, two.prefix);
    let client = redis::Client::open(one.url.as_str()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let _: () = connection.set(format!("{}key", one.prefix), 7).await.unwrap();
    let (here, there): (Option<i32>, Option<i32>) =
        (connection.get(format!("{}key", one.prefix)).await.unwrap(), connection.get(format!("{}key", two.prefix)).await.unwrap());
    assert_eq!((here, there), (Some(7), None));
}

#[test]
fn directories_of_killed_runs_are_swept() {
    let _first = TempDir::new();
    // No process has this id: it is above the largest that Linux gives.
    let left = std::env::temp_dir().join("rigmark-test-99999999-0");
    std::fs::create_dir_all(left.join("cluster")).unwrap();
    super::temp::sweep();
    assert!(!left.exists());
}

#[tokio::test]
async fn an_app_answers_works_and_restarts_on_its_database() {
    let mut app = TestApp::new().await;
    let answer = app.http.get("/no/such/path").answer().await;
    assert_eq!(answer.status, 404);
    app.work().await;
    app.advance(3600).await;
    let before = app.ctx().business_now(&mut app.connect().await).await.unwrap();
    app.restart().await;
    let after = app.ctx().business_now(&mut app.connect().await).await.unwrap();
    assert!(before <= after && after - before < chrono::TimeDelta::minutes(30), "{before} {after}");
    assert_eq!(app.http.get("/no/such/path").answer().await.status, 404);
}
