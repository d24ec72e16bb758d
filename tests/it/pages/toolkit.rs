//! What every page promises: nothing from elsewhere, nothing inline, files that may be kept for ever, errors that are pages too.

use diesel_async::SimpleAsyncConnection;

use super::{html, page, text, upload};
use crate::support::TestApp;

/// Files of ours that a page loads.
fn assets(html: &str) -> Vec<String> {
    let attributes = [" href=\"", " src=\""];
    let all = attributes.iter().flat_map(|name| html.split(name).skip(1).filter_map(|rest| rest.split('"').next()));
    all.filter(|address| address.starts_with("/assets/")).map(str::to_owned).collect()
}

#[tokio::test]
async fn pages_load_and_run_nothing_but_their_own_files() {
    let app = TestApp::new().await;
    let id = upload(&app, &[]).await;
    let pages = [
        ("/en/marketplace".to_owned(), 200),
        ("/en/marketplace?gpu_count=x".to_owned(), 422),
        ("/en/runs".to_owned(), 200),
        (format!("/en/runs/{id}"), 200),
        ("/en/nothing".to_owned(), 404),
    ];
    for (path, status) in pages {
        let answer = page(&app, &path, status).await;
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; form-action 'self';"),
            "{policy}"
        );
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        assert_eq!(answer.header("x-content-type-options").as_deref(), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy").as_deref(), Some("same-origin"));
        assert!(answer.body.contains("<b>Sandbox</b>"), "{path} does not say that it is the sandbox");
        html::assert_sound(&path, &answer.body);
        assert_eq!(answer.header("cross-origin-opener-policy").as_deref(), Some("same-origin"));
        assert!(answer.header("permissions-policy").is_some(), "{path}");
    }
}

#[tokio::test]
async fn files_have_the_hash_of_their_bytes_and_are_kept_for_ever() {
    let app = TestApp::new().await;
    let html = page(&app, "/en/marketplace", 200).await.body;
    let files = assets(&html);
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        let answer = app.http.get(&file).answer().await;
        assert_eq!((answer.status.as_u16(), answer.header("cache-control").as_deref()), (200, Some("public, max-age=31536000, immutable")));
        let hash = file.rsplit_once('-').and_then(|(_, rest)| rest.split('.').next()).unwrap();
        assert!(hash.len() == 12 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{file}");
        let other = file.replace(hash, "000000000000");
        assert_eq!(app.http.get(&other).answer().await.status, 404, "another hash is another file");
    }
}

#[tokio::test]
async fn errors_of_pages_are_pages_with_the_request_id() {
    let app = TestApp::new().await;
    for path in ["/en/runs/run_01h455vb4pex5vsknk084sn02q", "/en/runs/x", "/en/listings/lst_01h455vb4pex5vsknk084sn02q", "/en/nothing"] {
        let answer = app.http.get(path).header("X-Request-Id", "asked-by-a-test").answer().await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.header("content-type").as_deref(), Some("text/html; charset=utf-8"), "{path}");
        assert!(text(&answer.body).contains("Request id asked-by-a-test"), "{path}: {}", answer.body);
    }
    let answer = page(&app, "/en/runs?cursor=made-up", 400).await;
    assert!(text(&answer.body).contains("The cursor in the address is not one of this list."), "{}", answer.body);
    assert!(answer.body.contains("<meta name=\"robots\" content=\"noindex\">"), "{}", answer.body);
}

#[tokio::test]
async fn a_fault_of_ours_shows_its_request_id_and_nothing_else() {
    let app = TestApp::new().await;
    app.connect().await.batch_execute("ALTER TABLE listings RENAME TO elsewhere").await.unwrap();
    let answer = app.http.get("/en/marketplace").header("X-Request-Id", "asked-by-a-test").answer().await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type").as_deref()), (500, Some("text/html; charset=utf-8")));
    let shown = text(&answer.body);
    assert!(shown.contains("Something went wrong on our side") && shown.contains("Request id asked-by-a-test"), "{shown}");
    assert!(!shown.contains("listings") && !shown.contains("relation"), "{shown}");
}

/// A mistyped address is a person's when the request asks for HTML; the API's errors stay problem details for everybody.
#[tokio::test]
async fn browsers_get_pages_and_programs_get_problems() {
    let app = TestApp::new().await;
    for (path, accept, kind) in [
        ("/nothing", "text/html,*/*;q=0.8", "text/html; charset=utf-8"),
        ("/xx/runs", "text/html,*/*;q=0.8", "text/html; charset=utf-8"),
        ("/xx", "text/html", "text/html; charset=utf-8"),
        ("/nothing", "*/*", "application/problem+json"),
        ("/api/v1/nothing", "text/html,*/*;q=0.8", "application/problem+json"),
        ("/v1/nothing", "text/html,*/*;q=0.8", "application/json"),
    ] {
        let answer = app.http.get(path).header("Accept", accept).answer().await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type").as_deref()), (404, Some(kind)), "{path} {accept}");
    }
}

#[tokio::test]
async fn pages_are_asked_about_and_come_compressed() {
    let app = TestApp::new().await;
    let first = page(&app, "/en/runs", 200).await;
    let tag = first.header("etag").unwrap();
    assert_eq!(first.header("cache-control").as_deref(), Some("public, no-cache"));
    let again = app.http.get("/en/runs").header("If-None-Match", &tag).answer().await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert!(again.header("content-security-policy").is_some(), "a 304 brings the policy too");
    upload(&app, &[]).await;
    let changed = app.http.get("/en/runs").header("If-None-Match", &tag).answer().await;
    assert_eq!(changed.status, 200, "another list has another tag");
    for encoding in ["br", "gzip"] {
        let packed = app.http.get("/en/runs").header("Accept-Encoding", encoding).answer().await;
        assert_eq!(packed.header("content-encoding").as_deref(), Some(encoding));
        let tag = packed.header("etag").unwrap();
        let again = app.http.get("/en/runs").header("Accept-Encoding", encoding).header("If-None-Match", &tag).answer().await;
        assert_eq!(again.status, 304, "the tag of the packed page is known too");
    }
}

#[tokio::test]
async fn a_page_says_what_it_is_to_other_programs() {
    let app = TestApp::new().await;
    let id = upload(&app, &[]).await;
    let html = page(&app, &format!("/en/runs/{id}?"), 200).await.body;
    let base = app.http.base_url();
    assert!(html.contains(&format!("<link rel=\"canonical\" href=\"{base}/en/runs/{id}\">")), "{html}");
    let title = "Nemotron-Cascade-2-30B-A3B-AWQ-4bit on RTX 3090 24GB";
    assert!(html.contains(&format!("<title>{title} · Rigmark</title>")), "{html}");
    assert!(html.contains(&format!("<meta property=\"og:title\" content=\"{title}\">")), "{html}");
    let description = "vllm · 0.32.0 · AWQ 4-bit. 6 contexts (0–248K) × 8 concurrency levels (1–128) · prefill at 8K, 16K, 32K, 64K, 128K";
    for name in ["name=\"description\"", "property=\"og:description\""] {
        assert!(html.contains(&format!("<meta {name} content=\"{description}\">")), "{name}: {html}");
    }
    assert!(!html.contains("noindex"), "a public run may be found");
}

#[tokio::test]
async fn an_unlisted_run_is_not_to_be_found() {
    let app = TestApp::new().await;
    let id = upload(&app, &[]).await;
    crate::support::hosts::execute(&app, "UPDATE runs SET visibility = 'unlisted'").await;
    let html = page(&app, &format!("/en/runs/{id}"), 200).await.body;
    assert!(html.contains("<meta name=\"robots\" content=\"noindex\">"), "{html}");
    assert!(!page(&app, "/en/runs", 200).await.body.contains(&id));
}

#[tokio::test]
async fn the_ways_in_lead_to_the_market() {
    let app = TestApp::new().await;
    for path in ["/", "/en"] {
        let answer = app.http.get(path).answer().await;
        assert_eq!((answer.status.as_u16(), answer.header("location").as_deref()), (302, Some("/en/marketplace")), "{path}");
    }
}
