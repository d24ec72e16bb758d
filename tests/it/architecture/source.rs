//! A file of `src/` as tokens: comments, the insides of literals, and items under `#[cfg(test)]` are gone, lines are kept.

use std::fmt;
use std::path::Path as FilePath;

pub struct Source {
    /// Relative to `src`.
    pub path: String,
    /// `["ledger", "service"]` for `ledger/service.rs`, `["ledger"]` for `ledger/mod.rs`, empty for `lib.rs`.
    pub module: Vec<String>,
    pub lines: usize,
    pub begins_with_doc: bool,
    pub tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

impl Token {
    pub fn is_float(&self) -> bool {
        let text = self.text.as_str();
        text.starts_with(|c: char| c.is_ascii_digit())
            && !text.starts_with("0x")
            && text.contains(['.', 'e', 'E'])
            && !text.contains("usize")
    }
    fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }
}

/// A path as it stands in the code, use groups written out: `use a::{b, c::d}` is `a::b` and `a::c::d`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    pub segments: Vec<String>,
    pub line: usize,
}

impl Path {
    pub fn starts_with(&self, head: &[&str]) -> bool {
        self.segments.len() >= head.len() && self.segments.iter().zip(head).all(|(a, b)| a == b)
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.segments.join("::"))
    }
}

pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

/// Every file below `folder`, except files of unit tests.
pub fn all(folder: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let root = root(folder);
    walk(&root, &root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn root(folder: &str) -> std::path::PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

fn walk(root: &FilePath, folder: &FilePath, found: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            walk(root, &path, found);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(Source::read(root, path.strip_prefix(root).unwrap()));
        }
    }
}

impl Source {
    /// `path` is relative to `root`.
    fn read(root: &FilePath, path: &FilePath) -> Self {
        let text = std::fs::read_to_string(root.join(path)).unwrap();
        Self::parse(path.to_str().unwrap(), &text)
    }

    pub fn parse(path: &str, text: &str) -> Self {
        let mut module: Vec<String> = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if module.last().is_some_and(|last| last == "mod") || module == ["lib"] {
            module.pop();
        }
        let tokens = without_tests(tokenize(text));
        Self { path: path.to_owned(), module, lines: text.lines().count(), begins_with_doc: text.starts_with("//!"), tokens }
    }

    pub fn top(&self) -> &str {
        self.module.first().map_or("", String::as_str)
    }

    /// Every path of two or more segments, and every path that a `use` names.
    pub fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let continues = at > 0 && matches!(self.tokens[at - 1].text.as_str(), "::" | ".");
            if self.tokens[at].is_word() && !continues {
                at = self.path_at(at, &[], &mut found);
            } else {
                at += 1;
            }
        }
        found.retain(|path| path.segments.len() > 1);
        found
    }

    /// Reads one path, with its groups, from `at`; returns where it ends.
    fn path_at(&self, mut at: usize, head: &[String], found: &mut Vec<Path>) -> usize {
        let mut path = Path { segments: head.to_vec(), line: self.tokens.get(at).map_or(0, |token| token.line) };
        loop {
            match self.tokens.get(at) {
                Some(token) if token.is_word() => path.segments.push(token.text.clone()),
                Some(token) if token.text == "{" && !path.segments.is_empty() => return self.group_at(at + 1, &path.segments, found),
                // `use a::*`, `Vec::<u8>`, `a::$name`
                _ => break,
            }
            at += 1;
            if self.tokens.get(at).is_none_or(|token| token.text != "::") {
                break;
            }
            at += 1;
        }
        if path.segments.last().is_some_and(|last| last == "self") && path.segments.len() > 1 {
            path.segments.pop();
        }
        found.push(path);
        at
    }

    fn group_at(&self, mut at: usize, head: &[String], found: &mut Vec<Path>) -> usize {
        while let Some(token) = self.tokens.get(at) {
            at = match token.text.as_str() {
                "}" => return at + 1,
                "*" => {
                    found.push(Path { segments: head.to_vec(), line: token.line });
                    at + 1
                }
                "as" => at + 2,
                _ if token.is_word() => self.path_at(at, head, found),
                _ => at + 1,
            };
        }
        at
    }

    /// The paths into this crate, from its root: `crate::a`, `super::a` and `self::a` resolved.
    pub fn crate_paths(&self) -> Vec<Path> {
        self.paths().into_iter().filter_map(|path| self.resolve(path)).collect()
    }

    fn resolve(&self, path: Path) -> Option<Path> {
        let mut base: Vec<String> = self.module.clone();
        let mut rest = path.segments.as_slice();
        match rest[0].as_str() {
            "crate" | "rigmark" => base.clear(),
            "self" => {}
            "super" => {
                while rest.get(1).is_some_and(|segment| segment == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
                base.pop();
            }
            _ => return None,
        }
        base.extend_from_slice(&rest[1..]);
        (!base.is_empty()).then_some(Path { segments: base, line: path.line })
    }

    /// Where one of `crates` is named as a path's first segment.
    pub fn uses_of(&self, crates: &[&str]) -> Vec<String> {
        let paths = self.paths();
        let named = paths.iter().filter(|path| crates.contains(&path.segments[0].as_str()));
        named.map(|path| format!("line {}: `{path}`", path.line)).collect()
    }

    /// Where the tokens of `text` stand in a row.
    pub fn finds(&self, text: &str) -> Vec<String> {
        let wanted = tokenize(text);
        let windows = self.tokens.windows(wanted.len());
        let hits = windows.filter(|window| window.iter().zip(&wanted).all(|(a, b)| a.text == b.text));
        hits.map(|window| format!("line {}: `{text}`", window[0].line)).collect()
    }

    /// Functions with a body, from the line of `fn` to the closing brace.
    pub fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (index, pair) in self.tokens.windows(2).enumerate() {
            if pair[0].text == "fn"
                && pair[1].is_word()
                && let Some(end) = self.body_end(index)
            {
                found.push(Function { name: pair[1].text.clone(), line: pair[0].line, lines: self.tokens[end].line - pair[0].line + 1 });
            }
        }
        found
    }

    /// The closing brace of the body of the function whose `fn` is at `start`; `None` for a declaration.
    fn body_end(&self, start: usize) -> Option<usize> {
        let mut depth = 0_i32;
        let mut before = "";
        for (offset, token) in self.tokens.iter().enumerate().skip(start) {
            let text = token.text.as_str();
            match text {
                "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                ";" if depth == 0 => return None,
                // A const argument: `C<{ 1 }>`.
                "{" if matches!(before, "<" | ",") => depth += 1,
                "}" if depth > 0 => depth -= 1,
                "{" if depth == 0 => return self.matching_brace(offset),
                _ => {}
            }
            before = text;
        }
        None
    }

    fn matching_brace(&self, open: usize) -> Option<usize> {
        matching(&self.tokens, open)
    }
}

/// The brace that closes the one at `open`.
fn matching(tokens: &[Token], open: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// Cuts each item that stands under `#[cfg(test)]`.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let marked = tokens.len() - at > MARK.len() && MARK.iter().zip(&tokens[at..]).all(|(mark, token)| token.text == *mark);
        if !marked {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let stop = tokens[at..].iter().position(|token| token.text == "{" || token.text == ";").map(|offset| at + offset);
        at = match stop {
            Some(stop) if tokens[stop].text == "{" => matching(&tokens, stop).map_or(tokens.len(), |end| end + 1),
            Some(stop) => stop + 1,
            None => tokens.len(),
        };
    }
    kept
}

/// Words, numbers, `::`, and single signs. Literals of text become the one token `""`.
fn tokenize(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            block_comment(rest)
        } else if let Some(length) = text_literal(rest) {
            tokens.push(Token { text: "\"\"".to_owned(), line });
            length
        } else if first.is_alphanumeric() || first == '_' {
            let length = word(rest);
            tokens.push(Token { text: rest[..length].to_owned(), line });
            length
        } else if rest.starts_with("::") {
            tokens.push(Token { text: "::".to_owned(), line });
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(Token { text: first.to_string(), line });
            }
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

fn word(text: &str) -> usize {
    let number = text.starts_with(|c: char| c.is_ascii_digit());
    let plain = |text: &str| text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    let length = plain(text);
    // `1.5` is one number, `1..5` and `tuple.0.min()` are not.
    match text[length..].strip_prefix('.') {
        Some(fraction) if number && fraction.starts_with(|c: char| c.is_ascii_digit()) => length + 1 + plain(fraction),
        _ => length,
    }
}

fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// The length of the string, byte string or character literal that `text` begins with. `'a` alone is a lifetime.
fn text_literal(text: &str) -> Option<usize> {
    let prefix = ["br", "cr", "b", "c", "r", ""].into_iter().find(|prefix| {
        let Some(after) = text.strip_prefix(prefix) else { return false };
        let raw = prefix.ends_with('r') && after.starts_with('#') && after.trim_start_matches('#').starts_with('"');
        after.starts_with('"') || raw
    });
    if let Some(prefix) = prefix {
        let body = &text[prefix.len()..];
        if prefix.ends_with('r') {
            let hashes = body.len() - body.trim_start_matches('#').len();
            let close = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 1;
            return Some(prefix.len() + open + body[open..].find(&close)? + close.len());
        }
        return escaped_end(body, '"').map(|end| prefix.len() + end);
    }
    let body = text.strip_prefix('b').filter(|body| body.starts_with('\'')).unwrap_or(text);
    let skipped = text.len() - body.len();
    let inside = body.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    let is_character = first == '\\' || inside[first.len_utf8()..].starts_with('\'');
    if is_character { escaped_end(body, '\'').map(|end| skipped + end) } else { None }
}

/// Where a literal that begins with `quote` ends, backslashes minded.
fn escaped_end(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return Some(index + character.len_utf8()),
            _ => {}
        }
    }
    None
}
