//! Signatures, checked by an implementation that shares nothing with ours but SHA-256: HMAC as RFC 2104 writes it.

use data_encoding::BASE64;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{Hooks, Received, text};

const BLOCK_BYTES: usize = 64;

fn hmac_sha256(key: &[u8], message: &[u8]) -> Vec<u8> {
    let mut block = [0_u8; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |byte: u8| block.map(|b| b ^ byte).to_vec();
    let inner = Sha256::digest([padded(0x36), message.to_vec()].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).to_vec()
}

/// Whether one of the header's signatures is of this secret.
pub fn is_signed(secret: &str, received: &Received) -> bool {
    let key = BASE64.decode(secret.strip_prefix("whsec_").unwrap().as_bytes()).unwrap();
    let message = format!("{}.{}.{}", received.id, received.timestamp, received.body);
    let expected = format!("v1,{}", BASE64.encode(&hmac_sha256(&key, message.as_bytes())));
    received.signature.split(' ').any(|signature| signature == expected)
}

/// The example that the specification's own libraries are tested with.
#[test]
fn the_check_by_hand_knows_the_example_of_the_specification() {
    let received = Received {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned(),
        timestamp: 1_614_265_330,
        signature: "v1,Ceo5qEr07ixe2NLpvHk3FH9bwy/WavXrAFQ/9tdO6mc= v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned(),
        body: r#"{"test": 2432232314}"#.to_owned(),
        head: String::new(),
    };
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    assert!(is_signed(secret, &received));
    assert!(!is_signed(secret, &Received { timestamp: 1_614_265_331, ..received.clone() }));
    assert!(!is_signed(secret, &Received { body: r#"{"test":2432232314}"#.to_owned(), ..received }));
}

#[tokio::test]
async fn what_is_sent_is_signed_as_the_specification_says() {
    let hooks = Hooks::new().await;
    let event = hooks.test().await;
    hooks.tried(1).await;
    let all = hooks.received();
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(one.id, event);
    assert!((one.timestamp - hooks.app.ctx().clock.wall_now().timestamp()).abs() < 60, "{one:?}");
    assert!(one.head.starts_with("POST /hooks?team=a HTTP/1.1") && one.head.contains("content-type: application/json"), "{}", one.head);
    assert!(is_signed(&hooks.secret, one), "{one:?}");
    assert!(!is_signed(&hooks.secret, &Received { body: format!("{} ", one.body), ..one.clone() }));
    let body: Value = serde_json::from_str(&one.body).unwrap();
    let members: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(members, ["data", "timestamp", "type"]);
    assert_eq!((&body["type"], &body["data"]), (&json!("webhook.test"), &json!({ "webhook_endpoint_id": hooks.id })));
    let key = BASE64.decode(hooks.secret.strip_prefix("whsec_").unwrap().as_bytes()).unwrap();
    assert!((24..=64).contains(&key.len()));
}

#[tokio::test]
async fn after_a_rotation_both_secrets_sign_for_a_day() {
    let hooks = Hooks::new().await;
    let rotated = hooks.http.post(&hooks.path("/rotate-secret")).expect(200).await;
    let new = text(&rotated["secret"]);
    assert!(new != hooks.secret && rotated["old_secret_until"].is_string(), "{rotated}");
    hooks.test().await;
    hooks.tried(1).await;
    let both = hooks.received().pop().unwrap();
    assert_eq!(both.signature.split(' ').count(), 2, "{both:?}");
    assert!(is_signed(&new, &both) && is_signed(&hooks.secret, &both), "{both:?}");

    hooks.app.shift_wall(24 * 3_600 + 1);
    hooks.test().await;
    hooks.tried(1).await;
    let one = hooks.received().pop().unwrap();
    assert_eq!(one.signature.split(' ').count(), 1, "{one:?}");
    assert!(is_signed(&new, &one) && !is_signed(&hooks.secret, &one), "{one:?}");
    assert_eq!(hooks.show().await["old_secret_until"], Value::Null);
}

/// A secret is shown by the answers that make it, and nowhere else; what is stored is sealed.
#[tokio::test]
async fn a_secret_is_shown_once_and_sealed() {
    let hooks = Hooks::new().await;
    let shown = [
        hooks.show().await.to_string(),
        hooks.http.get(super::ENDPOINTS).expect(200).await.to_string(),
        hooks.http.patch(&hooks.path("")).json(&json!({ "description": "mine" })).expect(200).await.to_string(),
        hooks.http.get(&hooks.path("/deliveries")).expect(200).await.to_string(),
    ];
    assert!(shown.iter().all(|body| !body.contains("whsec_") && !body.contains("secret\"")), "{shown:?}");
    let key = data_encoding::HEXLOWER.encode(&BASE64.decode(hooks.secret.strip_prefix("whsec_").unwrap().as_bytes()).unwrap());
    let open = format!("webhook_endpoints WHERE position('\\x{key}'::bytea IN secret_sealed) > 0");
    assert_eq!(super::count(&hooks.app, &open).await, 0);
    assert_eq!(super::count(&hooks.app, "webhook_endpoints WHERE length(secret_sealed) > 32").await, 1);
}

/// The code of docs/webhooks.md, run on what was really received; in a language that is not installed here it cannot be.
#[tokio::test]
async fn the_code_in_the_paper_checks_what_is_sent() {
    let hooks = Hooks::new().await;
    hooks.http.post(&hooks.path("/rotate-secret")).expect(200).await;
    hooks.test().await;
    hooks.tried(1).await;
    let one = hooks.received().pop().unwrap();
    let headers = json!({ "webhook-id": one.id, "webhook-timestamp": one.timestamp.to_string(), "webhook-signature": one.signature });
    let (secret, headers, body) = (json!(hooks.secret), headers.to_string(), json!(one.body));
    let python = format!(
        "import json\nprint(verify({secret}, json.loads({}), {body}.encode()), verify({secret}, json.loads({}), b'{{}}'))",
        json!(headers),
        json!(headers)
    );
    let node = format!("console.log(verify({secret}, {headers}, Buffer.from({body})), verify({secret}, {headers}, Buffer.from('{{}}')));");
    for (fence, program, flag, call) in [("python", "python3", "-c", python), ("js", "node", "-e", node)] {
        let paper = include_str!("../../../docs/webhooks.md");
        let code = paper.split(&format!("```{fence}\n")).nth(1).unwrap().split("```").next().unwrap();
        match std::process::Command::new(program).args([flag, &format!("{code}\n{call}")]).output() {
            Err(error) => println!("skipped: {program} cannot be run here ({error})"),
            Ok(ran) => {
                let said = String::from_utf8_lossy(&ran.stdout).to_lowercase();
                assert_eq!(said.trim(), "true false", "{program}: {}", String::from_utf8_lossy(&ran.stderr));
            }
        }
    }
}
