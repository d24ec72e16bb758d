//! Rate limits in the process and through Redis, and what happens when Redis goes away.

use std::time::Duration;

use actix_web::web::{ServiceConfig, get};
use actix_web::{HttpRequest, Responder};
use rigmark::base::secret::Secret;
use rigmark::base::{Result, clock};
use rigmark::ctx::Ctx;
use rigmark::integrations::limits::{Limits, Quota};
use rigmark::integrations::pubsub::{Notice, PubSub};
use rigmark::integrations::redis::Redis;
use rigmark::web::rate_limit;

use super::server::{NO_DATABASE, Server, ctx};
use crate::support::{RedisServer, redis, wait_for};

const THREE: Quota = Quota { name: "three", limit: 3, window_seconds: 60 };

async fn hello() -> impl Responder {
    "hello"
}
async fn few(req: HttpRequest, ctx: Ctx) -> Result<&'static str> {
    rate_limit::charge(&ctx, &req, THREE, "somebody").await?;
    Ok("hello")
}

fn routes(config: &mut ServiceConfig) {
    config.route("/api/v1/hello", get().to(hello)).route("/api/v1/few", get().to(few));
}

#[actix_web::test]
async fn answers_say_what_is_left() {
    let server = Server::start(routes);
    let answer = server.http.get("/api/v1/hello").answer().await;
    assert_eq!(answer.header("ratelimit-policy").as_deref(), Some("\"public\";q=6000;w=60"));
    assert_eq!(answer.header("ratelimit").as_deref(), Some("\"public\";r=5999;t=1"));
    // A token that nobody checked counts as a stranger's request.
    let answer = server.http.with_bearer("made-up").get("/api/v1/hello").answer().await;
    assert!(answer.header("ratelimit").unwrap().starts_with("\"public\";r=599"), "{:?}", answer.header("ratelimit"));
}

#[actix_web::test]
async fn beyond_the_limit_is_429_with_the_time_to_wait() {
    let own_redis = RedisServer::start();
    for server in [Server::start(routes), Server::with(ctx(NO_DATABASE, &own_redis.url()), routes)] {
        let caller = server.http.with_bearer("x");
        for left in ["2", "1", "0"] {
            let answer = caller.get("/api/v1/few").answer().await;
            assert_eq!(answer.status, 200);
            assert!(answer.header("ratelimit").unwrap().contains(&format!("r={left};")), "{:?}", answer.header("ratelimit"));
        }
        let answer = caller.get("/api/v1/few").answer().await;
        assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (429, Some("rate_limited")));
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((19..=20).contains(&wait), "{wait}");
        assert_eq!(answer.header("ratelimit-policy").as_deref(), Some("\"three\";q=3;w=60"));
        assert!(answer.header("ratelimit").unwrap().starts_with("\"three\";r=0;t=60"), "{:?}", answer.header("ratelimit"));
    }
}

#[actix_web::test]
async fn processes_with_one_redis_share_their_limits() {
    let shared = redis();
    let limits = || Limits::new(Some(Redis::new(&Secret::new(shared.url.clone()), &shared.prefix).unwrap()));
    let (one, other) = (limits(), limits());
    assert_eq!(one.take(THREE, "k").await.remaining, 2);
    assert_eq!(other.take(THREE, "k").await.remaining, 1);
    assert_eq!(other.take(THREE, "another").await.remaining, 2);
    one.give_back(THREE, "k").await;
    assert_eq!(other.take(THREE, "k").await.remaining, 1);
}

#[actix_web::test]
async fn what_is_given_back_can_be_taken_again_but_not_saved_up() {
    let limits = Limits::new(None);
    limits.give_back(THREE, "k").await;
    for left in [2, 1, 0] {
        let decision = limits.take(THREE, "k").await;
        assert_eq!((decision.allowed, decision.remaining), (true, left));
    }
    assert!(!limits.take(THREE, "k").await.allowed);
    limits.give_back(THREE, "k").await;
    assert!(limits.take(THREE, "k").await.allowed);
    assert!(!limits.take(THREE, "k").await.allowed);
}

#[actix_web::test]
async fn a_redis_that_goes_away_costs_neither_an_error_nor_time() {
    let redis_server = RedisServer::start();
    let limits = Limits::new(Some(Redis::new(&Secret::new(redis_server.url()), "t:").unwrap()));
    assert_eq!(limits.take(THREE, "k").await.remaining, 2);
    let port = redis_server.port();
    drop(redis_server);
    let start = clock::monotonic();
    for _ in 0..1_000 {
        limits.take(THREE, "k").await;
    }
    // At most one wait in each second of the outage.
    assert!(start.elapsed() < Duration::from_millis(1_500), "{:?}", start.elapsed());
    assert!(!limits.take(THREE, "k").await.allowed, "the process counts for itself");
    if let Some(_again) = RedisServer::start_on(port) {
        // The new server has counted nothing yet.
        let is_back = async || limits.take(THREE, "k").await.allowed;
        wait_for("Redis is used again", Duration::from_secs(20), is_back).await;
    }
}

#[actix_web::test]
async fn a_redis_that_was_never_there_does_not_matter() {
    let start = clock::monotonic();
    let limits = Limits::new(Some(Redis::new(&Secret::new("redis://127.0.0.1:1/".to_owned()), "t:").unwrap()));
    assert_eq!(limits.take(THREE, "k").await.remaining, 2);
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[actix_web::test]
async fn notices_reach_the_listeners_of_their_topic() {
    let board = PubSub::new(None);
    let mut listener = board.subscribe("a");
    board.publish("b", "not for a").await;
    board.publish("a", "one").await;
    assert_eq!(listener.next().await, Some(Notice::Text("one".to_owned())));
    for number in 0..2_000 {
        board.publish("a", &number.to_string()).await;
    }
    assert_eq!(listener.next().await, Some(Notice::Missed));
}

#[actix_web::test]
async fn notices_reach_other_processes_once() {
    let shared = redis();
    let board = || PubSub::new(Some(Redis::new(&Secret::new(shared.url.clone()), &shared.prefix).unwrap()));
    let (one, other) = (board(), board());
    let (mut here, mut there) = (one.subscribe("a"), other.subscribe("a"));
    // Until the other's subscription stands, its notices are lost, as they may be.
    let arrives = async || {
        one.publish("a", "probe").await;
        tokio::time::timeout(Duration::from_millis(100), there.next()).await.is_ok()
    };
    wait_for("the subscription stands", Duration::from_secs(20), arrives).await;
    one.publish("a", "last").await;
    let count_until_last = async |listener: &mut rigmark::integrations::pubsub::Subscription| {
        let mut lasts = 0;
        while let Ok(Some(notice)) = tokio::time::timeout(Duration::from_millis(500), listener.next()).await {
            lasts += u32::from(notice == Notice::Text("last".to_owned()));
        }
        lasts
    };
    assert_eq!(count_until_last(&mut here).await, 1);
    assert_eq!(count_until_last(&mut there).await, 1);
}
