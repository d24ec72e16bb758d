//! Claims and quantizations: bounded, and one meaning for each spelling.

use rigmark::benchmarks::{Claim, Quantization};
use serde_json::json;

use super::reference_claim;

#[test]
fn spellings_of_one_quantization_are_equal_and_others_are_not() {
    for (spelling, slug) in [
        ("AWQ 4-bit", "awq-4bit"),
        ("awq_4bit", "awq-4bit"),
        ("AWQ", "awq-4bit"),
        ("GPTQ-Int4", "gptq-4bit"),
        ("bfloat16", "bf16"),
        ("Q4_K_M", "q4_k_m"),
        ("q4km", "q4_k_m"),
        ("NVFP4", "nvfp4"),
        ("W8A8", "int8"),
        ("  mxfp4 ", "mxfp4"),
        ("my own 3.7-bit", "my own 3.7-bit"),
        ("", ""),
    ] {
        assert_eq!(Quantization::parse(spelling).as_str(), slug, "{spelling:?}");
    }
    assert_ne!(Quantization::parse("q4_k_m"), Quantization::parse("q4_k_s"));
    assert_ne!(Quantization::parse("My Own"), Quantization::parse("my own"), "verbatim others equal only themselves");
    assert_eq!(Quantization::parse("awq-4bit").name(), "AWQ 4-bit");
    assert_eq!(Quantization::parse("my own").name(), "my own");
    for slug in Quantization::known_slugs() {
        let known = Quantization::parse(slug);
        assert_eq!((known.as_str(), known.is_known()), (slug, true));
        assert_eq!(Quantization::parse(known.name()).as_str(), slug);
    }
    assert!(
        ["fp16", "bf16", "fp8", "int8", "awq-4bit", "gptq-4bit", "nvfp4", "mxfp4", "q4_k_m"]
            .iter()
            .all(|slug| Quantization::known_slugs().any(|known| known == *slug))
    );
}

#[test]
fn a_claim_is_bounded() {
    assert_eq!(reference_claim().faults(), []);
    let claim: Claim = serde_json::from_value(json!({
        "hardware": {"gpu": " ", "gpu_count": 0, "vram_gib": -1, "cpu": "x".repeat(201), "other": {"ignored": true}},
        "model": {"hf_id": ""},
        "engine": {"name": "y".repeat(300)},
        "launch_command": "z".repeat(8_001),
        "comment": 7,
    }))
    .unwrap();
    let faults: Vec<(String, String)> = claim.faults().into_iter().map(|fault| (fault.pointer, fault.code.into_owned())).collect();
    let expected = [
        ("/hardware/gpu", "required"),
        ("/hardware/cpu", "too_long"),
        ("/hardware/gpu_count", "out_of_range"),
        ("/hardware/vram_gib", "out_of_range"),
        ("/model/hf_id", "required"),
        ("/engine/name", "too_long"),
        ("/launch_command", "too_long"),
    ];
    assert_eq!(faults, expected.map(|(pointer, code)| (pointer.to_owned(), code.to_owned())));
    assert_eq!(reference_claim().quantization(), Some(Quantization::parse("awq-4bit")));
}
