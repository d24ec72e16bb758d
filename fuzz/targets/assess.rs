//! From bytes to a verdict. A verdict is that of its redacted copy, so that anyone can repeat it.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use rigmark::benchmarks::{AssessContext, Assessment, Claim, ClaimedHardware, ClaimedModel, Unreadable, assess};
use rigmark_fuzz::{Bounded, json as mutated, within};

#[global_allocator]
static BOUNDED: Bounded = Bounded;

/// The bound of a whole upload: the tree's 256 MiB and its copies. Longer inputs than these are for `json`.
const BYTES_MAX: usize = 768 << 20;

fn judged(bytes: &[u8], claim: &Claim) -> Result<Assessment, Unreadable> {
    within(BYTES_MAX, || assess(bytes, claim, &AssessContext::default()))
}

fuzz_target!(|data: &[u8]| {
    let hardware = ClaimedHardware { gpu: "RTX 3090".to_owned(), gpu_count: Some(1), ..ClaimedHardware::default() };
    let model = ClaimedModel { hf_id: "Qwen/Qwen3-30B-A3B".to_owned(), revision: None, quantization: Some("awq-4bit".to_owned()) };
    let claim = Claim { hardware: Some(hardware), model: Some(model), ..Claim::default() };
    for claim in [Claim::default(), claim] {
        let Ok(first) = judged(data, &claim) else { return };
        let second = judged(&first.redacted, &claim).expect("a redacted copy cannot be read");
        assert_eq!(first.document_sha256, second.document_sha256, "a redacted copy is redacted further");
        assert_eq!(first.verdict, second.verdict, "{:#?}\n{:#?}", first.findings, second.findings);
        assert_eq!(first.findings, second.findings);
        assert_eq!(serde_json::to_value(&first.matrix).ok(), serde_json::to_value(&second.matrix).ok());
        assert!(serde_json::to_string(&first.matrix).is_ok() && serde_json::to_string(&first.findings).is_ok());
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    match mutated(&data[..size], max_size, seed / 8).filter(|_| !seed.is_multiple_of(8)) {
        Some(changed) => {
            data[..changed.len()].copy_from_slice(&changed);
            changed.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});
