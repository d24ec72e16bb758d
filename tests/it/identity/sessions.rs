//! Signing in, staying signed in, signing out.

use chrono::Utc;
use diesel::sql_types::{BigInt, Text, Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use futures::future::join_all;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use rigmark::base::secret::Secret;
use rigmark::config::JwtKey;
use serde_json::{Value, json};

use super::{PASSWORD, Person, login, register};
use crate::support::TestApp;

async fn refresh(app: &TestApp, token: &str) -> crate::support::http::Answer {
    app.http.post("/api/v1/auth/refresh").json(&json!({ "refresh_token": token })).answer().await
}

async fn refreshed(app: &TestApp, token: &str) -> Person {
    let answer = refresh(app, token).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    Person::of(app, "", &answer.json())
}

async fn assert_reused(app: &TestApp, token: &str) {
    let problem = app.http.post("/api/v1/auth/refresh").json(&json!({ "refresh_token": token }));
    problem.expect_problem(401, "refresh_token_reused").await;
}

#[tokio::test]
async fn signing_in_gives_a_pair_of_tokens_for_the_account() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let again = login(&app, "ANN@example.org ", PASSWORD).await;
    assert_eq!(ann.id, again.id);
    assert_ne!(ann.refresh_token, again.refresh_token);
    let body = app.http.post("/api/v1/auth/login").json(&json!({ "email": ann.email, "password": PASSWORD })).expect(200).await;
    assert_eq!(body["expires_in"], 900);
    assert_eq!(body["account"]["email"], "ann@example.org");
    let wrong = |email: &str, password: &str| app.http.post("/api/v1/auth/login").json(&json!({ "email": email, "password": password }));
    wrong("ann@example.org", "wrong password").expect_problem(401, "invalid_credentials").await;
    wrong("nobody@example.org", PASSWORD).expect_problem(401, "invalid_credentials").await;
    wrong("no address", PASSWORD).expect_problem(401, "invalid_credentials").await;
    wrong("ann@example.org", &"x".repeat(300)).expect_problem(401, "invalid_credentials").await;
}

#[tokio::test]
async fn an_access_token_ends_to_the_second() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let claims = claims_of(&ann.access_token);
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 900);
    assert_eq!(claims["sub"], ann.id.as_str());
    let left = claims["exp"].as_i64().unwrap() - Utc::now().timestamp();
    app.shift_wall(left - 5);
    ann.http.get("/api/v1/me").expect(200).await;
    app.shift_wall(5);
    ann.http.get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    refreshed(&app, &ann.refresh_token).await.http.get("/api/v1/me").expect(200).await;
}

fn claims_of(token: &str) -> Value {
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&data_encoding::BASE64URL_NOPAD.decode(part.as_bytes()).unwrap()).unwrap()
}

#[tokio::test]
async fn a_refresh_token_works_once_and_reuse_ends_the_family() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let other = login(&app, &ann.email, PASSWORD).await;
    let second = refreshed(&app, &ann.refresh_token).await;
    let third = refreshed(&app, &second.refresh_token).await;
    third.http.get("/api/v1/me").expect(200).await;
    assert_reused(&app, &ann.refresh_token).await;
    // Every token of the family is dead now, the newest and its access token included; another sign-in is not.
    assert_reused(&app, &third.refresh_token).await;
    assert_reused(&app, &second.refresh_token).await;
    third.http.get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    other.http.get("/api/v1/me").expect(200).await;
    refreshed(&app, &other.refresh_token).await;
}

#[tokio::test]
async fn of_concurrent_refreshes_exactly_one_succeeds_and_the_family_ends() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    for round in 0..20 {
        let session = login(&app, &ann.email, PASSWORD).await;
        let answers = join_all((0..4).map(|_| refresh(&app, &session.refresh_token))).await;
        let (good, bad): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
        assert_eq!((good.len(), bad.len()), (1, 3), "round {round}");
        assert!(bad.iter().all(|answer| answer.status == 401 && answer.json()["code"] == "refresh_token_reused"), "round {round}");
        let won = good[0].json()["refresh_token"].as_str().unwrap().to_owned();
        assert_reused(&app, &won).await;
    }
}

#[tokio::test]
async fn refresh_tokens_last_thirty_days_and_are_made_up_by_nobody() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    for made_up in ["", "rmr_", "rmr_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ann.access_token.as_str(), "\u{1f600}"] {
        let answer = refresh(&app, made_up).await;
        assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (401, Some("unauthenticated")), "{made_up}");
    }
    app.shift_wall(30 * 86_400 - 60);
    let second = refreshed(&app, &ann.refresh_token).await;
    app.shift_wall(30 * 86_400 + 60);
    let late = refresh(&app, &second.refresh_token).await;
    assert_eq!((late.status.as_u16(), late.json()["code"].as_str()), (401, Some("unauthenticated")));
    app.work().await;
    let mut conn = app.connect().await;
    let left: i64 = count(&mut conn, "SELECT count(*) AS n FROM refresh_tokens").await;
    let running: i64 = count(&mut conn, "SELECT count(*) AS n FROM sessions WHERE end_reason IS DISTINCT FROM 'expired'").await;
    assert_eq!((left, running), (0, 0));
}

#[derive(diesel::QueryableByName)]
struct Count {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

async fn count(conn: &mut rigmark::db::Conn, query: &str) -> i64 {
    diesel::sql_query(query).get_result::<Count>(conn).await.unwrap().n
}

#[tokio::test]
async fn signing_out_ends_refresh_and_access_tokens_at_once() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let (by_access, by_refresh, by_both) =
        (login(&app, &ann.email, PASSWORD).await, login(&app, &ann.email, PASSWORD).await, login(&app, &ann.email, PASSWORD).await);
    by_access.http.post("/api/v1/auth/logout").expect(204).await;
    app.http.post("/api/v1/auth/logout").json(&json!({ "refresh_token": by_refresh.refresh_token })).expect(204).await;
    by_both.http.post("/api/v1/auth/logout").json(&json!({ "refresh_token": by_both.refresh_token })).expect(204).await;
    for out in [&by_access, &by_refresh, &by_both] {
        out.http.get("/api/v1/me").expect_problem(401, "unauthenticated").await;
        let answer = refresh(&app, &out.refresh_token).await;
        assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (401, Some("unauthenticated")));
    }
    ann.http.get("/api/v1/me").expect(200).await;
    app.http.post("/api/v1/auth/logout").expect_problem(401, "unauthenticated").await;
}

/// A forger's tricks, one by one.
#[tokio::test]
async fn only_our_own_unexpired_tokens_pass() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let key = &app.ctx().config.keys.jwt[0];
    let claims = claims_of(&ann.access_token);
    let sign = |kid: Option<&str>, algorithm: Algorithm, secret: &[u8], claims: &Value| {
        let header = Header { kid: kid.map(str::to_owned), ..Header::new(algorithm) };
        jsonwebtoken::encode(&header, claims, &EncodingKey::from_secret(secret).unwrap()).unwrap()
    };
    let with = |name: &str, value: Value| {
        let mut changed = claims.clone();
        changed[name] = value;
        changed
    };
    let without = |name: &str| {
        let mut changed = claims.clone();
        changed.as_object_mut().unwrap().remove(name);
        changed
    };
    let kid = Some(key.kid.as_str());
    let secret = key.secret.expose().as_slice();
    let parts: Vec<&str> = ann.access_token.split('.').collect();
    let none = data_encoding::BASE64URL_NOPAD.encode(json!({ "alg": "none", "kid": key.kid }).to_string().as_bytes());
    let honest = sign(kid, Algorithm::HS256, secret, &claims);
    app.http.with_bearer(honest).get("/api/v1/me").expect(200).await;
    let forged = [
        sign(kid, Algorithm::HS256, b"another secret of enough characters", &claims),
        sign(Some("other"), Algorithm::HS256, secret, &claims),
        sign(None, Algorithm::HS256, secret, &claims),
        sign(kid, Algorithm::HS512, secret, &claims),
        sign(kid, Algorithm::HS256, secret, &with("exp", json!(Utc::now().timestamp() - 1))),
        sign(kid, Algorithm::HS256, secret, &with("exp", json!("never"))),
        sign(kid, Algorithm::HS256, secret, &without("exp")),
        sign(kid, Algorithm::HS256, secret, &without("sid")),
        sign(kid, Algorithm::HS256, secret, &with("sid", json!("ses_01h455vb4pex5vsknk084sn02q"))),
        format!("{none}.{}.", parts[1]),
        format!("{none}.{}.{}", parts[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}x", ann.access_token),
        "rmk_".to_owned(),
        "a.b.c".to_owned(),
    ];
    for token in forged {
        app.http.with_bearer(&token).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    }
}

#[tokio::test]
async fn signing_keys_can_be_rotated() {
    let old = JwtKey { kid: "old".to_owned(), secret: Secret::new(vec![1; 32]) };
    let new = JwtKey { kid: "new".to_owned(), secret: Secret::new(vec![2; 32]) };
    let both = vec![new.clone(), old.clone()];
    let app = TestApp::with(move |config| config.keys.jwt = both).await;
    let ann = register(&app, "ann").await;
    let header = jsonwebtoken::decode_header(&ann.access_token).unwrap();
    assert_eq!((header.kid.as_deref(), header.alg), (Some("new"), Algorithm::HS256));
    let claims = claims_of(&ann.access_token);
    let signed = |key: &JwtKey| {
        let header = Header { kid: Some(key.kid.clone()), ..Header::new(Algorithm::HS256) };
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(key.secret.expose()).unwrap()).unwrap()
    };
    for key in [&old, &new] {
        app.http.with_bearer(signed(key)).get("/api/v1/me").expect(200).await;
    }
}

#[tokio::test]
async fn only_hashes_of_tokens_are_stored() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let mut conn = app.connect().await;
    let sha256 = <sha2::Sha256 as sha2::Digest>::digest(ann.refresh_token.as_bytes()).to_vec();
    let found =
        diesel::sql_query("SELECT count(*) AS n FROM refresh_tokens WHERE token_sha256 = $1").bind::<diesel::sql_types::Bytea, _>(sha256);
    assert_eq!(found.get_result::<Count>(&mut conn).await.unwrap().n, 1);
    let plain = diesel::sql_query("SELECT count(*) AS n FROM jobs WHERE payload::text LIKE '%' || $1 || '%'").bind::<Text, _>(&ann.email);
    assert_eq!(plain.get_result::<Count>(&mut conn).await.unwrap().n, 0);
}

#[tokio::test]
async fn use_is_noted_at_most_once_a_minute() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let mut conn = app.connect().await;
    let session = claims_of(&ann.access_token)["sid"].as_str().unwrap().parse::<rigmark::base::id::SessionId>().unwrap().uuid();
    let mut marks = Vec::new();
    for shift in [0, 30, 40, 10] {
        app.shift_wall(shift);
        ann.http.get("/api/v1/me").expect(200).await;
        let query = diesel::sql_query("SELECT extract(epoch FROM last_used_at - created_at)::bigint AS n FROM sessions WHERE id = $1");
        marks.push(query.bind::<SqlUuid, _>(session).get_result::<Count>(&mut conn).await.unwrap().n);
    }
    assert_eq!(marks[..2], [0, 0]);
    assert!((70..=75).contains(&marks[2]) && marks[3] == marks[2], "{marks:?}");
}

/// Whoever signs in with the old password while it is changed is either refused or signed out by the change.
#[tokio::test]
async fn no_session_outlives_the_password_it_began_with() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let passwords = [PASSWORD, "another password"];
    // At most eight failures: the tenth would meet the limit.
    for round in 0..4 {
        let (old, new) = (passwords[round % 2], passwords[(round + 1) % 2]);
        let sign_in = || app.http.post("/api/v1/auth/login").json(&json!({ "email": ann.email, "password": old })).answer();
        let change = ann.http.post("/api/v1/me/password").json(&json!({ "current_password": old, "new_password": new })).answer();
        let (a, changed, b) = tokio::join!(sign_in(), change, sign_in());
        assert_eq!(changed.status, 204, "{}", changed.body);
        for answer in [a, b] {
            assert!([200, 401].contains(&answer.status.as_u16()), "round {round}: {}", answer.body);
            if answer.status == 200 {
                Person::of(&app, "", &answer.json()).http.get("/api/v1/me").expect_problem(401, "unauthenticated").await;
            }
        }
    }
}
