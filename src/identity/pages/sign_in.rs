//! The forms to sign in and out with.

use actix_web::http::StatusCode;
use askama::Template;

use crate::{
    base::{Code, Error, FieldError},
    ctx::Ctx,
    web::html::{
        Key, Layout, Messages, Reader,
        form::{Controls, FaultSummary, Form, Input, Words},
    },
};

const WORDS: Words = Words { label, fault };

fn label(name: &str) -> Option<Key> {
    Some(match name {
        "name" => Key("sign-in-name"),
        "password" => Key("sign-in-password"),
        _ => return None,
    })
}

fn fault(t: Messages, _name: &str, fault: &FieldError) -> Option<String> {
    let key = match fault.code.as_ref() {
        "missing_field" => Key("fault-missing"),
        "wrong_credentials" => Key("fault-credentials"),
        "rate_limited" => Key("fault-tries"),
        _ => return None,
    };
    Some(t.text(key).into_owned())
}

pub(super) fn status(error: &Error) -> StatusCode {
    super::status_of(error.code())
}

/// What the person can do about it stands beside the fields; the rest is an error page's.
pub(super) fn as_fault(error: Error) -> Error {
    match error.code() {
        Code::InvalidCredentials => Error::invalid("?password", "wrong_credentials", error.detail().to_owned()),
        Code::RateLimited => Error::invalid("?name", "rate_limited", error.detail().to_owned()),
        _ => error,
    }
}

#[derive(Template)]
#[template(path = "sign-in.html")]
pub(super) struct SignInPage {
    layout: Layout,
    t: Messages,
    path: String,
    next: String,
    name: Input,
    password: Input,
    faults: Option<FaultSummary>,
}

impl SignInPage {
    pub fn new(ctx: &Ctx, reader: &Reader, form: &Form) -> Self {
        let t = reader.t;
        let controls = Controls { t, form, id: "sign-in", words: WORDS };
        Self {
            layout: Layout::new(ctx, reader, "sign-in", t.text("sign-in"), t.text("sign-in-lede")).hidden_from_search_engines(true),
            t,
            path: reader.path_of("sign-in"),
            next: form.value("next").to_owned(),
            name: controls.input("name", "email").filled_by("username"),
            password: controls.input("password", "text").secret().filled_by("current-password"),
            faults: controls.faults(),
        }
    }
}

#[derive(Template)]
#[template(path = "sign-out.html")]
pub(super) struct SignOutPage {
    layout: Layout,
    t: Messages,
    path: String,
}

impl SignOutPage {
    pub fn new(ctx: &Ctx, reader: &Reader) -> Self {
        let t = reader.t;
        let layout = Layout::new(ctx, reader, "sign-out", t.text("sign-out"), t.text("sign-out-lede")).hidden_from_search_engines(true);
        Self { layout, t, path: reader.path_of("sign-out") }
    }
}
