//! A run's page asks the database once: everything is sent before anything is answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rigmark::base::secret::Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::support::TestApp;
use crate::support::hosts::person;

/// A proxy before PostgreSQL that counts statements and, while it holds, keeps them back until so many have come.
struct Wire {
    url: String,
    statements: Arc<AtomicUsize>,
    hold: watch::Sender<usize>,
}

impl Wire {
    async fn start(url: &str) -> Self {
        let mut address = url::Url::parse(url).unwrap();
        let target = format!("{}:{}", address.host_str().unwrap(), address.port().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        address.set_port(Some(listener.local_addr().unwrap().port())).unwrap();
        let statements = Arc::new(AtomicUsize::new(0));
        let (hold, held) = watch::channel(0);
        let shared = Arc::clone(&statements);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&target).await.unwrap();
                tokio::spawn(forward(client, server, Arc::clone(&shared), held.clone()));
            }
        });
        Self { url: address.into(), statements, hold }
    }

    /// From now on nothing reaches PostgreSQL before so many statements have been sent.
    fn hold_until(&self, statements: usize) {
        self.statements.store(0, Ordering::SeqCst);
        self.hold.send(statements).unwrap();
    }

    fn sent(&self) -> usize {
        self.statements.load(Ordering::SeqCst)
    }
}

async fn forward(client: TcpStream, server: TcpStream, statements: Arc<AtomicUsize>, hold: watch::Receiver<usize>) {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let length = from_client.read_u32().await.unwrap();
    let mut startup = vec![0; length as usize - 4];
    from_client.read_exact(&mut startup).await.unwrap();
    to_server.write_all(&[&length.to_be_bytes()[..], &startup].concat()).await.unwrap();
    let mut kept = Vec::new();
    while let Ok(kind) = from_client.read_u8().await {
        let Ok(length) = from_client.read_u32().await else { break };
        let mut body = vec![0; length as usize - 4];
        if from_client.read_exact(&mut body).await.is_err() {
            break;
        }
        kept.extend([&[kind][..], &length.to_be_bytes(), &body].concat());
        // An execution of a prepared statement, or a simple query.
        let now =
            if kind == b'B' || kind == b'Q' { statements.fetch_add(1, Ordering::SeqCst) + 1 } else { statements.load(Ordering::SeqCst) };
        if now >= *hold.borrow() && to_server.write_all(&std::mem::take(&mut kept)).await.is_err() {
            break;
        }
    }
}

async fn uploaded(app: &TestApp) -> String {
    let ann = person(app, "ann").await;
    let document: Value = serde_json::from_str(include_str!("../../documents/reference-run.json")).unwrap();
    let claim: Value = serde_json::from_str(include_str!("../../documents/reference-run.meta.json")).unwrap();
    let body = json!({"document": document, "hardware": claim["hardware"], "model": claim["model"], "engine": claim["engine"]});
    ann.http.post("/api/v1/matrix-runs").json(&body).expect(201).await["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_runs_page_is_one_round_trip() {
    let database = crate::support::database().await;
    let wire = Wire::start(database.url()).await;
    let url = wire.url.clone();
    // One connection, on which every statement is prepared before it counts.
    let app = TestApp::with(|config| {
        config.database_url = Some(Secret::new(url));
        config.database_connections = 1;
    })
    .await;
    let run = uploaded(&app).await;
    for (path, statements) in [(format!("/api/v1/matrix-runs/{run}"), 1), (format!("/en/runs/{run}"), 4)] {
        for _ in 0..4 {
            assert_eq!(app.http.get(&path).send().await.status().as_u16(), 200);
        }
        wire.hold_until(statements);
        let answer = tokio::time::timeout(Duration::from_secs(20), app.http.get(&path).send()).await;
        assert!(
            answer.is_ok_and(|answer| answer.status().as_u16() == 200),
            "{path} waits for an answer before it sends its {statements} statements"
        );
        assert_eq!(wire.sent(), statements, "{path}");
        wire.hold_until(0);
    }
}
