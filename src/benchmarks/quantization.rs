//! Quantizations: a closed list of slugs, each with the spellings that mean the same, and verbatim others that equal only themselves
//! (design.md, Decisions). A spelling never decides between two slugs: what is not on the list stays verbatim.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// (slug, name shown, other spellings). Spellings are compared folded: lower case, letters and digits only.
const KNOWN: &[(&str, &str, &[&str])] = &[
    ("fp32", "FP32", &["float32", "f32"]),
    ("fp16", "FP16", &["float16", "half", "f16"]),
    ("bf16", "BF16", &["bfloat16"]),
    ("fp8", "FP8", &["float8", "fp8_e4m3", "fp8-dynamic", "e4m3", "w8a8-fp8"]),
    ("int8", "INT8", &["w8a8", "w8a8-int8", "8-bit"]),
    ("int4", "INT4", &["w4a16", "4-bit"]),
    ("awq-4bit", "AWQ 4-bit", &["awq", "awq-int4", "awq4", "awq-marlin", "int4-awq", "4-bit awq", "w4a16-awq"]),
    ("awq-8bit", "AWQ 8-bit", &["awq-int8", "awq8"]),
    ("gptq-4bit", "GPTQ 4-bit", &["gptq", "gptq-int4", "gptq4", "gptq-marlin", "int4-gptq", "4-bit gptq"]),
    ("gptq-8bit", "GPTQ 8-bit", &["gptq-int8", "gptq8"]),
    ("nvfp4", "NVFP4", &["nv-fp4", "modelopt-fp4", "modelopt_nvfp4"]),
    ("mxfp4", "MXFP4", &["mx-fp4"]),
    ("mxfp8", "MXFP8", &["mx-fp8"]),
    ("bnb-4bit", "bitsandbytes 4-bit", &["bitsandbytes-4bit", "bnb4", "nf4", "bnb-nf4"]),
    ("bnb-8bit", "bitsandbytes 8-bit", &["bitsandbytes-8bit", "bnb8"]),
    ("exl2-4bpw", "EXL2 4.0 bpw", &["exl2 4.0bpw", "exl2-4.0"]),
    ("mlx-4bit", "MLX 4-bit", &["mlx4", "mlx-q4"]),
    ("mlx-8bit", "MLX 8-bit", &["mlx8", "mlx-q8"]),
    ("q2_k", "Q2_K", &[]),
    ("q3_k_s", "Q3_K_S", &[]),
    ("q3_k_m", "Q3_K_M", &[]),
    ("q3_k_l", "Q3_K_L", &[]),
    ("q4_0", "Q4_0", &[]),
    ("q4_1", "Q4_1", &[]),
    ("q4_k_s", "Q4_K_S", &[]),
    ("q4_k_m", "Q4_K_M", &["gguf q4_k_m"]),
    ("q5_0", "Q5_0", &[]),
    ("q5_1", "Q5_1", &[]),
    ("q5_k_s", "Q5_K_S", &[]),
    ("q5_k_m", "Q5_K_M", &["gguf q5_k_m"]),
    ("q6_k", "Q6_K", &["gguf q6_k"]),
    ("q8_0", "Q8_0", &["gguf q8_0"]),
    ("iq2_xs", "IQ2_XS", &[]),
    ("iq3_xs", "IQ3_XS", &[]),
    ("iq4_xs", "IQ4_XS", &[]),
    ("iq4_nl", "IQ4_NL", &[]),
];

/// A quantization: two are equal when their slugs are.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Quantization {
    slug: String,
}

impl Quantization {
    /// Reads any spelling: `AWQ 4-bit` and `awq_4bit` are `awq-4bit`; an unknown one is kept verbatim, trimmed.
    pub fn parse(text: &str) -> Self {
        let folded = fold(text);
        let known = KNOWN.iter().find(|(slug, name, others)| {
            !folded.is_empty() && (fold(slug) == folded || fold(name) == folded || others.iter().any(|other| fold(other) == folded))
        });
        let slug = known.map_or_else(|| text.trim().to_owned(), |(slug, ..)| (*slug).to_owned());
        Self { slug }
    }

    /// The slug of the closed list, or the verbatim text.
    pub fn as_str(&self) -> &str {
        &self.slug
    }

    /// Whether it is on the closed list.
    pub fn is_known(&self) -> bool {
        self.known().is_some()
    }

    /// How a page writes it: `AWQ 4-bit`.
    pub fn name(&self) -> &str {
        self.known().map_or(&self.slug, |(_, name, _)| name)
    }

    /// Every slug of the closed list, for a form or a filter.
    pub fn known_slugs() -> impl Iterator<Item = &'static str> {
        KNOWN.iter().map(|(slug, ..)| *slug)
    }

    fn known(&self) -> Option<&'static (&'static str, &'static str, &'static [&'static str])> {
        KNOWN.iter().find(|(slug, ..)| *slug == self.slug)
    }
}

/// Spellings of KV cache types that mean the same, after the first.
const KV_CACHE_SAME: [&[&str]; 4] =
    [&["fp16", "float16", "f16", "half"], &["bf16", "bfloat16"], &["fp32", "float32", "f32"], &["fp8", "fp8_e4m3"]];
const KV_CACHE_NAME_CHARS_MAX: usize = 40;

/// A KV cache type in one spelling; none for `auto`, which is the engine's own choice.
pub fn kv_cache_name(text: &str) -> Option<String> {
    let lower: String = text.trim().to_lowercase().chars().take(KV_CACHE_NAME_CHARS_MAX).collect();
    let same = KV_CACHE_SAME.iter().find(|names| names.contains(&lower.as_str())).and_then(|names| names.first());
    Some(same.map_or(lower, |name| (*name).to_owned())).filter(|name| !name.is_empty() && name != "auto")
}

/// The KV cache type that a launch command names: of vLLM and SGLang, or of llama.cpp, whose keys and values may differ (`q8_0/q4_0`).
pub fn kv_cache_of_command(command: &str) -> Option<String> {
    // Comments are not options.
    let words: Vec<&str> = command
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| line.split([' ', '=', '\t']))
        .filter(|word| !word.is_empty())
        .collect();
    let value = |names: &[&str]| words.iter().position(|word| names.contains(word)).and_then(|at| words.get(at + 1)).copied();
    if let Some(whole) = value(&["--kv-cache-dtype"]) {
        return kv_cache_name(whole);
    }
    let keys = value(&["--cache-type-k", "-ctk"]).and_then(kv_cache_name);
    let values = value(&["--cache-type-v", "-ctv"]).and_then(kv_cache_name);
    match (keys, values) {
        (None, None) => None,
        (Some(keys), Some(values)) if keys == values => Some(keys),
        // llama.cpp keeps in 16 bits what nothing else was said of.
        (keys, values) => Some(format!("{}/{}", keys.as_deref().unwrap_or("fp16"), values.as_deref().unwrap_or("fp16"))),
    }
}

fn fold(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || !c.is_ascii()).flat_map(char::to_lowercase).collect()
}

impl fmt::Display for Quantization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.slug)
    }
}
impl Serialize for Quantization {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.slug)
    }
}
impl<'de> Deserialize<'de> for Quantization {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::parse(&std::borrow::Cow::<str>::deserialize(deserializer)?))
    }
}
