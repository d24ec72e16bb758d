//! What every page promises: nothing from elsewhere, nothing inline, files that may be kept for ever, errors that are pages too.

use super::{page, text, upload};
use crate::support::TestApp;

/// Addresses that a browser would load or follow.
fn addresses(html: &str) -> Vec<String> {
    let attributes = [" href=\"", " src=\"", " action=\""];
    attributes.iter().flat_map(|name| html.split(name).skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned)).collect()
}

fn assert_self_contained(path: &str, html: &str) {
    let all = addresses(html);
    assert!(all.len() > 5, "{path}: {all:?}");
    for address in &all {
        let is_own = address.starts_with('#') || (address.starts_with('/') && !address.starts_with("//"));
        assert!(is_own, "{path} leads to {address}");
    }
    assert!(!html.contains("style=\"") && !html.contains("<style"), "{path} has an inline style");
    assert!(html.matches("<script").count() == 1 && html.contains("<script src=\"/assets/"), "{path} has an inline script");
    assert!(!html.contains(" onclick=") && !html.contains("javascript:"), "{path}");
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
        assert_self_contained(&path, &answer.body);
    }
}

#[tokio::test]
async fn files_have_the_hash_of_their_bytes_and_are_kept_for_ever() {
    let app = TestApp::new().await;
    let html = page(&app, "/en/marketplace", 200).await.body;
    let files: Vec<String> = addresses(&html).into_iter().filter(|address| address.starts_with("/assets/")).collect();
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
    let answer = page(&app, "/en/runs?gpu_count=<b>", 422).await;
    assert!(!answer.body.contains("<b>\""), "{}", answer.body);
    let answer = page(&app, "/en/runs?cursor=made-up", 400).await;
    assert!(text(&answer.body).contains("The cursor is not one of this list"), "{}", answer.body);
}

#[tokio::test]
async fn the_ways_in_lead_to_the_market() {
    let app = TestApp::new().await;
    for path in ["/", "/en"] {
        let answer = app.http.get(path).answer().await;
        assert_eq!((answer.status.as_u16(), answer.header("location").as_deref()), (302, Some("/en/marketplace")), "{path}");
    }
}
