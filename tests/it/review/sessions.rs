//! Signing in on the pages: the cookie, what it opens and what not, how it ends, and forms from elsewhere.

use serde_json::json;

use super::browser::{Browser, PASSWORD, cookie_of, encoded, post};
use super::{Stage, browser};
use crate::pages::html;
use crate::support::TestApp;
use crate::support::hosts::person;
use crate::support::http::Request;

#[tokio::test]
async fn a_handle_or_an_address_and_the_password_make_a_cookie_that_scripts_do_not_see() {
    let app = TestApp::new().await;
    person(&app, "ann").await;
    for name in ["ann", "@Ann", " ann@example.org ", "ANN@example.org"] {
        let answer = post(&app.http, "/en/sign-in", &[("name", name), ("password", PASSWORD)]).answer().await;
        assert_eq!((answer.status.as_u16(), answer.header("location").as_deref()), (303, Some("/en/runs")), "{name}: {}", answer.body);
        let set = answer.header("set-cookie").unwrap();
        assert!(set.starts_with("rigmark_session=rms_"), "{set}");
        for part in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=2592000"] {
            assert!(set.split("; ").any(|found| found == part), "{part}: {set}");
        }
        assert!(!set.contains("Secure"), "the sandbox is on plain http: {set}");
    }
}

#[tokio::test]
async fn behind_https_the_cookie_is_held_to_the_host() {
    let app = TestApp::with(|config| config.public_url = Some("https://rigmark.example".to_owned())).await;
    person(&app, "ann").await;
    let form = encoded(&[("name", "ann"), ("password", PASSWORD)]);
    let send = |origin: &str| {
        let request = app.http.post("/en/sign-in").header("Content-Type", "application/x-www-form-urlencoded");
        request.header("Origin", origin).body(form.clone()).answer()
    };
    let set = send("https://rigmark.example").await.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-rigmark_session=rms_") && set.split("; ").any(|part| part == "Secure"), "{set}");
    assert_eq!(send("https://rigmark.example.evil.example").await.status, 403);
}

#[tokio::test]
async fn a_wrong_password_keeps_the_name_and_says_so_at_the_field() {
    let app = TestApp::new().await;
    person(&app, "ann").await;
    for name in ["ann", "nobody-there", "x@example.org", "<b>&\"'"] {
        let answer =
            post(&app.http, "/en/sign-in", &[("name", name), ("password", "wrong horse"), ("next", "/en/runs?by=ann")]).answer().await;
        assert_eq!(answer.status, 422, "{name}");
        html::assert_sound("/en/sign-in", &answer.body);
        assert!(answer.header("set-cookie").is_none());
        assert!(answer.body.contains("id=\"e-password\">The handle, the address or the password is wrong."), "{}", answer.body);
        assert!(!answer.body.contains("wrong horse") && !answer.body.contains("<b>&"), "{}", answer.body);
        assert!(answer.body.contains("name=\"next\" value=\"/en/runs?by=ann\""), "{}", answer.body);
    }
    let answer = post(&app.http, "/en/sign-in", &[("name", " ann "), ("password", "")]).answer().await;
    assert!(answer.body.contains("value=\"ann\"") && answer.body.contains("Fill this in."), "{}", answer.body);
}

/// Ten failures for an account, whether it is named by handle or by address.
#[tokio::test]
async fn failed_tries_count_for_the_account_however_it_is_named() {
    let app = TestApp::new().await;
    person(&app, "ann").await;
    let mut statuses = Vec::new();
    for round in 0..11 {
        let name = if round % 2 == 0 { "ann" } else { "ann@example.org" };
        statuses.push(post(&app.http, "/en/sign-in", &[("name", name), ("password", "wrong horse")]).answer().await.status.as_u16());
    }
    assert_eq!((&statuses[..10], statuses[10]), (&[422; 10][..], 429));
    let answer = post(&app.http, "/en/sign-in", &[("name", "ann"), ("password", PASSWORD)]).answer().await;
    assert_eq!(answer.status, 429, "the right one neither, until the time is over");
    assert!(
        answer.header("retry-after").is_some() && answer.body.contains("value=\"ann\"") && answer.body.contains("Too many failed tries")
    );
    let login = json!({ "email": "ann@example.org", "password": PASSWORD });
    app.http.post("/api/v1/auth/login").json(&login).expect_problem(429, "rate_limited").await;
}

#[tokio::test]
async fn the_way_back_leads_to_pages_of_ours_only() {
    let app = TestApp::new().await;
    person(&app, "ann").await;
    let ways = [
        ("/en/review?cause=dispute", "/en/review?cause=dispute"),
        ("https://evil.example/", "/en/runs"),
        ("//evil.example/en/", "/en/runs"),
        ("/\\evil.example", "/en/runs"),
        ("/en\\evil.example", "/en/runs"),
        ("/en/x\r\nSet-Cookie: a=b", "/en/runs"),
        ("javascript:alert(1)", "/en/runs"),
        ("/api/v1/me", "/en/runs"),
        ("", "/en/runs"),
    ];
    for (next, expected) in ways {
        let answer = post(&app.http, "/en/sign-in", &[("name", "ann"), ("password", PASSWORD), ("next", next)]).answer().await;
        assert_eq!(answer.header("location").as_deref(), Some(expected), "{next:?}");
    }
}

#[tokio::test]
async fn a_page_for_somebody_leads_a_stranger_to_the_form_and_back() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    for path in
        ["/en/review?cause=dispute".to_owned(), format!("/en/review/{run}"), format!("/en/runs/{run}/answer"), "/en/sign-out".to_owned()]
    {
        let answer = stage.app.http.get(&path).answer().await;
        let to = format!("/en/sign-in?{}", encoded(&[("next", &path)]));
        assert_eq!((answer.status.as_u16(), answer.header("location")), (302, Some(to.clone())), "{path}");
        let form = stage.app.http.get(&to).answer().await;
        assert_eq!((form.status.as_u16(), form.header("cache-control").as_deref()), (200, Some("no-store")));
        html::assert_sound(&to, &form.body);
    }
    let somebody = browser(&stage.app, "host").await;
    for path in ["/en/review", &format!("/en/review/{run}"), &format!("/en/review/{run}/original")] {
        assert!(somebody.page(path, 403).await.contains("This is not for your account"), "{path}");
    }
    let operator = browser(&stage.app, "olga").await;
    let answer = operator.get("/en/sign-in?next=%2Fen%2Freview").answer().await;
    assert_eq!(answer.header("location").as_deref(), Some("/en/review"), "who has signed in goes on");
}

#[tokio::test]
async fn a_cookie_opens_pages_and_no_part_of_the_api() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    let olga = browser(&stage.app, "olga").await;
    let reads = ["/api/v1/me", "/api/v1/admin/review-queue", &format!("/api/v1/matrix-runs/{run}/original"), "/v1/models"];
    for path in reads {
        assert_eq!(olga.get(path).answer().await.status, 401, "{path}");
    }
    let path = format!("/api/v1/admin/matrix-runs/{run}/review");
    let form = json!({ "decision": "accept", "reason": "By a page of somebody else's." });
    let forged = stage.app.http.post(&path).header("Cookie", &olga.cookie).header("Origin", "https://evil.example").json(&form);
    forged.expect_problem(401, "unauthenticated").await;
    let (_, secret) = olga.cookie.split_once('=').unwrap();
    stage.app.http.with_bearer(secret).get("/api/v1/me").expect_problem(401, "unauthenticated").await;
    let refresh = json!({ "refresh_token": secret });
    stage.app.http.post("/api/v1/auth/refresh").json(&refresh).expect_problem(401, "unauthenticated").await;
    // And what the API takes is no cookie.
    let login = json!({ "email": "olga@example.org", "password": PASSWORD });
    let tokens = stage.app.http.post("/api/v1/auth/login").json(&login).expect(200).await;
    for token in ["access_token", "refresh_token"] {
        let cookie = format!("rigmark_session={}", tokens[token].as_str().unwrap());
        assert_eq!(stage.app.http.get("/en/review").header("Cookie", cookie).answer().await.status, 302, "{token}");
    }
    assert_eq!(stage.app.http.with_bearer(tokens["access_token"].as_str().unwrap()).get("/en/review").answer().await.status, 302);
}

/// Whatever ends a session ends it on the pages too, at once.
#[tokio::test]
async fn a_session_that_has_ended_opens_nothing() {
    let stage = Stage::new().await;
    let app = &stage.app;
    let ended = async |browser: &Browser| browser.get("/en/review").answer().await.status == 302;
    let olga = browser(app, "olga").await;
    assert_eq!(olga.get("/en/review").answer().await.status, 200);
    let answer = olga.send("/en/sign-out", &[]).await;
    let set = answer.header("set-cookie").unwrap();
    assert!(answer.status == 303 && set.starts_with("rigmark_session=;") && set.contains("Max-Age=0"), "{set}");
    assert!(ended(&olga).await, "the cookie that somebody kept");
    // Signing in again ends the session that the browser had.
    let first = browser(app, "olga").await;
    let again = post(&app.http, "/en/sign-in", &[("name", "olga"), ("password", PASSWORD)]).header("Cookie", &first.cookie).answer().await;
    assert!(ended(&first).await && cookie_of(&again) != first.cookie);
    // Another password ends the others.
    let second = browser(app, "olga").await;
    let form = json!({ "current_password": PASSWORD, "new_password": "another horse battery" });
    stage.olga.http.post("/api/v1/me/password").json(&form).expect(204).await;
    assert!(ended(&second).await);
    // It expires, and is swept away with its session.
    let otto = browser(app, "otto").await;
    app.shift_wall(30 * 86_400 - 60);
    assert!(!ended(&otto).await);
    app.work().await;
    assert!(!ended(&otto).await, "a sweep leaves what still runs");
    app.shift_wall(120);
    assert!(ended(&otto).await);
    app.work().await;
    let mut conn = app.connect().await;
    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        running: i64,
    }
    let running = diesel::sql_query(
        "SELECT count(*) AS running FROM session_cookies c JOIN sessions s ON s.id = c.session_id WHERE s.ended_at IS NULL",
    );
    assert_eq!(diesel_async::RunQueryDsl::get_result::<Row>(running, &mut conn).await.unwrap().running, 0);
    // Who is an operator no more is none on the pages.
    let third = browser(app, "otto").await;
    rigmark::identity::service::set_operator(&app.ctx().db, &app.ctx().clock, "otto", false).await.unwrap();
    assert_eq!(third.get("/en/review").answer().await.status, 403);
}

#[tokio::test]
async fn a_form_from_elsewhere_does_nothing() {
    let stage = Stage::new().await;
    let run = stage.waiting().await;
    let path = format!("/en/review/{run}");
    let olga = browser(&stage.app, "olga").await;
    let token = olga.token(&path).await;
    let other = browser(&stage.app, "otto").await.token(&path).await;
    let base = stage.app.http.base_url().to_owned();
    let port = base.rsplit(':').next().unwrap();
    let send = |token: &str, headers: &[(&str, &str)]| -> Request {
        let body = encoded(&[("decision", "accept"), ("reason", "Forged by a page."), ("form_token", token)]);
        let request = stage.app.http.post(&path).header("Content-Type", "application/x-www-form-urlencoded").header("Cookie", &olga.cookie);
        headers.iter().fold(request, |request, (name, value)| request.header(name, value)).body(body)
    };
    let own = ("Origin", base.as_str());
    let foreign = [
        vec![("Origin", "https://evil.example")],
        vec![("Origin", "null")],
        vec![("Origin", "not an origin")],
        vec![("Origin", "http://127.0.0.1:1")],
        vec![own, ("Sec-Fetch-Site", "cross-site")],
        vec![own, ("Sec-Fetch-Site", "same-site")],
        vec![own, ("Sec-Fetch-Site", "none")],
        vec![],
    ];
    for headers in &foreign {
        let answer = send(&token, headers).answer().await;
        assert_eq!(answer.status, 403, "{headers:?}: {}", answer.body);
        assert!(answer.body.contains("The form could not be trusted"));
    }
    for wrong in ["", "x", &other, &token.to_uppercase()] {
        assert_eq!(send(wrong, &[own]).answer().await.status, 403, "{wrong}");
    }
    assert_eq!(stage.kinds(run).await, Vec::<String>::new());
    // A stranger's, who has no session, leads to the form to sign in with.
    let stranger = post(&stage.app.http, &path, &[("decision", "accept"), ("reason", "By nobody.")]).answer().await;
    assert_eq!((stranger.status.as_u16(), stranger.header("location").unwrap().starts_with("/en/sign-in?next=")), (303, true));
    // Signing somebody in from elsewhere, into an account of the forger's.
    let sign_in = stage.app.http.post("/en/sign-in").header("Content-Type", "application/x-www-form-urlencoded");
    let sign_in =
        sign_in.header("Origin", "https://evil.example").body(encoded(&[("name", "host"), ("password", PASSWORD)])).answer().await;
    assert_eq!((sign_in.status.as_u16(), sign_in.header("set-cookie")), (403, None));
    let text = stage.app.http.post(&path).header("Content-Type", "text/plain").header("Cookie", &olga.cookie).header(own.0, own.1);
    assert_eq!(text.body(encoded(&[("form_token", &token)])).answer().await.status, 415);
    // From our own page, by another name of this server.
    let named = format!("http://localhost:{port}");
    let request = stage.app.http.post(&path).header("Host", format!("localhost:{port}")).header("Origin", named);
    let request = request.header("Content-Type", "application/x-www-form-urlencoded").header("Cookie", &olga.cookie);
    let answer = request.body(encoded(&[("decision", "accept"), ("reason", "From a page."), ("form_token", &token)])).answer().await;
    assert_eq!(answer.status, 303, "{}", answer.body);
    assert_eq!(stage.kinds(run).await, ["reviewed"]);
}

/// One address, two readers: neither is shown the other's, by no cache.
#[tokio::test]
async fn no_cache_mixes_readers() {
    let stage = Stage::new().await;
    let olga = browser(&stage.app, "olga").await;
    let stranger = stage.app.http.get("/en/runs").answer().await;
    let tag = stranger.header("etag").unwrap();
    assert!(stranger.header("vary").unwrap().contains("cookie") && !stranger.body.contains("@olga"));
    assert_eq!(stranger.header("cache-control").as_deref(), Some("public, no-cache"));
    let hers = olga.get("/en/runs").header("If-None-Match", &tag).answer().await;
    assert_eq!(
        (hers.status.as_u16(), hers.header("etag"), hers.header("cache-control").as_deref()),
        (200, None, Some("private, no-store"))
    );
    assert!(hers.body.contains("@olga") && hers.body.contains("href=\"/en/review\""));
    let host = browser(&stage.app, "host").await.page("/en/runs", 200).await;
    assert!(host.contains("@host") && !host.contains("href=\"/en/review\""));
    // A cookie that is good no more makes a stranger.
    let nobody = stage.app.http.get("/en/runs").header("Cookie", "rigmark_session=rms_unknown").answer().await;
    assert_eq!((nobody.status.as_u16(), nobody.header("etag")), (200, Some(tag)));
}
