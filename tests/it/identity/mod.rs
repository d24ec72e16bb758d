//! Accounts, sessions, keys, organizations: through HTTP as a client sees them, and through the services that other domains call.

mod accounts;
mod callers;
mod handles;
mod invitations;
mod keys;
mod live;
mod mail;
mod organizations;
mod passwords;
mod registration;
pub mod routes;
mod scopes;
mod sessions;
mod upload_tokens;

use serde_json::{Value, json};

use crate::support::{TestApp, http::Http};

const PASSWORD: &str = "correct horse battery";

/// Somebody who has registered.
struct Person {
    http: Http,
    id: String,
    handle: String,
    email: String,
    access_token: String,
    refresh_token: String,
}

impl Person {
    fn of(app: &TestApp, email: &str, body: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
        let access_token = text(&body["access_token"]);
        Self {
            http: app.http.with_bearer(&access_token),
            id: text(&body["account"]["id"]),
            handle: text(&body["account"]["handle"]),
            email: email.to_owned(),
            access_token,
            refresh_token: text(&body["refresh_token"]),
        }
    }
}

async fn register(app: &TestApp, handle: &str) -> Person {
    let email = format!("{handle}@example.org");
    let form = json!({ "email": email, "password": PASSWORD, "handle": handle });
    let body = app.http.post("/api/v1/auth/register").json(&form).expect(201).await;
    Person::of(app, &email, &body)
}

async fn login(app: &TestApp, email: &str, password: &str) -> Person {
    let body = app.http.post("/api/v1/auth/login").json(&json!({ "email": email, "password": password })).expect(200).await;
    Person::of(app, email, &body)
}

/// A key of the account that `http` acts for; the answer's `key` and `id`.
async fn create_key(http: &Http, scopes: &[&str]) -> (String, String) {
    let body = http.post("/api/v1/api-keys").json(&json!({ "name": "a key", "scopes": scopes })).expect(201).await;
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
    (text(&body["key"]), text(&body["id"]))
}

/// A key of an organization.
async fn create_key_for(person: &Person, organization: &str, scopes: &[&str]) -> (String, String) {
    let request = person.http.post("/api/v1/api-keys").header("Rigmark-Account", format!("@{organization}"));
    let body = request.json(&json!({ "name": "a key", "scopes": scopes })).expect(201).await;
    let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
    (text(&body["key"]), text(&body["id"]))
}

async fn found(owner: &Person, handle: &str) -> Value {
    owner.http.post("/api/v1/organizations").json(&json!({ "handle": handle })).expect(201).await
}

/// Makes `person` a member of the organization.
async fn join(owner: &Person, organization: &str, person: &Person, role: &str) {
    let path = format!("/api/v1/organizations/{organization}/invitations");
    let invitation = owner.http.post(&path).json(&json!({ "handle": person.handle, "role": role })).expect(201).await;
    let id = invitation["id"].as_str().unwrap();
    person.http.post(&format!("{path}/{id}/accept")).expect(200).await;
}

/// Every letter written so far, oldest first, after the jobs have run.
async fn letters(app: &TestApp) -> Vec<String> {
    rigmark::jobs::run_due_jobs(app.ctx()).await.unwrap();
    let folder = app.data_dir.path().join("mail");
    let mut paths: Vec<_> = std::fs::read_dir(folder).map_or_else(|_| Vec::new(), |entries| entries.map(|e| e.unwrap().path()).collect());
    paths.sort();
    paths.into_iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// The token in the newest letter to this address whose subject holds `subject`.
async fn mailed_token(app: &TestApp, email: &str, subject: &str) -> String {
    let all = letters(app).await;
    let letter = all.iter().rev().find(|letter| {
        let mut lines = letter.lines();
        lines.next() == Some(&format!("To: {email}")) && lines.next().is_some_and(|line| line.contains(subject))
    });
    let letter = letter.unwrap_or_else(|| panic!("no letter to {email} about {subject} in {all:#?}"));
    let after = letter.split("#token=").nth(1).unwrap_or_else(|| panic!("no link in {letter}"));
    after.split_whitespace().next().unwrap().to_owned()
}
