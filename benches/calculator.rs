//! The decode calculator's error on the genuine matrices: `cargo bench --bench calculator`.
//!
//! Reads `tests/documents`, and the public documents beside the repository where they are. A goal that is missed is printed, not failed.

use std::path::{Path, PathBuf};

use rigmark::benchmarks::calculator::{Genuine, KvFormat, Setup, Weights, evaluate};
use rigmark::benchmarks::{AssessContext, Claim, Quantization, assess};
use rigmark::catalog::Catalog;

/// (file, machine, stand-in, speculation, (hardware, GPUs, model, quantization, KV format)).
///
/// Public documents name neither hardware count nor format. Theirs: nvidia-smi's list in the GLM-5 documents; the same owner's rig for
/// Qwen3.5, with AWQ from the served name. GLM-5's is 8 bits by its KV budget: 4-bit weights would leave room for several times as much.
type Known = (&'static str, u32, &'static str, &'static str, &'static str);
const DOCUMENTS: &[(&str, &str, bool, bool, Option<Known>)] = &[
    ("reference-run.json", "3090", false, false, Some(("rtx-3090", 1, "nemotron-cascade-2-30b-a3b", "awq-4bit", "int4_per_token_head"))),
    ("public_v0417_glm5-dcp1.json", "glm-5", false, false, Some(("rtx-pro-6000-blackwell-server", 8, "glm-5", "fp8", "fp8"))),
    ("public_v0417_glm5-dcp4-mtp1.json", "glm-5", false, true, Some(("rtx-pro-6000-blackwell-server", 8, "glm-5", "fp8", "fp8"))),
    ("public_v0417_glm5-dcp8-mtp1_one-cell.json", "glm-5", false, true, Some(("rtx-pro-6000-blackwell-server", 8, "glm-5", "fp8", "fp8"))),
    (
        "public_v03_qwen3.5-397b-awq-mtp.json",
        "qwen",
        false,
        true,
        Some(("rtx-pro-6000-blackwell-server", 8, "qwen3-5-397b-a17b", "awq-4bit", "fp16")),
    ),
    (
        "public_unversioned_qwen3.5-awq_c0.json",
        "qwen",
        false,
        true,
        Some(("rtx-pro-6000-blackwell-server", 8, "qwen3-5-397b-a17b", "awq-4bit", "fp16")),
    ),
    // A model made by a script, on two cores that others used too: no row of the catalog.
    ("real_llamacpp_cpu.json", "cpu", false, false, None),
    ("v04_all_valid.json", "stand-in", true, false, None),
    ("v04_queued.json", "stand-in", true, false, None),
    ("v04_over_capacity.json", "stand-in", true, false, None),
    ("v04_kv_unknown_queued.json", "stand-in", true, false, None),
    ("v04_burst.json", "stand-in", true, false, None),
    ("v04_error_drop.json", "stand-in", true, false, None),
    ("v04_no_metrics.json", "stand-in", true, false, None),
    ("v04_spec_multi_token.json", "stand-in", true, true, None),
];

fn setup((hardware, gpu_count, model, quantization, kv): Known) -> Option<Setup<'static>> {
    let catalog = Catalog::builtin();
    let (hardware, model) = (catalog.hardware(hardware)?, catalog.model(model)?);
    let weights = Weights::of(model, &Quantization::parse(quantization))?;
    Some(Setup { hardware, gpu_count, memory_gib: None, model, weights, kv: KvFormat::parse(kv)? })
}

fn find(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["tests/documents", "../shared/runs", "../shared/runs-public", "../../shared/runs", "../../shared/runs-public"];
    places.iter().map(|place| root.join(place).join(name)).find(|path| path.is_file())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut matrices = Vec::new();
    for (name, machine, simulated, speculative, known) in DOCUMENTS {
        let Some(path) = find(name) else {
            println!("skipped: {name} is not here (public documents lie beside the repository, ../shared/runs-public)");
            continue;
        };
        let run = assess(&std::fs::read(path)?, &Claim::default(), &AssessContext::default())
            .map_err(|fault| format!("{name} cannot be read: {fault:?}"))?;
        matrices.push(Genuine {
            name: (*name).to_owned(),
            machine: (*machine).to_owned(),
            simulated: *simulated,
            speculative: *speculative,
            matrix: run.matrix,
            setup: known.and_then(setup),
        });
    }
    print!("{}", evaluate(&matrices));
    Ok(())
}
