//! Changes one value of a JSON text. Bytes changed at random rarely leave JSON, and most of what is worth trying lies behind the parser.

use serde_json::{Map, Value, json};

/// Numbers at which code that counts goes wrong.
const NUMBERS: &[f64] = &[
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-9, -1e-9, 1e-308, 5e-324, 2.0, 128.0, 1_024.0, 4_096.0, 4_097.0, 65_536.0, 2_147_483_647.0, 2_147_483_648.0,
    4_294_967_295.0, 4_294_967_296.0, 9_007_199_254_740_992.0, 9_223_372_036_854_775_807.0, 18_446_744_073_709_551_615.0, 1e20, 1e100, 1e308, -1e308,
];
const TEXTS: &[&str] = &[
    "", " ", "0", "-1", "1e400", "NaN", "0.4.18", "99999999999999999999.0.0", "valid", "queued", "error", "\u{0}", "\u{feff}", "\u{202e}x", "é",
    "00:00:00 calibrating padding text run=abcdefghijkl", "99:99:99 x", "/home/ann/.ssh", "C:\\Users\\ann", "token=sk-abcdefghijklmnopqrstuvwxyz012345",
    "GPU-01234567-89ab-cdef-0123-456789abcdef", "[redacted]", "[loopback]", "http://ann:pw@10.0.0.1:8000/v1?key=x", "ann@example.org", "2026-11-30T12:00:00",
    "--api-key", "HF_TOKEN=hf_abcdefghijklmnop", "fe80::1%eth0", "00000000:01:00.0",
];

/// A fast generator: what it gives depends on the seed alone, so that libFuzzer can repeat a run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    /// Below `sides`; 0 when there are none.
    fn below(&mut self, sides: usize) -> usize {
        usize::try_from(self.roll() >> 11).unwrap_or(0) % sides.max(1)
    }
    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// The text with one to four of its values changed; none when `text` is no JSON or the change does not fit in `bytes_max`.
pub fn json(text: &[u8], bytes_max: usize, seed: u32) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(text).ok()?;
    let mut dice = Dice(u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..=dice.below(4) {
        let donor = copy_of_some(&value, &mut dice);
        let at = dice.below(count(&value));
        change(&mut value, &mut { at }, &donor, &mut dice);
    }
    let changed = serde_json::to_vec(&value).ok()?;
    (changed.len() <= bytes_max).then_some(changed)
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

fn copy_of_some(value: &Value, dice: &mut Dice) -> Value {
    let mut left = dice.below(count(value));
    find(value, &mut left).cloned().unwrap_or(Value::Null)
}

fn find<'a>(value: &'a Value, left: &mut usize) -> Option<&'a Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter().find_map(|item| find(item, left)),
        Value::Object(map) => map.values().find_map(|item| find(item, left)),
        _ => None,
    }
}

/// Changes the value that `left` steps lead to, in the order of the text; true when it was found.
fn change(value: &mut Value, left: &mut usize, donor: &Value, dice: &mut Dice) -> bool {
    if *left == 0 {
        replace(value, donor, dice);
        return true;
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| change(item, left, donor, dice)),
        Value::Object(map) => map.values_mut().any(|item| change(item, left, donor, dice)),
        _ => false,
    }
}

fn replace(value: &mut Value, donor: &Value, dice: &mut Dice) {
    let choice = dice.below(10);
    match value {
        _ if choice == 0 => *value = donor.clone(),
        _ if choice == 1 => *value = json!(dice.pick(NUMBERS)),
        _ if choice == 2 => *value = json!(dice.pick(TEXTS)),
        _ if choice == 3 => *value = dice.pick(&[Value::Null, json!(true), json!([]), json!({})]).clone(),
        Value::Array(items) => change_array(items, donor, dice),
        Value::Object(map) => change_object(map, donor, dice),
        Value::Number(number) => *value = change_number(number.as_f64().unwrap_or_default(), dice),
        Value::String(text) => change_text(text, dice),
        Value::Bool(flag) => *flag = !*flag,
        Value::Null => *value = json!(1),
    }
}

fn change_array(items: &mut Vec<Value>, donor: &Value, dice: &mut Dice) {
    let at = dice.below(items.len());
    match dice.below(4) {
        0 => items.insert(at, donor.clone()),
        1 if !items.is_empty() => drop(items.remove(at)),
        2 if !items.is_empty() && items.len() < 64 => items.extend(items.clone()),
        _ if !items.is_empty() => items.swap(0, at),
        _ => {}
    }
}

fn change_object(map: &mut Map<String, Value>, donor: &Value, dice: &mut Dice) {
    let keys: Vec<String> = map.keys().cloned().collect();
    let key = if keys.is_empty() { "metadata".to_owned() } else { dice.pick(&keys).clone() };
    match dice.below(4) {
        0 => drop(map.remove(&key)),
        1 => drop(map.insert(key, donor.clone())),
        2 => {
            let taken = map.remove(&key).unwrap_or(Value::Null);
            map.insert((*dice.pick(TEXTS)).to_owned(), taken);
        }
        _ => {
            let other = dice.pick(&keys.iter().chain([&key]).cloned().collect::<Vec<_>>()).clone();
            let taken = map.get(&key).cloned().unwrap_or(Value::Null);
            map.insert(other, taken);
        }
    }
}

fn change_number(number: f64, dice: &mut Dice) -> Value {
    match dice.below(6) {
        0 => json!(number + 1.0),
        1 => json!(number * 1.01),
        2 => json!(-number),
        3 => json!(number * 1_000.0),
        4 => json!(number.round()),
        _ => json!(dice.pick(NUMBERS)),
    }
}

fn change_text(text: &mut String, dice: &mut Dice) {
    let cuts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let at = *dice.pick(&cuts);
    match dice.below(4) {
        0 => text.insert_str(at, dice.pick::<&str>(TEXTS)),
        1 => text.truncate(at),
        2 => *text = text.split_off(at),
        _ if text.len() < 4_096 => *text = text.repeat(2),
        _ => text.clear(),
    }
}
