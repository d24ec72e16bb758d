//! Review: the queue, decisions, the uploader's answer, the history that anyone may read, and the pages with their sign-in.

mod answer;
pub mod browser;
mod decide;
mod history;
mod pages;
mod queue;
mod sessions;
mod similar;

use rigmark::base::id::{MachineId, RunId};
use serde_json::{Value, json};

use browser::Browser;

use crate::remeasure::{config, detail, run_with};
use crate::support::TestApp;
use crate::support::hosts::{Person, RunRow, machine, person};

/// An app with a host, their machine, and two operators.
struct Stage {
    app: TestApp,
    host: Person,
    machine: MachineId,
    olga: Person,
    otto: Person,
}

impl Stage {
    async fn new() -> Self {
        let app = TestApp::new().await;
        let host = person(&app, "host").await;
        let machine = machine(&host, None).await;
        let (olga, otto) = (operator(&app, "olga").await, operator(&app, "otto").await);
        Self { app, host, machine, olga, otto }
    }

    /// A run with these findings, and what was not measured here.
    async fn run(&self, row: &RunRow, findings: Value) -> RunId {
        let mut detail = detail(&config().law);
        detail["findings"] = findings;
        run_with(&self.app, self.machine, row, &detail).await
    }

    async fn waiting(&self) -> RunId {
        self.run(&needs_review(), json!([finding("run_replayed")])).await
    }

    async fn decide(&self, operator: &Person, run: RunId, decision: &str, reason: &str) -> (u16, Value) {
        let form = json!({ "decision": decision, "reason": reason });
        let answer = operator.http.post(&format!("/api/v1/admin/matrix-runs/{run}/review")).json(&form).answer().await;
        (answer.status.as_u16(), answer.json())
    }

    async fn history(&self, run: RunId) -> Vec<Value> {
        let page = self.app.http.get(&format!("/api/v1/matrix-runs/{run}/history")).expect(200).await;
        page["data"].as_array().unwrap().clone()
    }

    async fn kinds(&self, run: RunId) -> Vec<String> {
        self.history(run).await.iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
    }
}

fn needs_review() -> RunRow {
    RunRow { status: "needs_review", level: "document", ..RunRow::default() }
}

fn finding(code: &str) -> Value {
    json!({"code": code, "severity": "suspicious", "message": "Something is odd.", "expected": "1", "observed": "2",
           "cells": [{"phase": "decode", "context_tokens": 0, "concurrency": 1}]})
}

async fn operator(app: &TestApp, handle: &str) -> Person {
    let person = person(app, handle).await;
    rigmark::identity::service::set_operator(&app.ctx().db, &app.ctx().clock, handle, true).await.unwrap();
    person
}

async fn browser(app: &TestApp, handle: &str) -> Browser {
    Browser::signed_in(app, handle).await
}
