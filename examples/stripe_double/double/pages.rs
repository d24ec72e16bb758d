//! Pages for people: the list of controls, the customer's bank, receipts.

use serde_json::Value;

use super::server::Outcome;
use super::{Shared, control, form, payments};

pub fn handle(shared: &Shared, method: &str, steps: &[&str], body: &[u8]) -> Option<Outcome> {
    match (method, steps) {
        ("GET", []) => Some(page(200, "The Stripe double", &format!("<pre>{}</pre>", escape(control::HELP)))),
        ("GET", ["receipts", charge]) => Some(receipt(shared, charge)),
        ("GET", ["authenticate", id]) => Some(bank(id)),
        ("POST", ["authenticate", id]) => Some(authenticated(shared, id, body)),
        _ => None,
    }
}

pub fn page(status: u16, title: &str, body: &str) -> Outcome {
    let title = escape(title);
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>{title}</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}input{{font:inherit;width:16rem}}\
         button{{font:inherit;margin:1rem .5rem 0 0}}pre{{overflow:auto}}</style>\
         <h1>{title}</h1><p>Nothing here is real: this is a stand-in for Stripe.</p>{body}</html>"
    );
    Outcome::Page { status, html }
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// `12.30 USD` for cents.
pub fn money(amount: &Value, currency: &Value) -> String {
    let cents = amount.as_i64().unwrap_or_default();
    format!("{}.{:02} {}", cents / 100, cents.abs() % 100, currency.as_str().unwrap_or_default().to_uppercase())
}

fn receipt(shared: &Shared, id: &str) -> Outcome {
    match shared.lock().get("charge", id) {
        Ok(charge) => {
            let paid = money(&charge["amount"], &charge["currency"]);
            let back = money(&charge["amount_refunded"], &charge["currency"]);
            page(200, "Receipt", &format!("<p>{} paid, {} refunded.</p><p>{}</p>", paid, back, escape(id)))
        }
        Err(_) => page(404, "No such receipt", ""),
    }
}

fn bank(id: &str) -> Outcome {
    let buttons = "<form method=post><button name=outcome value=succeeded>Complete authentication</button>\
                   <button name=outcome value=failed>Fail authentication</button></form>";
    page(200, "Your bank asks", &format!("<p>Payment {}</p>{buttons}", escape(id)))
}

fn authenticated(shared: &Shared, id: &str, body: &[u8]) -> Outcome {
    let form = form::parse(body).unwrap_or_default();
    let mut world = shared.lock();
    let back = world.find(id).and_then(|asked| asked.pointer("/next_action/redirect_to_url/return_url").cloned());
    match payments::authenticate(&mut world, id, form["outcome"] == "succeeded") {
        Ok(payment) => match back.as_ref().and_then(Value::as_str) {
            Some(back) => {
                let joint = if back.contains('?') { '&' } else { '?' };
                let status = if payment["status"] == "requires_payment_method" { "failed" } else { "succeeded" };
                Outcome::Redirect(format!("{back}{joint}payment_intent={id}&redirect_status={status}"))
            }
            None => page(200, "Done", "<p>You may close this page.</p>"),
        },
        Err(refusal) => page(refusal.status, "Not possible", &format!("<p>{}</p>", escape(&refusal.error["message"].to_string()))),
    }
}
