//! What other domains ask of this one, the plan of an account, and the audit.

use chrono::TimeDelta;
use diesel::sql_types::{BigInt, Text};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use rigmark::base::{Code, id::AccountId, secret::Secret};
use rigmark::identity::{AccountKind, Act, By, audit, service};
use serde_json::json;

use super::{found, join, login, register};
use crate::support::TestApp;

async fn id_of(app: &TestApp, handle: &str) -> AccountId {
    service::account_by_handle(&mut app.connect().await, handle).await.unwrap().id
}

#[tokio::test]
async fn accounts_are_found_by_handle_and_summed_up_by_id() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let org = found(&ann, "acme").await;
    let mut conn = app.connect().await;
    let (person, team) = (id_of(&app, "@ANN").await, id_of(&app, "acme").await);
    let found = service::account_summaries(&mut conn, &[team, person, AccountId::new(), person]).await.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[&person].id.as_str(), found[&person].kind), (ann.id.as_str(), AccountKind::User));
    assert_eq!((found[&team].id.as_str(), found[&team].kind), (org["id"].as_str().unwrap(), AccountKind::Organization));
    assert_eq!(service::account_summaries(&mut conn, &[]).await.unwrap().len(), 0);
    assert_eq!(service::account_summary(&mut conn, team).await.unwrap().handle, "acme");
    for nobody in ["nobody", "", "a--b", "ann\0"] {
        assert_eq!(service::account_by_handle(&mut conn, nobody).await.unwrap_err().code(), Code::NotFound);
    }
}

#[tokio::test]
async fn the_demos_users_and_organizations_are_like_any_other() {
    let app = TestApp::new().await;
    let password = Secret::new("demo password".to_owned());
    let new = |handle: &'static str| service::NewUser { email: "demo@example.org", handle, display_name: "Demo", password: &password };
    let user = service::create_user(app.ctx(), new("demo-host")).await.unwrap();
    let person = login(&app, "demo@example.org", "demo password").await;
    assert_eq!(person.http.get("/api/v1/me").expect(200).await["email_confirmed"], true);
    let org = service::create_organization(app.ctx(), By::System, user.id, "demo-labs", Some("Demo Labs")).await.unwrap();
    assert_eq!((org.is_organization(), org.display_name.as_str()), (true, "Demo Labs"));
    assert_eq!(person.http.get("/api/v1/organizations").expect(200).await["data"][0]["role"], "owner");
    let code = |result: rigmark::base::Result<_>| result.map(|_: rigmark::identity::Account| ()).unwrap_err().code();
    assert_eq!(code(service::create_user(app.ctx(), new("demo-two")).await), Code::EmailTaken);
    assert_eq!(code(service::create_user(app.ctx(), new("admin")).await), Code::HandleTaken);
    assert_eq!(code(service::create_organization(app.ctx(), By::System, user.id, "demo-host", None).await), Code::HandleTaken);
}

#[tokio::test]
async fn pro_is_a_fact_of_business_time() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let id = id_of(&app, "ann").await;
    let plan = async || service::entitlements(app.ctx(), &mut app.connect().await, id).await.unwrap();
    let free = plan().await;
    assert_eq!((free.is_pro, free.pro_until, free.fee_basis_points, free.rate_factor), (false, None, 1_000, 1));
    let until = app.ctx().business_now(&mut app.connect().await).await.unwrap() + TimeDelta::days(30);
    for until in [until - TimeDelta::days(1), until] {
        app.ctx().db.tx("test", async |tx| service::set_pro_until(tx, id, until).await).await.unwrap();
    }
    let pro = plan().await;
    assert_eq!((pro.is_pro, pro.pro_until, pro.fee_basis_points, pro.rate_factor), (true, Some(until), 500, 10));
    assert_eq!(ann.http.get("/api/v1/me").expect(200).await["is_pro"], true);
    app.advance(30 * 86_400 - 60).await;
    assert!(plan().await.is_pro);
    app.advance(61).await;
    assert_eq!((plan().await.is_pro, plan().await.fee_basis_points), (false, 1_000));
    // Business time moves no session.
    assert_eq!(ann.http.get("/api/v1/me").expect(200).await["is_pro"], false);
}

#[tokio::test]
async fn closing_takes_the_person_away_and_leaves_the_row() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    let id = id_of(&app, "ann").await;
    let close = async || {
        let now = app.ctx().clock.wall_now();
        app.ctx().db.tx("test", async |tx| service::account_close(tx, By::User(id), id, now).await).await.map_err(|error| error.code())
    };
    assert_eq!(close().await, Err(Code::LastOwner));
    ann.http.get("/api/v1/me").expect(200).await;
    join(&ann, "acme", &bob, "owner").await;
    assert_eq!(close().await, Ok(()));
    assert_eq!(close().await, Err(Code::NotFound));
    let mut conn = app.connect().await;
    let left = service::account_summary(&mut conn, id).await.unwrap();
    assert!(left.handle.starts_with("closed-") && left.display_name == "Closed account", "{left:?}");
    let traces = diesel::sql_query(
        "SELECT count(*) AS n FROM accounts a JOIN users u ON u.account_id = a.id
         WHERE a::text || u::text LIKE '%ann%' OR (a.closed_at IS NOT NULL AND u.email IS NOT NULL)",
    );
    assert_eq!(traces.get_result::<Count>(&mut conn).await.unwrap().n, 0);
}

#[derive(diesel::QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

#[derive(diesel::QueryableByName)]
struct Event {
    #[diesel(sql_type = Text)]
    event: String,
}

#[tokio::test]
async fn acts_are_written_down_and_cannot_be_changed() {
    let app = TestApp::new().await;
    let (ann, bob) = (register(&app, "ann").await, register(&app, "bob").await);
    found(&ann, "acme").await;
    join(&ann, "acme", &bob, "admin").await;
    bob.http.delete("/api/v1/organizations/acme/members/bob").expect(204).await;
    service::grant_operator(app.ctx(), "ann").await.unwrap();
    let mut conn = app.connect().await;
    let query = diesel::sql_query(
        "SELECT e.action || ' by ' || coalesce(a.handle, '-') AS event FROM audit_events e LEFT JOIN accounts a ON a.id = e.actor_user_id ORDER BY e.id",
    );
    let events: Vec<String> = query.load::<Event>(&mut conn).await.unwrap().into_iter().map(|row| row.event).collect();
    let expected = [
        "account.register by ann",
        "account.register by bob",
        "organization.create by ann",
        "invitation.create by ann",
        "invitation.accept by bob",
        "member.remove by bob",
        "operator.grant by -",
    ];
    assert_eq!(events, expected);
    for statement in ["UPDATE audit_events SET action = 'x'", "DELETE FROM audit_events", "TRUNCATE audit_events"] {
        let refused = conn.batch_execute(statement).await.unwrap_err().to_string();
        assert!(refused.contains("append-only"), "{statement}: {refused}");
    }
}

/// An act and what it does are one transaction: neither is there without the other.
#[tokio::test]
async fn an_act_that_is_undone_is_not_written_down() {
    let app = TestApp::new().await;
    register(&app, "ann").await;
    let id = id_of(&app, "ann").await;
    let at = app.ctx().clock.wall_now();
    let act = || Act { by: By::User(id), account_id: Some(id), action: "test.act", target: "x".to_owned(), details: json!({}), at };
    let undone = app.ctx().db.tx("test", async |tx| {
        audit(tx, act()).await?;
        Err::<(), _>(rigmark::base::Error::not_found("test"))
    });
    assert!(undone.await.is_err());
    let count = diesel::sql_query("SELECT count(*) AS n FROM audit_events WHERE action = 'test.act'");
    assert_eq!(count.get_result::<Count>(&mut app.connect().await).await.unwrap().n, 0);
}

#[tokio::test]
async fn a_person_changes_their_own_name_only() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    found(&ann, "acme").await;
    let rename = |name: &str| ann.http.patch("/api/v1/me").json(&json!({ "display_name": name }));
    assert_eq!(rename(" Ann Lee ").expect(200).await["display_name"], "Ann Lee");
    rename("").expect_problem(422, "invalid_input").await;
    rename("x").header("Rigmark-Account", "@acme").expect_problem(403, "forbidden").await;
    ann.http.patch("/api/v1/me").json(&json!({})).expect(200).await;
    for field in ["handle", "email", "is_operator", "role"] {
        ann.http.patch("/api/v1/me").json(&json!({ field: "x" })).expect_problem(422, "invalid_input").await;
    }
}

/// Two owners who close their accounts at once: one is told to stay.
#[tokio::test]
async fn closing_at_once_leaves_no_organization_without_an_owner() {
    let app = TestApp::new().await;
    let names = [("ann", "bob"), ("carol", "dave"), ("erin", "frank"), ("grace", "heidi"), ("judy", "mike")];
    for (round, (one, two)) in names.into_iter().enumerate() {
        let (ann, bob) = (register(&app, one).await, register(&app, two).await);
        let handle = format!("acme-{one}");
        found(&ann, &handle).await;
        join(&ann, &handle, &bob, "owner").await;
        let close = async |name: &str| {
            let (id, now) = (id_of(&app, name).await, app.ctx().clock.wall_now());
            app.ctx().db.tx("test", async |tx| service::account_close(tx, By::User(id), id, now).await).await.map_err(|error| error.code())
        };
        let mut outcomes: Vec<bool> = futures::future::join_all([close(one), close(two)]).await.into_iter().map(|o| o.is_ok()).collect();
        outcomes.sort_unstable();
        assert_eq!(outcomes, [false, true], "round {round}");
    }
}
