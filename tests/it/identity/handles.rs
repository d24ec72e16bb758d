//! What a handle may be, and which handles look alike.

use std::collections::HashSet;

use proptest::prelude::*;
use rigmark::identity::{Email, Handle, RESERVED_HANDLES};
use serde_json::json;

use super::{PASSWORD, register};
use crate::support::TestApp;

fn handle(text: &str) -> Handle {
    text.parse().unwrap_or_else(|_| panic!("{text}"))
}

#[test]
fn the_form_of_a_handle() {
    for good in ["abc", "a1b", "a-b", "acme-labs", "0xdeadbeef", &"a".repeat(39), "a-b-c-d"] {
        assert_eq!(handle(good).as_str(), good);
    }
    assert_eq!(handle("@ACME").as_str(), "acme");
    let bad = ["", "ab", "-abc", "abc-", "a--b", "a_b", "a b", "a.b", "äbc", "abc\0", "@@abc", "ａｂｃ", "аbc", " abc", "abc\n"];
    for bad in bad {
        assert!(bad.parse::<Handle>().is_err(), "{bad:?}");
    }
    assert!("a".repeat(40).parse::<Handle>().is_err());
}

/// Each row: handles that look the same. Across rows they differ.
const ALIKE: &[&[&str]] = &[
    &["google", "g00gle", "goog1e", "g-oogle", "goo-gle", "googie", "GOOGLE"],
    &["modern", "modem", "mo-dern", "m0dem"],
    &["wave", "vvave", "vv-ave", "wa-ve"],
    &["sales", "5ales", "sa1es", "saies", "5a1e5"],
    &["lilli", "1i11i", "iiiii", "li-li-i"],
    &["corn", "com", "c0m"],
    &["nvidia", "nv1dia", "nvldla"],
    &["alice"],
    &["alise"],
    &["user2"],
    &["user3"],
    &["wawe"],
];

#[test]
fn look_alikes_have_one_skeleton() {
    let mut seen = HashSet::new();
    for row in ALIKE {
        let skeletons: HashSet<String> = row.iter().map(|text| handle(text).skeleton()).collect();
        assert_eq!(skeletons.len(), 1, "{row:?} {skeletons:?}");
        assert!(seen.insert(skeletons.into_iter().next().unwrap()), "{row:?} looks like another row");
    }
}

#[test]
fn nobody_gets_a_reserved_word_or_what_looks_like_it() {
    let publishers = HashSet::from(["meta-llama".to_owned(), "qwen".to_owned()]);
    for word in ["admin", "adm1n", "a-d-m-i-n", "rigmark", "r1gmark", "r-igmark", "support", "5upport", "www", "vvww", "wvvw", "api", "apl"]
    {
        assert!(handle(word).is_reserved(&HashSet::new()), "{word}");
    }
    for word in ["meta-llama", "metallama", "meta-iiama", "qwen", "qvven", "closed-0123456789"] {
        assert!(handle(word).is_reserved(&publishers), "{word}");
    }
    for word in ["alice", "host", "renter", "user5", "user1", "acme", "admina", "qwent"] {
        assert!(!handle(word).is_reserved(&publishers), "{word}");
    }
    for word in RESERVED_HANDLES.iter().filter(|word| word.len() >= 3) {
        assert!(handle(word).is_reserved(&HashSet::new()), "{word}");
    }
}

#[test]
fn addresses_are_checked_for_form_and_folded() {
    let email = |text: &str| text.parse::<Email>().map(|email| email.expose().to_owned());
    assert_eq!(email(" Ann.Lee+x@Example.ORG ").as_deref(), Ok("ann.lee+x@example.org"));
    let label = "a".repeat(63);
    let long_domain = format!("a@{label}.{label}.{label}.{}.org", "b".repeat(60));
    let bad = [
        "",
        "ann",
        "@example.org",
        "ann@",
        "ann@example",
        "a b@example.org",
        "ann@exa mple.org",
        "a@b@example.org.",
        "ann@-x.org",
        ".a@x.org",
    ];
    for bad in bad.into_iter().chain([
        "a..b@x.org",
        "a@x..org",
        "a\r\nBcc: b@x.org",
        "ann\0@x.org",
        "änn@example.org",
        "\"a b\"@x.org",
        long_domain.as_str(),
    ]) {
        assert!(email(bad).is_err(), "{bad:?}");
    }
    let shown = format!("{:?}", "ann@example.org".parse::<Email>().unwrap());
    assert!(!shown.contains("ann"), "{shown}");
}

proptest! {
    /// What parses prints as itself, fits the database's CHECK, and keeps its skeleton whatever hyphens it has.
    #[test]
    fn handles_are_canonical(text in "[a-zA-Z0-9@-]{1,42}") {
        if let Ok(handle) = text.parse::<Handle>() {
            prop_assert_eq!(handle.as_str().parse::<Handle>().unwrap(), handle.clone());
            let form = regex::Regex::new("^[a-z0-9][a-z0-9-]{1,37}[a-z0-9]$").unwrap();
            prop_assert!(form.is_match(handle.as_str()) && !handle.as_str().contains("--"));
            let joined = handle.as_str().replace('-', "");
            if let Ok(joined) = joined.parse::<Handle>() {
                prop_assert_eq!(joined.skeleton(), handle.skeleton());
            }
        }
    }

    #[test]
    fn parsing_never_panics(text in "\\PC*") {
        drop(text.parse::<Handle>());
        drop(text.parse::<Email>());
    }
}

#[tokio::test]
async fn people_and_organizations_share_one_namespace_without_look_alikes() {
    let app = TestApp::new().await;
    let ann = register(&app, "gordon").await;
    let taken = |handle: &str| json!({ "handle": handle });
    for alike in ["gordon", "g0rd0n", "gor-don", "Gordon"] {
        ann.http.post("/api/v1/organizations").json(&taken(alike)).expect_problem(409, "handle_taken").await;
    }
    ann.http.post("/api/v1/organizations").json(&taken("Modern")).expect(201).await;
    let form = |handle: &str| json!({ "email": "bob@example.org", "password": PASSWORD, "handle": handle });
    // Google is a publisher of models: the catalog's slugs are nobody's handle.
    for refused in ["modern", "modem", "MODEM", "rigmark", "adm1n", "closed-account", "google", "g00gle"] {
        app.http.post("/api/v1/auth/register").json(&form(refused)).expect_problem(409, "handle_taken").await;
    }
    app.http.post("/api/v1/auth/register").json(&form("bob")).expect(201).await;
}
