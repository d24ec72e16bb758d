//! Where a webhook may not go: private addresses by number, by name and by a name that changes, and redirects.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rigmark::engines::{LookUp, PostClient, PostFault, PostRequest, Reach};
use serde_json::json;

use super::{Hooks, count, received, receiver};
use crate::support::{
    TestApp,
    hosts::execute,
    scripted::{Manner, Scripted},
};

/// Answers each look-up with the next of these, and the last one for ever.
fn names(answers: &'static [&'static [&'static str]]) -> (PostClient, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let looked_up = asked.clone();
    let look_up: LookUp = Arc::new(move |_| {
        let at = looked_up.fetch_add(1, SeqCst).min(answers.len() - 1);
        let addresses: Vec<IpAddr> = answers[at].iter().map(|text| text.parse().unwrap()).collect();
        Box::pin(async move { Ok(addresses) })
    });
    (PostClient::with_look_up(&look_up).unwrap(), asked)
}

fn post(receiver: &Scripted, host: &str, reach: Reach) -> PostRequest {
    let port = receiver.url.rsplit(':').next().unwrap();
    let url = format!("http://{host}:{port}/").parse().unwrap();
    PostRequest { url, reach, headers: reqwest::header::HeaderMap::new(), body: "{}".into() }
}

#[tokio::test]
async fn a_name_with_a_private_address_is_refused_by_the_rules_of_live_mode() {
    let receiver = receiver().await;
    for addresses in [
        &[&["127.0.0.1"] as &[&str]] as &[&[&str]],
        &[&["169.254.169.254"]],
        &[&["93.184.216.34", "169.254.169.254"]],
        &[&["10.1.2.3"]],
        &[&["::ffff:127.0.0.1"]],
        &[&["fd00:ec2::254"]],
    ] {
        let (client, _) = names(addresses);
        let posted = client.post(post(&receiver, "hooks.example.org", Reach::Public)).await;
        assert_eq!(posted.status, Err(PostFault::ForbiddenAddress), "{addresses:?}");
    }
    // In the sandbox on loopback: this machine, and no other private one.
    let (client, _) = names(&[&["127.0.0.1"], &["169.254.169.254"], &["192.168.0.1"]]);
    assert_eq!(client.post(post(&receiver, "hooks.example.org", Reach::PublicOrLoopback)).await.status, Ok(200));
    for _ in 0..2 {
        let posted = client.post(post(&receiver, "hooks.example.org", Reach::PublicOrLoopback)).await;
        assert_eq!(posted.status, Err(PostFault::ForbiddenAddress));
    }
    assert_eq!(receiver.heads().len(), 1);
    // Plain http goes to this machine alone.
    let (client, _) = names(&[&["93.184.216.34"]]);
    assert_eq!(client.post(post(&receiver, "hooks.example.org", Reach::Loopback)).await.status, Err(PostFault::ForbiddenAddress));
}

/// Every delivery looks the name up: none goes over a connection that an earlier answer opened.
#[tokio::test]
async fn a_name_that_changes_is_checked_at_every_delivery() {
    let receiver = receiver().await;
    let (client, asked) = names(&[&["127.0.0.1"], &["127.0.0.1"], &["169.254.169.254"], &["127.0.0.1", "10.0.0.1"]]);
    let send = async || client.post(post(&receiver, "rebind.example.org", Reach::PublicOrLoopback)).await.status;
    assert_eq!((send().await, send().await), (Ok(200), Ok(200)));
    assert_eq!((send().await, send().await), (Err(PostFault::ForbiddenAddress), Err(PostFault::ForbiddenAddress)));
    assert_eq!((receiver.heads().len(), asked.load(SeqCst)), (2, 4));
    // By number there is no look-up, and the same rules.
    for private in ["127.0.0.1", "[::1]", "169.254.169.254"] {
        assert_eq!(client.post(post(&receiver, private, Reach::Public)).await.status, Err(PostFault::ForbiddenAddress));
    }
    assert_eq!(client.post(post(&receiver, "127.0.0.1", Reach::Any)).await.status, Err(PostFault::ForbiddenAddress));
    assert_eq!(receiver.heads().len(), 2);
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_not_followed() {
    let hooks = Hooks::new().await;
    let inside = receiver().await;
    let location: &'static str = Box::leak(format!("location: {}/admin", inside.url).into_boxed_str());
    for status in [301, 302, 307, 308] {
        hooks.receiver.chat(Manner::With(status, location, String::new()));
        hooks.test().await;
        let delivery = hooks.tried(1).await;
        assert_eq!(
            (&delivery["status"], &delivery["status_code"], &delivery["error"]),
            (&json!("pending"), &json!(status), &json!("redirect"))
        );
    }
    assert!(inside.heads().is_empty() && received(&hooks.receiver).len() == 4);
}

#[tokio::test]
async fn where_private_addresses_are_not_allowed_a_name_of_this_machine_is_refused_when_it_is_sent_to() {
    let app = TestApp::with(|config| config.allow_private_endpoints = false).await;
    let ada = crate::support::hosts::person(&app, "ada").await;
    let http = super::key(&app, &ada, &super::ALL_SCOPES).await;
    for literal in ["https://127.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest", "https://192.168.1.1/"] {
        let form = json!({ "url": literal, "events": ["*"] });
        http.post(super::ENDPOINTS).json(&form).expect_problem(422, "forbidden_address").await;
    }
    let form = json!({ "url": "http://127.0.0.1/", "events": ["*"] });
    http.post(super::ENDPOINTS).json(&form).expect_problem(422, "invalid_input").await;
    // A name says nothing by itself: it is asked when something is sent.
    let receiver = receiver().await;
    let port = receiver.url.rsplit(':').next().unwrap().to_owned();
    let made = super::endpoint(&http, &format!("https://localhost:{port}/"), &["*"]).await;
    let (id, secret) = (super::text(&made["id"]), super::text(&made["secret"]));
    let hooks = Hooks { app, ada, http, receiver, id, secret };
    hooks.test().await;
    let delivery = hooks.tried(1).await;
    assert_eq!((&delivery["error"], &delivery["status_code"]), (&json!("forbidden_address"), &serde_json::Value::Null));
    // What the sandbox had allowed once is not allowed any more.
    execute(&hooks.app, &format!("UPDATE webhook_endpoints SET url = '{}/'", hooks.receiver.url)).await;
    hooks.test().await;
    assert_eq!(hooks.tried(1).await["error"], "forbidden_address");
    assert!(hooks.receiver.heads().is_empty());
}

#[tokio::test]
async fn a_receiver_that_is_away_breaks_off_or_talks_for_ever_is_met_with_patience_and_no_more() {
    let hooks = Hooks::new().await;
    // The head of the answer says what came of it; a body that never ends is left.
    hooks.receiver.chat(Manner::Trickle(vec!["a".repeat(8_192)]));
    hooks.test().await;
    assert_eq!(hooks.tried(1).await["status"], "delivered");
    hooks.receiver.chat(Manner::Cut(vec!["a".to_owned()]));
    hooks.test().await;
    assert_eq!(hooks.tried(1).await["status"], "delivered");
    execute(&hooks.app, "UPDATE webhook_endpoints SET url = 'http://127.0.0.1:1/'").await;
    hooks.test().await;
    assert_eq!(hooks.tried(1).await["error"], "unreachable");
    assert_eq!(count(&hooks.app, "webhook_deliveries WHERE status = 'delivered'").await, 2);
}
