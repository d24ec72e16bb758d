//! The program as an operator runs it: started, stopped and killed with nothing configured.

use std::time::Duration;

use serde_json::json;

use crate::support::http::Http;
use crate::support::{Program, TempDir, wait_for};

fn register(number: u32) -> serde_json::Value {
    json!({
        "email": format!("user{number}@example.org"),
        "password": "correct horse battery staple",
        "handle": format!("user{number}"),
    })
}

#[tokio::test]
async fn what_was_answered_survives_a_kill_at_any_moment() {
    let dir = TempDir::new_in_memory();
    let mut answered = Vec::new();
    for round in 0..3 {
        let program = Program::serve(dir.path(), &[]);
        let http = Http::new(&program.base_url);
        all_log_in(&http, &answered).await;
        let number = round * 10;
        http.post("/api/v1/auth/register").json(&register(number)).expect(201).await;
        answered.push(number);
        // The kill falls among these; whichever is answered must be there afterwards.
        let more: Vec<_> =
            (number + 1..number + 5).map(|number| http.post("/api/v1/auth/register").json(&register(number)).answer()).collect();
        let first = futures::future::select_all(more.into_iter().map(Box::pin)).await;
        assert_eq!(first.0.status, 201, "{}", first.0.body);
        answered.push(number + 1 + u32::try_from(first.1).unwrap());
        program.kill();
    }
    let program = Program::serve(dir.path(), &[]);
    all_log_in(&Http::new(&program.base_url), &answered).await;
    assert!(program.interrupt().success());
}

async fn all_log_in(http: &Http, numbers: &[u32]) {
    for number in numbers {
        let login = json!({ "email": format!("user{number}@example.org"), "password": "correct horse battery staple" });
        http.post("/api/v1/auth/login").json(&login).expect(200).await;
    }
}

#[tokio::test]
async fn an_interrupt_stops_everything_it_started() {
    let dir = TempDir::new_in_memory();
    let program = Program::serve(dir.path(), &[]);
    let pid_file = dir.path().join("postgres/cluster/postmaster.pid");
    assert!(pid_file.exists());
    Http::new(&program.base_url).get("/readyz").expect(200).await;
    let port = program.base_url.rsplit(':').next().unwrap().to_owned();
    // Bound to every address it is asked at loopback.
    let health = |ip: &str| {
        let bind = format!("{ip}:{port}");
        std::process::Command::new(env!("CARGO_BIN_EXE_rigmark")).args(["health", "--bind", &bind]).output().unwrap().status.code()
    };
    assert_eq!((health("127.0.0.1"), health("0.0.0.0")), (Some(0), Some(0)));
    let status = program.interrupt();
    assert!(status.success(), "{status}");
    assert_eq!(health("127.0.0.1"), Some(1));
    assert!(!pid_file.exists());
    assert_eq!(rigmark::db::embedded::Embedded::running_url(&dir.path().join("postgres")).unwrap(), None);
}

#[tokio::test]
async fn a_second_server_on_the_same_directory_is_refused_in_words() {
    let dir = TempDir::new_in_memory();
    let first = Program::serve(dir.path(), &[]);
    let second = std::process::Command::new(env!("CARGO_BIN_EXE_rigmark"))
        .args(["serve", "--bind", "127.0.0.1:0", "--data-dir"])
        .arg(dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("RIGMARK_DATA_DIR"), "{said}");
    Http::new(&first.base_url).get("/readyz").expect(200).await;
    let status = first.interrupt();
    assert!(status.success());
    wait_for("the lock", Duration::from_secs(10), async || {
        rigmark::db::embedded::Embedded::running_url(&dir.path().join("postgres")).is_ok_and(|url| url.is_none())
    })
    .await;
}
