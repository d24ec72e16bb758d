//! Cursors: only what was sealed is opened, with the list it was sealed for.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigmark::web::cursor::{open_with, seal_with};
use rigmark_fuzz::{Bounded, within};
use serde_json::Value;

#[global_allocator]
static BOUNDED: Bounded = Bounded;

const ROOT: &[u8] = b"a root key of the fuzz target only";
const BYTES_MAX: usize = 8 << 20;

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let Ok(text) = str::from_utf8(rest) else { return };
    let (bound_to, position) = text.split_once('\n').unwrap_or(("", text));
    within(BYTES_MAX, || {
        assert!(open_with::<Value>(ROOT, bound_to, text).is_err(), "nobody sealed this");
        assert!(open_with::<Value>(ROOT, bound_to, position).is_err(), "nobody sealed this");
        let sealed = seal_with(ROOT, bound_to, &position).expect("a text can be sealed");
        match open_with::<String>(ROOT, bound_to, &sealed) {
            Ok(opened) => assert_eq!(opened, position),
            // A cursor this long is never made.
            Err(_) => return assert!(sealed.len() > 4_096),
        }
        assert!(open_with::<String>(ROOT, &format!("{bound_to} "), &sealed).is_err(), "another list");
        assert!(open_with::<String>(b"another root key of the fuzz target", bound_to, &sealed).is_err(), "another key");
        let mut altered = sealed.into_bytes();
        let at = usize::from(*choice) % altered.len();
        altered[at] = if altered[at] == b'A' { b'B' } else { b'A' };
        let altered = String::from_utf8(altered).expect("ASCII");
        assert!(open_with::<String>(ROOT, bound_to, &altered).is_err(), "altered at {at}");
    });
});
