//! Signs of life, by real probes of real engines.

use std::net::TcpListener;

use chrono::TimeDelta;
use rigmark::base::id::MachineId;
use rigmark::machines::model::Machine;
use rigmark::machines::service;
use rigmark::measure::simulated::{self, SimulatedConfig, SimulatedEngine};

use crate::support::TestApp;
use crate::support::hosts::{business_now, engine, execute, machine, person};

async fn fetch(app: &TestApp, id: MachineId) -> Machine {
    service::fetch(&mut app.connect().await, id).await.unwrap()
}

async fn watch(app: &TestApp, id: MachineId) {
    app.ctx().db.tx("test", async |tx| service::watch(tx, id, "test").await).await.unwrap();
}

/// Another engine at the address of one that was stopped.
fn restart(url: &str) -> SimulatedEngine {
    let address = url.strip_prefix("http://").unwrap();
    let listener = TcpListener::bind(address).unwrap();
    simulated::start_on(SimulatedConfig::at_speed("org/model", 500.0, 50_000.0).unwrap(), listener).unwrap()
}

#[tokio::test]
async fn the_first_failure_is_remembered_until_the_machine_answers() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let engine = engine();
    let url = engine.url().to_owned();
    let (watched, unwatched) = (machine(&ann, Some(&url)).await, machine(&ann, Some(&url)).await);
    watch(&app, watched).await;
    app.work().await;
    let alive = fetch(&app, watched).await;
    assert!(alive.last_seen_at.is_some() && alive.probe_failed_at.is_none(), "{alive:?}");

    engine.stop().await;
    app.work().await;
    let silent = fetch(&app, watched).await;
    let failed_at = silent.probe_failed_at.unwrap();
    assert_eq!(silent.last_seen_at, alive.last_seen_at);
    assert!(failed_at > silent.last_seen_at.unwrap());
    app.work().await;
    assert_eq!(fetch(&app, watched).await.probe_failed_at, Some(failed_at));

    let engine = restart(&url);
    app.work().await;
    let back = fetch(&app, watched).await;
    assert!(back.probe_failed_at.is_none() && back.last_seen_at > alive.last_seen_at, "{back:?}");
    // Nobody asked about this one: not knowing is not silence.
    let other = fetch(&app, unwatched).await;
    assert_eq!((other.last_seen_at, other.probe_failed_at), (None, None));
    engine.stop().await;
}

#[tokio::test]
async fn a_machine_that_answers_is_alive_at_each_step_of_a_moved_clock_and_a_dead_one_is_not() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let (engine, gone) = (engine(), engine());
    let dead_url = gone.url().to_owned();
    gone.stop().await;
    let (alive, dead) = (machine(&ann, Some(engine.url())).await, machine(&ann, Some(&dead_url)).await);
    watch(&app, alive).await;
    watch(&app, dead).await;
    let start = business_now(&app).await;
    app.advance(3 * 86_400).await;
    let end = business_now(&app).await;
    assert!(end - start >= TimeDelta::days(3));
    let row = fetch(&app, alive).await;
    assert!(row.probe_failed_at.is_none() && end - row.last_seen_at.unwrap() < TimeDelta::minutes(1), "{row:?}");
    let row = fetch(&app, dead).await;
    assert!(row.last_seen_at.is_none() && row.probe_failed_at.unwrap() - start < TimeDelta::minutes(1), "{row:?}");
    // The answers given for the move are forgotten after it.
    engine.stop().await;
    app.work().await;
    assert!(fetch(&app, alive).await.probe_failed_at.is_some());
}

#[tokio::test]
async fn an_older_observation_never_undoes_a_younger_one() {
    let app = TestApp::new().await;
    let ann = person(&app, "ann").await;
    let machine = machine(&ann, None).await;
    let (early, late) = (business_now(&app).await, business_now(&app).await + TimeDelta::seconds(60));
    let seen = async |at| app.ctx().db.tx("test", async |tx| service::note_seen(tx, machine, at).await).await.unwrap();
    seen(late).await;
    seen(early).await;
    assert_eq!(fetch(&app, machine).await.last_seen_at, Some(late));
    // A failure that is younger than the good sign stands.
    execute(&app, &format!("UPDATE machines SET probe_failed_at = '{}'", (late + TimeDelta::seconds(1)).to_rfc3339())).await;
    seen(late).await;
    assert!(fetch(&app, machine).await.probe_failed_at.is_some());
    seen(late + TimeDelta::seconds(2)).await;
    assert!(fetch(&app, machine).await.probe_failed_at.is_none());
}
