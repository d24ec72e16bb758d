//! Lists and suggestions by the beginnings of words.

use rigmark::catalog::{Catalog, HardwareFilter, HardwareKind, ModelFilter};

fn hardware(q: &str) -> Vec<&'static str> {
    Catalog::builtin().search_hardware(HardwareFilter { q, ..HardwareFilter::default() }).iter().map(|row| row.slug.as_str()).collect()
}

fn models(q: &str) -> Vec<&'static str> {
    Catalog::builtin().search_models(ModelFilter { q, publisher: None }).iter().map(|row| row.slug.as_str()).collect()
}

#[test]
fn a_whole_name_lists_the_rows_of_that_name_alone() {
    assert_eq!(hardware("RTX 3090"), ["rtx-3090"]);
    assert_eq!(hardware("3060ti"), ["rtx-3060-ti"]);
    assert_eq!(hardware("RTX 4090"), ["rtx-4090"]);
    assert_eq!(hardware("RTX 6000").len(), 5);
}

#[test]
fn every_word_must_begin_a_word_of_the_row() {
    assert_eq!(hardware("rtx 309"), ["rtx-3090", "rtx-3090-ti"]);
    assert_eq!(hardware("309 nvid"), ["rtx-3090", "rtx-3090-ti"]);
    assert!(hardware("tx 309").is_empty() && hardware("rtx 309 amd").is_empty() && hardware("090").is_empty());
    assert_eq!(hardware("").len(), Catalog::builtin().hardware_models().len());
    assert!(hardware("!?").is_empty() && hardware(&"a".repeat(100_000)).is_empty());
    let apple = hardware("apple");
    assert!(apple.contains(&"apple-m1") && apple.iter().all(|slug| slug.starts_with("apple-")));
}

#[test]
fn vendor_and_kind_narrow() {
    let list = |vendor, kind| Catalog::builtin().search_hardware(HardwareFilter { q: "", vendor, kind });
    assert!(list(Some("nvidia"), None).iter().all(|row| row.vendor == "NVIDIA"));
    assert!(list(None, Some(HardwareKind::Cpu)).iter().all(|row| row.vendor == "generic"));
    assert!(list(Some("Apple"), Some(HardwareKind::DiscreteGpu)).is_empty());
    assert_eq!(HardwareKind::ALL.iter().map(|kind| list(None, Some(*kind)).len()).sum::<usize>(), list(None, None).len());
}

#[test]
fn suggestions_rank_the_exact_name_first_and_leave_out_swaps() {
    let suggest = |typed, limit| {
        let rows = Catalog::builtin().suggest_hardware(typed, limit);
        rows.iter().map(|row| row.slug.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(suggest("RTX 3090", 10), ["rtx-3090", "rtx-3090-ti"]);
    assert_eq!(suggest("rtx 4090", 10), ["rtx-4090", "rtx-4090-d", "rtx-4090-laptop"]);
    assert_eq!(suggest("rtx", 3).len(), 3);
    let models: Vec<_> = Catalog::builtin().suggest_models("qwen3 32b", 5).iter().map(|row| row.slug.as_str()).collect();
    assert_eq!(models, ["qwen3-32b", "qwen3-vl-32b-instruct"]);
}

#[test]
fn models_by_words_and_publisher() {
    assert_eq!(models("Qwen3-32B").first(), Some(&"qwen3-32b"));
    assert_eq!(models("nemotron casc"), ["nemotron-cascade-2-30b-a3b"]);
    assert!(models("cyankiwi").contains(&"nemotron-cascade-2-30b-a3b"));
    let nvidia = Catalog::builtin().search_models(ModelFilter { q: "", publisher: Some("NVIDIA") });
    assert!(!nvidia.is_empty() && nvidia.iter().all(|row| row.publisher == "nvidia"));
}
