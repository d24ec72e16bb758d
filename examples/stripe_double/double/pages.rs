//! Pages for people: the list of controls, the hosted Checkout, the customer's bank, the portal, onboarding, receipts.

use serde_json::Value;

use super::call::Call;
use super::cards::Card;
use super::refusal::{Answer, Refusal};
use super::server::Outcome;
use super::world::World;
use super::{Shared, changes, checkout, connect, control, customers, form, payments, setup, subscriptions};

/// `None` for what is no page: the controls then look at it. A form is told from JSON by its first byte.
pub fn handle(shared: &Shared, method: &str, steps: &[&str], body: &[u8]) -> Option<Outcome> {
    let posted = method == "POST" && body.first() != Some(&b'{');
    if method != "GET" && !posted {
        return None;
    }
    let form = form::parse(if posted { body } else { b"" }).unwrap_or_default();
    let mut world = shared.lock();
    let world = &mut *world;
    Some(match steps {
        [] if !posted => page(200, "The Stripe double", &format!("<pre>{}</pre>", escape(control::HELP))),
        ["receipts", charge] if !posted => receipt(world, charge),
        ["authenticate", id] if posted => authenticated(world, id, &form),
        ["authenticate", id] => bank(id),
        ["checkout", id] if posted => checkout_posted(world, id, &form),
        ["checkout", id] => checkout_page(world, id, None),
        ["portal", id] if posted => portal_posted(world, id, &form),
        ["portal", id] => portal(world, id, None),
        ["onboard", id] if posted => onboarded(world, id, &form),
        ["onboard", id] => onboarding(id),
        _ => return None,
    })
}

pub fn page(status: u16, title: &str, body: &str) -> Outcome {
    let title = escape(title);
    let html = format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\"><title>{title}</title>\
         <style>body{{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}input{{font:inherit;width:16rem}}\
         label{{display:block;margin-top:.5rem}}button{{font:inherit;margin:1rem .5rem 0 0}}pre{{overflow:auto}}</style>\
         <h1>{title}</h1><p>Nothing here is real: this is a stand-in for Stripe.</p>{body}</html>"
    );
    Outcome::Page { status, html }
}

pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn refused(refusal: &Refusal) -> Outcome {
    page(refusal.status, "Not possible", &format!("<p>{}</p>", escape(refusal.error["message"].as_str().unwrap_or_default())))
}

/// `12.30 USD` for cents.
fn money(amount: &Value, currency: &Value) -> String {
    let cents = amount.as_i64().unwrap_or_default();
    format!("{}.{:02} {}", cents / 100, cents.abs() % 100, currency.as_str().unwrap_or_default().to_uppercase())
}

/// A card by its number or its name.
pub fn card(given: &str) -> Answer<&'static Card> {
    let found = Card::named(given).or_else(|| Card::numbered(given));
    found.ok_or_else(|| Refusal::card("incorrect_number", None, "Your card number is incorrect."))
}

fn receipt(world: &World, id: &str) -> Outcome {
    match world.get("charge", id) {
        Ok(charge) => {
            let paid = money(&charge["amount"], &charge["currency"]);
            let back = money(&charge["amount_refunded"], &charge["currency"]);
            page(200, "Receipt", &format!("<p>{paid} paid, {back} refunded.</p><p>{}</p>", escape(id)))
        }
        Err(refusal) => refused(&refusal),
    }
}

fn bank(id: &str) -> Outcome {
    let buttons = "<form method=post><button name=outcome value=succeeded>Complete authentication</button>\
                   <button name=outcome value=failed>Fail authentication</button></form>";
    page(200, "Your bank asks", &format!("<p>Payment {}</p>{buttons}", escape(id)))
}

fn authenticated(world: &mut World, id: &str, form: &Value) -> Outcome {
    let back = world.find(id).and_then(|asked| asked.pointer("/next_action/redirect_to_url/return_url").cloned());
    let passes = form["outcome"] == "succeeded";
    let saves = id.starts_with("seti_");
    let ended = if saves { setup::authenticate(world, id, passes) } else { payments::authenticate(world, id, passes) };
    match ended {
        Ok(ended) => match back.as_ref().and_then(Value::as_str) {
            Some(back) => {
                let joint = if back.contains('?') { '&' } else { '?' };
                let status = if ended["status"] == "requires_payment_method" { "failed" } else { "succeeded" };
                let name = if saves { "setup_intent" } else { "payment_intent" };
                Outcome::Redirect(format!("{back}{joint}{name}={id}&redirect_status={status}"))
            }
            None => page(200, "Done", "<p>You may close this page.</p>"),
        },
        Err(refusal) => refused(&refusal),
    }
}

fn checkout_page(world: &World, id: &str, fault: Option<&str>) -> Outcome {
    let session = match checkout::open(world, id) {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal),
    };
    let what = match session["mode"].as_str() {
        Some("setup") => "Save a card".to_owned(),
        Some("subscription") => format!("Subscribe for {}", money(&session["amount_total"], &session["currency"])),
        _ => format!("Pay {}", money(&session["amount_total"], &session["currency"])),
    };
    let fault = fault.map(|fault| format!("<p role=alert>{}</p>", escape(fault))).unwrap_or_default();
    let email = escape(session["customer_email"].as_str().unwrap_or_default());
    let body = format!(
        "{fault}<form method=post><label>Email<br><input name=email type=email value=\"{email}\"></label>\
         <label>Card number<br><input name=card value=\"4242 4242 4242 4242\" inputmode=numeric></label>\
         <p>4000 0000 0000 0002 is declined, 4000 0027 6000 3184 asks your bank.</p>\
         <button name=outcome value=complete>{what}</button><button name=outcome value=cancel>Back</button></form>"
    );
    page(200, &what, &body)
}

fn checkout_posted(world: &mut World, id: &str, form: &Value) -> Outcome {
    let session = match checkout::open(world, id) {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal),
    };
    if form["outcome"] == "cancel" {
        let back = session["cancel_url"].as_str().or(session["success_url"].as_str()).unwrap_or("/");
        return Outcome::Redirect(back.to_owned());
    }
    let number = form["card"].as_str().unwrap_or_default();
    let card = match card(number) {
        Ok(card) => card,
        Err(refusal) => return checkout_page(world, id, refusal.error["message"].as_str()),
    };
    match form["bank"].as_str() {
        None if checkout::asks(card) => return ask_bank(number, form["email"].as_str().unwrap_or_default()),
        Some("failed") => return checkout_page(world, id, Some("We are unable to authenticate your payment method.")),
        _ => {}
    }
    match checkout::complete(world, id, card, form["email"].as_str().filter(|email| !email.is_empty())) {
        Ok(session) => {
            let back = session["success_url"].as_str().unwrap_or("/").replace("{CHECKOUT_SESSION_ID}", id);
            Outcome::Redirect(back)
        }
        Err(refusal) => checkout_page(world, id, refusal.error["message"].as_str()),
    }
}

fn ask_bank(number: &str, email: &str) -> Outcome {
    let body = format!(
        "<form method=post><input type=hidden name=card value=\"{}\"><input type=hidden name=email value=\"{}\">\
         <button name=bank value=succeeded>Complete authentication</button><button name=bank value=failed>Fail authentication</button></form>",
        escape(number),
        escape(email)
    );
    page(200, "Your bank asks", &body)
}

fn portal(world: &World, id: &str, fault: Option<&str>) -> Outcome {
    let session = match world.get("billing_portal.session", id) {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal),
    };
    let mut body = fault.map(|fault| format!("<p role=alert>{}</p>", escape(fault))).unwrap_or_default();
    for subscription in world.all("subscription").iter().filter(|subscription| subscription["customer"] == session["customer"]) {
        let name = escape(subscription["id"].as_str().unwrap_or_default());
        let (act, label) =
            if subscription["cancel_at_period_end"] == true { ("resume", "Resume") } else { ("cancel", "Cancel at period end") };
        body += &format!(
            "<form method=post><p>{name}: {}</p><input type=hidden name=subscription value=\"{name}\"><button name=act value={act}>{label}</button></form>",
            escape(subscription["status"].as_str().unwrap_or_default())
        );
    }
    body += "<form method=post><label>New card<br><input name=card value=\"4242 4242 4242 4242\"></label><button name=act value=card>Save the card</button></form>";
    body += "<form method=post><button name=act value=back>Back</button></form>";
    page(200, "Billing portal", &body)
}

fn portal_posted(world: &mut World, id: &str, form: &Value) -> Outcome {
    let session = match world.get("billing_portal.session", id) {
        Ok(session) => session,
        Err(refusal) => return refused(&refusal),
    };
    let act = form["act"].as_str().unwrap_or_default();
    let done = match act {
        "back" => return Outcome::Redirect(session["return_url"].as_str().unwrap_or("/").to_owned()),
        "card" => new_card(world, &session["customer"], form["card"].as_str().unwrap_or_default()),
        _ => {
            let params = serde_json::json!({ "cancel_at_period_end": if act == "cancel" { "true" } else { "false" } });
            changes::update(world, &Call::of_page(params), form["subscription"].as_str().unwrap_or_default())
        }
    };
    match done {
        Ok(_) => portal(world, id, None),
        Err(refusal) => portal(world, id, refusal.error["message"].as_str()),
    }
}

/// Saves a card and makes it the one that pays for everything.
fn new_card(world: &mut World, customer: &Value, number: &str) -> Answer {
    let card = card(number)?;
    let method = customers::new_method(world, card);
    let method = customers::attach(world, method, customer)?;
    if let Some(id) = method["id"].as_str() {
        world.set_up.insert(id.to_owned());
    }
    let params = serde_json::json!({ "invoice_settings": { "default_payment_method": method["id"] } });
    let changed = customers::update(world, &Call::of_page(params), customer.as_str().unwrap_or_default())?;
    for mut subscription in world.all("subscription").into_iter().filter(|subscription| subscription["customer"] == *customer) {
        subscription["default_payment_method"] = method["id"].clone();
        world.put(&subscription);
    }
    Ok(changed)
}

fn onboarding(id: &str) -> Outcome {
    let buttons = "<form method=post><button name=outcome value=complete>Complete onboarding</button>\
                   <button name=outcome value=later>Later</button></form>";
    page(200, "Connect onboarding", &format!("<p>Account {}</p>{buttons}", escape(id)))
}

fn onboarded(world: &mut World, id: &str, form: &Value) -> Outcome {
    let back = world.beside.get(id).and_then(|beside| beside["return_url"].as_str()).unwrap_or("/").to_owned();
    if form["outcome"] != "complete" {
        return Outcome::Redirect(back);
    }
    match connect::set(world, id, "complete") {
        Ok(_) => Outcome::Redirect(back),
        Err(refusal) => refused(&refusal),
    }
}
