//! Forms: what was typed is kept as text whatever it is worth, each fault stands under its field, and the address holds the whole form.
//!
//! A page says with [`Words`] what its fields are called and what a fault means in them; [`Controls`] makes the controls, each with its label
//! above, its unit inside and its fault below, as look.md wants them.

use std::borrow::Cow;

use askama::Template;
use serde::de::DeserializeOwned;

use super::{Key, Messages, address};
use crate::{
    base::{Code, Error, FieldError, Result, faults::Faults},
    web::Query,
};

/// The fields that are not empty, as typed, and what is wrong with them.
#[derive(Debug, Clone)]
pub struct Form {
    path: String,
    pairs: Vec<(String, String)>,
    faults: Vec<FieldError>,
    /// Names that an ambiguous one could mean.
    candidates: Vec<String>,
}

impl Form {
    /// Spaces around a value are nobody's intention, and an empty field is none.
    pub fn of(path: impl Into<String>, given: &[(String, String)]) -> Self {
        let typed = given.iter().map(|(name, value)| (name.clone(), value.trim().to_owned()));
        let pairs = typed.filter(|(_, value)| !value.is_empty()).collect();
        Self { path: path.into(), pairs, faults: Vec::new(), candidates: Vec::new() }
    }

    pub fn value(&self, name: &str) -> &str {
        self.pairs.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub fn has(&self, name: &str) -> bool {
        !self.value(name).is_empty()
    }

    /// Whether any field but these is filled.
    pub fn has_more_than(&self, names: &[&str]) -> bool {
        self.pairs.iter().any(|(name, _)| !names.contains(&name.as_str()))
    }

    /// The parameters that the fields make. `check` finds what is wrong beyond types.
    ///
    /// # Errors
    /// `invalid_input` with every value that is not of its field's type, and with what is wrong with the others.
    pub fn query<T: DeserializeOwned>(&self, check: impl Fn(&T) -> Result<()>) -> Result<Query<T>> {
        let mut faults = Faults::default();
        let mut readable = Vec::new();
        for (name, value) in &self.pairs {
            let read = faults.take(Query::<T>::parse(&self.path, &encoded([(name, value)])));
            readable.extend(read.map(|_| (name, value)));
        }
        let query = Query::<T>::parse(&self.path, &encoded(readable.iter().copied()))?;
        if readable.len() < self.pairs.len() {
            faults.take(check(&query));
        }
        faults.finish()?;
        Ok(query)
    }

    /// Keeps what is wrong beside the fields.
    ///
    /// # Errors
    /// Any error that is not about the input comes back.
    pub fn refuse(&mut self, error: Error) -> Result<()> {
        if error.code() != Code::InvalidInput {
            return Err(error);
        }
        for fault in error.fields() {
            // What follows from a field that could not be read says nothing new about it.
            if !self.faults.iter().any(|known| known.pointer == fault.pointer) {
                self.faults.push(fault.clone());
            }
        }
        let names = error.extra().get("candidates").and_then(|all| all.as_array()).into_iter().flatten();
        self.candidates = names.filter_map(|one| one.get("name")?.as_str().map(str::to_owned)).collect();
        Ok(())
    }

    fn fault(&self, name: &str) -> Option<&FieldError> {
        self.faults.iter().find(|fault| field_of(fault) == name)
    }

    /// The same form with other values; an empty one leaves the field out. A list begins at its first page.
    #[must_use]
    pub fn with(&self, changes: &[(&str, &str)]) -> Self {
        let is_changed = |name: &str| name == "cursor" || changes.iter().any(|(changed, _)| *changed == name);
        let kept = self.pairs.iter().filter(|(name, _)| !is_changed(name)).cloned();
        let added = changes.iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { path: self.path.clone(), pairs: kept.chain(added).collect(), faults: Vec::new(), candidates: Vec::new() }
    }

    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let changes: Vec<(&str, &str)> = names.iter().map(|name| (*name, "")).collect();
        self.with(&changes)
    }

    pub fn address(&self) -> String {
        address(&self.path, self.pairs.iter().map(|(name, value)| (name, value)))
    }
}

/// The field that a fault is about: of an address `?name`, of a body `/name`.
fn field_of(fault: &FieldError) -> &str {
    fault.pointer.trim_start_matches(['?', '/'])
}

fn encoded<K: AsRef<str>, V: AsRef<str>>(pairs: impl IntoIterator<Item = (K, V)>) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// What a page's form says.
#[derive(Clone, Copy)]
pub struct Words {
    /// What stands above a field; `None` for what is no field of the form.
    pub label: fn(&str) -> Option<Key>,
    /// A fault in the words of the form; `None` leaves the words of the one who found it.
    pub fault: fn(Messages, &str, &FieldError) -> Option<String>,
}

/// A line to type in.
#[derive(Template)]
#[template(path = "parts/input.html")]
pub struct Input {
    form: &'static str,
    name: &'static str,
    label: Cow<'static, str>,
    unit: Cow<'static, str>,
    mode: &'static str,
    kind: &'static str,
    /// What a browser may fill it with, in the words of HTML.
    autocomplete: &'static str,
    /// Names that the browser may offer.
    list: Vec<&'static str>,
    value: String,
    fault: String,
}

/// Lines to type in.
#[derive(Template)]
#[template(path = "parts/text-area.html")]
pub struct TextArea {
    form: &'static str,
    name: &'static str,
    label: Cow<'static, str>,
    /// In characters, as the browser counts them.
    longest: usize,
    value: String,
    fault: String,
}

/// One of a few, all of them in view.
#[derive(Template)]
#[template(path = "parts/choices.html")]
pub struct Choices {
    form: &'static str,
    name: &'static str,
    label: Cow<'static, str>,
    options: Vec<Choice>,
    fault: String,
}

/// A choice of a few values.
#[derive(Template)]
#[template(path = "parts/select.html")]
pub struct Select {
    form: &'static str,
    name: &'static str,
    label: Cow<'static, str>,
    options: Vec<Choice>,
    fault: String,
}

struct Choice {
    value: String,
    text: String,
    is_chosen: bool,
}

/// What is wrong with the form as a whole, with ways to the fields.
#[derive(Template)]
#[template(path = "parts/faults.html")]
pub struct FaultSummary {
    t: Messages,
    faults: Vec<Said>,
    candidates: Vec<Candidate>,
}

/// A fault as the summary shows it; the label is empty for what is no field of the form.
struct Said {
    name: String,
    label: Cow<'static, str>,
    text: String,
}

/// A name that an ambiguous one could mean, and the form with it.
struct Candidate {
    name: String,
    path: String,
}

/// Makes the controls of one form.
#[derive(Clone, Copy)]
pub struct Controls<'a> {
    pub t: Messages,
    pub form: &'a Form,
    /// The form's id in the page: its controls may stand outside it.
    pub id: &'static str,
    pub words: Words,
}

impl Controls<'_> {
    fn label(&self, name: &str) -> Cow<'static, str> {
        (self.words.label)(name).map_or(Cow::Borrowed(""), |key| self.t.text(key))
    }

    fn said(&self, name: &str, fault: &FieldError) -> String {
        (self.words.fault)(self.t, name, fault).unwrap_or_else(|| fault.detail.clone())
    }

    fn fault(&self, name: &str) -> String {
        self.form.fault(name).map(|fault| self.said(name, fault)).unwrap_or_default()
    }

    /// `mode` is the keyboard a phone shows.
    pub fn input(&self, name: &'static str, mode: &'static str) -> Input {
        Input {
            form: self.id,
            name,
            label: self.label(name),
            unit: Cow::Borrowed(""),
            mode,
            kind: "text",
            autocomplete: "off",
            list: Vec::new(),
            value: self.form.value(name).to_owned(),
            fault: self.fault(name),
        }
    }

    pub fn text_area(&self, name: &'static str, longest: usize) -> TextArea {
        TextArea { form: self.id, name, label: self.label(name), longest, value: self.form.value(name).to_owned(), fault: self.fault(name) }
    }

    pub fn choices(&self, name: &'static str, known: Vec<(String, String)>) -> Choices {
        let typed = self.form.value(name);
        let options = known.into_iter().map(|(value, text)| Choice { is_chosen: value == typed, value, text }).collect();
        Choices { form: self.id, name, label: self.label(name), options, fault: self.fault(name) }
    }

    /// The choices, and what was typed when it is none of them. `chosen` is the choice that what was typed means, when it is written otherwise.
    pub fn select(&self, name: &'static str, any: &str, known: Vec<(String, String)>, chosen: Option<String>) -> Select {
        let typed = self.form.value(name);
        let chosen = chosen.unwrap_or_else(|| typed.to_owned());
        let mut options = vec![Choice { value: String::new(), text: any.to_owned(), is_chosen: typed.is_empty() }];
        options.extend(known.into_iter().map(|(value, text)| Choice { is_chosen: value == chosen, value, text }));
        if !options.iter().any(|option| option.is_chosen) {
            options.push(Choice { value: typed.to_owned(), text: typed.to_owned(), is_chosen: true });
        }
        Select { form: self.id, name, label: self.label(name), options, fault: self.fault(name) }
    }

    /// `None` when nothing is wrong.
    pub fn faults(&self) -> Option<FaultSummary> {
        let said = |fault: &FieldError| {
            let name = field_of(fault).to_owned();
            Said { label: self.label(&name), text: self.said(&name, fault), name }
        };
        let faults: Vec<Said> = self.form.faults.iter().map(said).collect();
        if faults.is_empty() {
            return None;
        }
        let ambiguous = self.form.faults.iter().find(|fault| fault.code == "ambiguous_name");
        let field = ambiguous.map_or("", field_of);
        let candidate = |name: &String| Candidate { path: self.form.with(&[(field, name)]).address(), name: name.clone() };
        Some(FaultSummary { t: self.t, candidates: self.form.candidates.iter().map(candidate).collect(), faults })
    }
}

impl Input {
    #[must_use]
    pub fn unit(mut self, unit: Cow<'static, str>) -> Self {
        self.unit = unit;
        self
    }

    /// Typed unseen, and never sent back.
    #[must_use]
    pub fn secret(mut self) -> Self {
        self.kind = "password";
        self.value = String::new();
        self
    }

    #[must_use]
    pub fn filled_by(mut self, what: &'static str) -> Self {
        self.autocomplete = what;
        self
    }

    #[must_use]
    pub fn offering(mut self, list: Vec<&'static str>) -> Self {
        self.list = list;
        self
    }
}

/// A condition in force, and the address of the list without it.
pub struct Condition {
    pub text: String,
    pub without: String,
}

/// The conditions in force, each a link that takes it away.
#[derive(Template)]
#[template(path = "parts/applied.html")]
pub struct Applied {
    pub t: Messages,
    pub conditions: Vec<Condition>,
    /// The list without any.
    pub clear: String,
}

/// Ways to the first and the next page of a list.
#[derive(Template)]
#[template(path = "parts/paging.html")]
pub struct Paging {
    t: Messages,
    first: Option<String>,
    next: Option<String>,
}

impl Paging {
    /// Of the page that the form asks for; `next` is the cursor of the page after it.
    pub fn of(t: Messages, form: &Form, next: Option<&str>) -> Self {
        Self {
            t,
            first: form.has("cursor").then(|| form.with(&[]).address()),
            next: next.map(|cursor| form.with(&[("cursor", cursor)]).address()),
        }
    }

    pub const fn is_first_page(&self) -> bool {
        self.first.is_none()
    }

    pub const fn is_only_page(&self) -> bool {
        self.first.is_none() && self.next.is_none()
    }
}
