//! Pages as a browser gets them: the run that the published page shows, the market, what every page promises.

mod benchmarks;
mod crawl;
pub mod html;
mod market;
mod messages;
mod run;
mod toolkit;

use serde_json::{Value, json};

use crate::benchmarks as documents;
use crate::support::TestApp;
use crate::support::http::{Answer, Http};

/// Somebody who may upload.
async fn uploader(app: &TestApp) -> Http {
    let form = json!({ "email": "sandberg@example.org", "password": "correct horse battery", "handle": "sandberg" });
    let body = app.http.post("/api/v1/auth/register").json(&form).expect(201).await;
    app.http.with_bearer(body["access_token"].as_str().unwrap())
}

/// The reference run with these members changed; its id.
async fn upload(app: &TestApp, changes: &[(&str, Value)]) -> String {
    let mut body: Value = serde_json::from_slice(&documents::bytes("reference-run.meta.json")).unwrap();
    body["document"] = serde_json::from_slice(&documents::bytes("reference-run.json")).unwrap();
    for (pointer, value) in changes {
        match body.pointer_mut(pointer) {
            Some(member) => *member = value.clone(),
            None => body[pointer.trim_start_matches('/')] = value.clone(),
        }
    }
    let run = uploader(app).await.post("/api/v1/matrix-runs").json(&body).expect(201).await;
    run["id"].as_str().unwrap().to_owned()
}

async fn page(app: &TestApp, path: &str, status: u16) -> Answer {
    let answer = app.http.get(path).answer().await;
    assert_eq!(answer.status, status, "{path}: {}", answer.body);
    assert_eq!(answer.header("content-type").as_deref(), Some("text/html; charset=utf-8"), "{path}");
    answer
}

/// What a reader sees, words apart by one space: tags and what is for screen readers only are gone, references resolved.
pub fn text(html: &str) -> String {
    let body = html.split_once("<body>").map_or(html, |(_, body)| body);
    let mut out = String::new();
    let mut rest = body;
    while let Some((before, after)) = rest.split_once('<') {
        out.push_str(before);
        let (tag, after) = after.split_once('>').unwrap_or((after, ""));
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or_default();
        if !["b", "span", "a", "code", "sup"].contains(&name) || tag.contains("class=\"u\"") {
            out.push(' ');
        }
        rest = if tag.contains("class=\"vh\"") || tag.contains("class=\"shrt\"") {
            after.split_once('<').map_or("", |(_, rest)| &after[after.len() - rest.len() - 1..])
        } else {
            after
        };
    }
    out.push_str(rest);
    let references =
        [("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("&#38;", "&"), ("&amp;", "&")];
    let plain = references.iter().fold(out, |text, (from, to)| text.replace(from, to));
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every part in turn, each after the one before.
fn assert_in_order(text: &str, parts: &[impl AsRef<str>]) {
    let mut rest = text;
    for part in parts {
        let part = part.as_ref();
        let at = rest
            .find(part)
            .unwrap_or_else(|| panic!("`{part}` does not follow; what is left is: {}", rest.chars().take(600).collect::<String>()));
        rest = &rest[at + part.len()..];
    }
}
