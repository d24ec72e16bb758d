//! The strict JSON reader: what it takes it writes again as itself, and what a body is read as stands where the body says.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use rigmark::benchmarks::{document::read_envelope, document::unpack, json};
use rigmark_fuzz::{Bounded, json as mutated, within};

#[global_allocator]
static BOUNDED: Bounded = Bounded;

/// gzip may unpack to 64 MiB, in a buffer that doubles.
const UNPACKING_BYTES: usize = 256 << 20;
const FIXED_BYTES: usize = 16 << 20;
/// The smallest text of an entry, `"":{},`, is a map in the tree.
const TREE_BYTES_PER_BYTE: usize = 256;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = within(UNPACKING_BYTES, || unpack(data)) else { return };
    within(FIXED_BYTES + text.len().saturating_mul(TREE_BYTES_PER_BYTE), || {
        if let Ok(value) = json::parse(&text) {
            let canonical = json::canonical_bytes(&value);
            let again = json::parse(&canonical).expect("what was written cannot be read");
            assert_eq!(json::canonical_bytes(&again), canonical, "the same value is written in two ways");
        }
        if let Ok(envelope) = read_envelope(&text) {
            let part = text.get(envelope.document_span).expect("the document stands outside the body");
            let alone = json::parse_with_span(part, None, json::DEPTH_MAX + 1).expect("the document cannot be read by itself").value;
            assert_eq!(alone, envelope.document, "the document is another one by itself");
        }
    });
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match mutated(&data[..size], max_size, seed / 2).filter(|_| seed.is_multiple_of(2)) {
        Some(changed) => {
            data[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});
