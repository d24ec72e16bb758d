//! The URL table: what stands beside a handler in src/routes.rs is the handler's own method and path, and the OpenAPI document that is served
//! is the one that is checked in.

use std::collections::BTreeSet;

use crate::support::TestApp;

const TABLE: &str = include_str!("../../src/routes.rs");
const CHECKED_IN: &str = include_str!("../../openapi/rigmark.json");

/// `METHOD path` of every line of a function of the table.
fn lines(functions: &str) -> BTreeSet<String> {
    let lines = functions.lines().filter(|line| line.trim_start().starts_with(".service("));
    lines
        .map(|line| line.split_once("// ").map_or_else(|| panic!("no comment: {line}"), |(_, comment)| comment.trim().to_owned()))
        .collect()
}

#[test]
fn each_line_of_the_table_says_the_handlers_own_path() {
    let (api, _pages) = TABLE.split_once("/// Pages").unwrap();
    let document = serde_json::to_value(rigmark::openapi::document()).unwrap();
    let mut served = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = ["get", "post", "patch", "put", "delete"].into_iter().filter(|m| item.get(*m).is_some());
        served.extend(methods.map(|m| format!("{} {path}", m.to_uppercase())));
    }
    assert_eq!(lines(api), served);
}

#[tokio::test]
async fn the_served_document_is_the_checked_in_one() {
    let app = TestApp::new().await;
    let served = app.http.get("/openapi.json").answer().await.body;
    assert!(served == CHECKED_IN, "run `cargo run -- openapi > openapi/rigmark.json` and look at the change");
}
