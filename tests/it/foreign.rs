//! Every private operation, called by an account that owns nothing of what it names (cases.md 22). An operation without a row fails, and so
//! does a row without an operation.

use diesel::{sql_query, sql_types::Uuid as SqlUuid};
use diesel_async::RunQueryDsl;
use rigmark::base::id::{CardSetupId, DisputeId, PayoutId, RefundId, TopUpId};
use serde_json::{Value, json};

use crate::identity::routes::private_operations;
use crate::support::hosts::{self, person};
use crate::support::http::{Answer, Http};
use crate::support::renting::Stage;

/// What an operation does for somebody else's account.
#[derive(Clone, Copy)]
enum Stranger {
    /// What the request names does not exist for them: 404.
    Hidden,
    /// Nothing of others can be named: it acts for the caller, and shows nothing of theirs.
    Own,
    /// The same, and the row's request is refused for a fault of its own, so that the row touches nothing (a clock that moves is everybody's).
    OwnFault(u16),
    /// Operators only: 403.
    Forbidden,
    /// For the benchmark tool's own kind of token: 401.
    NoToken,
}
use Stranger::{Forbidden, Hidden, NoToken, Own, OwnFault};

/// Method, path, body, what a stranger gets. Names in braces stand for things of [`Owned`].
const ROWS: &[(&str, &str, &str, Stranger)] = &[
    ("post", "/api/v1/auth/email-confirmation", "", Own),
    ("get", "/api/v1/me", "", Own),
    ("patch", "/api/v1/me", r#"{"display_name": "Mallory"}"#, Own),
    ("post", "/api/v1/me/password", r#"{"current_password": "wrong", "new_password": "another horse battery"}"#, OwnFault(401)),
    ("get", "/api/v1/me/invitations", "", Own),
    ("get", "/api/v1/api-keys", "", Own),
    ("post", "/api/v1/api-keys", r#"{"name": "mine", "scopes": ["account:read"]}"#, Own),
    ("delete", "/api/v1/api-keys/{key}", "", Hidden),
    ("get", "/api/v1/upload-tokens", "", Own),
    ("post", "/api/v1/upload-tokens", r#"{"name": "taken", "machine_id": "{machine}"}"#, Hidden),
    ("delete", "/api/v1/upload-tokens/{token}", "", Hidden),
    ("get", "/api/bench/whoami", "", NoToken),
    ("post", "/api/bench/runs", "{document}", NoToken),
    ("get", "/api/v1/organizations", "", Own),
    ("post", "/api/v1/organizations", r#"{"handle": "den"}"#, Own),
    ("patch", "/api/v1/organizations/{guild}", r#"{"display_name": "Taken"}"#, Hidden),
    ("get", "/api/v1/organizations/{guild}/members", "", Hidden),
    ("patch", "/api/v1/organizations/{guild}/members/{member}", r#"{"role": "member"}"#, Hidden),
    ("delete", "/api/v1/organizations/{guild}/members/{member}", "", Hidden),
    ("get", "/api/v1/organizations/{guild}/invitations", "", Hidden),
    ("post", "/api/v1/organizations/{guild}/invitations", r#"{"handle": "mallory", "role": "owner"}"#, Hidden),
    ("post", "/api/v1/organizations/{guild}/invitations/{invitation}/accept", "", Hidden),
    ("delete", "/api/v1/organizations/{guild}/invitations/{invitation}", "", Hidden),
    ("get", "/api/v1/webhook-endpoints", "", Own),
    ("post", "/api/v1/webhook-endpoints", r#"{"url": "http://127.0.0.1:1/mine", "events": ["*"]}"#, Own),
    ("get", "/api/v1/webhook-endpoints/{hook}", "", Hidden),
    ("patch", "/api/v1/webhook-endpoints/{hook}", r#"{"url": "http://127.0.0.1:1/taken"}"#, Hidden),
    ("post", "/api/v1/webhook-endpoints/{hook}/rotate-secret", "", Hidden),
    ("post", "/api/v1/webhook-endpoints/{hook}/test", "", Hidden),
    ("get", "/api/v1/webhook-endpoints/{hook}/deliveries", "", Hidden),
    ("post", "/api/v1/webhook-endpoints/{hook}/deliveries/{hook_event}/retry", "", Hidden),
    ("delete", "/api/v1/webhook-endpoints/{hook}", "", Hidden),
    ("post", "/api/v1/machines", r#"{"name": "mine", "hardware": {"gpu": "RTX 3090", "gpu_count": 1}}"#, Own),
    ("get", "/api/v1/machines", "", Own),
    ("get", "/api/v1/machines/{machine}", "", Hidden),
    ("patch", "/api/v1/machines/{machine}", r#"{"name": "taken"}"#, Hidden),
    ("delete", "/api/v1/machines/{machine}", "", Hidden),
    ("post", "/api/v1/listings", r#"{"machine_id": "{machine}", "price_per_hour": "0.01"}"#, Hidden),
    ("patch", "/api/v1/listings/{draft}", r#"{"price_per_hour": "0.01"}"#, Hidden),
    ("post", "/api/v1/listings/{draft}/publish", "", Hidden),
    ("post", "/api/v1/listings/{draft}/pause", "", Hidden),
    ("get", "/api/v1/me/listings", "", Own),
    ("post", "/api/v1/quotes", r#"{"listing_id": "{draft}"}"#, Hidden),
    ("post", "/api/v1/machines/{machine}/challenges", "{}", Hidden),
    ("get", "/api/v1/challenges/{challenge}", "", Hidden),
    ("post", "/api/v1/machines/{machine}/remeasure", "", Hidden),
    ("get", "/api/v1/machines/{machine}/remeasurements", "", Hidden),
    ("post", "/api/v1/matrix-runs", r#"{"document": {document}, "machine_id": "{machine}", "challenge_id": "{challenge}"}"#, Hidden),
    (
        "post",
        "/api/v1/reports",
        r#"{"model": "gpt-oss-20b", "hardware": "rtx-3090", "engine": "vllm", "quantization": "mxfp4", "context_tokens": 0, "concurrency": 1,
            "rate": "total", "tokens_per_second": 100}"#,
        Own,
    ),
    ("delete", "/api/v1/reports/{report}", "", Hidden),
    ("get", "/api/v1/cells.csv", "", OwnFault(403)),
    ("get", "/api/v1/cells.parquet", "", OwnFault(403)),
    ("post", "/api/v1/saved-searches", r#"{"name": "mine", "query": {"hardware": "rtx-3090"}}"#, OwnFault(403)),
    ("get", "/api/v1/saved-searches", "", Own),
    ("delete", "/api/v1/saved-searches/{search}", "", Hidden),
    ("post", "/api/v1/rentals", r#"{"listing_id": "{draft}"}"#, Hidden),
    ("get", "/api/v1/rentals", "", Own),
    ("get", "/api/v1/rentals/{rental}", "", Hidden),
    ("post", "/api/v1/rentals/{rental}/stop", "", Hidden),
    ("post", "/api/v1/rentals/{rental}/extend", r#"{"hours": 1}"#, Hidden),
    ("get", "/api/v1/rentals/{rental}/usage", "", Hidden),
    ("get", "/api/v1/rentals/{rental}/events", "", Hidden),
    ("get", "/api/v1/balance", "", Own),
    ("get", "/api/v1/ledger-entries", "", Own),
    ("get", "/api/v1/statements", "", Own),
    ("get", "/api/v1/statements.csv", "", Own),
    ("get", "/api/v1/statements.html", "", Own),
    ("post", "/api/v1/top-ups", r#"{"amount": "50.00"}"#, OwnFault(409)),
    ("get", "/api/v1/top-ups", "", Own),
    ("get", "/api/v1/top-ups/{top_up}", "", Hidden),
    ("post", "/api/v1/refunds", r#"{"top_up_id": "{top_up}", "amount": "1.00"}"#, OwnFault(409)),
    ("get", "/api/v1/refunds", "", Own),
    ("get", "/api/v1/refunds/{refund}", "", Hidden),
    ("get", "/api/v1/disputes", "", Own),
    ("get", "/api/v1/disputes/{dispute}", "", Hidden),
    ("get", "/api/v1/disputes/{dispute}/evidence", "", Hidden),
    ("get", "/api/v1/top-ups/{paid}/receipt", "", Hidden),
    ("get", "/api/v1/top-ups/{paid}/receipt.html", "", Hidden),
    ("post", "/api/v1/payment-methods", "{}", OwnFault(409)),
    ("get", "/api/v1/payment-methods", "", Own),
    ("patch", "/api/v1/payment-methods/{card}", r#"{"is_default": true}"#, Hidden),
    ("delete", "/api/v1/payment-methods/{card}", "", Hidden),
    ("get", "/api/v1/card-setups/{card_setup}", "", Hidden),
    ("get", "/api/v1/automatic-top-up", "", OwnFault(404)),
    ("put", "/api/v1/automatic-top-up", r#"{"threshold": "1.00", "amount": "50.00", "payment_method": "pm_renters"}"#, OwnFault(409)),
    ("delete", "/api/v1/automatic-top-up", "", OwnFault(404)),
    ("post", "/api/v1/payout-account", r#"{"return_url": "https://example.org"}"#, OwnFault(409)),
    ("get", "/api/v1/payout-account", "", Own),
    ("patch", "/api/v1/payout-account", r#"{"schedule": "weekly"}"#, OwnFault(409)),
    ("post", "/api/v1/payouts", r#"{"amount": "1.00"}"#, OwnFault(409)),
    ("get", "/api/v1/payouts", "", Own),
    ("get", "/api/v1/payouts/{payout}", "", Hidden),
    ("post", "/api/v1/pro", r#"{"plan": "monthly"}"#, OwnFault(402)),
    ("post", "/api/v1/pro/cancel", "", OwnFault(409)),
    ("post", "/api/v1/pro/plan", r#"{"plan": "yearly"}"#, OwnFault(409)),
    ("post", "/api/v1/pro/portal", r#"{"return_url": "https://example.org/"}"#, OwnFault(409)),
    ("post", "/api/v1/pro/resume", "", OwnFault(409)),
    ("post", "/api/v1/pro/seats", r#"{"seats": 1}"#, OwnFault(409)),
    ("post", "/api/v1/sandbox/credits", r#"{"amount": "1.00"}"#, Own),
    ("get", "/api/v1/sandbox/clock", "", Own),
    ("post", "/api/v1/sandbox/clock", r#"{"advance_seconds": 0}"#, OwnFault(422)),
    ("get", "/api/v1/invoices/{month}", "", Own),
    ("get", "/api/v1/invoices/{month}/invoice.csv", "", Own),
    ("get", "/api/v1/invoices/{month}/invoice.html", "", Own),
    ("get", "/api/v1/reconciliation", "", Forbidden),
    ("get", "/api/v1/admin/review-queue", "", Forbidden),
    ("get", "/api/v1/admin/disputes/{dispute}/evidence", "", Forbidden),
    ("get", "/api/v1/admin/matrix-runs/{run}", "", Forbidden),
    ("get", "/api/v1/admin/matrix-runs/{run}/similar", "", Forbidden),
    ("post", "/api/v1/admin/matrix-runs/{run}/review", r#"{"decision": "reject", "reason": "no"}"#, Forbidden),
    ("get", "/api/v1/matrix-runs/{uploaded}/original", "", Hidden),
    ("post", "/api/v1/matrix-runs/{uploaded}/answer", r#"{"text": "It is mine."}"#, Hidden),
    ("get", "/v1/models", "", Own),
    ("post", "/v1/chat/completions", r#"{"model": "{model}", "messages": [{"role": "user", "content": "Hello"}]}"#, Hidden),
];

#[test]
fn every_private_operation_has_a_row() {
    let mut rows: Vec<String> = ROWS.iter().map(|(method, path, ..)| format!("{method} {}", shape(path))).collect();
    let mut operations: Vec<String> = private_operations().iter().map(|(method, path)| format!("{method} {}", shape(path))).collect();
    rows.sort();
    operations.sort();
    assert_eq!(operations, rows, "the operations, and the rows of {}", file!());
}

/// The path whatever its parameters are called.
fn shape(path: &str) -> String {
    path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect::<Vec<_>>().join("/")
}

/// The things of a host, a renter and an organization, as texts to put into requests.
struct Owned {
    stage: Stage,
    names: Vec<(&'static str, String)>,
    /// Texts that belong in no answer to a stranger.
    secrets: Vec<String>,
}

impl Owned {
    async fn new() -> Self {
        let stage = Stage::new("10.00").await;
        let host = &stage.host;
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned();
        let rental = text(&stage.rent_active(json!({})).await["id"]);
        let machine = hosts::machine(host, Some(stage.engine.url())).await.to_string();
        let draft = text(
            &host.http.post("/api/v1/listings").json(&json!({ "machine_id": machine, "price_per_hour": "1.00" })).expect(201).await["id"],
        );
        let form = json!({ "model": "org/model", "quantization": "mxfp4" });
        let challenge = text(&host.http.post(&format!("/api/v1/machines/{machine}/challenges")).json(&form).expect(201).await["id"]);
        let form = json!({ "document": serde_json::from_str::<Value>(include_str!("../documents/reference-run.json")).unwrap() });
        let uploaded = text(&host.http.post("/api/v1/matrix-runs").json(&form).expect(201).await["id"]);
        let key = host.http.post("/api/v1/api-keys").json(&json!({ "name": "theirs", "scopes": ["account:read"] })).expect(201).await;
        let token = json!({ "name": "theirs", "machine_id": machine });
        let token = text(&host.http.post("/api/v1/upload-tokens").json(&token).expect(201).await["id"]);
        host.http.post("/api/v1/organizations").json(&json!({ "handle": "guild" })).expect(201).await;
        let form = json!({ "handle": "renter", "role": "admin" });
        let invitation = text(&host.http.post("/api/v1/organizations/guild/invitations").json(&form).expect(201).await["id"]);
        let form = json!({ "model": "gpt-oss-20b", "hardware": "rtx-3090", "engine": "vllm", "quantization": "mxfp4", "context_tokens": 0,
            "concurrency": 1, "rate": "total", "tokens_per_second": 90 });
        let report = text(&host.http.post("/api/v1/reports").json(&form).expect(201).await["id"]);
        hosts::give_pro(&stage.app, host).await;
        let form = json!({ "name": "theirs", "query": { "hardware": "rtx-3090" } });
        let search = text(&host.http.post("/api/v1/saved-searches").json(&form).expect(201).await["id"]);
        let top_up = canceled_top_up(&stage).await;
        let (refund, dispute) = moved_back(&stage, &top_up).await;
        let (paid, card_setup) = paid_with_a_saved_card(&stage).await;
        let payout = failed_payout(&stage).await;
        let form = json!({ "url": "http://127.0.0.1:1/theirs", "events": ["*"] });
        let hook = text(&host.http.post("/api/v1/webhook-endpoints").json(&form).expect(201).await["id"]);
        let hook_event = text(&host.http.post(&format!("/api/v1/webhook-endpoints/{hook}/test")).expect(202).await["event_id"]);
        let model = "@host/garage/org/model".to_owned();
        let document = include_str!("../documents/reference-run.json").to_owned();
        let secrets = vec![
            rental.clone(),
            search.clone(),
            top_up.clone(),
            refund.clone(),
            dispute.clone(),
            paid.clone(),
            card_setup.clone(),
            "pm_renters".to_owned(),
            payout.clone(),
            hook.clone(),
            hook_event.clone(),
            machine.clone(),
            draft.clone(),
            challenge.clone(),
            invitation.clone(),
            text(&key["id"]),
            token.clone(),
            stage.engine.url().to_owned(),
            "host@example.org".to_owned(),
            "renter@example.org".to_owned(),
        ];
        let names = vec![
            ("card", "pm_renters".to_owned()),
            ("month", "2026-11".to_owned()),
            ("key", text(&key["id"])),
            ("token", token),
            ("guild", "guild".to_owned()),
            ("member", "host".to_owned()),
            ("invitation", invitation),
            ("machine", machine),
            ("draft", draft),
            ("challenge", challenge),
            ("run", stage.offer.run.to_string()),
            ("uploaded", uploaded),
            ("rental", rental),
            ("report", report),
            ("top_up", top_up),
            ("refund", refund),
            ("dispute", dispute),
            ("paid", paid),
            ("card_setup", card_setup),
            ("payout", payout),
            ("hook_event", hook_event),
            ("hook", hook),
            ("search", search),
            ("model", model),
            ("document", document),
        ];
        Self { stage, names, secrets }
    }

    fn fill(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
    }

    async fn call(&self, http: &Http, row: &(&str, &str, &str, Stranger), account: Option<&str>) -> Answer {
        let (method, path, body, _) = row;
        let mut request = http.request(method.to_uppercase().parse().unwrap(), &self.fill(path)).idempotency_key("foreign");
        if !body.is_empty() {
            request = request.header("Content-Type", "application/json").body(self.fill(body));
        }
        if let Some(account) = account {
            request = request.header("Rigmark-Account", account);
        }
        request.answer().await
    }

    /// Everything that its owners see of what could be touched.
    async fn state(&self) -> Vec<Value> {
        let mut seen = Vec::new();
        for (owner, paths) in [
            (
                &self.stage.host,
                &[
                    "machines",
                    "me/listings",
                    "api-keys",
                    "upload-tokens",
                    "organizations/guild",
                    "organizations/guild/members",
                    "organizations/guild/invitations",
                    "balance",
                    "payouts",
                    "payout-account",
                    "me",
                    "reports?by=@host",
                    "saved-searches",
                    "pro",
                ][..],
            ),
            (
                &self.stage.renter,
                &[
                    "rentals",
                    "top-ups",
                    "refunds",
                    "disputes",
                    "payment-methods",
                    "automatic-top-up",
                    "balance",
                    "ledger-entries",
                    "me",
                    "api-keys",
                    "me/invitations",
                ][..],
            ),
        ] {
            for path in paths {
                seen.push(owner.http.get(&format!("/api/v1/{path}")).expect(200).await);
            }
        }
        seen
    }

    fn assert_shows_nothing(&self, row: &str, answer: &Answer) {
        for secret in &self.secrets {
            assert!(!answer.body.contains(secret.as_str()), "{row} shows {secret} to a stranger: {}", answer.body);
        }
    }
}

/// A top-up of the renter's, as another mode has left it: the sandbox makes none.
async fn canceled_top_up(stage: &Stage) -> String {
    let id = TopUpId::new();
    let insert = "INSERT INTO top_ups (id, account_id, request_key, amount_micros, means, status, created_at, settled_at)
        SELECT $1, id, 'k', 50000000, 'client', 'canceled', now(), now() FROM accounts WHERE handle = 'renter'";
    sql_query(insert).bind::<SqlUuid, _>(id.uuid()).execute(&mut stage.app.connect().await).await.unwrap();
    id.to_string()
}

/// A refund and a dispute of it, from the same other mode.
async fn moved_back(stage: &Stage, top_up: &str) -> (String, String) {
    let top_up: TopUpId = top_up.parse().unwrap();
    let (refund, dispute) = (RefundId::new(), DisputeId::new());
    let inserts = [
        (
            "INSERT INTO refunds (id, top_up_id, account_id, origin, amount_micros, status, created_at, settled_at)
             SELECT $1, id, account_id, 'request', 10000, 'failed', now(), now() FROM top_ups WHERE id = $2",
            refund.uuid(),
        ),
        (
            "INSERT INTO disputes (id, top_up_id, account_id, stripe_dispute_id, amount_micros, reason, status, created_at, closed_at)
             SELECT $1, id, account_id, 'du_1', 10000, 'fraudulent', 'warning_closed', now(), now() FROM top_ups WHERE id = $2",
            dispute.uuid(),
        ),
    ];
    for (insert, id) in inserts {
        let insert = sql_query(insert).bind::<SqlUuid, _>(id).bind::<SqlUuid, _>(top_up.uuid());
        insert.execute(&mut stage.app.connect().await).await.unwrap();
    }
    (refund.to_string(), dispute.to_string())
}

/// The same: a card, what saved it, what it paid, and automatic top-up with it.
async fn paid_with_a_saved_card(stage: &Stage) -> (String, String) {
    let (paid, setup) = (TopUpId::new(), CardSetupId::new());
    let inserts = [
        ("INSERT INTO payment_methods (id, account_id, brand, last4, is_default, observed_at, created_at)
            SELECT 'pm_renters', id, 'visa', '4242', $1 <> id, now(), now() FROM accounts WHERE handle = 'renter'", setup.uuid()),
        ("INSERT INTO card_setups (id, account_id, status, saved_payment_method, created_at)
            SELECT $1, id, 'succeeded', 'pm_renters', now() FROM accounts WHERE handle = 'renter'", setup.uuid()),
        ("INSERT INTO top_ups (id, account_id, amount_micros, means, status, payment_intent_id, received_micros, created_at, settled_at)
            SELECT $1, id, 50000000, 'client', 'succeeded', 'pi_renters', 50000000, now(), now() FROM accounts WHERE handle = 'renter'",
            paid.uuid()),
        ("INSERT INTO automatic_top_ups (account_id, threshold_micros, amount_micros, payment_method_id, state, last_top_up_id, next_try_at,
            created_at, updated_at)
            SELECT id, 1000000, 50000000, 'pm_renters', 'on', $1, now(), now(), now() FROM accounts WHERE handle = 'renter'", paid.uuid()),
    ];
    let mut conn = stage.app.connect().await;
    for (insert, id) in inserts {
        sql_query(insert).bind::<SqlUuid, _>(id).execute(&mut conn).await.unwrap();
    }
    (paid.to_string(), setup.to_string())
}

/// A payout of the host's, as another mode has left it.
async fn failed_payout(stage: &Stage) -> String {
    let id = PayoutId::new();
    let insert = "WITH account AS (
            INSERT INTO payout_accounts (id, account_id, is_current, status, created_at)
            SELECT gen_random_uuid(), id, true, 'restricted', now() FROM accounts WHERE handle = 'host' RETURNING id, account_id)
        INSERT INTO payouts (id, account_id, payout_account_id, amount_micros, status, created_at, settled_at)
        SELECT $1, account_id, id, 1000000, 'failed', now(), now() FROM account";
    sql_query(insert).bind::<SqlUuid, _>(id.uuid()).execute(&mut stage.app.connect().await).await.unwrap();
    id.to_string()
}

fn code(answer: &Answer) -> String {
    let body: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    body["code"].as_str().or_else(|| body["error"]["code"].as_str()).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_foreign_account_finds_nothing_shows_nothing_and_changes_nothing() {
    let owned = Owned::new().await;
    let mallory = person(&owned.stage.app, "mallory").await;
    let before = owned.state().await;
    for row in ROWS {
        let answer = owned.call(&mallory.http, row, None).await;
        let name = format!("{} {}", row.0, row.1);
        let (status, code) = (answer.status.as_u16(), code(&answer));
        let expected = match row.3 {
            Hidden => status == 404 && ["not_found", "model_not_found"].contains(&code.as_str()),
            Forbidden => (status, code.as_str()) == (403, "forbidden"),
            Own => status < 300,
            OwnFault(fault) => status == fault,
            NoToken => (status, code.as_str()) == (401, "unauthenticated"),
        };
        assert!(expected, "{name}, a foreign account: {status} {code}: {}", answer.body);
        owned.assert_shows_nothing(&name, &answer);
    }
    assert_eq!(owned.state().await, before, "what others own was changed");
}

#[tokio::test]
async fn what_is_hidden_is_there_for_its_owner() {
    let owned = Owned::new().await;
    for row in ROWS.iter().filter(|row| row.0 == "get" && matches!(row.3, Hidden)) {
        let path = owned.fill(row.1);
        let mut statuses = Vec::new();
        for owner in [&owned.stage.host, &owned.stage.renter] {
            // The head only: a stream of events does not end.
            statuses.push(owner.http.get(&path).send().await.status().as_u16());
        }
        assert!(statuses.contains(&200), "{path}: {statuses:?}");
    }
}

#[tokio::test]
async fn nobody_acts_for_an_account_that_is_not_theirs() {
    let owned = Owned::new().await;
    let mallory = person(&owned.stage.app, "mallory").await;
    let before = owned.state().await;
    for row in ROWS {
        for account in ["@guild", "@host"] {
            let answer = owned.call(&mallory.http, row, Some(account)).await;
            let name = format!("{} {} for {account}", row.0, row.1);
            assert!(answer.status == 404 && code(&answer) == "not_found", "{name}: {} {}", answer.status, answer.body);
            owned.assert_shows_nothing(&name, &answer);
        }
    }
    assert_eq!(owned.state().await, before, "what others own was changed");
}
