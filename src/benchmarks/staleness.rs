//! Whether a machine is still what a run was measured on. Pure: each difference as half a sentence for the host and the page.
//!
//! Only what both sides say is compared: a value that one of them leaves out contradicts nothing. Documents are compared with documents and the
//! host's statements with the host's statements, since a limit that is stated may be one for all GPUs together.

use super::model::RunDetail;
use crate::measure::inspect::Identity;

const TEXT_CHARS_MAX: usize = 60;
/// nvidia-smi rounds.
const POWER_SHARE: f64 = 0.02;

/// What the host states of a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stated {
    pub driver: Option<String>,
    pub power_limit_w: Option<f64>,
}

/// What a later document of the machine shows to have changed since the older one.
pub fn by_document(old: &RunDetail, new: &RunDetail) -> Vec<String> {
    let mut changes = Vec::new();
    changes.extend(text("the driver", old.hardware_seen.driver.as_deref(), new.hardware_seen.driver.as_deref()));
    let power = |detail: &RunDetail| detail.hardware_seen.gpus.first().and_then(|gpu| gpu.power_limit_w);
    changes.extend(watts(power(old), power(new)));
    changes.extend(text("the set of GPUs", gpus(old).as_deref(), gpus(new).as_deref()));
    if engine_name(old) == engine_name(new) {
        changes.extend(version(engine_version(old), engine_version(new)));
    }
    if model(old) == model(new) {
        let revision = |detail: &RunDetail| detail.claim.model.as_ref().and_then(|model| model.revision.clone());
        changes.extend(text("the model's revision", revision(old).as_deref(), revision(new).as_deref()));
    }
    changes
}

/// What the host's statement of now contradicts in the one that the run was made with.
pub fn by_statement(run: &RunDetail, now: &Stated) -> Vec<String> {
    let hardware = run.claim.hardware.as_ref();
    let driver = hardware.and_then(|hardware| hardware.driver.as_deref()).or(run.hardware_seen.driver.as_deref());
    let mut changes = Vec::new();
    changes.extend(text("the driver", driver, now.driver.as_deref()));
    changes.extend(watts(hardware.and_then(|hardware| hardware.power_limit_w), now.power_limit_w));
    changes
}

/// What the engine says that the run contradicts. `version_seen` is what it said when it was first asked after the run.
pub fn by_engine(run: &RunDetail, version_seen: Option<&str>, engine: &Identity) -> Vec<String> {
    let mut changes = Vec::new();
    let now = Some(engine.version.as_str()).filter(|version| !version.is_empty());
    changes.extend(version(known_version(run).or(version_seen), now));
    if let Some(name) = run.run.served_model.as_deref()
        && !engine.models.is_empty()
        && engine.models.iter().all(|model| model != name)
    {
        let models: Vec<&str> = engine.models.iter().take(3).map(String::as_str).collect();
        changes.push(format!("the served model changed from {} to {}", short(name), short(&models.join(", "))));
    }
    changes
}

/// The engine's version as the document names it; the host's own words count only where it does not.
pub fn known_version(run: &RunDetail) -> Option<&str> {
    engine_version(run)
}

fn engine_version(detail: &RunDetail) -> Option<&str> {
    let claimed = detail.claim.engine.as_ref().and_then(|engine| engine.version.as_deref());
    detail.run.engine_version.as_deref().or(claimed).filter(|version| !version.is_empty())
}

fn engine_name(detail: &RunDetail) -> Option<&str> {
    detail.run.engine.as_deref().or(detail.claim.engine.as_ref().map(|engine| engine.name.as_str()))
}

fn model(detail: &RunDetail) -> Option<&str> {
    detail.claim.model.as_ref().map(|model| model.hf_id.as_str())
}

fn gpus(detail: &RunDetail) -> Option<String> {
    let mut names: Vec<&str> = detail.hardware_seen.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| names.join(" + "))
}

fn text(what: &str, old: Option<&str>, new: Option<&str>) -> Option<String> {
    let (old, new) = (old?.trim(), new?.trim());
    (old != new && !old.is_empty() && !new.is_empty()).then(|| format!("{what} changed from {} to {}", short(old), short(new)))
}

fn watts(old: Option<f64>, new: Option<f64>) -> Option<String> {
    let (old, new) = (old?, new?);
    ((old - new).abs() > POWER_SHARE * old.abs()).then(|| format!("the power limit changed from {old} W to {new} W"))
}

/// `0.11`, `v0.11` and `0.11.0` are one version: some documents cut it short.
fn version(old: Option<&str>, new: Option<&str>) -> Option<String> {
    let plain = |version: &str| version.trim().trim_start_matches('v').to_owned();
    let (old, new) = (plain(old?), plain(new?));
    let begins =
        |long: &str, start: &str| long.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+', '-', ' ']));
    let is_same = old.is_empty() || new.is_empty() || begins(&old, &new) || begins(&new, &old);
    (!is_same).then(|| format!("the engine's version changed from {} to {}", short(&old), short(&new)))
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_CHARS_MAX).collect()
}
