//! Which form of an answer `Accept` asks for, where there are others than JSON.

use actix_web::{HttpRequest, http::header};

/// The type out of `others` that the client likes best; `None` for JSON, also when it likes several alike or says nothing.
pub fn liked_best<'a>(request: &HttpRequest, others: &[&'a str]) -> Option<&'a str> {
    let accepted = request.headers().get_all(header::ACCEPT).filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut best = (None, 0);
    for item in accepted {
        let mut parts = item.split(';').map(str::trim);
        let named = parts.next().unwrap_or_default().to_ascii_lowercase();
        let form = match others.iter().find(|other| **other == named) {
            Some(other) => Some(*other),
            None if matches!(named.as_str(), "application/json" | "application/*" | "*/*") => None,
            None => continue,
        };
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(1_000, thousandths);
        if weight > best.1 || (weight == best.1 && weight > 0 && form.is_none()) {
            best = (form, weight);
        }
    }
    best.0
}

/// A weight from `0` to `1` with up to three decimals, in thousandths; 0 for anything else.
fn thousandths(weight: &str) -> u16 {
    match weight.split_once('.') {
        None if weight == "1" => 1_000,
        Some(("1", decimals)) if decimals.bytes().all(|b| b == b'0') => 1_000,
        Some(("0", decimals)) if decimals.len() <= 3 => format!("{decimals:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}
