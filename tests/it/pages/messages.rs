//! Messages: every one that is used exists, every one that exists is used, with the arguments it takes; every language has the same; and no
//! template holds text of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fluent_bundle::FluentResource;
use regex::Regex;
use rigmark::base::Money;
use rigmark::web::html::{LANGUAGES, Messages};

/// The arguments of each message of a language.
type Catalogue = BTreeMap<String, BTreeSet<String>>;

fn root(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// Files below a folder with this ending, with their texts.
fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().unwrap().ends_with(ending) {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn catalogue(source: &str) -> Catalogue {
    let name = Regex::new(r"(?m)^([a-z][a-z0-9-]*) =").unwrap();
    let argument = Regex::new(r"\$([a-z_]+)").unwrap();
    let starts: Vec<_> = name.captures_iter(source).map(|found| (found.get(0).unwrap().start(), found[1].to_owned())).collect();
    let mut all = Catalogue::new();
    for (index, (start, name)) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(source.len(), |(next, _)| *next);
        let arguments = argument.captures_iter(&source[*start..end]).map(|found| found[1].to_owned()).collect();
        assert!(all.insert(name.clone(), arguments).is_none(), "{name} stands twice");
    }
    all
}

struct Use {
    place: String,
    name: String,
    arguments: BTreeSet<String>,
}

/// The text up to the parenthesis that closes one opened before it.
fn until_closed(text: &str) -> &str {
    let mut depth = 1;
    for (at, c) in text.char_indices() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 {
            return &text[..at];
        }
    }
    text
}

/// Calls of `t.text`, `t.with` and `t.rich` with a name, and names that stand as `Key`.
fn uses() -> Vec<Use> {
    let call = Regex::new(r#"\bt\s*\.(?:text|with|rich)\(\s*(?:Key\()?"([a-z0-9-]+)""#).unwrap();
    let key = Regex::new(r#"\bKey\("([a-z0-9-]+)"\)"#).unwrap();
    let argument = Regex::new(r#"\("([a-z_]+)",\s"#).unwrap();
    let mut all = Vec::new();
    for (place, text) in files("templates", ".html").into_iter().chain(files("src", ".rs")) {
        for found in call.captures_iter(&text) {
            let rest = until_closed(&text[found.get(0).unwrap().end()..]);
            let arguments = argument.captures_iter(rest).map(|one| one[1].to_owned()).collect();
            all.push(Use { place: place.clone(), name: found[1].to_owned(), arguments });
        }
        for found in key.captures_iter(&text) {
            all.push(Use { place: place.clone(), name: found[1].to_owned(), arguments: BTreeSet::new() });
        }
    }
    assert!(all.len() > 200, "the uses were not found");
    all
}

#[test]
fn every_message_is_there_and_used_with_its_arguments() {
    let messages = catalogue(&std::fs::read_to_string(root("locales/en.ftl")).unwrap());
    let uses = uses();
    let mut faults = Vec::new();
    for one in &uses {
        match messages.get(&one.name) {
            None => faults.push(format!("{}: {} is not there", one.place, one.name)),
            Some(arguments) if *arguments != one.arguments => {
                faults.push(format!("{}: {} takes {arguments:?}, not {:?}", one.place, one.name, one.arguments));
            }
            Some(_) => {}
        }
    }
    let used: BTreeSet<&str> = uses.iter().map(|one| one.name.as_str()).collect();
    faults.extend(messages.keys().filter(|name| !used.contains(name.as_str())).map(|name| format!("{name} is not used")));
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_language_has_the_same_messages() {
    let english = catalogue(&std::fs::read_to_string(root("locales/en.ftl")).unwrap());
    let all = files("locales", ".ftl");
    assert_eq!(all.len(), LANGUAGES.len(), "a file for each language that is served");
    let tag = Regex::new(r"</?([a-z]+)[^<>]*>").unwrap();
    for (place, text) in all {
        let parsed = FluentResource::try_new(text.clone()).map_err(|(_, faults)| faults);
        assert!(parsed.is_ok(), "{place}: {:?}", parsed.err());
        assert_eq!(catalogue(&text), english, "{place}");
        for found in tag.captures_iter(&text) {
            assert!(["a", "b", "code", "span", "sup"].contains(&&found[1]), "{place}: the tag {}", &found[0]);
        }
    }
}

/// What a template may show without a message: signs and numbers.
fn is_sign(c: char) -> bool {
    c.is_whitespace() || c.is_ascii_digit() || "—·/:×,.()$%=+-−".contains(c)
}

/// The text between tags and the values of attributes that readers see or hear.
fn visible(template: &str) -> Vec<String> {
    let code = Regex::new(r"(?s)\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}").unwrap();
    let attribute = Regex::new(r#"(?s)\s(?:aria-label|title|alt|placeholder|content|data-label|data-copied|label)="([^"]*)""#).unwrap();
    let tag = Regex::new(r"(?s)<[^<>]*>").unwrap();
    let meta = Regex::new(r#"<meta name="(?:viewport|color-scheme|robots)"[^<>]*>|<meta property="og:type"[^<>]*>"#).unwrap();
    // A sign that is no text stands for each expression, so that tags stay whole.
    let plain = meta.replace_all(template, "").into_owned();
    let plain = code.replace_all(&plain, "·").into_owned();
    let attributes = attribute.captures_iter(&plain).map(|found| found[1].to_owned());
    let all: Vec<String> = attributes.chain([tag.replace_all(&plain, " ").into_owned()]).collect();
    all
}

#[test]
fn templates_hold_no_text_of_their_own() {
    let mut faults = Vec::new();
    for (place, template) in files("templates", ".html") {
        for text in visible(&template) {
            let words: Vec<&str> = text.split(is_sign).filter(|word| !word.is_empty()).collect();
            faults.extend(words.iter().map(|word| format!("{place}: `{word}`")));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn a_text_in_a_template_is_seen() {
    let seen = |template: &str| visible(template).iter().any(|text| text.chars().any(|c| !is_sign(c)));
    assert!(seen("<p>Hello</p>") && seen("<a aria-label=\"Close\">×</a>") && seen("{{ t.text(\"x\") }} and"));
    assert!(!seen("<p class=\"note\">{{ t.text(\"x\") }} · {% if a < b %}—{% endif %}</p><a href=\"/en/runs\">{{ name }}</a>"));
}

#[test]
fn figures_are_written_as_the_language_writes_them() {
    let t = Messages::of(&LANGUAGES[0]);
    assert_eq!((t.figure(Some(8169.04), 1), t.figure(None, 1), t.figure(Some(f64::NAN), 0)), ("8,169.0".into(), "—".into(), "—".into()));
    assert_eq!((t.count(Some(0)), t.count(Some(589_824)), t.count(None)), ("0".into(), "589,824".into(), "—".into()));
    let contexts = [0, 500, 1_024, 16_384, 17_700, 253_952, 1_024_000_000].map(|tokens| t.context(tokens));
    assert_eq!(contexts, ["0", "500", "1K", "16K", "17.3K", "248K", "1,000,000K"]);
    assert_eq!(t.money(Money::usd_micros(1_234_567_890_000)), "1,234,567.89");
    assert_eq!((t.digits("-1234.5"), t.digits("cheap")), ("−1,234.5".into(), "cheap".into()));
    assert_eq!(t.with("machines", &[("count", 1_u64.into())]), "1 machine");
    assert_eq!(t.with("machines", &[("count", 12_345_u64.into())]), "12,345 machines");
    let rich = t.rich("error-request-id", &[("id", "<b>&\"'".into())]);
    assert!(rich.contains("<code>&#60;b&#62;&#38;&#34;&#39;</code>"), "{rich}");
}
