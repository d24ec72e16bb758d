//! The real program, killed at any moment while it rents, meters, stops and moves its clock: nothing is lost and nothing charged twice.

use std::path::Path;
use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncPgConnection};
use futures::future::join_all;
use rigmark::base::id::{RunId, TransferId};
use rigmark::db::embedded::Embedded;
use rigmark::measure::simulated::SimulatedEngine;
use serde_json::{Value, json};

use crate::support::hosts::engine;
use crate::support::http::Http;
use crate::support::renting::{assert_books, micros, money};
use crate::support::{Program, TempDir, wait_for};

const PASSWORD: &str = "correct horse battery staple";

async fn connect(data_dir: &Path) -> AsyncPgConnection {
    let url = Embedded::running_url(&data_dir.join("postgres")).unwrap().expect("the program runs");
    AsyncPgConnection::establish(&url).await.unwrap()
}

async fn register(program: &Program, handle: &str) {
    let form = json!({ "email": format!("{handle}@example.org"), "password": PASSWORD, "handle": handle });
    Http::new(&program.base_url).post("/api/v1/auth/register").json(&form).expect(201).await;
}

async fn login(program: &Program, handle: &str) -> Http {
    let http = Http::new(&program.base_url);
    let form = json!({ "email": format!("{handle}@example.org"), "password": PASSWORD });
    let body = http.post("/api/v1/auth/login").json(&form).expect(200).await;
    http.with_bearer(body["access_token"].as_str().unwrap())
}

/// A host with machines on the market, and renters with money.
async fn set_up(program: &Program, data_dir: &Path, engine: &SimulatedEngine) -> Vec<String> {
    register(program, "host").await;
    for renter in ["one", "two"] {
        register(program, renter).await;
        let http = login(program, renter).await;
        http.post("/api/v1/sandbox/credits").idempotency_key("first").json(&json!({ "amount": "1000" })).expect(201).await;
    }
    let host = login(program, "host").await;
    let mut conn = connect(data_dir).await;
    let mut listings = Vec::new();
    for number in 0..3 {
        let form =
            json!({ "name": format!("m{number}"), "hardware": { "gpu": "RTX 3090", "gpu_count": 1 }, "endpoint": { "url": engine.url() } });
        let machine = host.post("/api/v1/machines").json(&form).expect(201).await["id"].as_str().unwrap().to_owned();
        insert_run(&mut conn, &machine).await;
        let form = json!({ "machine_id": machine, "price_per_hour": "3.60" });
        let listing = host.post("/api/v1/listings").json(&form).expect(201).await["id"].as_str().unwrap().to_owned();
        host.post(&format!("/api/v1/listings/{listing}/publish")).expect(200).await;
        listings.push(listing);
    }
    listings
}

async fn insert_run(conn: &mut AsyncPgConnection, machine: &str) {
    use diesel::sql_types::Uuid as SqlUuid;
    use diesel_async::RunQueryDsl;
    let machine: rigmark::base::id::MachineId = machine.parse().unwrap();
    diesel::sql_query(
        "INSERT INTO runs (id, account_id, machine_id, status, evidence_level, visibility, model_slug, model_name, hardware_slug,
                           gpu_count, title, summary, detail, rules_version, document_sha256, upload_key, created_at, expires_at)
         SELECT $1, account_id, id, 'verified', 'challenged', 'public', 'gpt-oss-20b', 'gpt-oss-20b', 'rtx-3090', 1, 'A run', 'A summary',
                '{}', '1', $1::text, $1::text, now(), now() + interval '900 days' FROM machines WHERE id = $2",
    )
    .bind::<SqlUuid, _>(RunId::new())
    .bind::<SqlUuid, _>(machine)
    .execute(conn)
    .await
    .unwrap();
}

/// Rents, stops and extends at random until the connection breaks. Returns what was answered 201 or 200.
async fn disturb(http: Http, listings: Vec<String>) -> Vec<Value> {
    let mut answered = Vec::new();
    loop {
        let listing = &listings[rand::random_range(0..listings.len())];
        let key = TransferId::new().to_string();
        let form = json!({ "listing_id": listing, "hours": rand::random_range(1..4) });
        let Some(answer) = http.post("/api/v1/rentals").idempotency_key(&key).json(&form).try_answer().await else { return answered };
        assert!(answer.status != 500, "{}", answer.body);
        let rental = answer.json();
        if answer.status == 201 {
            answered.push(rental.clone());
            tokio::time::sleep(Duration::from_millis(rand::random_range(0..400))).await;
            let path = format!("/api/v1/rentals/{}", rental["id"].as_str().unwrap());
            if rand::random_bool(0.7) {
                let Some(answer) = http.post(&format!("{path}/stop")).try_answer().await else { return answered };
                assert_eq!(answer.status, 200, "{}", answer.body);
                answered.push(answer.json());
            }
        }
        if rand::random_bool(0.3) {
            let form = json!({ "advance_seconds": rand::random_range(1..7_200) });
            let Some(answer) = http.post("/api/v1/sandbox/clock").json(&form).try_answer().await else { return answered };
            assert_eq!(answer.status, 200, "{}", answer.body);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_at_any_moment_loses_nothing_and_charges_nothing_twice() {
    let dir = TempDir::new_in_memory();
    let engine = engine();
    let program = Program::serve(dir.path(), &[]);
    let listings = set_up(&program, dir.path(), &engine).await;
    let mut program = Some(program);
    let mut spent_before = 0;
    for round in 0..5 {
        let running = program.take().unwrap_or_else(|| Program::serve(dir.path(), &[]));
        // As the kill left it, after a start and a while of sweeps.
        assert_books(&mut connect(dir.path()).await).await;
        let renters = [login(&running, "one").await, login(&running, "two").await];
        let spent = spent(&renters).await;
        assert!(spent >= spent_before, "round {round}: a charge was lost");
        spent_before = spent;
        let noise: Vec<_> = renters.iter().map(|http| tokio::spawn(disturb(http.clone(), listings.clone()))).collect();
        tokio::time::sleep(Duration::from_millis(rand::random_range(500..3_000))).await;
        running.kill();
        let answered: Vec<Value> = join_all(noise).await.into_iter().flat_map(Result::unwrap).collect();
        let again = Program::serve(dir.path(), &[]);
        assert_books(&mut connect(dir.path()).await).await;
        let renters = [login(&again, "one").await, login(&again, "two").await];
        for rental in &answered {
            assert_kept(&renters, rental).await;
        }
        program = Some(again);
    }
    finish(program.unwrap(), dir.path()).await;
}

async fn spent(renters: &[Http]) -> i64 {
    let mut sum = 0;
    for http in renters {
        let body = http.get("/api/v1/statements").expect(200).await;
        assert_eq!(
            money(&body["opening"]).plus(money(&body["credits"])).unwrap().minus(money(&body["charges"])).unwrap(),
            money(&body["closing"])
        );
        sum += micros(&body["charges"]);
    }
    sum
}

/// What was answered is still so: the rental is there, and one that was over is as it was.
async fn assert_kept(renters: &[Http], rental: &Value) {
    let path = format!("/api/v1/rentals/{}", rental["id"].as_str().unwrap());
    let answers = join_all(renters.iter().map(|http| http.get(&path).answer())).await;
    let found = answers.iter().find(|a| a.status == 200).unwrap_or_else(|| panic!("lost: {rental}")).json();
    if rental["status"] == "ended" {
        assert_eq!((&found["status"], &found["spend"], &found["ended_at"]), (&rental["status"], &rental["spend"], &rental["ended_at"]));
    } else {
        assert_eq!((&found["price_per_hour"], &found["created_at"]), (&rental["price_per_hour"], &rental["created_at"]));
    }
}

/// Everything still runs, comes to its end, and is free again.
async fn finish(program: Program, data_dir: &Path) {
    let renters = [login(&program, "one").await, login(&program, "two").await];
    wait_for("the end of all rentals", Duration::from_secs(120), async || {
        renters[0].post("/api/v1/sandbox/clock").json(&json!({ "advance_seconds": 20_000 })).expect(200).await;
        let lists = join_all(renters.iter().map(|http| http.get("/api/v1/rentals?limit=100").expect(200))).await;
        lists.iter().all(|list| list["data"].as_array().unwrap().iter().all(|r| r["status"] == "ended" || r["status"] == "failed"))
    })
    .await;
    for http in &renters {
        let balance = http.get("/api/v1/balance").expect(200).await;
        assert_eq!(balance["held"], "0.00");
    }
    let available = renters[0].get("/api/v1/listings").expect(200).await;
    assert_eq!(available["data"].as_array().unwrap().len(), 3);
    assert_books(&mut connect(data_dir).await).await;
}

fn database_pid(data_dir: &Path) -> Option<i32> {
    let text = std::fs::read_to_string(data_dir.join("postgres/cluster/postmaster.pid")).ok()?;
    text.lines().next()?.trim().parse().ok()
}

/// Case 10, the database's part: its server is killed while a rental runs; the deadline is kept and nobody is answered with a fault afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_databases_end_ends_no_rental_and_moves_no_deadline() {
    let dir = TempDir::new_in_memory();
    let engine = engine();
    let program = Program::serve(dir.path(), &[]);
    let listings = set_up(&program, dir.path(), &engine).await;
    let http = login(&program, "one").await;
    let form = json!({ "listing_id": listings[0], "hours": 1 });
    let rental = http.post("/api/v1/rentals").idempotency_key("k").json(&form).expect(201).await;
    let path = format!("/api/v1/rentals/{}", rental["id"].as_str().unwrap());
    wait_for("the first token", Duration::from_secs(30), async || http.get(&path).expect(200).await["status"] == "active").await;
    http.post("/api/v1/sandbox/clock").json(&json!({ "advance_seconds": 3_000 })).expect(200).await;
    for _ in 0..2 {
        let pid = database_pid(dir.path()).unwrap();
        // SAFETY: a system call on values.
        assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
        // Whoever asks meanwhile is told to come again.
        wait_for("the database", Duration::from_secs(60), async || {
            let answer = http.get(&path).answer().await;
            assert!(answer.status == 200 || answer.json()["code"] == "unavailable", "{}", answer.body);
            database_pid(dir.path()).is_some_and(|now| now != pid) && http.get("/readyz").answer().await.status == 200
        })
        .await;
        let again = join_all((0..30).map(|_| http.get(&path).answer())).await;
        let faults: Vec<&str> = again.iter().filter(|a| a.status != 200).map(|a| a.body.as_str()).collect();
        assert!(faults.is_empty(), "{faults:#?}");
        assert_eq!(again[0].json()["status"], "active");
    }
    http.post("/api/v1/sandbox/clock").json(&json!({ "advance_seconds": 3_000 })).expect(200).await;
    let over = http.get(&path).expect(200).await;
    assert_eq!((&over["end_reason"], &over["ended_at"]), (&json!("deadline"), &over["ends_at"]));
    assert_eq!(over["spend"], "3.60");
    assert_books(&mut connect(dir.path()).await).await;
    assert!(program.interrupt().success());
}
