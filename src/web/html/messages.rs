//! Messages: every text of every page, one file of Fluent messages a language in `locales/`, and how that language writes figures.
//!
//! Invariants: templates hold no text of their own; a message exists in every language with the same arguments (`tests/it/pages/messages.rs`
//! holds both); a figure of a page is written here and nowhere else; missing is "—", never 0. A message is our own text and may hold some tags (`b`, `code`, `sup`, `a`, `span`), for [`Messages::rich`]; its arguments never do.

use std::{borrow::Cow, sync::LazyLock};

use chrono::{DateTime, Utc};
use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};
use unic_langid::LanguageIdentifier;

use crate::base::Money;

/// A language that pages are served in.
#[derive(Debug)]
pub struct Language {
    /// As it stands in addresses and in `lang`.
    pub code: &'static str,
    /// Of the paths of its pages.
    pub prefix: &'static str,
    /// In the language itself.
    pub name: &'static str,
    source: &'static str,
    group: char,
    point: char,
}

/// Every language that is served; the first stands where none is asked for.
pub static LANGUAGES: [Language; 1] =
    [Language { code: "en", prefix: "/en", name: "English", source: include_str!("../../../locales/en.ftl"), group: ',', point: '.' }];

impl Language {
    pub fn served(code: &str) -> Option<&'static Self> {
        LANGUAGES.iter().find(|language| language.code == code)
    }

    /// Whether a path (with or without parameters) is one of a page in a language that is served. It begins with a name, so it leads to no
    /// other host.
    pub fn is_of_page(path: &str) -> bool {
        let first = path.strip_prefix('/').and_then(|rest| rest.split(['/', '?', '#']).next());
        first.is_some_and(|code| Self::served(code).is_some())
    }

    /// The language of a path, or the first.
    pub fn of_path(path: &str) -> &'static Self {
        let code = path.split('/').nth(1).unwrap_or_default();
        Self::served(code).unwrap_or(&LANGUAGES[0])
    }
}

static BUNDLES: LazyLock<Vec<FluentBundle<FluentResource>>> = LazyLock::new(|| LANGUAGES.iter().map(bundle).collect());

/// What cannot be read is left out; the tests refuse a file with such a part.
fn bundle(language: &Language) -> FluentBundle<FluentResource> {
    let locale: LanguageIdentifier = language.code.parse().unwrap_or_default();
    let mut bundle = FluentBundle::new_concurrent(vec![locale]);
    // The marks would be copied with the text, and no language of ours is written from the right.
    bundle.set_use_isolating(false);
    // A plain function: it cannot look at the language.
    bundle.set_formatter(Some(match language.group {
        '.' => |value, _| grouped_number::<'.'>(value),
        '\u{202f}' => |value, _| grouped_number::<'\u{202f}'>(value),
        _ => |value, _| grouped_number::<','>(value),
    }));
    let resource = FluentResource::try_new(language.source.to_owned()).unwrap_or_else(|(resource, _)| resource);
    bundle.add_resource_overriding(resource);
    bundle
}

fn grouped_number<const GROUP: char>(value: &FluentValue<'_>) -> Option<String> {
    match value {
        FluentValue::Number(number) => Some(grouped(&number.as_string(), GROUP)),
        _ => None,
    }
}

/// The name of a message. Where a message is chosen by a value, the choice says `Key("…")`, so that the tests find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(pub &'static str);

impl From<&'static str> for Key {
    fn from(name: &'static str) -> Self {
        Self(name)
    }
}

impl From<&Self> for Key {
    fn from(key: &Self) -> Self {
        *key
    }
}

/// What a message is given: a text as it is to appear, or a number that it may choose its form by.
#[derive(Debug, Clone)]
pub enum Arg<'a> {
    Text(Cow<'a, str>),
    Count(u64),
}

impl<'a> From<&'a str> for Arg<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}
impl<'a> From<&'a String> for Arg<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text.into())
    }
}
impl From<String> for Arg<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}
impl From<u64> for Arg<'_> {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}
impl From<u32> for Arg<'_> {
    fn from(count: u32) -> Self {
        Self::Count(count.into())
    }
}
impl From<usize> for Arg<'_> {
    fn from(count: usize) -> Self {
        Self::Count(u64::try_from(count).unwrap_or(u64::MAX))
    }
}
impl From<i32> for Arg<'_> {
    fn from(count: i32) -> Self {
        Self::Count(u64::try_from(count).unwrap_or(0))
    }
}

/// The messages and figures of one language. Pages call it `t`.
#[derive(Debug, Clone, Copy)]
pub struct Messages {
    language: &'static Language,
}

impl Messages {
    pub const fn of(language: &'static Language) -> Self {
        Self { language }
    }

    pub const fn language(&self) -> &'static Language {
        self.language
    }

    /// A message without arguments. One that is not there shows its name.
    pub fn text(&self, key: impl Into<Key>) -> Cow<'static, str> {
        let key = key.into();
        self.message(key, None).unwrap_or(Cow::Borrowed(key.0))
    }

    /// A message with its arguments.
    pub fn with(&self, key: impl Into<Key>, arguments: &[(&'static str, Arg<'_>)]) -> String {
        let key = key.into();
        let mut given = FluentArgs::new();
        for (name, value) in arguments {
            match value {
                Arg::Text(text) => given.set(*name, text.as_ref()),
                Arg::Count(count) => given.set(*name, *count),
            }
        }
        self.message(key, Some(&given)).unwrap_or(Cow::Borrowed(key.0)).into_owned()
    }

    /// The same as HTML: the message's own tags stay, its arguments are text.
    pub fn rich(&self, key: impl Into<Key>, arguments: &[(&'static str, Arg<'_>)]) -> String {
        let escaped: Vec<_> = arguments.iter().map(|(name, value)| (*name, escaped(value))).collect();
        self.with(key, &escaped)
    }

    fn message(&self, key: Key, arguments: Option<&FluentArgs<'_>>) -> Option<Cow<'static, str>> {
        let place = LANGUAGES.iter().position(|language| language.code == self.language.code)?;
        let bundle = BUNDLES.get(place)?;
        let pattern = bundle.get_message(key.0)?.value()?;
        let mut faults = Vec::new();
        let text = bundle.format_pattern(pattern, arguments, &mut faults);
        if let Some(fault) = faults.first() {
            tracing::error!(message = key.0, %fault, "a message lacks an argument");
        }
        // What has no arguments borrows from the file; the rest is made for this call.
        Some(match (text, arguments) {
            (Cow::Borrowed(text), None) => Cow::Borrowed(text),
            (text, _) => Cow::Owned(text.into_owned()),
        })
    }

    /// A figure with `decimals` digits after the point, or "—".
    pub fn figure(&self, value: Option<f64>, decimals: usize) -> String {
        let Some(value) = value.filter(|v| v.is_finite()) else { return "—".to_owned() };
        self.digits(&format!("{value:.decimals$}"))
    }

    /// A count, or "—".
    pub fn count(&self, value: Option<u64>) -> String {
        value.map_or_else(|| "—".to_owned(), |v| grouped(&v.to_string(), self.language.group))
    }

    /// An amount as exact as it is.
    pub fn money(&self, amount: Money) -> String {
        self.digits(&amount.to_string())
    }

    /// A number as programs write it, in the language's signs; any other text as it is.
    pub fn digits(&self, plain: &str) -> String {
        if !plain.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-') {
            return plain.to_owned();
        }
        let (sign, digits) = plain.strip_prefix('-').map_or(("", plain), |digits| ("−", digits));
        let (whole, rest) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
        let mut text = format!("{sign}{}", grouped(whole, self.language.group));
        if let Some(rest) = rest {
            text.push(self.language.point);
            text.push_str(rest);
        }
        text
    }

    /// A context length as people say it: `0`, `500`, `16K`, `248K`; off the grid with one decimal: `17.3K`.
    pub fn context(&self, tokens: u64) -> String {
        const K: u64 = 1_024;
        if tokens < K {
            return self.count(Some(tokens));
        }
        let tenths = tokens.saturating_mul(10).saturating_add(K / 2) / K;
        let whole = self.count(Some(tenths / 10));
        if tenths.is_multiple_of(10) { format!("{whole}K") } else { format!("{whole}{}{}K", self.language.point, tenths % 10) }
    }

    /// A day, in UTC.
    pub fn date(&self, instant: &DateTime<Utc>) -> String {
        instant.format("%Y-%m-%d").to_string()
    }

    /// A minute, in UTC.
    pub fn instant(&self, instant: &DateTime<Utc>) -> String {
        instant.format("%Y-%m-%d %H:%M UTC").to_string()
    }
}

fn grouped(digits: &str, group: char) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(group);
        }
        text.push(c);
    }
    text
}

fn escaped(argument: &Arg<'_>) -> Arg<'static> {
    let text = match argument {
        Arg::Count(count) => return Arg::Count(*count),
        Arg::Text(text) => text,
    };
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&#38;"),
            '<' => safe.push_str("&#60;"),
            '>' => safe.push_str("&#62;"),
            '"' => safe.push_str("&#34;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    Arg::Text(safe.into())
}
