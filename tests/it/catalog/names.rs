//! Hardware names: the tables of cases 18, 19 and E3, and properties over every spelling of the CSV.

use std::time::Duration;

use proptest::prelude::*;
use rigmark::base::clock::monotonic;
use rigmark::catalog::{Catalog, HardwareMatch, NAME_CHARS_MAX};

/// The slug, or `?` and the candidates' slugs, or `-`.
fn resolved(name: &str, memory_gib: Option<f64>) -> String {
    match Catalog::builtin().resolve_hardware(name, memory_gib) {
        HardwareMatch::One(row) => row.slug.clone(),
        HardwareMatch::Ambiguous(rows) => format!("? {}", rows.iter().map(|row| row.slug.as_str()).collect::<Vec<_>>().join(" ")),
        HardwareMatch::Unknown => "-".to_owned(),
    }
}

fn assert_names(table: &[(&str, Option<f64>, &str)]) {
    let wrong: Vec<String> = table
        .iter()
        .map(|(name, memory, wanted)| (name, memory, wanted, resolved(name, *memory)))
        .filter(|(_, _, wanted, got)| got != *wanted)
        .map(|(name, memory, wanted, got)| format!("{name:?} {memory:?}: {got}, wanted {wanted}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

const RTX_PRO_6000: &str = "? rtx-pro-6000-blackwell-workstation rtx-pro-6000-blackwell-max-q rtx-pro-6000-blackwell-server";

#[test]
fn spellings_of_one_card_are_one_row() {
    for name in [
        "RTX 3090",
        "rtx-3090",
        "RTX_3090",
        "rtx3090",
        "NVIDIA GeForce RTX 3090",
        "geforce rtx 3090",
        "  RTX   3090 ",
        "3090",
        "RTX 3090 24GB",
        "rtx 3090 24 GB",
        "RTX 3090 24 GiB",
        "RTX 3090 24576MiB",
        "NVIDIA® GeForce RTX™ 3090",
        "NVIDIA(R) GeForce(TM) RTX 3090",
        "ＲＴＸ　３０９０",
        "RTX\u{a0}3090",
        "RTX\u{200b}3090",
        "3090 RTX",
        "nvidiageforcertx3090",
        "NVIDIA_GeForce_RTX_3090",
        "RTX 3090 Graphics Card",
    ] {
        assert_eq!(resolved(name, None), "rtx-3090", "{name:?}");
    }
    for name in ["RTX 3060 Ti", "3060ti", "3060 Ti", "rtx3060ti", "RTX3060 Ti", "RTX 3060Ti", "rtx-3060-ti", "NVIDIA GeForce RTX 3060 Ti"] {
        assert_eq!(resolved(name, None), "rtx-3060-ti", "{name:?}");
    }
}

#[test]
fn names_that_are_almost_the_same_stay_apart() {
    assert_names(&[
        ("RTX 3090", None, "rtx-3090"),
        ("RTX 3090 Ti", None, "rtx-3090-ti"),
        ("RTX 4070 Ti SUPER", None, "rtx-4070-ti-super"),
        ("rtx4070tisuper", None, "rtx-4070-ti-super"),
        ("4070 super ti", None, "rtx-4070-ti-super"),
        ("RTX 4090 D", None, "rtx-4090-d"),
        ("rtx4090d", None, "rtx-4090-d"),
        ("RTX 5090 D V2", None, "rtx-5090-d-v2"),
        ("RTX 4090 Laptop", None, "rtx-4090-laptop"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None, "rtx-4090-laptop"),
        ("RTX 4050", None, "-"),
        ("RX 7900 XT", None, "rx-7900-xt"),
        ("RX 7900 XTX", None, "rx-7900-xtx"),
        ("RX 7900", None, "-"),
        ("7900m", None, "rx-7900m"),
        ("L40", None, "l40"),
        ("L40S", None, "l40s"),
        ("L 40S", None, "l40s"),
        ("A10", None, "a10"),
        ("A10G", None, "a10g"),
        ("A100", None, "? a100-pcie-40gb a100-sxm4-40gb a100-pcie-80gb a100-sxm4-80gb"),
        ("GTX 3090", None, "-"),
        ("AMD RTX 3090", None, "-"),
        ("RTX 2080 with Max-Q Design", None, "-"),
        ("Radeon VII", None, "radeon-vii"),
        ("Radeon Pro VII", None, "radeon-pro-vii"),
        ("TITAN", None, "-"),
        ("Quadro 6000", None, "-"),
        ("T4", None, "t4"),
        ("Tesla T4", None, "t4"),
        ("W6800", None, "radeon-pro-w6800"),
        ("AMD Instinct MI300X OAM", None, "instinct-mi300x"),
    ]);
}

#[test]
fn the_6000s() {
    let all = format!("? quadro-rtx-6000 rtx-6000-ada {}", &RTX_PRO_6000[2..]);
    assert_names(&[
        ("RTX 6000", None, &all),
        ("rtx-6000", None, &all),
        ("rtx6000", None, &all),
        ("NVIDIA RTX 6000", None, &all),
        ("RTX 6000", Some(24.0), "quadro-rtx-6000"),
        ("RTX 6000", Some(48.0), "rtx-6000-ada"),
        ("RTX 6000", Some(96.0), RTX_PRO_6000),
        ("RTX 6000 48GB", None, "rtx-6000-ada"),
        ("Quadro RTX 6000", None, "quadro-rtx-6000"),
        ("RTX 6000 Ada", None, "rtx-6000-ada"),
        ("6000 Ada", None, "rtx-6000-ada"),
        ("NVIDIA RTX 6000 Ada Generation", None, "rtx-6000-ada"),
        ("A6000", None, "rtx-a6000"),
        ("RTX A6000", None, "rtx-a6000"),
        ("rtxa6000", None, "rtx-a6000"),
        ("A6000 Ada", None, "-"),
        ("RTX PRO 6000", None, RTX_PRO_6000),
        ("RTX 6000 Pro", None, RTX_PRO_6000),
        ("PRO 6000", None, RTX_PRO_6000),
        ("rtxpro6000", None, RTX_PRO_6000),
        ("RTX PRO 6000 Blackwell", None, RTX_PRO_6000),
        ("RTX PRO 6000 Blackwell 96GB", None, RTX_PRO_6000),
        ("RTX PRO 6000 Server", None, "rtx-pro-6000-blackwell-server"),
        ("RTX PRO 6000 Max-Q", None, "rtx-pro-6000-blackwell-max-q"),
        ("RTX PRO 6000 WS", None, "rtx-pro-6000-blackwell-workstation"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", None, "rtx-pro-6000-blackwell-server"),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", None, "rtx-pro-6000-blackwell-workstation"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", Some(95.6), "rtx-pro-6000-blackwell-max-q"),
    ]);
}

#[test]
fn form_factors_are_distinct_and_the_bare_name_is_ambiguous() {
    let h100 = "? h100-pcie-80gb h100-sxm5-80gb h100-nvl-94gb";
    assert_names(&[
        ("H100", None, h100),
        ("NVIDIA H100", None, h100),
        ("H100 80GB", None, "? h100-pcie-80gb h100-sxm5-80gb"),
        ("H100", Some(79.6), "? h100-pcie-80gb h100-sxm5-80gb"),
        ("H100", Some(94.0), "h100-nvl-94gb"),
        ("H100 PCIe", None, "h100-pcie-80gb"),
        ("h100pcie", None, "h100-pcie-80gb"),
        ("H100 SXM", None, "h100-sxm5-80gb"),
        ("H100 SXM5", None, "h100-sxm5-80gb"),
        ("NVIDIA H100 80GB HBM3", None, "h100-sxm5-80gb"),
        ("H100 NVL", None, "h100-nvl-94gb"),
        ("H200", None, "? h200-sxm-141gb h200-nvl-141gb"),
        ("NVIDIA H200", None, "h200-sxm-141gb"),
        ("NVIDIA H200 NVL", None, "h200-nvl-141gb"),
        ("A100 SXM 80GB", None, "a100-sxm4-80gb"),
        ("A100-SXM4-80GB", None, "a100-sxm4-80gb"),
        ("NVIDIA A100 80GB PCIe", None, "a100-pcie-80gb"),
        ("A100 80GB", None, "? a100-pcie-80gb a100-sxm4-80gb"),
        ("V100", Some(32.0), "? v100-pcie-32gb v100-sxm2-32gb"),
        ("Tesla V100-SXM2-16GB", None, "v100-sxm2-16gb"),
        ("B200 192GB", None, "b200"),
        ("NVIDIA GH200 480GB", None, "gh200-96gb"),
        ("NVIDIA GH200 144G HBM3e", None, "gh200-144gb"),
        ("GH200", None, "? gh200-96gb gh200-144gb"),
    ]);
}

#[test]
fn memory_chooses_between_rows_of_one_name() {
    assert_names(&[
        ("RTX 3080", None, "? rtx-3080-10gb rtx-3080-12gb"),
        ("RTX 3080", Some(10.0), "rtx-3080-10gb"),
        ("RTX 3080", Some(12.0), "rtx-3080-12gb"),
        ("NVIDIA GeForce RTX 3080", Some(12288.0 / 1024.0), "rtx-3080-12gb"),
        ("RTX 3080 12GB", None, "rtx-3080-12gb"),
        ("RTX 3080-12GB", Some(10.0), "rtx-3080-12gb"),
        ("RTX 3080", Some(20.0), "? rtx-3080-10gb rtx-3080-12gb"),
        ("RTX 3080 20GB", None, "-"),
        ("RTX 3090", Some(12.0), "rtx-3090"),
        ("RTX 3090 48GB", None, "-"),
        ("NVIDIA GeForce RTX 4090", Some(24564.0 / 1024.0), "rtx-4090"),
        ("RTX 4060 Ti", Some(16380.0 / 1024.0), "rtx-4060-ti-16gb"),
        ("4060 Ti", Some(8.0), "rtx-4060-ti-8gb"),
        ("RTX 2060", None, "? rtx-2060 rtx-2060-12gb"),
        ("rtx-2060", None, "rtx-2060"),
        ("rtx-2060", Some(12.0), "rtx-2060-12gb"),
        ("NVIDIA RTX A2000", None, "rtx-a2000-6gb"),
        ("A2000", None, "? rtx-a2000-6gb rtx-a2000-12gb"),
        ("Intel(R) Arc(TM) A770 Graphics", Some(15.9), "arc-a770-16gb"),
        ("Radeon RX 9060 XT", Some(16.0), "rx-9060-xt-16gb"),
        ("RTX 3080", Some(f64::NAN), "? rtx-3080-10gb rtx-3080-12gb"),
        ("RTX 3080", Some(f64::INFINITY), "? rtx-3080-10gb rtx-3080-12gb"),
        ("RTX 3080", Some(-10.0), "? rtx-3080-10gb rtx-3080-12gb"),
    ]);
}

#[test]
fn unofficial_swaps_only_when_said() {
    assert_names(&[
        ("RTX 4090", None, "rtx-4090"),
        ("RTX 4090", Some(24.0), "rtx-4090"),
        ("RTX 4090", Some(12.0), "rtx-4090"),
        ("RTX 4090", Some(48.0), "rtx-4090-48gb-mod"),
        ("NVIDIA GeForce RTX 4090", Some(49140.0 / 1024.0), "rtx-4090-48gb-mod"),
        ("RTX 4090 48GB", None, "rtx-4090-48gb-mod"),
        ("RTX 4090 mod", None, "rtx-4090-48gb-mod"),
        ("RTX 4090 24GB", Some(48.0), "rtx-4090"),
        ("RTX 2080 Ti", None, "rtx-2080-ti"),
        ("RTX 2080 Ti 22GB", None, "rtx-2080-ti-22gb-mod"),
    ]);
}

#[test]
fn unified_memory() {
    assert_names(&[
        ("NVIDIA GB10", None, "gb10"),
        ("NVIDIA GB10", Some(0.0), "gb10"),
        ("NVIDIA GB10", Some(119.6), "gb10"),
        ("DGX Spark", None, "gb10"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", None, "? strix-halo-395 strix-halo-395-64gb"),
        ("AMD RYZEN AI MAX+ 395 w/ Radeon 8060S", Some(124.9), "strix-halo-395"),
        ("AMD Ryzen AI Max+ 395", Some(62.4), "strix-halo-395-64gb"),
        ("Strix Halo 128GB", None, "strix-halo-395"),
        ("Framework Desktop 64GB", None, "strix-halo-395-64gb"),
        ("Apple M1", None, "apple-m1"),
        ("Apple M1 Pro", None, "apple-m1-pro"),
        ("M4 Pro", None, "apple-m4-pro"),
        ("Apple M3 Max", None, "? apple-m3-max-30c apple-m3-max-40c"),
        ("Apple M3 Max (40-core GPU)", None, "apple-m3-max-40c"),
        ("Apple M3 Max 16-core CPU 40-core GPU", None, "apple-m3-max-40c"),
        ("Apple M3 Max", Some(128.0), "apple-m3-max-40c"),
        ("Apple M4 Max 64GB", None, "apple-m4-max-40c"),
        ("Apple M4 Max", Some(36.0), "? apple-m4-max-32c apple-m4-max-40c"),
        ("Apple M3 Ultra 512GB", None, "apple-m3-ultra-80c"),
        ("Apple M1 (7-core GPU)", None, "-"),
        ("Jetson AGX Orin", None, "? jetson-agx-orin-64gb jetson-agx-orin-32gb"),
        ("Jetson AGX Orin", Some(61.3), "jetson-agx-orin-64gb"),
    ]);
    for name in ["NVIDIA GB10", "Apple M4 Max 64GB", "Strix Halo 128GB"] {
        let row = Catalog::builtin().resolve_hardware(name, None).one().unwrap();
        assert!(row.unified && row.memory_gib.is_some(), "{name}");
    }
}

#[test]
fn what_is_no_name_is_unknown() {
    for name in [
        "",
        " ",
        "gpu",
        "NVIDIA",
        "NVIDIA GeForce",
        "RTX",
        "rtx 0",
        "24GB",
        "H",
        "PCIe",
        "ada",
        "max",
        "pro",
        "core",
        "3",
        "\0",
        "RTX 3090\0Ti x",
        "8x H100 SXM5",
    ] {
        assert_eq!(resolved(name, None), "-", "{name:?}");
    }
    assert_eq!(resolved(&format!("RTX 3090{}", " ".repeat(NAME_CHARS_MAX)), None), "-");
}

#[test]
fn hostile_names_cost_little() {
    let started = monotonic();
    for text in ["ﷺ", "\u{301}", "nvidia", "rtx ", "1", "gb ", "((r)", "max q ", "\u{10ffff}"] {
        for name in [text.repeat(NAME_CHARS_MAX), text.repeat(1_000_000)] {
            assert_eq!(resolved(&name, None), "-");
        }
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

/// Every spelling in the CSV means its row, or says that it could.
#[test]
fn every_spelling_means_its_row() {
    let catalog = Catalog::builtin();
    for row in catalog.hardware_models() {
        assert_eq!(catalog.resolve_hardware(&row.slug, None).one(), Some(row), "{}", row.slug);
        for spelling in std::iter::once(&row.name).chain(&row.aliases) {
            let candidates = catalog.resolve_hardware(spelling, row.memory_gib).candidates();
            assert!(candidates.contains(&row), "{spelling:?} of {}: {candidates:?}", row.slug);
            let without = catalog.resolve_hardware(spelling, None).candidates();
            assert!(without.contains(&row) || (row.unofficial && !without.is_empty()), "{spelling:?} of {}: {without:?}", row.slug);
        }
        let named = catalog.resolve_hardware(&row.name, row.memory_gib).candidates();
        assert!(named.len() == 1 || row.slug.starts_with("apple-"), "{}: {named:?}", row.name);
    }
}

/// Written with other separators, in another case or in full-width letters, a name means the same.
fn disguised(name: &str, separators: &[u8], upper: bool, wide: bool) -> String {
    let mut gaps = separators.iter().cycle();
    let text: String = name
        .chars()
        .map(|c| match (c, gaps.next()) {
            (' ', Some(0)) => '_',
            (' ', Some(1)) => '-',
            (' ', Some(2)) => '\u{a0}',
            (c, _) if wide && c.is_ascii_alphanumeric() => char::from_u32(u32::from(c) + 0xfee0).unwrap(),
            (c, _) => c,
        })
        .collect();
    if upper { text.to_uppercase() } else { text.to_lowercase() }
}

proptest! {
    #[test]
    fn disguises_do_not_matter(index in 0..286_usize, separators in prop::collection::vec(0..4_u8, 8), upper: bool, wide: bool) {
        let row = &Catalog::builtin().hardware_models()[index];
        for name in std::iter::once(&row.name).chain(&row.aliases) {
            // A slug is exact by intent, so a spelling that becomes one means less than before.
            let disguise = disguised(name, &separators, upper, wide);
            let is_slug = Catalog::builtin().hardware(&disguise.to_lowercase()).is_some();
            if !is_slug && Catalog::builtin().hardware(&name.to_lowercase()).is_none() {
                prop_assert_eq!(resolved(name, None), resolved(&disguise, None), "{}", disguise);
            }
        }
    }

    #[test]
    fn any_text_is_answered(name in "\\PC{0,250}", memory in prop::option::of(any::<f64>())) {
        if let HardwareMatch::Ambiguous(rows) = Catalog::builtin().resolve_hardware(&name, memory) {
            prop_assert!(rows.len() > 1);
        }
    }

    /// Another word never leaves a name meaning a single row that the shorter name could not mean.
    #[test]
    fn a_longer_name_means_no_more(index in 0..286_usize, extra in "(ti|super|xt|laptop|ada|pro|sxm5|pcie|d|s|max|ultra|mini)") {
        let row = &Catalog::builtin().hardware_models()[index];
        let longer = Catalog::builtin().resolve_hardware(&format!("{} {extra}", row.name), None);
        if let HardwareMatch::One(found) = longer && found.slug != row.slug {
            let spelled = [&found.slug, &found.name].into_iter().chain(&found.aliases).any(|text| text.to_lowercase().contains(&extra));
            prop_assert!(spelled, "{} {} gave {}", row.name, extra, found.slug);
        }
    }
}
