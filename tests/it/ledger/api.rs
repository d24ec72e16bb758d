//! Money over HTTP: balance, entries, statements, play money.

use rigmark::base::{
    Money,
    id::{AccountId, TransferId},
};
use rigmark::config::Mode;
use rigmark::ledger::{
    LedgerAccount, TransferCode,
    model::{Capture, HoldRequest, Posting, TransferRequest},
    service,
};
use serde_json::{Value, json};

use super::{charge, credit, hold_request, usd};
use crate::support::{TestApp, http::Http};

/// Somebody who has registered.
struct Person {
    http: Http,
    id: AccountId,
    id_text: String,
}

async fn register(app: &TestApp, handle: &str) -> Person {
    let form = json!({ "email": format!("{handle}@example.org"), "password": "correct horse battery", "handle": handle });
    let body = app.http.post("/api/v1/auth/register").json(&form).expect(201).await;
    let id_text = body["account"]["id"].as_str().unwrap().to_owned();
    let id = id_text.replace("usr_", "acc_").parse().unwrap();
    Person { http: app.http.with_bearer(body["access_token"].as_str().unwrap()), id, id_text }
}

impl Person {
    async fn credit(&self, amount: &str) -> Value {
        let key = TransferId::new().to_string();
        self.http.post("/api/v1/sandbox/credits").idempotency_key(key).json(&json!({ "amount": amount })).expect(201).await
    }
    async fn key(&self, scopes: &[&str]) -> Http {
        let body = self.http.post("/api/v1/api-keys").json(&json!({ "name": "a key", "scopes": scopes })).expect(201).await;
        self.http.with_bearer(body["key"].as_str().unwrap())
    }
}

/// A rental of `renter` at `host` that cost 0.37 $ and was released.
async fn rent(app: &TestApp, renter: &Person, host: &Person) -> HoldRequest {
    let now = app.ctx().business_now(&mut app.connect().await).await.unwrap();
    let request = HoldRequest { business_at: now, ..hold_request(renter.id, usd("1")) };
    let ids = [TransferId::new(), TransferId::new()];
    app.ctx()
        .db
        .tx("test", async |tx| {
            service::hold(tx, request.clone()).await?;
            let charge = charge("0.37", 1_000);
            service::capture(tx, Capture { hold: request.id, transfer_id: ids[0], charge, host: host.id, business_at: now }).await?;
            service::release(tx, request.id, ids[1], now).await
        })
        .await
        .unwrap();
    request
}

fn money(value: &Value) -> Money {
    value.as_str().unwrap_or_else(|| panic!("{value} is no amount")).parse().unwrap()
}

#[tokio::test]
async fn play_money_is_added_once_for_each_key() {
    let app = TestApp::new().await;
    let person = register(&app, "renter").await;
    let nothing = json!({ "available": "0.00", "held": "0.00", "earnings": "0.00", "payable": "0.00", "currency": "usd" });
    assert_eq!(person.http.get("/api/v1/balance").expect(200).await, nothing);

    let post = |key: &str, body: Value| person.http.post("/api/v1/sandbox/credits").idempotency_key(key).json(&body);
    let first = post("one", json!({ "amount": "10.5" })).expect(201).await;
    assert_eq!((&first["amount"], &first["currency"], &first["balance"]["available"]), (&json!("10.50"), &json!("usd"), &json!("10.50")));
    assert_eq!(post("one", json!({ "amount": "10.5" })).expect(201).await, first);
    post("one", json!({ "amount": "10.6" })).expect_problem(422, "idempotency_key_reused").await;
    person.http.post("/api/v1/sandbox/credits").json(&json!({ "amount": "1" })).expect_problem(400, "idempotency_key_required").await;
    let second = post("two", json!({ "amount": "10.5" })).expect(201).await;
    assert_ne!(second["id"], first["id"]);
    // The key of another account is another key.
    let other = register(&app, "other").await;
    let theirs = other.http.post("/api/v1/sandbox/credits").idempotency_key("one").json(&json!({ "amount": "1" })).expect(201).await;
    assert_eq!(theirs["balance"]["available"], "1.00");
    assert_eq!(person.http.get("/api/v1/balance").expect(200).await["available"], "21.00");
}

#[tokio::test]
async fn amounts_that_are_none_are_refused() {
    let app = TestApp::new().await;
    let person = register(&app, "renter").await;
    let bodies = [
        json!({ "amount": "-5" }),
        json!({ "amount": "0" }),
        json!({ "amount": "0.000000" }),
        json!({ "amount": "100.0000001" }),
        json!({ "amount": "1e3" }),
        json!({ "amount": "1000000.000001" }),
        json!({ "amount": "99999999999999999999" }),
        json!({ "amount": 5 }),
        json!({ "amount": 0.5 }),
        json!({ "amount": null }),
        json!({}),
        json!({ "amount": "5", "currency": "eur" }),
        json!({ "amount": "5", "account": "@somebody" }),
    ];
    for (number, body) in bodies.into_iter().enumerate() {
        let post = person.http.post("/api/v1/sandbox/credits").idempotency_key(format!("{number}")).json(&body);
        let problem = post.expect_problem(422, "invalid_input").await;
        let pointer = problem["errors"][0]["pointer"].as_str().unwrap().to_owned();
        assert!(["/amount", "/currency", "/account"].contains(&pointer.as_str()), "{body}: {problem}");
    }
    assert_eq!(person.http.get("/api/v1/balance").expect(200).await["available"], "0.00");
}

/// Elsewhere the route is not there, for whoever asks.
#[tokio::test]
async fn play_money_is_for_the_sandbox() {
    let app = TestApp::with(|config| config.mode = Mode::Test).await;
    app.http.post("/api/v1/sandbox/credits").json(&json!({ "amount": "1" })).expect_problem(404, "not_found").await;
    let person = register(&app, "renter").await;
    let post = || person.http.post("/api/v1/sandbox/credits").json(&json!({ "amount": "1" }));
    post().expect_problem(404, "not_found").await;
    post().idempotency_key("one").expect_problem(404, "not_found").await;
    assert_eq!(person.http.get("/api/v1/balance").expect(200).await["available"], "0.00");
}

#[tokio::test]
async fn money_is_shown_to_those_who_may_see_it() {
    let app = TestApp::new().await;
    let person = register(&app, "renter").await;
    person.credit("5").await;
    let (reader, stranger) = (person.key(&["billing:read"]).await, person.key(&["rentals:write", "account:read"]).await);
    for path in ["/api/v1/balance", "/api/v1/ledger-entries", "/api/v1/statements", "/api/v1/statements.csv", "/api/v1/statements.html"] {
        app.http.get(path).expect_problem(401, "unauthenticated").await;
        stranger.get(path).expect_problem(403, "insufficient_scope").await;
        assert_eq!(reader.get(path).answer().await.status, 200, "{path}");
    }
    let credits = reader.post("/api/v1/sandbox/credits").idempotency_key("one").json(&json!({ "amount": "1" }));
    credits.expect_problem(403, "insufficient_scope").await;
    // An organization has money of its own.
    person.http.post("/api/v1/organizations").json(&json!({ "handle": "the-team" })).expect(201).await;
    let team = || person.http.get("/api/v1/balance").header("Rigmark-Account", "@the-team");
    assert_eq!(team().expect(200).await["available"], "0.00");
    let credit = person.http.post("/api/v1/sandbox/credits").idempotency_key("one").header("Rigmark-Account", "@the-team");
    credit.json(&json!({ "amount": "7" })).expect(201).await;
    assert_eq!(team().expect(200).await["available"], "7.00");
    assert_eq!(person.http.get("/api/v1/balance").expect(200).await["available"], "5.00");
    let entries = person.http.get("/api/v1/ledger-entries").header("Rigmark-Account", "@the-team").expect(200).await;
    assert!(entries["data"][0]["account_id"].as_str().unwrap().starts_with("org_"));
    assert_eq!(entries["data"][0]["actor"], json!({ "kind": "user", "id": person.id_text }));
}

#[tokio::test]
async fn entries_say_what_happened() {
    let app = TestApp::new().await;
    let (renter, host) = (register(&app, "renter").await, register(&app, "host").await);
    let credited = renter.credit("10").await;
    let rented = rent(&app, &renter, &host).await;
    let entries = renter.http.get("/api/v1/ledger-entries").expect(200).await;
    let rows = entries["data"].as_array().unwrap();
    let shown =
        |row: &Value| format!("{} {} {} {}", row["code"], row["ledger_account"], row["amount"], row["balance_after"]).replace('"', "");
    // Of one transfer, the lower ledger account comes first; which that is follows from the account's id.
    let mut lines: Vec<String> = rows.iter().map(shown).collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "hold available -1.00 9.00",
            "hold held 1.00 1.00",
            "hold_release available 0.63 9.63",
            "hold_release held -0.63 0.00",
            "rental_charge held -0.37 0.63",
            "sandbox_credit available 10.00 10.00",
        ]
    );
    let first = rows.last().unwrap();
    assert_eq!(first["transfer_id"], credited["id"]);
    assert_eq!((&first["account_id"], &first["actor"]), (&json!(renter.id_text), &json!({ "kind": "user", "id": renter.id_text })));
    assert_eq!((&first["rental_id"], &first["payment"], &first["linked_transfer_id"]), (&Value::Null, &Value::Null, &Value::Null));
    let charged = rows.iter().find(|row| row["code"] == "rental_charge").unwrap();
    assert_eq!((&charged["rental_id"], &charged["actor"]), (&json!(rented.rental.unwrap()), &json!({ "kind": "system", "id": null })));
    assert!(charged["at"].as_str().unwrap().ends_with('Z') && charged["created_at"].as_str().unwrap().ends_with('Z'));
    // The host sees its share and nothing of the renter's.
    let theirs = host.http.get("/api/v1/ledger-entries").expect(200).await;
    assert_eq!(theirs["data"].as_array().unwrap().iter().map(shown).collect::<Vec<_>>(), ["rental_charge earnings 0.333 0.333"]);

    let of_rental = renter.http.get(&format!("/api/v1/ledger-entries?rental_id={}", rented.rental.unwrap())).expect(200).await;
    assert_eq!(of_rental["data"].as_array().unwrap().len(), 5);
    let charges = renter.http.get("/api/v1/ledger-entries?code=rental_charge").expect(200).await;
    assert_eq!(charges["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn entries_come_in_pages_bound_to_their_list() {
    let app = TestApp::new().await;
    let (person, other) = (register(&app, "renter").await, register(&app, "other").await);
    for amount in ["1", "2", "3", "4", "5"] {
        person.credit(amount).await;
    }
    other.credit("1").await;
    let mut amounts = Vec::new();
    let mut path = "/api/v1/ledger-entries?limit=2".to_owned();
    loop {
        let page = person.http.get(&path).expect(200).await;
        amounts.extend(page["data"].as_array().unwrap().iter().map(|row| row["amount"].as_str().unwrap().to_owned()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        path = format!("/api/v1/ledger-entries?limit=2&cursor={next}");
    }
    assert_eq!(amounts, ["5.00", "4.00", "3.00", "2.00", "1.00"]);

    let first = person.http.get("/api/v1/ledger-entries?limit=1").expect(200).await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let with = |query: &str| format!("/api/v1/ledger-entries?{query}cursor={cursor}");
    person.http.get(&with("")).expect(200).await;
    person.http.get(&with("code=sandbox_credit&")).expect_problem(400, "invalid_cursor").await;
    other.http.get(&with("")).expect_problem(400, "invalid_cursor").await;
    person.http.get("/api/v1/ledger-entries?cursor=AAAA").expect_problem(400, "invalid_cursor").await;
    person.http.get(&format!("/api/v1/statements?cursor={cursor}")).expect_problem(400, "invalid_cursor").await;
    for (query, pointer) in [
        ("limit=0", "?limit"),
        ("limit=101", "?limit"),
        ("since=2026-01-01", "?since"),
        ("from=yesterday", "?from"),
        ("to=2026-02-30", "?to"),
        ("from=2026-02-02&to=2026-02-01", "?to"),
        ("code=gift", "?code"),
        ("rental_id=usr_1", "?rental_id"),
    ] {
        let problem = person.http.get(&format!("/api/v1/ledger-entries?{query}")).expect_problem(422, "invalid_input").await;
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{query}");
    }
}

#[tokio::test]
async fn a_statement_adds_up_in_every_form() {
    let app = TestApp::new().await;
    let (renter, host) = (register(&app, "renter").await, register(&app, "host").await);
    renter.credit("1234.5").await;
    rent(&app, &renter, &host).await;
    rent(&app, &renter, &host).await;
    let today = app.ctx().business_now(&mut app.connect().await).await.unwrap().date_naive();

    let statement = renter.http.get(&format!("/api/v1/statements?from={today}&to={today}")).expect(200).await;
    let sums = ["opening", "credits", "charges", "closing"].map(|name| statement[name].as_str().unwrap());
    assert_eq!(sums, ["0.00", "1234.50", "0.74", "1233.76"]);
    assert_eq!(
        (&statement["account"], &statement["account_id"], &statement["currency"]),
        (&json!("@renter"), &json!(renter.id_text), &json!("usd"))
    );
    assert_eq!((&statement["from"], &statement["closing_balance"]["available"]), (&json!(format!("{today}T00:00:00Z")), &json!("1233.76")));
    let lines = statement["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 3);
    assert_eq!(money(&lines[2]["balance_after"]), money(&statement["closing"]));
    // Without a period: all there is, and the same.
    let whole = renter.http.get("/api/v1/statements").expect(200).await;
    assert_eq!((&whole["from"], &whole["to"], &whole["lines"]), (&Value::Null, &Value::Null, &statement["lines"]));
    let page = renter.http.get("/api/v1/statements?limit=2").expect(200).await;
    let rest = renter.http.get(&format!("/api/v1/statements?limit=2&cursor={}", page["next_cursor"].as_str().unwrap())).expect(200).await;
    assert_eq!(
        (page["lines"].as_array().unwrap().len(), rest["lines"].as_array().unwrap(), &rest["next_cursor"]),
        (2, &lines[2..].to_vec(), &Value::Null)
    );

    let answer = renter.http.get(&format!("/api/v1/statements.csv?from={today}")).answer().await;
    assert_eq!(answer.header("content-type").as_deref(), Some("text/csv; charset=utf-8"));
    assert_eq!(answer.header("content-disposition").as_deref(), Some("attachment; filename=\"rigmark-statement.csv\""));
    let mut reader = csv::Reader::from_reader(answer.body.as_bytes());
    let records: Vec<Vec<String>> = reader.records().map(|r| r.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!(records.iter().map(|r| r[0].as_str()).collect::<Vec<_>>(), ["opening", "line", "line", "line", "closing"]);
    let column = |number: usize| {
        records[1..4].iter().filter(|r| !r[number].is_empty()).fold(Money::ZERO, |sum, r| sum.plus(usd(&r[number])).unwrap())
    };
    assert_eq!((column(6), column(7)), (usd(&records[4][6]), usd(&records[4][7])));
    assert_eq!(usd(&records[0][8]).plus(column(6)).unwrap().minus(column(7)).unwrap(), usd(&records[4][8]));

    let html = renter.http.get("/api/v1/statements.html").answer().await;
    assert_eq!(html.header("content-type").as_deref(), Some("text/html; charset=utf-8"));
    for part in ["Statement of @renter", "Sandbox", "1,234.50", "1,233.76", "0.37", "Sandbox credit"] {
        assert!(html.body.contains(part), "{part} is missing in {}", html.body);
    }
}

#[tokio::test]
async fn a_hosts_statement_shows_fees_in_every_form() {
    let app = TestApp::new().await;
    let (renter, host) = (register(&app, "renter").await, register(&app, "host").await);
    renter.credit("10").await;
    rent(&app, &renter, &host).await;
    let statement = host.http.get("/api/v1/statements").expect(200).await;
    assert_eq!(statement["earned"], json!({ "gross": "0.37", "fee": "0.037", "net": "0.333" }));
    let line = &statement["lines"][0];
    assert_eq!((&line["amount"], &line["gross"], &line["fee"]), (&json!("0.333"), &json!("0.37"), &json!("0.037")));
    let csv = host.http.get("/api/v1/statements.csv").answer().await.body;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let records: Vec<Vec<String>> = reader.records().map(|r| r.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!(
        (&records[1][6..8], &records[1][10..]),
        (&["0.333".to_owned(), String::new()][..], &["0.37".to_owned(), "0.037".to_owned()][..])
    );
    assert_eq!(records[2][10..], ["0.37", "0.037"]);
    let html = host.http.get("/api/v1/statements.html").answer().await.body;
    for part in ["Renters paid", "Platform’s fee", "0.037", "0.333"] {
        assert!(html.contains(part), "{part} is missing in {html}");
    }
    let theirs = renter.http.get("/api/v1/statements.html").answer().await.body;
    assert!(!theirs.contains("Renters paid"), "{theirs}");
}

#[tokio::test]
async fn the_form_follows_accept() {
    let app = TestApp::new().await;
    let person = register(&app, "renter").await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    for (accept, expected) in [
        (None, "application/json"),
        (Some("*/*"), "application/json"),
        (Some("application/json"), "application/json"),
        (Some("text/csv"), "text/csv; charset=utf-8"),
        (Some("TEXT/CSV"), "text/csv; charset=utf-8"),
        (Some("text/html"), "text/html; charset=utf-8"),
        (Some(browser), "text/html; charset=utf-8"),
        (Some("text/csv;q=0.5, application/json;q=0.4"), "text/csv; charset=utf-8"),
        (Some("text/csv, application/json"), "application/json"),
        (Some("text/csv;q=0, image/png"), "application/json"),
        (Some("text/csv;q=x"), "application/json"),
        (Some("image/png"), "application/json"),
    ] {
        let request = person.http.get("/api/v1/statements");
        let answer = accept.into_iter().fold(request, |request, accept| request.header("Accept", accept)).answer().await;
        assert_eq!((answer.status.as_u16(), answer.header("content-type").as_deref()), (200, Some(expected)), "{accept:?}");
        let vary = answer.headers.get_all("vary").iter().map(|v| v.to_str().unwrap().to_ascii_lowercase()).collect::<Vec<_>>().join(",");
        assert!(vary.contains("accept"), "{vary}");
    }
    for query in ["limit=5", "cursor=x"] {
        let paged = person.http.get(&format!("/api/v1/statements?{query}")).header("Accept", "text/csv");
        paged.expect_problem(422, "invalid_input").await;
        person.http.get(&format!("/api/v1/statements.csv?{query}")).expect_problem(422, "invalid_input").await;
    }
}

/// Texts of others must not run, in a spreadsheet or in a browser.
#[tokio::test]
async fn a_payments_name_does_not_run() {
    let app = TestApp::new().await;
    let person = register(&app, "renter").await;
    for payment in ["=HYPERLINK(\"http://evil\")", "<script>alert(1)</script>", "@SUM(1)", "-1+1", "pi_plain"] {
        let top_up = TransferRequest {
            code: TransferCode::TopUp,
            payment: Some(payment.to_owned()),
            postings: Posting::between(LedgerAccount::StripeClearing, LedgerAccount::Available(person.id), usd("1")).unwrap(),
            ..credit(person.id, usd("1"))
        };
        app.ctx().db.tx("test", async |tx| service::post(tx, top_up.clone()).await).await.unwrap();
    }
    let csv = person.http.get("/api/v1/statements.csv").answer().await.body;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let mut payments: Vec<String> = reader.records().map(|r| r.unwrap()[4].to_owned()).filter(|text| !text.is_empty()).collect();
    payments.sort();
    assert_eq!(payments, ["'-1+1", "'=HYPERLINK(\"http://evil\")", "'@SUM(1)", "<script>alert(1)</script>", "pi_plain"]);
    let html = person.http.get("/api/v1/statements.html").answer().await.body;
    assert!(!html.contains("<script") && html.contains("alert(1)"), "{html}");
}

/// A hold with an end of its own goes back when business time reaches it.
#[tokio::test]
async fn an_expired_hold_goes_back() {
    let app = TestApp::new().await;
    let person = register(&app, "renter").await;
    person.credit("10").await;
    let now = app.ctx().business_now(&mut app.connect().await).await.unwrap();
    let request =
        HoldRequest { business_at: now, expires_at: Some(now + chrono::TimeDelta::hours(1)), ..hold_request(person.id, usd("4")) };
    app.ctx().db.tx("test", async |tx| service::hold(tx, request.clone()).await).await.unwrap();
    app.advance(3_500).await;
    assert_eq!(person.http.get("/api/v1/balance").expect(200).await["held"], "4.00");
    app.advance(200).await;
    assert_eq!(person.http.get("/api/v1/balance").expect(200).await["held"], "0.00");
    let entries = person.http.get("/api/v1/ledger-entries?code=hold_expire").expect(200).await;
    // The move stopped where the hold expired.
    let at: chrono::DateTime<chrono::Utc> = entries["data"][0]["at"].as_str().unwrap().parse().unwrap();
    assert_eq!(at, now + chrono::TimeDelta::hours(1));
    app.work().await;
    assert_eq!(person.http.get("/api/v1/balance").expect(200).await["available"], "10.00");
}
