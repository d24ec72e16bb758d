//! Whether a machine is still what a run was measured on. Pure: each difference as half a sentence for the host and the page.
//!
//! Only what both sides say is compared: a value that one of them leaves out contradicts nothing. What the run left out and is heard of later
//! for the first time becomes its base line ([`BaseLine`]), so that a change after that counts. Documents are compared with documents and the
//! host's statements with the host's statements, since a limit that is stated may be one for all GPUs together.

use serde::{Deserialize, Serialize};

use super::model::RunDetail;
use crate::measure::inspect::Identity;

const TEXT_CHARS_MAX: usize = 60;
/// nvidia-smi rounds.
const POWER_SHARE: f64 = 0.02;

/// What the host states of a machine, or a document shows of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stated {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_limit_w: Option<f64>,
    /// Documents only: what the host states of the GPUs is what a listing's gate compares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<String>,
    /// Documents only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_revision: Option<String>,
}

/// What a run did not say and was heard of later, by who said it. The engine's version stands beside it (`engine_version_seen`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct BaseLine {
    pub stated: Stated,
    pub shown: Stated,
}

impl Stated {
    /// Fills what is unknown with what `later` says first; each new value as half a sentence.
    fn learn(&mut self, known: &Self, later: &Self) -> Vec<String> {
        let mut learned = Vec::new();
        let mut text = |what: &str, slot: &mut Option<String>, known: &Option<String>, later: &Option<String>| {
            let later = later.as_deref().map(str::trim).filter(|later| !later.is_empty());
            if let (None, None, Some(later)) = (&slot, known, later) {
                learned.push(format!("{what} is {}", short(later)));
                *slot = Some(later.to_owned());
            }
        };
        text("the driver", &mut self.driver, &known.driver, &later.driver);
        text("the set of GPUs", &mut self.gpus, &known.gpus, &later.gpus);
        text("the model's revision", &mut self.model_revision, &known.model_revision, &later.model_revision);
        if let (None, None, Some(watts)) = (self.power_limit_w, known.power_limit_w, later.power_limit_w) {
            learned.push(format!("the power limit is {watts} W"));
            self.power_limit_w = Some(watts);
        }
        learned
    }

    fn or(self, later: &Self) -> Self {
        Self {
            driver: self.driver.or_else(|| later.driver.clone()),
            power_limit_w: self.power_limit_w.or(later.power_limit_w),
            gpus: self.gpus.or_else(|| later.gpus.clone()),
            model_revision: self.model_revision.or_else(|| later.model_revision.clone()),
        }
    }

    fn changes(&self, now: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        changes.extend(text("the driver", self.driver.as_deref(), now.driver.as_deref()));
        changes.extend(watts(self.power_limit_w, now.power_limit_w));
        changes.extend(text("the set of GPUs", self.gpus.as_deref(), now.gpus.as_deref()));
        changes.extend(text("the model's revision", self.model_revision.as_deref(), now.model_revision.as_deref()));
        changes
    }
}

/// What a later document of the machine shows to have changed since the older one; `version_seen` as in [`by_engine`].
pub fn by_document(old: &RunDetail, base_line: &BaseLine, version_seen: Option<&str>, new: &RunDetail) -> Vec<String> {
    let mut changes = shown(old, new).or(&base_line.shown).changes(&shown(new, old));
    if engine_name(old) == engine_name(new) {
        changes.extend(version(engine_version(old).or(version_seen), engine_version(new)));
    }
    changes
}

/// What a later document shows that the older one and everything since left out.
pub fn learn_document(old: &RunDetail, base_line: &mut BaseLine, new: &RunDetail) -> Vec<String> {
    base_line.shown.learn(&shown(old, new), &shown(new, old))
}

/// The version that a later document names of the same engine, where nothing had named one.
pub fn learn_version<'a>(old: &RunDetail, version_seen: Option<&str>, new: &'a RunDetail) -> Option<&'a str> {
    let is_unknown = known_version(old).is_none() && version_seen.is_none() && engine_name(old) == engine_name(new);
    engine_version(new).filter(|_| is_unknown)
}

/// What the host's statement of now contradicts in the one that the run was made with.
pub fn by_statement(run: &RunDetail, base_line: &BaseLine, now: &Stated) -> Vec<String> {
    stated(run).or(&base_line.stated).changes(now)
}

/// What the host states now for the first time.
pub fn learn_statement(run: &RunDetail, base_line: &mut BaseLine, now: &Stated) -> Vec<String> {
    base_line.stated.learn(&stated(run), now)
}

/// What a document shows; the revision only where both documents are of one model.
fn shown(detail: &RunDetail, other: &RunDetail) -> Stated {
    let revision = detail.claim.model.as_ref().and_then(|model| model.revision.clone());
    Stated {
        driver: detail.hardware_seen.driver.clone(),
        power_limit_w: detail.hardware_seen.gpus.first().and_then(|gpu| gpu.power_limit_w),
        gpus: gpus(detail),
        model_revision: revision.filter(|_| model(detail) == model(other)),
    }
}

/// What the host stated with the run, or as the machine was registered then.
fn stated(run: &RunDetail) -> Stated {
    let claimed = run.claim.hardware.as_ref();
    let registered = run.circumstances.machine_hardware.as_ref();
    let driver = [claimed, registered].into_iter().flatten().find_map(|hardware| hardware.driver.clone());
    Stated {
        driver: driver.or_else(|| run.hardware_seen.driver.clone()),
        power_limit_w: [claimed, registered].into_iter().flatten().find_map(|hardware| hardware.power_limit_w),
        ..Stated::default()
    }
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
    crate::base::text::label(text, TEXT_CHARS_MAX)
}
