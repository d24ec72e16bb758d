//! Who reads a page, and what the layout around every page needs.

use std::{
    borrow::Cow,
    future::{Ready, ready},
};

use actix_web::{FromRequest, HttpMessage, HttpRequest, dev::Payload};
use serde::Deserialize;

use super::{Key, LANGUAGES, Language, Messages, address, asset_path};
use crate::{
    base::{Code, Error, Result},
    ctx::Ctx,
};

/// The parts that have a page, in the order of the menu: the path without the language, and the message that names it.
const MENU: [(&str, Key); 3] =
    [("runs", Key("menu-runs")), ("benchmarks", Key("menu-benchmarks")), ("marketplace", Key("menu-marketplace"))];

/// The field of a form that holds the token of its reader's session.
pub const FORM_TOKEN: &str = "form_token";

/// Somebody who has signed in, as pages know them; `identity` finds out who it is and puts it into the request.
#[derive(Debug, Clone)]
pub struct Person {
    /// With its `@`.
    pub handle: String,
    pub is_operator: bool,
    /// Stands in every form that is sent by POST.
    pub form_token: String,
}

/// Who asks for a page, in which language. Goes by the first part of the path; a language that is not served has no pages.
#[derive(Debug, Clone)]
pub struct Reader {
    pub t: Messages,
    /// Without the query.
    path: String,
    person: Option<Person>,
}

impl Reader {
    /// Of a request to any path; the first language stands where the path names none.
    pub fn of(req: &HttpRequest) -> Self {
        let person = req.extensions().get::<Person>().cloned();
        Self { t: Messages::of(Language::of_path(req.path())), path: req.path().to_owned(), person }
    }

    /// The path of a part in the reader's language.
    pub fn path_of(&self, part: &str) -> String {
        format!("{}/{part}", self.t.language().prefix)
    }
}

impl FromRequest for Reader {
    type Error = Error;
    type Future = Ready<Result<Self>>;

    fn from_request(req: &HttpRequest, _: &mut Payload) -> Self::Future {
        let is_served = req.match_info().get("lang").is_some_and(|code| Language::served(code).is_some());
        ready(if is_served { Ok(Self::of(req)) } else { Err(Error::new(Code::NotFound, "There is nothing at this path.")) })
    }
}

/// The id in the path of a page, apart from the language.
#[derive(Debug, Deserialize)]
pub struct PageId<T> {
    pub id: T,
}

/// One entry of the menu.
pub struct MenuItem {
    pub path: String,
    pub name: Cow<'static, str>,
    pub is_current: bool,
}

/// What the layout of every page needs.
#[derive(Debug, Clone)]
pub struct Layout {
    pub t: Messages,
    pub title: String,
    pub description: String,
    pub is_sandbox: bool,
    /// Whether search engines may show it.
    pub is_indexed: bool,
    /// The menu's current part: its path without the language.
    pub part: &'static str,
    /// Without parameters.
    path: String,
    /// Who reads it, if they have signed in.
    pub person: Option<Person>,
    /// The same with the host: the one address of the page.
    pub canonical: String,
    pub css: &'static str,
    pub js: &'static str,
    pub icon: &'static str,
}

impl Layout {
    pub fn new(ctx: &Ctx, reader: &Reader, part: &'static str, title: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            t: reader.t,
            title: title.into(),
            description: description.into(),
            is_sandbox: ctx.config.mode.is_sandbox(),
            is_indexed: true,
            part,
            path: reader.path.clone(),
            person: reader.person.clone(),
            canonical: format!("{}{}", ctx.public_url.trim_end_matches('/'), reader.path),
            css: asset_path("rigmark.css"),
            js: asset_path("rigmark.js"),
            icon: asset_path("rigmark.svg"),
        }
    }

    #[must_use]
    pub fn hidden_from_search_engines(mut self, is_hidden: bool) -> Self {
        self.is_indexed = !is_hidden;
        self
    }

    pub fn menu(&self) -> Vec<MenuItem> {
        let item =
            |(part, name): &(&str, Key)| MenuItem { path: self.path_of(part), name: self.t.text(name), is_current: *part == self.part };
        MENU.iter().map(item).collect()
    }

    pub fn path_of(&self, part: &str) -> String {
        format!("{}/{part}", self.t.language().prefix)
    }

    /// The same page in another language.
    pub fn path_in(&self, language: &Language) -> String {
        let own = self.t.language().prefix;
        format!("{}{}", language.prefix, self.path.strip_prefix(own).unwrap_or_default())
    }

    /// The way to the form to sign in with, and back.
    pub fn sign_in(&self) -> String {
        let path = self.path_of("sign-in");
        if self.part == "sign-in" { path } else { address(&path, [("next", &self.path)]) }
    }

    /// The token for the forms of this page; empty for a stranger.
    pub fn form_token(&self) -> &str {
        self.person.as_ref().map_or("", |person| &person.form_token)
    }

    pub fn languages(&self) -> &'static [Language] {
        &LANGUAGES
    }
}
