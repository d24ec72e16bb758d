//! Names whose addresses change, and answers that point elsewhere: a double of the look-up says what a hostile name server would.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use bytes::Bytes;
use rigmark::base::Code;
use rigmark::engines::{EngineClient, LookUp, Target};

use super::client::target;
use super::raw::{RawServer, json_answer};

/// Answers each look-up with the next of these, and the last one for ever.
fn names(answers: &'static [&'static [&'static str]]) -> (LookUp, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let look_up: LookUp = Arc::new(move |_| {
        let at = count.fetch_add(1, SeqCst).min(answers.len() - 1);
        let addresses: Vec<IpAddr> = answers[at].iter().map(|text| text.parse().unwrap()).collect();
        Box::pin(async move { Ok(addresses) })
    });
    (look_up, asked)
}

async fn models_server() -> RawServer {
    RawServer::start(|_| Some(json_answer("200 OK", r#"{"data":[]}"#))).await
}

fn public_only(server: &RawServer, name: &str) -> Target {
    let port = server.url.rsplit(':').next().unwrap();
    Target { allow_private: false, ..target(&format!("http://{name}:{port}")) }
}

#[tokio::test]
async fn a_name_that_was_public_when_it_was_checked_is_checked_again_by_the_connection() {
    let server = models_server().await;
    let (look_up, asked) = names(&[&["93.184.216.34"], &["127.0.0.1"]]);
    let client = EngineClient::with_look_up(look_up).unwrap();
    let engine = public_only(&server, "rebind.example.org");
    client.check(&engine).await.unwrap();
    assert_eq!(client.models(&engine).await.unwrap_err().code(), Code::ForbiddenAddress);
    assert!(!client.is_alive(&engine).await);
    let error = client.chat(&engine, Bytes::from_static(b"{}"), true).await.unwrap_err();
    assert_eq!(error.code(), Code::ForbiddenAddress);
    assert_eq!((server.connections.load(SeqCst), asked.load(SeqCst)), (0, 4));
}

#[tokio::test]
async fn the_connection_goes_to_the_addresses_of_the_look_up_that_checked_them() {
    let server = models_server().await;
    let (look_up, asked) = names(&[&["127.0.0.1"], &["127.9.9.9"]]);
    let client = EngineClient::with_look_up(look_up).unwrap();
    let engine = Target { allow_private: true, ..public_only(&server, "pinned.example.org") };
    client.models(&engine).await.unwrap();
    // A second look-up would have led to where nobody listens.
    assert_eq!((server.connections.load(SeqCst), asked.load(SeqCst)), (1, 1));
}

#[tokio::test]
async fn one_private_address_among_public_ones_is_enough_to_refuse_a_name() {
    let server = models_server().await;
    for answers in [
        &[&["93.184.216.34", "127.0.0.1"] as &[&str]] as &[&[&str]],
        &[&["2606:4700::1111", "::1"]],
        &[&["169.254.169.254"]],
        &[&["fd00:ec2::254"]],
        &[&["::ffff:169.254.169.254"]],
        &[&["64:ff9b::a9fe:a9fe"]],
        &[&["2002:7f00:1::"]],
        &[&["100.100.100.200"]],
        &[&["0.0.0.0"]],
        &[&["fe80::1"]],
    ] {
        let (look_up, _) = names(answers);
        let client = EngineClient::with_look_up(look_up).unwrap();
        for name in ["metadata.google.internal", "metadata.google.internal.", "rebind.example.org"] {
            let engine = public_only(&server, name);
            assert_eq!(client.check(&engine).await.unwrap_err().code(), Code::ForbiddenAddress, "{name} {answers:?}");
            assert_eq!(client.models(&engine).await.unwrap_err().code(), Code::ForbiddenAddress, "{name} {answers:?}");
        }
    }
    assert_eq!(server.connections.load(SeqCst), 0);
}

#[tokio::test]
async fn the_system_says_that_localhost_is_here_in_every_spelling() {
    let server = models_server().await;
    let client = EngineClient::new().unwrap();
    for name in ["localhost", "LOCALHOST", "localhost.", "LocalHost", "%6cocalhost", "127.0.0.1.."] {
        let error = client.models(&public_only(&server, name)).await.unwrap_err();
        // Some systems do not know the name with the dot; none may reach the server.
        assert!([Code::ForbiddenAddress, Code::EngineUnreachable].contains(&error.code()), "{name}: {error:?}");
    }
    assert_eq!(server.connections.load(SeqCst), 0);
}

#[tokio::test]
async fn no_redirect_leads_anywhere() {
    let goal = models_server().await;
    for status in [301, 302, 303, 307, 308] {
        for to in [format!("{}/v1/models", goal.url), "http://169.254.169.254/latest/meta-data".to_owned(), "//127.0.0.1/v1".to_owned()] {
            let answer = format!("HTTP/1.1 {status} Go\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n").into_bytes();
            let from = RawServer::start(move |_| Some(answer.clone())).await;
            let client = EngineClient::new().unwrap();
            let engine = target(&from.url);
            assert_eq!(client.models(&engine).await.unwrap_err().code(), Code::EngineError, "{status} {to}");
            assert!(!client.is_alive(&engine).await);
            for stream in [false, true] {
                let error = client.chat(&engine, Bytes::from_static(b"{}"), stream).await.unwrap_err();
                assert_eq!(error.code(), Code::EngineError, "{status} {to}");
            }
            assert_eq!(from.requests.lock().unwrap().len(), 4);
        }
    }
    assert_eq!(goal.connections.load(SeqCst), 0);
}
