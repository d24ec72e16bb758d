//! Changing and resetting passwords; the same work for who is known and who is not; limits on failed tries.

use std::time::Duration;

use serde_json::{Value, json};

use super::{PASSWORD, Person, letters, login, mailed_token, register};
use crate::support::TestApp;

fn hashes(app: &TestApp) -> u64 {
    app.ctx().password_hashing.started_count()
}

async fn try_login(app: &TestApp, email: &str, password: &str) -> (u16, Value) {
    let answer = app.http.post("/api/v1/auth/login").json(&json!({ "email": email, "password": password })).answer().await;
    (answer.status.as_u16(), answer.json()["code"].clone())
}

#[tokio::test]
async fn a_failed_sign_in_does_the_same_work_for_known_and_unknown() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let mut work = Vec::new();
    for (email, password) in [
        (ann.email.as_str(), "wrong password"),
        ("nobody@example.org", "wrong password"),
        ("no address at all", "wrong password"),
        (ann.email.as_str(), &"x".repeat(300)),
        ("nobody@example.org", &"x".repeat(300)),
    ] {
        let before = hashes(&app);
        assert_eq!(try_login(&app, email, password).await, (401, json!("invalid_credentials")));
        work.push(hashes(&app) - before);
    }
    assert_eq!(work, [1; 5]);
    let before = hashes(&app);
    login(&app, &ann.email, PASSWORD).await;
    assert_eq!(hashes(&app) - before, 1);
}

#[tokio::test]
async fn asking_for_a_reset_does_the_same_for_known_and_unknown() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    letters(&app).await;
    let mut seen = Vec::new();
    for email in [ann.email.as_str(), "nobody@example.org"] {
        let (hashed, mut conn) = (hashes(&app), app.connect().await);
        let open = rigmark::jobs::jobs_open_count(&mut conn).await.unwrap();
        let answer = app.http.post("/api/v1/auth/password-reset").json(&json!({ "email": email })).answer().await;
        let jobs = rigmark::jobs::jobs_open_count(&mut conn).await.unwrap() - open;
        seen.push((answer.status.as_u16(), answer.body, hashes(&app) - hashed, jobs));
    }
    assert_eq!(seen[0].0, 202);
    assert_eq!(seen[0], seen[1]);
    let written = letters(&app).await;
    assert_eq!(written.iter().filter(|letter| letter.contains("Set a new password")).count(), 1);
    assert!(written.iter().all(|letter| !letter.contains("nobody@")));
}

/// A hash of other cost than today's is made anew at the next sign-in.
#[tokio::test]
async fn the_hash_is_argon2id_of_the_configured_cost_and_follows_it() {
    use argon2::{Algorithm, Argon2, Params, Version, password_hash::PasswordHasher};
    use diesel_async::RunQueryDsl;
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    assert!(stored_hash(&app).await.starts_with("$argon2id$v=19$m=64,t=2,p=1$"));
    let old = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(32, 1, 1, None).unwrap());
    let hash = old.hash_password(PASSWORD.as_bytes()).unwrap().to_string();
    let update = diesel::sql_query("UPDATE users SET password_hash = $1").bind::<diesel::sql_types::Text, _>(&hash);
    update.execute(&mut app.connect().await).await.unwrap();
    assert_eq!(try_login(&app, &ann.email, "wrong password").await.0, 401);
    assert_eq!(stored_hash(&app).await, hash);
    login(&app, &ann.email, PASSWORD).await;
    let renewed = stored_hash(&app).await;
    assert!(renewed.starts_with("$argon2id$v=19$m=64,t=2,p=1$"));
    login(&app, &ann.email, PASSWORD).await;
    assert_eq!(stored_hash(&app).await, renewed);
}

#[derive(diesel::QueryableByName)]
struct Hash {
    #[diesel(sql_type = diesel::sql_types::Text)]
    password_hash: String,
}

async fn stored_hash(app: &TestApp) -> String {
    use diesel_async::RunQueryDsl;
    let found = diesel::sql_query("SELECT password_hash FROM users").get_result::<Hash>(&mut app.connect().await).await;
    found.unwrap().password_hash
}

#[tokio::test]
async fn changing_the_password_ends_the_other_sessions() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let other = login(&app, &ann.email, PASSWORD).await;
    let change = |person: &Person, current: &str, new: &str| {
        person.http.post("/api/v1/me/password").json(&json!({ "current_password": current, "new_password": new }))
    };
    change(&ann, "wrong password", "another password").expect_problem(401, "invalid_credentials").await;
    change(&ann, PASSWORD, "short").expect_problem(422, "invalid_input").await;
    other.http.get("/api/v1/me").expect(200).await;
    change(&ann, PASSWORD, "another password").expect(204).await;
    ann.http.get("/api/v1/me").expect(200).await;
    other.http.get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    let refresh = app.http.post("/api/v1/auth/refresh").json(&json!({ "refresh_token": other.refresh_token }));
    refresh.expect_problem(401, "unauthenticated").await;
    assert_eq!(try_login(&app, &ann.email, PASSWORD).await.0, 401);
    login(&app, &ann.email, "another password").await;
    assert!(letters(&app).await.iter().any(|letter| letter.contains("Subject: Your password was changed")));
}

#[tokio::test]
async fn a_reset_link_works_once_for_an_hour_and_ends_every_session() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let ask = || app.http.post("/api/v1/auth/password-reset").json(&json!({ "email": ann.email }));
    let reset = |token: &str, password: &str| {
        app.http.post("/api/v1/auth/password-reset/confirm").json(&json!({ "token": token, "password": password }))
    };
    ask().expect(202).await;
    let late = mailed_token(&app, &ann.email, "Set a new password").await;
    app.shift_wall(3_600);
    reset(&late, "another password").expect_problem(422, "invalid_input").await;

    let ann = login(&app, &ann.email, PASSWORD).await;
    ask().expect(202).await;
    let first = mailed_token(&app, &ann.email, "Set a new password").await;
    ask().expect(202).await;
    let second = mailed_token(&app, &ann.email, "Set a new password").await;
    let before = hashes(&app);
    reset("made up", "another password").expect_problem(422, "invalid_input").await;
    assert_eq!(hashes(&app), before, "a guess costs no hash");
    reset(&second, "short").expect_problem(422, "invalid_input").await;
    reset(&second, "another password").expect(204).await;
    for used_up in [&first, &second] {
        reset(used_up, "a third password").expect_problem(422, "invalid_input").await;
    }
    ann.http.get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    assert_eq!(try_login(&app, &ann.email, PASSWORD).await.0, 401);
    let ann = login(&app, &ann.email, "another password").await;
    assert_eq!(ann.http.get("/api/v1/me").expect(200).await["email_confirmed"], true, "the link has shown whose the address is");
}

#[tokio::test]
async fn a_confirmation_link_resets_no_password() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    let token = mailed_token(&app, &ann.email, "Confirm").await;
    let reset = app.http.post("/api/v1/auth/password-reset/confirm").json(&json!({ "token": token, "password": "another password" }));
    reset.expect_problem(422, "invalid_input").await;
}

#[tokio::test]
async fn failed_tries_are_limited_by_account_and_cost_no_hash_then() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    register(&app, "bob").await;
    // Successes are free.
    for _ in 0..15 {
        login(&app, &ann.email, PASSWORD).await;
    }
    for spelling in ["ann@example.org", "ANN@example.org", " ann@example.org"].iter().cycle().take(10) {
        assert_eq!(try_login(&app, spelling, "wrong password").await.0, 401);
    }
    let before = hashes(&app);
    let answer = app.http.post("/api/v1/auth/login").json(&json!({ "email": ann.email, "password": PASSWORD })).answer().await;
    assert_eq!((answer.status.as_u16(), answer.json()["code"].as_str()), (429, Some("rate_limited")), "{}", answer.body);
    assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(hashes(&app), before);
    login(&app, "bob@example.org", PASSWORD).await;
    // The same limit holds for somebody with a stolen session who guesses the password.
    let change = |current: &str| {
        ann.http.post("/api/v1/me/password").json(&json!({ "current_password": current, "new_password": "another password" }))
    };
    for _ in 0..10 {
        change("wrong password").expect_problem(401, "invalid_credentials").await;
    }
    change(PASSWORD).expect_problem(429, "rate_limited").await;
}

#[tokio::test]
async fn failed_tries_are_limited_by_address_too() {
    let app = TestApp::new().await;
    for i in 0..30 {
        assert_eq!(try_login(&app, &format!("p{i}@example.org"), "wrong password").await.0, 401, "{i}");
    }
    assert_eq!(try_login(&app, "another@example.org", "wrong password").await.0, 429);
}

#[tokio::test]
async fn letters_to_one_receiver_are_limited_known_or_not() {
    let app = TestApp::new().await;
    register(&app, "ann").await;
    for email in ["ann@example.org", "nobody@example.org"] {
        let ask = || app.http.post("/api/v1/auth/password-reset").json(&json!({ "email": email }));
        for _ in 0..5 {
            ask().expect(202).await;
        }
        ask().expect_problem(429, "rate_limited").await;
    }
}

/// A flood of sign-ins is turned away at the door instead of waiting for minutes; afterwards all is as before.
#[tokio::test]
async fn the_gate_admits_a_bounded_number() {
    let gate = rigmark::base::offload::Offload::new(1, 2);
    let (release, hold) = std::sync::mpsc::channel::<()>();
    let first = tokio::spawn({
        let gate = gate.clone();
        async move { gate.run(move || hold.recv().is_ok()).await }
    });
    crate::support::wait_for("the first to run", Duration::from_secs(10), async || gate.started_count() == 1).await;
    let mut waiting: Vec<_> = (0..2).map(|_| Box::pin(gate.run(|| true))).collect();
    for future in &mut waiting {
        assert!(futures::poll!(future).is_pending());
    }
    let refused = gate.run(|| true).await.unwrap_err();
    assert_eq!(refused.code(), rigmark::base::Code::Unavailable);
    // One who goes away gives the place back.
    drop(waiting.pop());
    let mut third = Box::pin(gate.run(|| true));
    assert!(futures::poll!(&mut third).is_pending());
    release.send(()).unwrap();
    assert!(first.await.unwrap().unwrap());
    assert!(waiting.pop().unwrap().await.unwrap() && third.await.unwrap());
    assert_eq!(gate.started_count(), 3);
    // Work that panics gives its place back as well.
    assert!(gate.run(|| -> bool { panic!("on purpose") }).await.is_err());
    assert!(gate.run(|| true).await.unwrap());
}

/// A stranger's failures use up the stranger's budget; with many addresses they slow unknown ones only.
#[tokio::test]
async fn a_stranger_cannot_hold_an_account_out() {
    let app = TestApp::with(|config| config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()]).await;
    let from = |address: &str, password: &str| {
        let form = json!({ "email": "ann@example.org", "password": password });
        app.http.post("/api/v1/auth/login").header("X-Forwarded-For", address).json(&form)
    };
    let register = json!({ "email": "ann@example.org", "password": PASSWORD, "handle": "ann" });
    app.http.post("/api/v1/auth/register").header("X-Forwarded-For", "2001:db8:1::5").json(&register).expect(201).await;
    for _ in 0..10 {
        from("203.0.113.9", "wrong password").expect_problem(401, "invalid_credentials").await;
    }
    from("203.0.113.9", PASSWORD).expect_problem(429, "rate_limited").await;
    // Where nobody has failed the account signs in, at an address that it never used too.
    from("198.51.100.7", PASSWORD).expect(200).await;
    // Many addresses: the account's own budget ends, for addresses that are not known.
    let mut tries = 10;
    while from(&format!("203.0.114.{tries}"), "wrong password").answer().await.status == 401 {
        tries += 1;
        assert!(tries < 100, "guessing has an end");
    }
    assert!(tries >= 60, "it is a loose one: {tries}");
    for address in ["203.0.115.1", "192.0.2.44"] {
        let answer = from(address, PASSWORD).answer().await;
        assert_eq!((answer.status.as_u16(), answer.header("retry-after").is_some()), (429, true), "{address}: {}", answer.body);
    }
    // Where it registered (any address of that /64) and where it signed in, it still does, and its own failures count there.
    for address in ["2001:db8:1::77", "198.51.100.7"] {
        from(address, PASSWORD).expect(200).await;
        for _ in 0..10 {
            from(address, "wrong password").expect_problem(401, "invalid_credentials").await;
        }
        from(address, PASSWORD).expect_problem(429, "rate_limited").await;
    }
    // Known for ninety days, not for ever.
    app.shift_wall(91 * 86_400);
    rigmark::identity::service::sweep(app.ctx()).await.unwrap();
    let known = rigmark::identity::service::is_known_address(app.ctx(), "ann@example.org", "198.51.100.7".parse().unwrap()).await.unwrap();
    assert!(!known);
}
