//! The machine: what the document saw of it against what is claimed.
//!
//! The list of a plain document is of the machine the *client* ran on, so a difference is an error only where client and server shared a
//! machine: the server's address was a loopback, or a wrapper on the server made the list (evidence.md 1.1).

use super::{Finding, Severity};
use crate::base::units::MIB_PER_GIB;
use crate::benchmarks::claim::ClaimedHardware;
use crate::benchmarks::document::Document;
use crate::benchmarks::verdict::{HardwareUnseen, SeenHardware};
use crate::catalog::{Catalog, HardwareKind, HardwareMatch, HardwareModel};

/// Tools round, drivers keep a part, error correction takes a sixteenth.
const MEMORY_TOLERANCE: f64 = 0.07;
/// Used memory is sampled and rounded apart from the total.
const MEMORY_ROOM: f64 = 1.01;

pub(crate) fn check(document: &Document, claimed: Option<&ClaimedHardware>, unseen: HardwareUnseen) -> Vec<Finding> {
    let seen = &document.hardware;
    let mut findings = Vec::new();
    if seen.gpus.is_empty() && seen.gpu_count.is_none() && seen.vram_total_mib.is_none() {
        let severity = match unseen {
            HardwareUnseen::Note => Severity::Note,
            HardwareUnseen::Suspicious => Severity::Suspicious,
        };
        findings.push(Finding::new("hardware_unseen", severity, "The document shows no GPU, so the hardware is the uploader's word."));
    }
    findings.extend(telemetry(document));
    let Some(claimed) = claimed else { return findings };
    let plain = if document.server_is_local { Severity::Error } else { Severity::Suspicious };
    let contradiction = if document.wrapper.is_some() && !seen.gpus.is_empty() { Severity::Error } else { plain };
    let model = claimed_model(claimed, &mut findings);
    findings.extend(count(seen, claimed, contradiction));
    findings.extend(names(seen, claimed, model, contradiction));
    findings.extend(memory(seen, claimed, model, contradiction));
    findings.extend(claim_itself(claimed, model));
    findings.extend(driver(seen, claimed));
    findings
}

/// Telemetry of one machine agrees with itself, and with the list of its GPUs.
fn telemetry(document: &Document) -> Option<Finding> {
    let listed = document.hardware.gpus.len();
    let cells = || document.cells.iter().map(|cell| cell.telemetry);
    let counts: std::collections::BTreeSet<u64> = cells().filter_map(|t| t.gpu_count.map(f64::to_bits)).collect();
    let counted = cells().find_map(|t| t.gpu_count);
    let list_differs = u32::try_from(listed).is_ok_and(|listed| listed > 0 && counted.is_some_and(|count| count != f64::from(listed)));
    let over = |used: Option<f64>, most: Option<f64>| used.zip(most).is_some_and(|(used, most)| used > most * MEMORY_ROOM);
    let impossible = cells().any(|t| over(t.vram_used_max_mib, t.vram_total_mib) || t.gpu_util_max_pct.is_some_and(|share| share > 100.0));
    (counts.len() > 1 || list_differs || impossible).then(|| {
        let message = "The telemetry of the cells contradicts itself or the list of GPUs.";
        Finding::suspicious("telemetry_inconsistent", message)
    })
}

fn claimed_model(claimed: &ClaimedHardware, findings: &mut Vec<Finding>) -> Option<&'static HardwareModel> {
    match Catalog::builtin().resolve_hardware(&claimed.gpu, claimed.vram_gib) {
        HardwareMatch::One(model) => Some(model),
        HardwareMatch::Ambiguous(_) => {
            findings.push(Finding::note("hardware_ambiguous", "The claimed hardware fits more than one model of the catalog."));
            None
        }
        HardwareMatch::Unknown => {
            findings.push(Finding::note("hardware_unknown", "The claimed hardware is not in the catalog."));
            None
        }
    }
}

fn count(seen: &SeenHardware, claimed: &ClaimedHardware, contradiction: Severity) -> Option<Finding> {
    let listed = u32::try_from(seen.gpus.len()).ok().filter(|n| *n > 0);
    let found = listed.or(seen.gpu_count)?;
    let stated = claimed.gpu_count.unwrap_or(1);
    if found == stated {
        return None;
    }
    // More GPUs than claimed may simply not have been used; fewer cannot have been.
    let severity = if found < stated { contradiction } else { Severity::Suspicious };
    let message = "The document shows another number of GPUs than is claimed.";
    Some(Finding::new("gpu_count_differs", severity, message).values(stated, found))
}

fn names(seen: &SeenHardware, claimed: &ClaimedHardware, model: Option<&HardwareModel>, contradiction: Severity) -> Option<Finding> {
    if seen.gpus.is_empty() {
        return None;
    }
    let model = model?;
    let mut unknown = false;
    let mut matches = 0;
    let mut other = None;
    for gpu in &seen.gpus {
        let gib = gpu.memory_mib.map(|mib| mib / MIB_PER_GIB);
        match Catalog::builtin().resolve_hardware(&gpu.name, gib) {
            HardwareMatch::One(found) if found.slug == model.slug => matches += 1,
            HardwareMatch::Ambiguous(candidates) if candidates.iter().any(|candidate| candidate.slug == model.slug) => matches += 1,
            HardwareMatch::One(_) | HardwareMatch::Ambiguous(_) => other = Some(gpu.name.clone()),
            HardwareMatch::Unknown => unknown = true,
        }
    }
    match other {
        Some(other) => {
            let severity = if matches > 0 { Severity::Suspicious } else { contradiction };
            let message = "The document shows another GPU than is claimed.";
            Some(Finding::new("gpu_differs", severity, message).values(&claimed.gpu, other))
        }
        None => unknown.then(|| Finding::note("hardware_unknown", "A GPU of the document is not in the catalog.")),
    }
}

/// Memory per GPU or of all together, whichever the parties mean: only a value that fits neither way differs.
fn memory(seen: &SeenHardware, claimed: &ClaimedHardware, model: Option<&HardwareModel>, contradiction: Severity) -> Option<Finding> {
    let found_count = f64::from(u32::try_from(seen.gpus.len()).ok().filter(|n| *n > 0).or(seen.gpu_count).unwrap_or(1));
    let each = seen.gpus.iter().filter_map(|gpu| gpu.memory_mib).next();
    let found: Vec<f64> = match (each, seen.vram_total_mib) {
        (Some(each), _) => vec![each],
        (None, Some(total)) => vec![total, total / found_count],
        (None, None) => return None,
    };
    let stated_count = f64::from(claimed.gpu_count.unwrap_or(1).max(1));
    let fits_claim = |mib: &f64| {
        claimed
            .vram_gib
            .is_none_or(|gib| [gib, gib / stated_count].iter().any(|gib| (mib - gib * MIB_PER_GIB).abs() <= MEMORY_TOLERANCE * mib))
    };
    let fits_model = |mib: &f64| model.is_none_or(|model| model.memory_fits_mib(*mib) != Some(false));
    if found.iter().any(|mib| fits_claim(mib) && fits_model(mib)) {
        return None;
    }
    let expected = claimed.vram_gib.map_or_else(|| claimed.gpu.clone(), |gib| format!("{gib} GiB"));
    let observed = found.first().map(|mib| format!("{:.1} GiB", mib / MIB_PER_GIB)).unwrap_or_default();
    let message = "The document shows another amount of GPU memory than is claimed.";
    Some(Finding::new("gpu_memory_differs", contradiction, message).values(expected, observed))
}

/// A claim can contradict the catalog by itself: a part with a memory it was never made with, or no GPU at all under a GPU's kind.
fn claim_itself(claimed: &ClaimedHardware, model: Option<&HardwareModel>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some(model) = model else { return findings };
    let count = f64::from(claimed.gpu_count.unwrap_or(1).max(1));
    if let Some(gib) = claimed.vram_gib
        && [gib, gib / count].iter().all(|gib| model.memory_fits_mib(gib * MIB_PER_GIB) == Some(false))
    {
        let message = "The claimed hardware is not made with the claimed memory.";
        findings.push(Finding::suspicious("gpu_memory_differs", message).values(&model.name, format!("{gib} GiB")));
    }
    if model.kind == HardwareKind::Cpu && claimed.kind.as_deref().is_some_and(|kind| kind != "cpu") {
        findings.push(Finding::suspicious("not_a_gpu", "The claimed hardware is no GPU.").values("a GPU", &model.name));
    }
    findings
}

fn driver(seen: &SeenHardware, claimed: &ClaimedHardware) -> Option<Finding> {
    let (seen, claimed) = (seen.driver.as_deref()?, claimed.driver.as_deref()?);
    (!seen.is_empty() && seen != claimed.trim()).then(|| {
        let message = "The document shows another driver version than is claimed.";
        Finding::note("driver_differs", message).values(claimed, seen)
    })
}
