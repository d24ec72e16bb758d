//! Model names and repository ids.

use proptest::prelude::*;
use rigmark::catalog::{Catalog, ModelMatch, NAME_CHARS_MAX};

fn resolved(name: &str) -> String {
    match Catalog::builtin().resolve_model(name) {
        ModelMatch::One(row) => row.slug.clone(),
        ModelMatch::Ambiguous(rows) => format!("? {}", rows.iter().map(|row| row.slug.as_str()).collect::<Vec<_>>().join(" ")),
        ModelMatch::Unknown => "-".to_owned(),
    }
}

#[test]
fn names_and_repositories() {
    for (name, wanted) in [
        ("nvidia/Nemotron-Cascade-2-30B-A3B", "nemotron-cascade-2-30b-a3b"),
        ("Nemotron-Cascade-2-30B-A3B", "nemotron-cascade-2-30b-a3b"),
        ("nemotron cascade 2 30b a3b", "nemotron-cascade-2-30b-a3b"),
        ("cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit", "nemotron-cascade-2-30b-a3b"),
        ("CYANKIWI/nemotron-cascade-2-30b-a3b-awq-4bit", "nemotron-cascade-2-30b-a3b"),
        ("https://huggingface.co/cyankiwi/Nemotron-Cascade-2-30B-A3B-AWQ-4bit", "nemotron-cascade-2-30b-a3b"),
        ("somebody/Nemotron-Cascade-2-30B-A3B-GPTQ-Int4", "nemotron-cascade-2-30b-a3b"),
        ("somebody/Nemotron-Cascade-2-30B-A3B-NVFP4", "nemotron-cascade-2-30b-a3b"),
        ("bartowski/Qwen_Qwen3-32B-GGUF", "qwen3-32b"),
        ("bartowski/Other_Qwen3-32B-GGUF", "-"),
        ("unsloth/Qwen3-32B-GGUF", "qwen3-32b"),
        ("hf.co/unsloth/Qwen3-32B-GGUF:Q4_K_M", "qwen3-32b"),
        ("Qwen3-32B-UD-Q4_K_XL.gguf", "qwen3-32b"),
        ("qwen3-32b-iq4_xs", "qwen3-32b"),
        ("qwen3:32b", "qwen3-32b"),
        ("turboderp/Qwen3-32B-exl3-4.0bpw", "qwen3-32b"),
        ("RedHatAI/Qwen3-32B-quantized.w4a16", "qwen3-32b"),
        ("RedHatAI/Qwen3-32B-FP8-dynamic", "qwen3-32b"),
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b"),
        ("mlx-community/Qwen3-32B-4bit", "qwen3-32b"),
        ("somebody/Qwen3-32B-abliterated", "-"),
        ("somebody/Qwen3-32B-abliterated-AWQ", "-"),
        ("somebody/Qwen3-32", "-"),
        ("Qwen3", "-"),
        ("Qwen3-30B-A3B", "qwen3-30b-a3b"),
        ("Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b-instruct-2507"),
        ("somebody/NVIDIA-Nemotron-3-Nano-30B-A3B-AWQ-4bit", "nvidia-nemotron-3-nano-30b-a3b-bf16"),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-NVFP4", "nvidia-nemotron-3-nano-30b-a3b-bf16"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3-1-8b"),
        ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "llama-3-1-70b"),
        ("gpt-oss-20b", "gpt-oss-20b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("glm-4.5", "glm-4-5"),
        ("zai-org/GLM-4.5-Air", "glm-4-5-air"),
        ("bench", "-"),
        ("", "-"),
        ("/", "-"),
        ("gguf", "-"),
        ("/models/Qwen/Qwen3-32B", "-"),
        ("../../Qwen3-32B", "-"),
    ] {
        assert_eq!(resolved(name), wanted, "{name:?}");
    }
    assert_eq!(resolved(&format!("Qwen3-32B{}", "-AWQ".repeat(NAME_CHARS_MAX))), "-");
}

#[test]
fn every_spelling_means_its_row() {
    let catalog = Catalog::builtin();
    for row in catalog.models() {
        for spelling in [&row.slug, &row.hf_id, &row.name].into_iter().chain(&row.aliases) {
            assert_eq!(catalog.resolve_model(spelling).one(), Some(row), "{spelling:?}");
        }
    }
    for repo in catalog.model_repos() {
        assert_eq!(resolved(&repo.repo), repo.model_slug, "{}", repo.repo);
        assert_eq!(catalog.model_repo(&repo.repo.to_uppercase()), Some(repo));
    }
}

proptest! {
    /// Uploads by others in a known quantization are their base, and with any other ending they are not.
    #[test]
    fn endings(index in 0..138_usize, ending in "(AWQ|AWQ-4bit|GPTQ-Int4|FP8|NVFP4|GGUF|4bit|w4a16|Q4_K_M|Q8_0|IQ3_XXS)", word in "(abliterated|ft|distill|merge|chat2|x)") {
        let row = &Catalog::builtin().models()[index];
        prop_assert_eq!(resolved(&format!("uploader-x/{}-{ending}", row.name)), row.slug.clone());
        prop_assert_eq!(resolved(&format!("uploader-x/{}-{word}-{ending}", row.name)), "-");
    }

    #[test]
    fn any_text_is_answered(name in "\\PC{0,250}") {
        if let ModelMatch::Ambiguous(rows) = Catalog::builtin().resolve_model(&name) {
            prop_assert!(rows.len() > 1);
        }
    }
}
