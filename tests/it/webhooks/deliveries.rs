//! Delivering: tries, the same id, back-off, leases, slow receivers, two processes.

use std::collections::BTreeSet;
use std::time::Duration;

use rigmark::app::build_ctx;
use rigmark::base::{Code, Error, id::AccountId};
use rigmark::ctx::Ctx;
use rigmark::jobs;
use rigmark::webhooks::{self, EventType, RETRY_SECONDS};
use serde_json::{Value, json};

use super::{Hooks, count, endpoint, letters, no_content, received, receiver, text};
use crate::support::{hosts::account_id, scripted::Manner, wait_for};

const FAILS: u16 = 500;

fn answers(status: u16) -> Manner {
    Manner::Answer(status, "{}".to_owned())
}

/// Says that a listing was published, in a transaction of its own.
async fn emit(ctx: &Ctx, account: AccountId, number: u32) {
    let data = json!({ "number": number });
    let emit = async |tx: &mut rigmark::db::Tx<'_>| webhooks::service::emit(ctx, tx, account, EventType::ListingPublished, &data).await;
    ctx.db.tx("test_emit", emit).await.unwrap();
}

#[tokio::test]
async fn a_receiver_that_fails_gets_the_same_id_and_bytes_again() {
    let hooks = Hooks::new().await;
    hooks.receiver.chat(answers(FAILS));
    let event = hooks.test().await;
    let failed = hooks.tried(1).await;
    assert_eq!((&failed["status"], &failed["status_code"], &failed["error"]), (&json!("pending"), &json!(FAILS), &json!("status")));
    // Not before its time.
    hooks.app.work().await;
    assert_eq!(hooks.received().len(), 1);

    hooks.receiver.chat(no_content());
    hooks.app.shift_wall(6);
    let delivered = hooks.tried(2).await;
    assert_eq!((&delivered["status"], &delivered["status_code"], &delivered["error"]), (&json!("delivered"), &json!(200), &Value::Null));
    assert_eq!(delivered["next_try_at"], Value::Null);
    let [first, second] = <[_; 2]>::try_from(hooks.received()).unwrap();
    assert_eq!((&first.id, &second.id), (&event, &event));
    assert_eq!(first.body, second.body);
    // Each try is signed for its own time, so that an old one cannot be replayed for long.
    assert!(second.timestamp >= first.timestamp + 6);
    assert!(super::signature::is_signed(&hooks.secret, &first) && super::signature::is_signed(&hooks.secret, &second));
    hooks.app.shift_wall(7 * 86_400);
    hooks.app.work().await;
    assert_eq!(hooks.received().len(), 2);
}

#[tokio::test]
async fn tries_go_on_for_three_days_and_five_days_of_failures_disable_the_endpoint() {
    let hooks = Hooks::new().await;
    hooks.receiver.chat(answers(FAILS));
    let event = hooks.test().await;
    let mut seconds = 0;
    for (done, pause) in (1..).zip(RETRY_SECONDS) {
        let delivery = hooks.tried(done).await;
        assert_eq!(delivery["status"], "pending", "{delivery}");
        let at = |member: &str| text(&delivery[member]).parse::<chrono::DateTime<chrono::Utc>>().unwrap();
        let wait = (at("next_try_at") - at("tried_at")).num_milliseconds();
        assert!((pause * 1_000..=pause * 1_100).contains(&wait), "try {done}: {wait} ms");
        seconds += wait / 1_000 + 1;
        hooks.app.shift_wall(wait / 1_000 + 1);
    }
    let last = hooks.tried(12).await;
    assert_eq!((&last["status"], &last["next_try_at"]), (&json!("failed"), &Value::Null));
    assert!((2 * 86_400..=4 * 86_400).contains(&seconds), "{seconds} s");
    let shown = hooks.show().await;
    assert!(shown["is_enabled"] == true && shown["failing_since"].is_string(), "{shown}");
    assert!(hooks.received().iter().all(|one| one.id == event) && hooks.received().len() == 12);
    assert!(!letters(&hooks.app).await.iter().any(|letter| letter.contains("webhook")));

    hooks.app.shift_wall(5 * 86_400 - seconds);
    let second = hooks.test().await;
    hooks.tried(1).await;
    let shown = hooks.show().await;
    assert_eq!((&shown["is_enabled"], &shown["disabled_reason"]), (&json!(false), &json!("failing")));
    let told = letters(&hooks.app).await;
    let told: Vec<&String> = told.iter().filter(|letter| letter.contains(&hooks.id)).collect();
    assert!(told.len() == 1 && told[0].contains("To: ada@example.org") && told[0].contains("five days"), "{told:?}");

    // Disabled, it gets nothing; enabled again, what has waited.
    hooks.app.shift_wall(3_600);
    hooks.app.work().await;
    assert_eq!(hooks.received().len(), 13);
    hooks.http.post(&hooks.path("/test")).expect_problem(409, "invalid_state").await;
    hooks.receiver.chat(no_content());
    let enabled = hooks.http.patch(&hooks.path("")).json(&json!({ "is_enabled": true })).expect(200).await;
    assert_eq!((&enabled["disabled_reason"], &enabled["failing_since"]), (&Value::Null, &Value::Null));
    hooks.tried(2).await;
    assert_eq!(hooks.received().last().unwrap().id, second);
}

#[tokio::test]
async fn one_success_forgets_that_the_endpoint_failed() {
    let hooks = Hooks::new().await;
    hooks.receiver.chat(answers(FAILS));
    hooks.test().await;
    hooks.tried(1).await;
    assert!(hooks.show().await["failing_since"].is_string());
    hooks.receiver.chat(answers(202));
    hooks.app.shift_wall(60);
    hooks.tried(2).await;
    assert_eq!(hooks.show().await["failing_since"], Value::Null);
    hooks.app.shift_wall(6 * 86_400);
    hooks.receiver.chat(answers(FAILS));
    hooks.test().await;
    hooks.tried(1).await;
    assert_eq!(hooks.show().await["is_enabled"], true);
}

#[tokio::test]
async fn an_answer_of_410_disables_the_endpoint_at_once() {
    let hooks = Hooks::new().await;
    hooks.receiver.chat(answers(410));
    hooks.test().await;
    hooks.tried(1).await;
    let shown = hooks.show().await;
    assert_eq!((&shown["is_enabled"], &shown["disabled_reason"]), (&json!(false), &json!("gone")));
    assert!(letters(&hooks.app).await.iter().any(|letter| letter.contains(&hooks.id) && letter.contains("410")));
    emit(hooks.app.ctx(), account_id(&hooks.app, &hooks.ada).await, 1).await;
    assert_eq!(count(&hooks.app, "webhook_events").await, 1, "a disabled endpoint waits for nothing");
}

#[tokio::test]
async fn a_delivery_that_is_over_can_be_tried_once_more() {
    let hooks = Hooks::new().await;
    let event = hooks.test().await;
    hooks.tried(1).await;
    let again = hooks.http.post(&hooks.path(&format!("/deliveries/{event}/retry"))).expect(202).await;
    assert_eq!((&again["status"], &again["attempt"]), (&json!("pending"), &json!(1)));
    hooks.receiver.chat(answers(FAILS));
    let failed = hooks.tried(2).await;
    assert_eq!((&failed["status"], &failed["next_try_at"]), (&json!("failed"), &Value::Null));
    let ids: Vec<String> = hooks.received().into_iter().map(|one| one.id).collect();
    assert_eq!(ids, [event.clone(), event]);
    let unknown = hooks.path("/deliveries/msg_01h455vb4pex5vsknk084sn02q/retry");
    hooks.http.post(&unknown).expect_problem(404, "not_found").await;
    // One that waits is tried now and keeps its schedule.
    let waiting = hooks.test().await;
    hooks.tried(1).await;
    hooks.http.post(&hooks.path(&format!("/deliveries/{waiting}/retry"))).expect(202).await;
    let failed = hooks.tried(2).await;
    assert_eq!(failed["status"], "pending");
}

#[tokio::test]
async fn a_slow_receiver_keeps_nobody_waiting_but_itself() {
    let hooks = Hooks::new().await;
    let slow = receiver().await;
    slow.chat(Manner::Wait);
    endpoint(&hooks.http, &slow.url, &["*"]).await;
    let account = account_id(&hooks.app, &hooks.ada).await;
    for number in 0..5 {
        emit(hooks.app.ctx(), account, number).await;
    }
    wait_for("the fast receiver's five", Duration::from_secs(30), async || {
        hooks.app.work().await;
        hooks.received().len() == 5
    })
    .await;
    assert_eq!(slow.open(), 2, "no more than two at once");
    slow.chat(no_content());
    wait_for("the slow receiver's five", Duration::from_secs(30), async || {
        hooks.app.work().await;
        count(&hooks.app, "webhook_deliveries WHERE status = 'delivered'").await == 10
    })
    .await;
    let ids = |of| received(of).into_iter().map(|one| one.id).collect::<BTreeSet<String>>();
    assert_eq!(ids(&slow), ids(&hooks.receiver));
    assert_eq!(received(&slow).len(), 5);
}

/// Another process on the same database.
fn second_process(hooks: &Hooks) -> Ctx {
    build_ctx(hooks.app.ctx().config.clone(), hooks.app.database.url(), hooks.app.http.base_url()).unwrap()
}

#[tokio::test]
async fn two_processes_at_once_send_everything_and_nothing_twice() {
    let hooks = Hooks::new().await;
    let (first, second) = (hooks.app.ctx().clone(), second_process(&hooks));
    let account = account_id(&hooks.app, &hooks.ada).await;
    for number in 0..30 {
        emit(&first, account, number).await;
    }
    wait_for("thirty deliveries", Duration::from_secs(60), async || {
        let (one, other) = tokio::join!(jobs::run_sweeps(&first), jobs::run_sweeps(&second));
        one.and(other).unwrap();
        count(&hooks.app, "webhook_deliveries WHERE status = 'delivered'").await == 30
    })
    .await;
    let all: Vec<String> = hooks.received().into_iter().map(|one| one.id).collect();
    let distinct: BTreeSet<&String> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (30, 30));
}

/// A process that ends in the middle of a try leaves a lease; when that has run out another tries, with the same id.
#[tokio::test]
async fn a_try_that_its_process_did_not_outlive_is_made_again() {
    let hooks = Hooks::new().await;
    hooks.receiver.chat(Manner::Wait);
    let event = hooks.test().await;
    let dying = second_process(&hooks);
    jobs::run_sweeps(&dying).await.unwrap();
    wait_for("the first request", Duration::from_secs(30), async || hooks.receiver.open() == 1).await;
    drop(dying);
    wait_for("the end of its connection", Duration::from_secs(30), async || hooks.receiver.open() == 0).await;
    hooks.receiver.chat(no_content());
    hooks.app.work().await;
    assert_eq!(hooks.received().len(), 1, "somebody may still be trying");
    hooks.app.shift_wall(61);
    let delivery = hooks.tried(2).await;
    assert_eq!(delivery["status"], "delivered");
    assert!(hooks.received().iter().all(|one| one.id == event));
}

#[tokio::test]
async fn an_endpoint_that_is_deleted_gets_nothing_more() {
    let hooks = Hooks::new().await;
    hooks.receiver.chat(answers(FAILS));
    hooks.test().await;
    hooks.tried(1).await;
    // While one waits for its next try, and while another is under way.
    hooks.receiver.chat(Manner::Wait);
    hooks.test().await;
    hooks.app.work().await;
    wait_for("the request under way", Duration::from_secs(30), async || hooks.receiver.open() == 1).await;
    hooks.http.delete(&hooks.path("")).expect(204).await;
    hooks.receiver.chat(no_content());
    hooks.app.work().await;
    hooks.app.shift_wall(3_600);
    hooks.app.work().await;
    assert_eq!(hooks.received().len(), 2);
    assert_eq!(count(&hooks.app, "webhook_deliveries").await, 0);
}

/// The endpoint goes while a transaction that has told it of something is open, and before one that is about to.
#[tokio::test]
async fn deleting_an_endpoint_fails_nobodys_transaction() {
    let hooks = Hooks::new().await;
    let ctx = hooks.app.ctx();
    let account = account_id(&hooks.app, &hooks.ada).await;
    let (started, mut has_started) = tokio::sync::mpsc::channel::<()>(1);
    let (let_go, may_go) = tokio::sync::mpsc::channel::<()>(1);
    let may_go = tokio::sync::Mutex::new(may_go);
    let telling = async {
        let data = json!({});
        let emit = async |tx: &mut rigmark::db::Tx<'_>| {
            webhooks::service::emit(ctx, tx, account, EventType::ListingPublished, &data).await?;
            started.send(()).await.unwrap();
            may_go.lock().await.recv().await.unwrap();
            webhooks::service::emit(ctx, tx, account, EventType::ListingPublished, &data).await
        };
        ctx.db.tx("test_emit", emit).await.unwrap();
    };
    let deleting = async {
        has_started.recv().await.unwrap();
        let delete = hooks.http.delete(&hooks.path("")).expect(204);
        let release = async {
            wait_for("the delete to wait", Duration::from_secs(30), async || {
                count(&hooks.app, "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").await > 0
            })
            .await;
            let_go.send(()).await.unwrap();
        };
        tokio::join!(delete, release)
    };
    tokio::join!(telling, deleting);
    assert_eq!(count(&hooks.app, "webhook_endpoints").await, 0);
    emit(ctx, account, 1).await;
    hooks.app.work().await;
    assert!(hooks.received().is_empty());
}

#[tokio::test]
async fn what_was_rolled_back_is_told_to_nobody() {
    let hooks = Hooks::new().await;
    let ctx = hooks.app.ctx();
    let account = account_id(&hooks.app, &hooks.ada).await;
    let undone = async |tx: &mut rigmark::db::Tx<'_>| {
        webhooks::service::emit(ctx, tx, account, EventType::ListingPublished, &json!({})).await?;
        Err::<(), _>(Error::new(Code::InvalidState, "undone"))
    };
    assert_eq!(ctx.db.tx("test_emit", undone).await.unwrap_err().code(), Code::InvalidState);
    assert_eq!(count(&hooks.app, "webhook_events").await, 0);
    emit(ctx, account, 7).await;
    hooks.app.work().await;
    wait_for("the other one", Duration::from_secs(30), async || {
        hooks.app.work().await;
        hooks.received().len() == 1
    })
    .await;
    let body: Value = serde_json::from_str(&hooks.received()[0].body).unwrap();
    assert_eq!((&body["type"], &body["data"]), (&json!("listing.published"), &json!({ "number": 7 })));
}

#[tokio::test]
async fn events_go_to_those_who_wait_for_them_and_are_written_for_nobody_else() {
    let hooks = Hooks::new().await;
    let account = account_id(&hooks.app, &hooks.ada).await;
    hooks.http.patch(&hooks.path("")).json(&json!({ "events": ["rental.started"] })).expect(200).await;
    emit(hooks.app.ctx(), account, 1).await;
    assert_eq!(count(&hooks.app, "webhook_events").await, 0);
    let second = receiver().await;
    endpoint(&hooks.http, &second.url, &["listing.published"]).await;
    let third = receiver().await;
    endpoint(&hooks.http, &third.url, &["*"]).await;
    emit(hooks.app.ctx(), account, 2).await;
    wait_for("two deliveries", Duration::from_secs(30), async || {
        hooks.app.work().await;
        received(&second).len() + received(&third).len() == 2
    })
    .await;
    assert_eq!(received(&second)[0].id, received(&third)[0].id);
    assert!(hooks.received().is_empty());
    let stranger = crate::support::hosts::person(&hooks.app, "eve").await;
    emit(hooks.app.ctx(), account_id(&hooks.app, &stranger).await, 3).await;
    assert_eq!(count(&hooks.app, "webhook_events").await, 1);
}

#[tokio::test]
async fn moving_the_sandboxs_clock_delivers_nothing_and_the_workers_do_afterwards() {
    let hooks = Hooks::new().await;
    hooks.test().await;
    hooks.app.advance(3_600).await;
    assert!(hooks.received().is_empty());
    hooks.tried(1).await;
    assert_eq!(hooks.received().len(), 1);
}

#[tokio::test]
async fn events_are_forgotten_after_thirty_days() {
    let hooks = Hooks::new().await;
    hooks.test().await;
    hooks.tried(1).await;
    hooks.app.shift_wall(29 * 86_400);
    hooks.test().await;
    hooks.tried(1).await;
    assert_eq!(count(&hooks.app, "webhook_events").await, 2);
    hooks.app.shift_wall(86_400 + 60);
    hooks.app.work().await;
    assert_eq!((count(&hooks.app, "webhook_events").await, count(&hooks.app, "webhook_deliveries").await), (1, 1));
}
