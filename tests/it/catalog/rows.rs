//! The embedded rows themselves, and whether a reported memory is a row's.

use std::collections::{BTreeSet, HashSet};

use rigmark::catalog::{Catalog, HardwareKind};

#[test]
fn the_embedded_files_parse() {
    let catalog = Catalog::checked().unwrap();
    assert_eq!((catalog.hardware_models().len(), catalog.models().len(), catalog.model_repos().len()), (286, 138, 230));
    let row = catalog.hardware("rtx-3090").unwrap();
    assert_eq!((row.name.as_str(), row.vendor.as_str(), row.kind), ("RTX 3090", "NVIDIA", HardwareKind::DiscreteGpu));
    assert_eq!(
        (row.memory_gib, row.bandwidth_gb_s, row.fp16_dense_tflops, row.reported_mib),
        (Some(24.0), Some(936.2), Some(142.3), Some(24_576))
    );
    assert_eq!(row.fp8_dense_tflops, None, "blank is unknown, not zero");
    let model = catalog.model("nemotron-cascade-2-30b-a3b").unwrap();
    assert_eq!((model.publisher.as_str(), model.kv_heads, model.attention_layers), ("nvidia", 2, 6));
    let repo = catalog.model_repo("cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit").unwrap();
    assert_eq!(repo.total_bytes, Some(20_767_782_252));
    assert!(catalog.hardware("RTX-3090").is_none() && catalog.model("").is_none());
}

/// A renamed column would otherwise read as blank.
#[test]
fn the_columns_are_the_fields() {
    let catalog = Catalog::builtin();
    let fields = |row: serde_json::Value| row.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    let columns = |csv: &str| csv.lines().next().unwrap().split(',').map(str::to_owned).collect::<BTreeSet<_>>();
    let mut hardware = columns(include_str!("../../../data/gpus.csv"));
    hardware.extend(["unified".to_owned(), "unofficial".to_owned()]);
    assert_eq!(fields(serde_json::to_value(&catalog.hardware_models()[0]).unwrap()), hardware);
    assert_eq!(fields(serde_json::to_value(&catalog.models()[0]).unwrap()), columns(include_str!("../../../data/models.csv")));
    assert_eq!(fields(serde_json::to_value(&catalog.model_repos()[0]).unwrap()), columns(include_str!("../../../data/model_repos.csv")));
}

#[test]
fn slugs_are_handles_and_figures_are_possible() {
    let catalog = Catalog::builtin();
    let slugs = catalog.hardware_models().iter().map(|row| &row.slug).chain(catalog.models().iter().map(|row| &row.slug));
    let publishers = catalog.publishers().iter().map(|row| &row.slug);
    let mut seen = HashSet::new();
    for slug in slugs.chain(publishers) {
        assert!(
            slug.split('-').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())),
            "{slug}"
        );
        assert!(seen.insert(slug), "{slug} names two things");
    }
    for row in catalog.hardware_models() {
        let figures = [row.memory_gib, row.bandwidth_gb_s, row.fp16_dense_tflops, row.bf16_dense_tflops, row.fp32_tflops];
        assert!(figures.into_iter().flatten().all(|figure| figure.is_finite() && figure > 0.0), "{}", row.slug);
        assert!(row.reported_mib.is_none_or(|mib| row.memory_fits_mib(f64::from(mib)) == Some(true)), "{}", row.slug);
        assert_eq!(row.unified, matches!(row.kind, HardwareKind::UnifiedMemory | HardwareKind::IntegratedGpu), "{}", row.slug);
    }
    for row in catalog.models() {
        assert!(row.active_params_b <= row.total_params_b && row.active_params_no_embedding_b <= row.active_params_b, "{}", row.slug);
        assert!(row.attention_layers <= row.layers && row.max_context > 0, "{}", row.slug);
    }
    assert_eq!(catalog.publishers().iter().map(|row| row.model_count).sum::<usize>(), catalog.models().len());
}

#[test]
fn reported_memory() {
    for (slug, mib, fits) in [
        ("rtx-4090", 24_564.0, Some(true)),
        ("rtx-4090", 24_576.0, Some(true)),
        ("rtx-4090", 49_140.0, Some(false)),
        ("rtx-4090", 16_376.0, Some(false)),
        ("rtx-4090", 0.0, None),
        ("rtx-4090", f64::NAN, None),
        ("rtx-3080-10gb", 12_288.0, Some(false)),
        ("h100-sxm5-80gb", 81_559.0, Some(true)),
        ("h100-sxm5-80gb", 24_064.0, Some(false)),
        ("rtx-a6000", 46_068.0, Some(true)),
        ("t4", 15_360.0, Some(true)),
        ("l20", 46_068.0, Some(true)),
        ("b300", 275_040.0, Some(true)),
        ("gb10", 122_570.0, Some(true)),
        ("apple-m4-max-40c", 49_152.0, Some(true)),
        ("apple-m1", 131_072.0, Some(false)),
        ("cpu-ddr5-2ch-6000", 65_536.0, None),
    ] {
        assert_eq!(Catalog::builtin().hardware(slug).unwrap().memory_fits_mib(mib), fits, "{slug} {mib}");
    }
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let fault = |hardware: &str, models: &str, repos: &str| Catalog::parse(hardware, models, repos).unwrap_err();
    let hardware = include_str!("../../../data/gpus.csv");
    let models = include_str!("../../../data/models.csv");
    let head = hardware.lines().next().unwrap();
    let row = hardware.lines().nth(1).unwrap();
    assert!(fault(&format!("{head}\n{row}\n{row}\n"), models, "").contains("stands there twice"));
    assert!(fault(&format!("{head}\n{}\n", row.replace("discrete_gpu", "toaster")), models, "").starts_with("gpus.csv: "));
    let orphan = "repo,model_slug,weight_format,kv_cache_format,total_bytes,source\na/b,no-such,,,,\n";
    assert!(fault(hardware, models, orphan).contains("belongs to no model"));
}
