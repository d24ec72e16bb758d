//! The claimed model and engine against what the document shows of them (evidence.md D, *smaller or other model under the name*).
//!
//! A served name is free text, so only names that the catalog knows contradict each other.

use super::Finding;
use crate::benchmarks::claim::Claim;
use crate::benchmarks::document::Document;
use crate::catalog::{Catalog, Model, ModelMatch};

/// Engines that the tool recognises by what they answer, and names that an uploader gives engines.
const SEEN_ENGINES: &[&str] = &["vllm", "sglang"];
const NAMED_ENGINES: &[&str] =
    &["vllm", "sglang", "llama.cpp", "llamacpp", "ollama", "lmstudio", "lm studio", "tensorrt-llm", "trtllm", "mlx", "tgi"];

pub(crate) fn check(document: &Document, claim: &Claim) -> Vec<Finding> {
    [model(document, claim), engine(document, claim)].into_iter().flatten().collect()
}

fn known(name: &str) -> Option<&'static Model> {
    match Catalog::builtin().resolve_model(name) {
        ModelMatch::One(model) => Some(model),
        ModelMatch::Ambiguous(_) | ModelMatch::Unknown => None,
    }
}

fn model(document: &Document, claim: &Claim) -> Option<Finding> {
    let claimed = known(&claim.model.as_ref()?.hf_id)?;
    let root = document.wrapper.as_ref().and_then(|wrapper| wrapper.served_model_root.as_deref());
    let shown = [root, document.metadata.model.as_deref()].into_iter().flatten().filter_map(known);
    let other = shown.into_iter().find(|shown| shown.slug != claimed.slug)?;
    let message = "The document names another model than is claimed.";
    Some(Finding::suspicious("model_differs", message).values(&claimed.name, &other.name))
}

fn engine(document: &Document, claim: &Claim) -> Option<Finding> {
    let claimed = claim.engine.as_ref().map(|engine| engine.name.trim().to_lowercase())?;
    let shown = document.metadata.engine.as_deref().filter(|engine| SEEN_ENGINES.contains(engine))?;
    (NAMED_ENGINES.contains(&claimed.as_str()) && claimed != shown).then(|| {
        let message = "The document shows another engine than is claimed.";
        Finding::suspicious("engine_differs", message).values(&claimed, shown)
    })
}
