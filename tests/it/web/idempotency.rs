//! One effect for one key, whatever happens around it.

use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::web::{ServiceConfig, post};
use diesel::sql_types::BigInt;
use diesel::{QueryableByName, sql_query};
use diesel_async::RunQueryDsl;
use futures::future::join_all;
use rigmark::base::id::AccountId;
use rigmark::base::{Code, Error, Result};
use rigmark::ctx::Ctx;
use rigmark::web::idempotency::{self, Begun};
use rigmark::web::{Idem, Json, Path};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::server::{Server, ctx};
use crate::support::{TestDatabase, database, wait_for};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    amount: i64,
    /// The code to fail with, after the effect.
    fail: Option<String>,
    /// Seconds of PostgreSQL's time in the middle of the effect.
    #[serde(default)]
    slow_seconds: f64,
}

#[derive(QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    count: i64,
}

/// The effect is one row in `orders`.
async fn order(account: Path<Uuid>, idem: Idem, body: Json<Order>, ctx: Ctx) -> Result<HttpResponse> {
    let claim = idem.claim(AccountId::from_uuid(*account), &body);
    idempotency::once(&ctx, claim, async |tx| {
        sql_query("INSERT INTO orders DEFAULT VALUES").execute(tx).await?;
        sql_query("SELECT pg_sleep($1)").bind::<diesel::sql_types::Double, _>(body.slow_seconds).execute(tx).await?;
        match &body.fail {
            Some(code) => Err(Error::new(*Code::ALL.iter().find(|c| c.as_str() == code).unwrap(), "asked for").with_retry_after(9)),
            None => Ok((StatusCode::CREATED, json!({"z": body.amount, "a": Uuid::new_v4()}))),
        }
    })
    .await
}

fn routes(config: &mut ServiceConfig) {
    config.route("/api/v1/{account}/orders", post().to(order)).route("/api/v1/{account}/other", post().to(order));
}

struct Shop {
    server: Server,
    database: TestDatabase,
    path: String,
}

impl Shop {
    async fn new() -> Self {
        let database = database().await;
        sql_query("CREATE TABLE orders (id bigserial PRIMARY KEY)").execute(&mut database.connect().await).await.unwrap();
        let server = Server::with(ctx(database.url(), ""), routes);
        Self { server, database, path: format!("/api/v1/{}/orders", Uuid::new_v4()) }
    }

    fn post(&self, key: &str, body: serde_json::Value) -> crate::support::http::Request {
        self.server.http.post(&self.path).idempotency_key(key).json(&body)
    }

    async fn count(&self, table: &str) -> i64 {
        let mut connection = self.database.connect().await;
        let row: Count = sql_query(format!("SELECT count(*) FROM {table}")).get_result(&mut connection).await.unwrap();
        row.count
    }
}

#[actix_web::test]
async fn the_key_is_required_and_printable() {
    let shop = Shop::new().await;
    let long = "x".repeat(256);
    for key in ["", long.as_str(), "tab\there"] {
        shop.post(key, json!({"amount": 1})).expect_problem(400, "idempotency_key_required").await;
    }
    shop.server.http.post(&shop.path).json(&json!({"amount": 1})).expect_problem(400, "idempotency_key_required").await;
    shop.post(&"x".repeat(255), json!({"amount": 1})).expect(201).await;
    assert_eq!(shop.count("orders").await, 1);
}

#[actix_web::test]
async fn a_repeat_gets_the_first_answer_and_no_second_effect() {
    let shop = Shop::new().await;
    let first = shop.server.http.post(&shop.path).idempotency_key("k").body(r#"{"amount":1,"slow_seconds":0.0}"#).answer().await;
    assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (201, None));
    // Spelled otherwise, the same value.
    let again = shop.server.http.post(&shop.path).idempotency_key("k").body(r#"{ "slow_seconds": 0.0, "amount":1 }"#).answer().await;
    assert_eq!((again.status.as_u16(), again.body.as_str()), (201, first.body.as_str()));
    assert_eq!(again.header("idempotency-replayed").as_deref(), Some("true"));
    assert_eq!(again.header("content-type"), first.header("content-type"));
    shop.post("k", json!({"amount": 2})).expect_problem(422, "idempotency_key_reused").await;
    assert_eq!(shop.count("orders").await, 1);
}

#[actix_web::test]
async fn keys_belong_to_an_account_and_a_route() {
    let shop = Shop::new().await;
    shop.post("k", json!({"amount": 1})).expect(201).await;
    let elsewhere = [shop.path.replace("/orders", "/other"), format!("/api/v1/{}/orders", Uuid::new_v4())];
    for path in elsewhere {
        shop.server.http.post(&path).idempotency_key("k").json(&json!({"amount": 2})).expect(201).await;
    }
    assert_eq!(shop.count("orders").await, 3);
}

#[actix_web::test]
async fn a_hundred_at_once_have_one_effect() {
    let shop = Shop::new().await;
    let answers = join_all((0..100).map(|_| shop.post("k", json!({"amount": 1, "slow_seconds": 0.05})).answer())).await;
    assert_eq!(shop.count("orders").await, 1);
    let mut bodies = std::collections::BTreeSet::new();
    for answer in &answers {
        match answer.status.as_u16() {
            201 => drop(bodies.insert(answer.body.clone())),
            409 => {
                assert_eq!(answer.json()["code"], "idempotency_in_progress");
                assert!(answer.header("retry-after").is_some());
            }
            other => panic!("{other}: {}", answer.body),
        }
    }
    assert_eq!(bodies.len(), 1, "every success is the same answer");
    let last = shop.post("k", json!({"amount": 1, "slow_seconds": 0.05})).answer().await;
    assert!(bodies.contains(&last.body));
}

#[actix_web::test]
async fn errors_that_may_pass_are_not_kept_and_others_are() {
    let shop = Shop::new().await;
    for code in ["insufficient_funds", "already_rented", "rate_limited", "internal", "unavailable", "engine_error"] {
        let failing = || shop.post(code, json!({"amount": 1, "fail": code})).answer();
        let (first, again) = (failing().await, failing().await);
        assert_eq!((first.status, again.status), (again.status, first.status), "{code}");
        assert_eq!(again.header("idempotency-replayed"), None, "{code} was run again");
        // Free for another body, since nothing was kept.
        shop.post(code, json!({"amount": 1})).expect(201).await;
    }
    let effects = shop.count("orders").await;
    assert_eq!(effects, 6, "a failed effect leaves nothing");
    for (code, status) in [("invalid_input", 422), ("not_found", 404), ("forbidden", 403)] {
        let failing = || shop.post(code, json!({"amount": 1, "fail": code})).header("x-request-id", format!("r-{code}")).answer();
        let (first, again) = (failing().await, failing().await);
        assert_eq!((first.status.as_u16(), again.status.as_u16()), (status, status));
        assert_eq!(first.body, again.body);
        assert_eq!(again.header("idempotency-replayed").as_deref(), Some("true"));
        assert_eq!(again.header("content-type").as_deref(), Some("application/problem+json"));
        shop.post(code, json!({"amount": 1})).expect_problem(422, "idempotency_key_reused").await;
    }
    assert_eq!(shop.count("orders").await, effects);
}

fn claim(body: u8) -> idempotency::Claim {
    idempotency::Claim {
        account: AccountId::from_uuid(Uuid::from_u128(7)),
        route: "POST /x".to_owned(),
        key: "k".to_owned(),
        body_sha256: [body; 32],
    }
}

#[actix_web::test]
async fn a_dead_attempt_is_taken_over_and_cannot_complete() {
    let shop = Shop::new().await;
    let ctx = &shop.server.ctx;
    let Begun::Claimed(dead) = idempotency::begin(ctx, claim(1)).await.unwrap() else { panic!("the key is new") };
    let Err(error) = idempotency::begin(ctx, claim(1)).await else { panic!("the lease holds") };
    assert_eq!((error.code(), error.retry_after_seconds()), (Code::IdempotencyInProgress, Some(2)));
    ctx.clock.shift_wall(61);
    let Err(error) = idempotency::begin(ctx, claim(2)).await else { panic!("another body") };
    assert_eq!(error.code(), Code::IdempotencyKeyReused);
    let Begun::Claimed(next) = idempotency::begin(ctx, claim(1)).await.unwrap() else { panic!("the lease is over") };
    assert_eq!(next.claim().derived_key(), dead.claim().derived_key());

    let complete = async |lease: &idempotency::Lease| {
        ctx.db
            .tx("test", async |tx| {
                sql_query("INSERT INTO orders DEFAULT VALUES").execute(tx).await?;
                lease.complete(tx, StatusCode::OK, &1).await
            })
            .await
    };
    assert_eq!(complete(&dead).await.unwrap_err().code(), Code::IdempotencyInProgress);
    assert_eq!(shop.count("orders").await, 0, "its effect is undone with it");
    // Nor does the dead one's failure free the key under the next.
    dead.fail(ctx, &Error::new(Code::Unavailable, "late")).await;
    let answer = complete(&next).await.unwrap();
    let Begun::Replay(replayed) = idempotency::begin(ctx, claim(1)).await.unwrap() else { panic!("it is done") };
    assert_eq!(replayed, answer);
    assert_eq!(shop.count("orders").await, 1);
}

#[actix_web::test]
async fn keys_are_forgotten_after_a_day() {
    let shop = Shop::new().await;
    shop.post("k", json!({"amount": 1})).expect(201).await;
    let ctx = &shop.server.ctx;
    let mut connection = shop.database.connect().await;
    ctx.clock.shift_wall(24 * 3_600);
    assert_eq!(idempotency::expire(&mut connection, ctx.clock.wall_now()).await.unwrap(), 0);
    ctx.clock.shift_wall(2 * 3_600);
    assert_eq!(idempotency::expire(&mut connection, ctx.clock.wall_now()).await.unwrap(), 1);
    shop.post("k", json!({"amount": 2})).expect(201).await;
    assert_eq!(shop.count("orders").await, 2);
}

/// The client that hangs up is the reason why idempotency keys exist: what it began must end, and be there for the repeat.
#[actix_web::test]
async fn a_client_that_hangs_up_does_not_stop_the_effect() {
    let shop = Shop::new().await;
    let body = json!({"amount": 1, "slow_seconds": 1.0});
    let hung_up = tokio::time::timeout(Duration::from_millis(300), shop.post("k", body.clone()).send()).await;
    assert!(hung_up.is_err(), "it was still running");
    let is_done = async || shop.count("idempotency_keys WHERE state = 'done'").await == 1;
    wait_for("the effect ends", Duration::from_secs(20), is_done).await;
    let answer = shop.post("k", body).answer().await;
    assert_eq!((answer.status.as_u16(), answer.header("idempotency-replayed").as_deref()), (201, Some("true")));
    assert_eq!(shop.count("orders").await, 1);
}
