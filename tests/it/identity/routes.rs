//! Every route against every kind of caller (cases.md 22). A route without a row here fails, and so does a row without a route.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{PASSWORD, create_key, login, register};
use crate::support::{TestApp, http::Http};

/// Whom a route is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Everybody,
    /// Everybody; what the body holds proves who it is, so 401 is an answer of its own.
    Proof,
    /// Any key with any scope, and people.
    Any,
    /// People who have signed in.
    Session,
    Scope(&'static str),
    /// Operators who have signed in; no key ever.
    Operator,
    /// The benchmark tool with an upload token, which opens nothing else.
    UploadToken,
}
use For::{Any, Everybody, Operator, Proof, Scope, Session, UploadToken};

const ROUTES: &[(&str, &str, For)] = &[
    ("get", "/healthz", Everybody),
    ("get", "/readyz", Everybody),
    ("get", "/problems", Everybody),
    ("get", "/problems/{code}", Everybody),
    ("post", "/api/v1/auth/register", Everybody),
    ("post", "/api/v1/auth/register/confirm", Everybody),
    ("post", "/api/v1/auth/login", Proof),
    ("post", "/api/v1/auth/refresh", Proof),
    ("post", "/api/v1/auth/logout", Proof),
    ("post", "/api/v1/auth/password-reset", Everybody),
    ("post", "/api/v1/auth/password-reset/confirm", Everybody),
    ("post", "/api/v1/auth/email-confirmation", Session),
    ("post", "/api/v1/auth/email-confirmation/confirm", Everybody),
    ("get", "/api/v1/me", Scope("account:read")),
    ("patch", "/api/v1/me", Session),
    ("post", "/api/v1/me/password", Session),
    ("get", "/api/v1/me/invitations", Session),
    ("get", "/api/v1/api-keys", Scope("account:read")),
    ("post", "/api/v1/api-keys", Any),
    ("delete", "/api/v1/api-keys/{id}", Any),
    ("get", "/api/v1/organizations", Scope("account:read")),
    ("post", "/api/v1/organizations", Session),
    ("get", "/api/v1/organizations/{handle}", Everybody),
    ("patch", "/api/v1/organizations/{handle}", Session),
    ("get", "/api/v1/organizations/{handle}/members", Scope("account:read")),
    ("patch", "/api/v1/organizations/{handle}/members/{member}", Session),
    ("delete", "/api/v1/organizations/{handle}/members/{member}", Session),
    ("get", "/api/v1/organizations/{handle}/invitations", Session),
    ("post", "/api/v1/organizations/{handle}/invitations", Session),
    ("post", "/api/v1/organizations/{handle}/invitations/{id}/accept", Session),
    ("delete", "/api/v1/organizations/{handle}/invitations/{id}", Session),
    ("get", "/api/v1/webhook-endpoints", Scope("account:read")),
    ("post", "/api/v1/webhook-endpoints", Any),
    ("get", "/api/v1/webhook-endpoints/{id}", Scope("account:read")),
    ("patch", "/api/v1/webhook-endpoints/{id}", Any),
    ("delete", "/api/v1/webhook-endpoints/{id}", Any),
    ("post", "/api/v1/webhook-endpoints/{id}/rotate-secret", Any),
    ("post", "/api/v1/webhook-endpoints/{id}/test", Any),
    ("get", "/api/v1/webhook-endpoints/{id}/deliveries", Scope("account:read")),
    ("post", "/api/v1/webhook-endpoints/{id}/deliveries/{event_id}/retry", Any),
    ("get", "/api/v1/hardware", Everybody),
    ("get", "/api/v1/hardware/resolve", Everybody),
    ("get", "/api/v1/hardware/{slug}", Everybody),
    ("get", "/api/v1/models", Everybody),
    ("get", "/api/v1/models/{slug}", Everybody),
    ("get", "/api/v1/publishers", Everybody),
    ("get", "/api/v1/publishers/{slug}", Everybody),
    ("get", "/api/v1/leaderboard", Everybody),
    ("get", "/api/v1/benchmarks", Everybody),
    ("get", "/api/v1/reports", Everybody),
    ("post", "/api/v1/reports", Scope("runs:write")),
    ("get", "/api/v1/reports/{id}", Everybody),
    ("delete", "/api/v1/reports/{id}", Scope("runs:write")),
    ("post", "/api/v1/machines", Scope("machines:write")),
    ("get", "/api/v1/machines", Scope("machines:read")),
    ("get", "/api/v1/machines/{id}", Scope("machines:read")),
    ("patch", "/api/v1/machines/{id}", Scope("machines:write")),
    ("delete", "/api/v1/machines/{id}", Scope("machines:write")),
    ("post", "/api/v1/listings", Scope("listings:write")),
    ("get", "/api/v1/listings", Everybody),
    ("get", "/api/v1/listings/{id}", Everybody),
    ("patch", "/api/v1/listings/{id}", Scope("listings:write")),
    ("post", "/api/v1/listings/{id}/publish", Scope("listings:write")),
    ("post", "/api/v1/listings/{id}/pause", Scope("listings:write")),
    ("get", "/api/v1/me/listings", Scope("machines:read")),
    ("post", "/api/v1/quotes", Scope("rentals:read")),
    ("get", "/api/v1/saved-searches", Scope("rentals:read")),
    ("post", "/api/v1/saved-searches", Scope("rentals:write")),
    ("delete", "/api/v1/saved-searches/{id}", Scope("rentals:write")),
    ("get", "/api/v1/cells.csv", Scope("account:read")),
    ("get", "/api/v1/cells.parquet", Scope("account:read")),
    ("get", "/api/bench/whoami", UploadToken),
    ("post", "/api/bench/runs", UploadToken),
    ("get", "/api/v1/upload-tokens", Scope("account:read")),
    ("post", "/api/v1/upload-tokens", Scope("runs:write")),
    ("delete", "/api/v1/upload-tokens/{id}", Any),
    ("post", "/api/v1/calculator/decode", Everybody),
    ("post", "/api/v1/machines/{id}/challenges", Scope("machines:write")),
    ("get", "/api/v1/challenges/{id}", Scope("machines:read")),
    ("post", "/api/v1/machines/{id}/remeasure", Scope("machines:write")),
    ("get", "/api/v1/machines/{id}/remeasurements", Scope("machines:read")),
    ("post", "/api/v1/matrix-runs", Scope("runs:write")),
    ("get", "/api/v1/matrix-runs", Everybody),
    ("get", "/api/v1/matrix-runs/{id}", Everybody),
    ("get", "/api/v1/matrix-runs/{id}/document", Everybody),
    ("get", "/api/v1/matrix-runs/{id}/cells.csv", Everybody),
    ("get", "/api/v1/matrix-runs/{id}/history", Everybody),
    ("get", "/api/v1/matrix-runs/{id}/original", Scope("runs:write")),
    ("post", "/api/v1/matrix-runs/{id}/answer", Scope("runs:write")),
    ("post", "/api/v1/rentals", Scope("rentals:write")),
    ("get", "/api/v1/rentals", Scope("rentals:read")),
    ("get", "/api/v1/rentals/{id}", Scope("rentals:read")),
    ("post", "/api/v1/rentals/{id}/stop", Scope("rentals:write")),
    ("post", "/api/v1/rentals/{id}/extend", Scope("rentals:write")),
    ("get", "/api/v1/rentals/{id}/usage", Scope("rentals:read")),
    ("get", "/api/v1/rentals/{id}/events", Scope("rentals:read")),
    ("get", "/api/v1/balance", Scope("billing:read")),
    ("get", "/api/v1/ledger-entries", Scope("billing:read")),
    ("get", "/api/v1/statements", Scope("billing:read")),
    ("get", "/api/v1/statements.csv", Scope("billing:read")),
    ("get", "/api/v1/statements.html", Scope("billing:read")),
    ("post", "/api/v1/top-ups", Scope("billing:write")),
    ("get", "/api/v1/top-ups", Scope("billing:read")),
    ("get", "/api/v1/top-ups/{id}", Scope("billing:read")),
    ("post", "/api/v1/refunds", Scope("billing:write")),
    ("get", "/api/v1/refunds", Scope("billing:read")),
    ("get", "/api/v1/refunds/{id}", Scope("billing:read")),
    ("get", "/api/v1/disputes", Scope("billing:read")),
    ("get", "/api/v1/disputes/{id}", Scope("billing:read")),
    ("get", "/api/v1/disputes/{id}/evidence", Scope("billing:read")),
    ("get", "/api/v1/top-ups/{id}/receipt", Scope("billing:read")),
    ("get", "/api/v1/top-ups/{id}/receipt.html", Scope("billing:read")),
    ("post", "/api/v1/payment-methods", Scope("billing:write")),
    ("get", "/api/v1/payment-methods", Scope("billing:read")),
    ("patch", "/api/v1/payment-methods/{id}", Scope("billing:write")),
    ("delete", "/api/v1/payment-methods/{id}", Scope("billing:write")),
    ("get", "/api/v1/card-setups/{id}", Scope("billing:read")),
    ("get", "/api/v1/automatic-top-up", Scope("billing:read")),
    ("put", "/api/v1/automatic-top-up", Scope("billing:write")),
    ("delete", "/api/v1/automatic-top-up", Scope("billing:write")),
    ("get", "/api/v1/tunables", Everybody),
    ("post", "/api/v1/payout-account", Scope("billing:write")),
    ("get", "/api/v1/payout-account", Scope("billing:read")),
    ("patch", "/api/v1/payout-account", Scope("billing:write")),
    ("post", "/api/v1/payouts", Scope("billing:write")),
    ("get", "/api/v1/payouts", Scope("billing:read")),
    ("get", "/api/v1/payouts/{id}", Scope("billing:read")),
    ("get", "/api/v1/pro", Everybody),
    ("post", "/api/v1/pro", Scope("billing:write")),
    ("post", "/api/v1/pro/cancel", Scope("billing:write")),
    ("post", "/api/v1/pro/plan", Scope("billing:write")),
    ("post", "/api/v1/pro/portal", Scope("billing:write")),
    ("post", "/api/v1/pro/resume", Scope("billing:write")),
    ("post", "/api/v1/pro/seats", Scope("billing:write")),
    ("post", "/api/v1/stripe/events", Everybody),
    ("post", "/api/v1/sandbox/credits", Scope("billing:write")),
    ("get", "/api/v1/sandbox/clock", Any),
    ("post", "/api/v1/sandbox/clock", Any),
    ("get", "/api/v1/invoices/{month}", Scope("billing:read")),
    ("get", "/api/v1/invoices/{month}/invoice.csv", Scope("billing:read")),
    ("get", "/api/v1/invoices/{month}/invoice.html", Scope("billing:read")),
    ("get", "/api/v1/reconciliation", Operator),
    ("get", "/api/v1/admin/review-queue", Operator),
    ("post", "/api/v1/admin/matrix-runs/{id}/review", Operator),
    ("get", "/api/v1/admin/disputes/{id}/evidence", Operator),
    ("get", "/api/v1/admin/matrix-runs/{id}", Operator),
    ("get", "/api/v1/admin/matrix-runs/{id}/similar", Operator),
    ("get", "/v1/models", Scope("inference")),
    ("post", "/v1/chat/completions", Scope("inference")),
];

const SCOPES: [&str; 10] = [
    "account:read",
    "machines:read",
    "machines:write",
    "runs:write",
    "listings:write",
    "rentals:read",
    "rentals:write",
    "billing:read",
    "billing:write",
    "inference",
];

fn operations() -> Vec<(String, String)> {
    let document = serde_json::to_value(rigmark::openapi::document()).unwrap();
    let methods = |item: &Value| {
        item.as_object().unwrap().keys().filter(|key| !["parameters", "summary"].contains(&key.as_str())).cloned().collect::<Vec<_>>()
    };
    let paths = document["paths"].as_object().unwrap();
    paths.iter().flat_map(|(path, item)| methods(item).into_iter().map(|method| (method, path.clone()))).collect()
}

/// Method and path of what asks who is calling.
pub fn private_operations() -> Vec<(&'static str, &'static str)> {
    ROUTES.iter().filter(|(.., whom)| !matches!(whom, Everybody | Proof)).map(|(method, path, _)| (*method, *path)).collect()
}

#[test]
fn the_table_and_the_routes_are_the_same() {
    let mut table: Vec<(String, String)> = ROUTES.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned())).collect();
    let mut served = operations();
    table.sort();
    served.sort();
    let missing: Vec<_> = served.iter().filter(|route| !table.contains(route)).collect();
    let gone: Vec<_> = table.iter().filter(|route| !served.contains(route)).collect();
    assert!(missing.is_empty() && gone.is_empty(), "give these a row in {}: {missing:?}; no longer served: {gone:?}", file!());
}

/// Parameters that name nothing: who is let in gets 404 or 422, and nothing is changed.
fn concrete(path: &str) -> String {
    path.replace("{id}", "key_01h455vb4pex5vsknk084sn02q")
        .replace("{event_id}", "msg_01h455vb4pex5vsknk084sn02q")
        .replace("{handle}", "no-such-one")
        .replace("{member}", "nobody")
        .replace("{code}", "x")
        .replace("{month}", "2026-11")
}

async fn status(http: &Http, method: &str, path: &str) -> (u16, String) {
    let method = method.to_uppercase().parse().unwrap();
    let answer = http.request(method, &concrete(path)).answer().await;
    let body = answer.json();
    // The endpoint has the error shape of the API it imitates.
    let code = body["code"].as_str().or_else(|| body["error"]["code"].as_str()).unwrap_or_default().to_owned();
    (answer.status.as_u16(), code)
}

fn allows(held: &str, wanted: &str) -> bool {
    held == wanted || held.replace(":write", ":read") == wanted
}

#[tokio::test]
async fn each_route_lets_in_exactly_whom_it_is_for() {
    let app = TestApp::new().await;
    let ann = register(&app, "ann").await;
    // What a scope opens may need Pro beside it.
    let give =
        "INSERT INTO entitlements (account_id, granted_until) SELECT id, now() + interval '1 year' FROM accounts WHERE handle = 'ann'";
    crate::support::hosts::execute(&app, give).await;
    let mut keys = BTreeMap::new();
    for scope in SCOPES {
        keys.insert(scope, app.http.with_bearer(create_key(&ann.http, &[scope]).await.0));
    }
    let nothing = app.http.with_bearer(create_key(&ann.http, &[]).await.0);
    let form = serde_json::json!({ "name": "bench" });
    let token = ann.http.post("/api/v1/upload-tokens").json(&form).expect(201).await;
    let token = app.http.with_bearer(token["token"].as_str().unwrap());
    let everything = app.http.with_bearer(create_key(&ann.http, &SCOPES).await.0);
    for (method, path, whom) in ROUTES {
        let row = format!("{method} {path}");
        let needs_somebody = !matches!(whom, Everybody | Proof);
        let (stranger, _) = status(&app.http, method, path).await;
        assert!(stranger < 500 && (*whom == Proof || (stranger == 401) == needs_somebody), "{row}, a stranger: {stranger}");
        let (forger, _) = status(&app.http.with_bearer("rmk_nonsense"), method, path).await;
        assert!(!needs_somebody || forger == 401, "{row}, a bad key: {forger}");
        let (tool, _) = status(&token, method, path).await;
        // Where nobody is asked for, credentials that are not good are looked at only where they would show more.
        let expected = if needs_somebody { (tool == 401) == (*whom != UploadToken) } else { tool < 500 };
        assert!(expected && tool < 500, "{row}, an upload token: {tool}");
        // Each route gets a sign-in of its own: signing out is one of them.
        let person = login(&app, &ann.email, PASSWORD).await;
        let (signed_in, code) = status(&person.http, method, path).await;
        let let_in = ![401, 403].contains(&signed_in) && signed_in < 500;
        let expected = match whom {
            Operator => (signed_in, code.as_str()) == (403, "forbidden"),
            UploadToken => signed_in == 401,
            _ => let_in || *whom == Proof,
        };
        assert!(expected, "{row}, signed in: {signed_in} {code}");
        let holders = keys.iter().map(|(scope, http)| (*scope, http)).chain([("nothing", &nothing), ("everything", &everything)]);
        for (held, http) in holders {
            let allowed = match whom {
                Everybody | Proof => true,
                Any => held != "nothing",
                Session | Operator | UploadToken => false,
                Scope(wanted) => held == "everything" || allows(held, wanted),
            };
            let (found, code) = status(http, method, path).await;
            let expected = if allowed {
                ![401, 403].contains(&found) || *whom == Proof
            } else if *whom == UploadToken {
                found == 401
            } else {
                (found, code.as_str()) == (403, "insufficient_scope")
            };
            assert!(expected && found < 500, "{row}, a key with {held}: {found} {code}");
        }
    }
}
