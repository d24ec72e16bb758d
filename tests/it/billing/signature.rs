//! The signature of webhooks, and what is accepted as Stripe's address and secrets.

use chrono::{DateTime, Utc};
use clap::Parser;
use rigmark::base::secret::Secret;
use rigmark::config::{Config, ServeArgs};
use rigmark::integrations::stripe::is_signed;

use crate::support::{TempDir, stripe_double::signature};

const BODY: &str = "{\"id\": \"evt_1\"}";

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_796_000_000, 0).unwrap()
}

fn is_good(header: &str) -> bool {
    let secrets = ["whsec_new", "whsec_old"].map(|text| Secret::new(text.to_owned()));
    is_signed(header, BODY.as_bytes(), &secrets, now())
}

#[test]
fn any_v1_of_any_secret_will_do_within_five_minutes() {
    let at = now().timestamp();
    for secret in ["whsec_new", "whsec_old"] {
        for gap in [-300, 0, 300] {
            assert!(is_good(&signature(secret, at + gap, BODY)), "{secret} {gap}");
        }
        for gap in [-301, 301, i64::MIN / 2] {
            assert!(!is_good(&signature(secret, at.saturating_add(gap), BODY)), "{secret} {gap}");
        }
    }
    let good = signature("whsec_old", at, BODY);
    let v1 = good.split_once("v1=").unwrap().1;
    assert!(is_good(&format!("t={at},v1={},v1={v1}", "0".repeat(64))));
    assert!(is_good(&format!("t={at}, v0=abc, v1={v1}")));
}

#[test]
fn nothing_else_is_a_signature() {
    let at = now().timestamp();
    let v1 = signature("whsec_new", at, BODY).split_once("v1=").unwrap().1.to_owned();
    let other = signature("whsec_other", at, BODY);
    let older = signature("whsec_new", at - 10, BODY).split_once("v1=").unwrap().1.to_owned();
    let bad = [
        String::new(),
        format!("v1={v1}"),
        format!("t={at}"),
        format!("t={at},v1="),
        format!("t={at},v1={}", &v1[..62]),
        format!("t={at},v1={v1}00"),
        format!("t={at},v0={v1}"),
        format!("t={at},v1={older}"),
        format!("t={at},t={at},v1={v1}"),
        format!("t=now,v1={v1}"),
        format!("t={at}.0,v1={v1}"),
        format!("t={at},v1={v1}{}", ",v1=00".repeat(1_000)),
        other,
    ];
    for header in bad {
        assert!(!is_good(&header), "{header}");
    }
    let good = format!("t={at},v1={v1}");
    let secrets = [Secret::new("whsec_new".to_owned())];
    assert!(is_signed(&good, BODY.as_bytes(), &secrets, now()));
    assert!(!is_signed(&good, format!("{BODY} ").as_bytes(), &secrets, now()));
    assert!(!is_signed(&good, BODY.as_bytes(), &[], now()));
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    serve: ServeArgs,
}

fn config(more: &[&str]) -> Result<Config, String> {
    let folder = TempDir::new();
    let secret = "0".repeat(32);
    let flags = ["test", "--data-dir", folder.path().to_str().unwrap(), "--jwt-secret", &secret, "--encryption-key", &secret];
    let none = ["--stripe-secret-key=", "--stripe-webhook-secret=", "--stripe-api-base="].into_iter();
    let given = |flag: &&str| !more.iter().any(|other| other.starts_with(*flag));
    let all = flags.into_iter().chain(none.filter(given)).chain(more.iter().copied());
    Command::parse_from(all).serve.into_config().map_err(|error| error.to_string())
}

#[test]
fn stripe_is_configured_whole_or_not_at_all() {
    assert!(config(&[]).unwrap().stripe.is_none());
    assert!(config(&["--stripe-webhook-secret=whsec_1", "--stripe-api-base=http://127.0.0.1:1"]).unwrap().stripe.is_none());
    let key = "--stripe-secret-key=sk_test_1";
    let hook = "--stripe-webhook-secret=whsec_1,whsec_2";
    let good = config(&[key, hook]).unwrap();
    let stripe = good.stripe.as_ref().unwrap();
    assert_eq!((stripe.webhook_secrets.len(), &stripe.api_base), (2, &None));
    let shown = format!("{good:?}");
    assert!(!shown.contains("sk_test_1") && !shown.contains("whsec_1"), "{shown}");
    for base in ["https://stripe.example.org/", "http://127.0.0.1:12111", "http://[::1]:1/", "http://localhost:1"] {
        let base = format!("--stripe-api-base={base}");
        assert!(!config(&[key, hook, &base]).unwrap().stripe.unwrap().api_base.unwrap().ends_with('/'));
    }
    for (flags, sentence) in [
        (vec![key], "STRIPE_WEBHOOK_SECRET is required"),
        (vec![key, "--stripe-webhook-secret=secret"], "must start with whsec_"),
        (vec![key, hook, "--stripe-api-base=http://stripe.example.org"], "https address"),
        (vec![key, hook, "--stripe-api-base=nowhere"], "must be an address"),
        (vec!["--stripe-secret-key=sk_live_1", hook, "--stripe-api-base=http://127.0.0.1:1"], "must not be set in live mode"),
    ] {
        let error = config(&flags).unwrap_err();
        assert!(error.contains(sentence), "{flags:?}: {error}");
    }
}
