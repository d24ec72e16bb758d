//! Organizations and their members.

use futures::future::join_all;
use serde_json::{Value, json};

use super::{Person, create_key_for, found, join, register};
use crate::support::TestApp;

fn handles(page: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    page["data"].as_array().unwrap().iter().map(|row| (text(&row["handle"]), text(&row["role"]))).collect()
}

async fn members(person: &Person, organization: &str) -> Vec<(String, String)> {
    handles(&person.http.get(&format!("/api/v1/organizations/{organization}/members")).expect(200).await)
}

fn row(handle: &str, role: &str) -> (String, String) {
    (handle.to_owned(), role.to_owned())
}

#[tokio::test]
async fn the_founder_is_the_owner_and_anybody_may_look() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    let body = ann.http.post("/api/v1/organizations").json(&json!({ "handle": "Acme", "display_name": "Acme Labs" })).expect(201).await;
    assert!(body["id"].as_str().unwrap().starts_with("org_"), "{body}");
    assert_eq!((body["handle"].as_str(), body["display_name"].as_str()), (Some("acme"), Some("Acme Labs")));
    assert_eq!((body["kind"].as_str(), body["role"].as_str()), (Some("organization"), Some("owner")));
    found(&ann, "zeta").await;
    let mine = ann.http.get("/api/v1/organizations").expect(200).await;
    assert_eq!(handles(&mine), [row("acme", "owner"), row("zeta", "owner")]);
    assert_eq!(handles(&bob.http.get("/api/v1/organizations").expect(200).await), []);
    for path in ["/api/v1/organizations/acme", "/api/v1/organizations/@ACME"] {
        let seen = app.http.get(path).expect(200).await;
        assert_eq!((seen["display_name"].as_str(), seen.get("role")), (Some("Acme Labs"), None));
        assert_eq!(bob.http.get(path).expect(200).await.get("role"), None);
        assert_eq!(ann.http.get(path).expect(200).await["role"], "owner");
    }
    for nothing in ["nobody", "ann", "a--b", "%00"] {
        app.http.get(&format!("/api/v1/organizations/{nothing}")).expect_problem(404, "not_found").await;
    }
}

#[tokio::test]
async fn what_is_private_does_not_exist_for_others() {
    let app = TestApp::new().await;
    let (ann, eve) = (register(&app, "ann").await, register(&app, "eve").await);
    found(&ann, "acme").await;
    found(&eve, "other").await;
    for handle in ["acme", "no-such-one"] {
        let path = |rest: &str| format!("/api/v1/organizations/{handle}{rest}");
        eve.http.patch(&path("")).json(&json!({ "display_name": "x" })).expect_problem(404, "not_found").await;
        eve.http.get(&path("/members")).expect_problem(404, "not_found").await;
        eve.http.patch(&path("/members/ann")).json(&json!({ "role": "member" })).expect_problem(404, "not_found").await;
        eve.http.delete(&path("/members/ann")).expect_problem(404, "not_found").await;
        eve.http.get(&path("/invitations")).expect_problem(404, "not_found").await;
        eve.http.post(&path("/invitations")).json(&json!({ "handle": "eve", "role": "owner" })).expect_problem(404, "not_found").await;
        eve.http.delete(&path("/invitations/inv_01h455vb4pex5vsknk084sn02q")).expect_problem(404, "not_found").await;
    }
    assert_eq!(members(&ann, "acme").await, [row("ann", "owner")]);
}

#[tokio::test]
async fn an_organization_can_be_renamed_by_who_manages_it() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "member").await;
    let rename = |person: &Person, name: &str| person.http.patch("/api/v1/organizations/acme").json(&json!({ "display_name": name }));
    rename(&bob, "Bob's").expect_problem(403, "forbidden").await;
    assert_eq!(rename(&ann, " Acme Labs ").expect(200).await["display_name"], "Acme Labs");
    rename(&ann, "\u{7}").expect_problem(422, "invalid_input").await;
    ann.http.patch("/api/v1/organizations/acme").json(&json!({ "handle": "other" })).expect_problem(422, "invalid_input").await;
}

/// Who (columns) may do what to whom (rows): give a role and remove, as the table of roles says.
#[tokio::test]
async fn owners_and_admins_manage_members_within_their_role() {
    let app = TestApp::new().await;
    let people = [("owner1", "owner"), ("admin1", "admin"), ("member1", "member"), ("billing1", "billing")];
    let ann = register(&app, "ann").await;
    found(&ann, "acme").await;
    let mut actors = Vec::new();
    for (handle, role) in people {
        let handle = format!("{handle}-x");
        let person = register(&app, &handle).await;
        join(&ann, "acme", &person, role).await;
        actors.push((person, role));
    }
    let target = register(&app, "target").await;
    join(&ann, "acme", &target, "member").await;
    let set = |actor: &Person, role: &str| actor.http.patch("/api/v1/organizations/acme/members/target").json(&json!({ "role": role }));
    for (actor, acts_as) in &actors {
        for (from, to) in [("member", "billing"), ("member", "admin"), ("member", "owner"), ("owner", "member"), ("admin", "member")] {
            set(&ann, from).expect(200).await;
            let allowed = match *acts_as {
                "owner" => true,
                "admin" => from != "owner" && to != "owner",
                _ => false,
            };
            if allowed {
                assert_eq!(set(actor, to).expect(200).await["role"], to);
            } else {
                set(actor, to).expect_problem(403, "forbidden").await;
                assert_eq!(
                    ann.http.get("/api/v1/organizations/acme/members").expect(200).await.to_string().matches("\"target\"").count(),
                    2
                );
            }
        }
        set(&ann, "member").expect(200).await;
    }
    set(&ann, "boss").expect_problem(422, "invalid_input").await;
    // Removing: a member nobody but who manages members; an owner only an owner.
    for (actor, acts_as) in &actors {
        let remove = |who: &str| actor.http.delete(&format!("/api/v1/organizations/acme/members/{who}"));
        match *acts_as {
            "owner" | "admin" => {
                remove("target").expect(204).await;
                join(&ann, "acme", &target, "member").await;
            }
            _ => drop(remove("target").expect_problem(403, "forbidden").await),
        }
        if *acts_as == "admin" {
            remove("ann").expect_problem(403, "forbidden").await;
        }
        remove("no-member").expect_problem(404, "not_found").await;
    }
    // Everybody may leave.
    for (actor, _) in &actors {
        actor.http.delete(&format!("/api/v1/organizations/acme/members/{}", actor.handle)).expect(204).await;
        actor.http.get("/api/v1/organizations/acme/members").expect_problem(404, "not_found").await;
    }
    assert_eq!(members(&ann, "acme").await, [row("ann", "owner"), row("target", "member")]);
}

#[tokio::test]
async fn the_last_owner_stays() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "admin").await;
    ann.http.delete("/api/v1/organizations/acme/members/ann").expect_problem(409, "last_owner").await;
    let step_down = || ann.http.patch("/api/v1/organizations/acme/members/ann").json(&json!({ "role": "admin" }));
    step_down().expect_problem(409, "last_owner").await;
    let stay = ann.http.patch("/api/v1/organizations/acme/members/ann").json(&json!({ "role": "owner" }));
    stay.expect(200).await;
    ann.http.patch("/api/v1/organizations/acme/members/bob").json(&json!({ "role": "owner" })).expect(200).await;
    step_down().expect(200).await;
    ann.http.delete("/api/v1/organizations/acme/members/ann").expect(204).await;
    bob.http.delete("/api/v1/organizations/acme/members/bob").expect_problem(409, "last_owner").await;
}

#[tokio::test]
async fn two_owners_who_leave_at_once_leave_one_behind() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    for round in 0..10 {
        let handle = format!("acme-{}", ["a", "b", "c", "d", "e", "f", "g", "h", "k", "m"][round]);
        found(&ann, &handle).await;
        join(&ann, &handle, &bob, "owner").await;
        let leave = |person: &Person| person.http.delete(&format!("/api/v1/organizations/{handle}/members/{}", person.handle)).answer();
        let answers = join_all([leave(&ann), leave(&bob)]).await;
        let mut statuses: Vec<u16> = answers.iter().map(|answer| answer.status.as_u16()).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 409], "round {round}");
    }
}

#[tokio::test]
async fn a_removed_members_keys_end_and_do_not_come_back() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "member").await;
    let (key, _) = create_key_for(&bob, "acme", &["account:read"]).await;
    let (anns, _) = create_key_for(&ann, "acme", &["account:read"]).await;
    let own = super::create_key(&bob.http, &["account:read"]).await.0;
    let me = |key: &str| app.http.with_bearer(key).get("/api/v1/me");
    me(&key).expect(200).await;
    ann.http.delete("/api/v1/organizations/acme/members/bob").expect(204).await;
    me(&key).expect_problem(401, "unauthenticated").await;
    let acting = bob.http.get("/api/v1/me").header("Rigmark-Account", "@acme");
    acting.expect_problem(404, "not_found").await;
    join(&ann, "acme", &bob, "owner").await;
    me(&key).expect_problem(401, "unauthenticated").await;
    me(&anns).expect(200).await;
    me(&own).expect(200).await;
}

/// The door closes for keys that are being made while their maker is removed: afterwards none lives, even when the maker is back.
#[tokio::test]
async fn no_key_is_born_after_its_makers_removal() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    for round in 0..10 {
        join(&ann, "acme", &bob, "member").await;
        let make = || {
            let request = bob.http.post("/api/v1/api-keys").header("Rigmark-Account", "@acme");
            request.json(&json!({ "name": "k", "scopes": ["account:read"] })).answer()
        };
        let remove = ann.http.delete("/api/v1/organizations/acme/members/bob").answer();
        let (a, b, removed, c) = tokio::join!(make(), make(), remove, make());
        assert_eq!(removed.status, 204);
        join(&ann, "acme", &bob, "member").await;
        for answer in [a, b, c] {
            assert!([201, 404].contains(&answer.status.as_u16()), "round {round}: {}", answer.body);
            if answer.status == 201 {
                let key = answer.json()["key"].as_str().unwrap().to_owned();
                app.http.with_bearer(key).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
            }
        }
        ann.http.delete("/api/v1/organizations/acme/members/bob").expect(204).await;
    }
}

#[tokio::test]
async fn a_key_sees_its_own_organization_only() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    found(&ann, "acme").await;
    found(&ann, "other").await;
    let (key, _) = create_key_for(&ann, "acme", &["account:read"]).await;
    let http = app.http.with_bearer(key);
    http.get("/api/v1/organizations/acme/members").expect(200).await;
    http.get("/api/v1/organizations/other/members").expect_problem(404, "not_found").await;
    assert_eq!(http.get("/api/v1/organizations/other").expect(200).await.get("role"), None);
    assert_eq!(handles(&http.get("/api/v1/organizations").expect(200).await), [row("acme", "owner")]);
    // Whoever manages members has signed in.
    let invite = http.post("/api/v1/organizations/acme/invitations").json(&json!({ "handle": "ann", "role": "member" }));
    invite.expect_problem(403, "insufficient_scope").await;
}
