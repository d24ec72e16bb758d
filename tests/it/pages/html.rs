//! What every page's HTML promises, checked on its text: tags closed in order, ids once, references to ids that are there, headings in steps,
//! nothing inline, nothing from elsewhere.

use std::collections::BTreeSet;

/// A tag as it stands: its name, whether it closes, its attributes.
struct Tag<'a> {
    name: &'a str,
    is_end: bool,
    is_empty: bool,
    attributes: Vec<(&'a str, &'a str)>,
}

impl Tag<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// Elements without an end.
const VOID: [&str; 6] = ["meta", "link", "br", "input", "hr", "img"];

fn tags(html: &str) -> Vec<Tag<'_>> {
    html.split('<')
        .skip(1)
        .filter(|part| !part.starts_with('!'))
        .map(|part| tag(part.split_once('>').map_or(part, |(tag, _)| tag)))
        .collect()
}

fn tag(text: &str) -> Tag<'_> {
    let (text, is_end) = text.strip_prefix('/').map_or((text, false), |rest| (rest, true));
    let (text, closes) = text.strip_suffix('/').map_or((text, false), |rest| (rest, true));
    let (name, mut rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let mut attributes = Vec::new();
    while !rest.trim().is_empty() {
        rest = rest.trim_start();
        let end = rest.find(['=', ' ', '\n']).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        rest = match after.strip_prefix("=\"") {
            Some(value) => {
                let (value, after) = value.split_once('"').unwrap_or((value, ""));
                attributes.push((key, value));
                after
            }
            None => {
                attributes.push((key, ""));
                after.trim_start_matches('=')
            }
        };
    }
    Tag { name, is_end, is_empty: closes || VOID.contains(&name), attributes }
}

/// The ids of a page.
pub fn ids(html: &str) -> BTreeSet<&str> {
    tags(html).iter().flat_map(|tag| tag.attributes.iter()).filter(|(name, _)| *name == "id").map(|(_, value)| *value).collect()
}

/// Addresses that links lead to.
pub fn links(html: &str) -> Vec<String> {
    let anchors = tags(html);
    let anchors = anchors.iter().filter(|tag| tag.name == "a");
    anchors.filter_map(|tag| tag.get("href")).map(|href| href.replace("&#38;", "&").replace("&amp;", "&")).collect()
}

/// Panics with what is wrong with a page.
pub fn assert_sound(path: &str, html: &str) {
    let tags = tags(html);
    let mut faults = nesting_faults(&tags);
    faults.extend(id_faults(&tags));
    faults.extend(heading_faults(&tags));
    faults.extend(inline_faults(&tags));
    faults.extend(control_faults(&tags));
    assert!(html.starts_with("<!doctype html>\n<html lang=\"en\">"), "{path}");
    assert!(faults.is_empty(), "{path}:\n{}", faults.join("\n"));
}

fn nesting_faults(tags: &[Tag<'_>]) -> Vec<String> {
    let mut open = Vec::new();
    let mut faults = Vec::new();
    for tag in tags.iter().filter(|tag| !tag.is_empty) {
        if !tag.is_end {
            open.push(tag.name);
        } else if open.pop() != Some(tag.name) {
            faults.push(format!("</{}> closes nothing", tag.name));
            return faults;
        }
    }
    faults.extend(open.iter().map(|name| format!("<{name}> stays open")));
    faults
}

fn id_faults(tags: &[Tag<'_>]) -> Vec<String> {
    let mut ids = BTreeSet::new();
    let mut faults = Vec::new();
    for tag in tags.iter().filter(|tag| !tag.is_end) {
        if let Some(id) = tag.get("id")
            && !ids.insert(id)
        {
            faults.push(format!("the id {id} stands twice"));
        }
    }
    let references = ["for", "form", "list", "popovertarget", "aria-labelledby", "aria-describedby", "data-copy"];
    for tag in tags {
        for name in references {
            let missing = tag.get(name).into_iter().flat_map(str::split_whitespace).filter(|id| !ids.contains(id));
            faults.extend(missing.map(|id| format!("{name}=\"{id}\" leads nowhere")));
        }
        if let Some(id) = tag.get("href").and_then(|href| href.strip_prefix('#'))
            && !ids.contains(id)
        {
            faults.push(format!("#{id} leads nowhere"));
        }
    }
    faults
}

/// One first heading, and no step left out on the way down.
fn heading_faults(tags: &[Tag<'_>]) -> Vec<String> {
    let level = |tag: &Tag<'_>| tag.name.strip_prefix('h').and_then(|level| level.parse::<u8>().ok());
    let levels: Vec<u8> = tags.iter().filter(|tag| !tag.is_end).filter_map(level).collect();
    let mut faults: Vec<String> =
        levels.windows(2).filter(|pair| pair[1] > pair[0] + 1).map(|pair| format!("h{} follows h{}", pair[1], pair[0])).collect();
    if levels.iter().filter(|level| **level == 1).count() != 1 || levels.first() != Some(&1) {
        faults.push(format!("headings {levels:?}"));
    }
    faults
}

fn inline_faults(tags: &[Tag<'_>]) -> Vec<String> {
    let mut faults = Vec::new();
    for tag in tags.iter().filter(|tag| !tag.is_end) {
        let events = tag.attributes.iter().filter(|(name, _)| *name == "style" || name.starts_with("on"));
        faults.extend(events.map(|(name, _)| format!("<{} {name}>", tag.name)));
        if tag.name == "style" || (tag.name == "script" && !tag.get("src").is_some_and(|src| src.starts_with("/assets/"))) {
            faults.push(format!("an inline {}", tag.name));
        }
        let is_canonical = tag.get("rel") == Some("canonical");
        let loads = ["href", "src", "action"].iter().filter_map(|name| tag.get(name)).filter(|_| !is_canonical);
        let foreign = loads.filter(|to| !(to.starts_with('#') || (to.starts_with('/') && !to.starts_with("//"))));
        faults.extend(foreign.map(|to| format!("<{}> leads to {to}", tag.name)));
    }
    faults
}

/// Every control has a label, every picture its text, every scroll region a name and the keyboard.
fn control_faults(tags: &[Tag<'_>]) -> Vec<String> {
    let labelled: BTreeSet<&str> = tags.iter().filter(|tag| tag.name == "label").filter_map(|tag| tag.get("for")).collect();
    let mut faults = Vec::new();
    for tag in tags.iter().filter(|tag| !tag.is_end) {
        let is_seen = tag.name == "input" && !["checkbox", "hidden"].contains(&tag.get("type").unwrap_or_default());
        let is_control = tag.name == "select" || tag.name == "textarea" || is_seen;
        if is_control && !tag.get("id").is_some_and(|id| labelled.contains(id)) {
            faults.push(format!("<{} name={:?}> has no label", tag.name, tag.get("name")));
        }
        if tag.name == "svg" && tag.get("aria-hidden").is_none() && tag.get("role") != Some("img") {
            faults.push("a picture is neither hidden nor named".to_owned());
        }
        let is_region = tag.get("class").is_some_and(|class| class.split(' ').any(|one| one == "scroll"));
        let is_named = tag.get("aria-labelledby").or(tag.get("aria-label")).is_some() && tag.get("tabindex") == Some("0");
        if is_region && !is_named {
            faults.push("a scroll region without a name or out of the keyboard's reach".to_owned());
        }
    }
    faults
}

#[test]
fn faults_are_seen() {
    let faults = |html: &str| {
        let tags = tags(html);
        let all = [nesting_faults(&tags), id_faults(&tags), heading_faults(&tags), inline_faults(&tags), control_faults(&tags)];
        all.iter().map(Vec::len).collect::<Vec<_>>()
    };
    assert_eq!(faults("<h1>a</h1><p id=\"x\"><a href=\"#x\">b</a><br></p>"), [0, 0, 0, 0, 0]);
    assert_eq!(faults("<h1>a<p></h1></p><h3 id=\"x\" style=\"y\"></h3><i id=\"x\" aria-labelledby=\"z\"></i>"), [1, 2, 1, 1, 0]);
    assert_eq!(faults("<h1></h1><script>x</script><a href=\"//x\"></a><svg/><input name=\"a\" onclick=\"b\">"), [0, 0, 0, 3, 2]);
}
