//! What the uploader adds to a document: hardware, model, engine and launch command. Nothing of it is measured; a claim can be contradicted
//! by the document, never confirm it. All lengths are bounded here.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::{FieldError, text};

use super::quantization::Quantization;

const NAME_CHARS_MAX: usize = 200;
const LAUNCH_COMMAND_CHARS_MAX: usize = 8_000;
const GPU_COUNT_MAX: u32 = 1_024;
const MEMORY_GIB_MAX: f64 = 1_048_576.0;
const POWER_W_MAX: f64 = 100_000.0;

/// The fields of a machine's hardware, as a person states them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ClaimedHardware {
    #[schema(required, min_length = 1, max_length = 200, pattern = "\\S")]
    pub gpu: String,
    #[schema(minimum = 1, maximum = 1_024)]
    pub gpu_count: Option<u32>,
    #[schema(exclusive_minimum = 0, maximum = 1_048_576)]
    pub vram_gib: Option<f64>,
    #[schema(max_length = 200)]
    pub kind: Option<String>,
    #[schema(max_length = 200)]
    pub cpu: Option<String>,
    #[schema(exclusive_minimum = 0, maximum = 1_048_576)]
    pub ram_gib: Option<f64>,
    #[schema(max_length = 200)]
    pub os: Option<String>,
    #[schema(max_length = 200)]
    pub driver: Option<String>,
    #[schema(exclusive_minimum = 0, maximum = 100_000)]
    pub power_limit_w: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ClaimedModel {
    #[schema(required, min_length = 1, max_length = 200, pattern = "\\S")]
    pub hf_id: String,
    #[schema(max_length = 200)]
    pub revision: Option<String>,
    #[schema(max_length = 200)]
    pub quantization: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct ClaimedEngine {
    #[schema(required, min_length = 1, max_length = 200, pattern = "\\S")]
    pub name: String,
    #[schema(max_length = 200)]
    pub version: Option<String>,
    #[schema(max_length = 200)]
    pub build: Option<String>,
    #[schema(max_length = 200)]
    pub backend: Option<String>,
}

/// All of it. Unknown keys are ignored here: `rigmark verify --claim` reads files with more in them; the API refuses them in its request type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Claim {
    pub hardware: Option<ClaimedHardware>,
    pub model: Option<ClaimedModel>,
    pub engine: Option<ClaimedEngine>,
    pub launch_command: Option<String>,
}

impl Claim {
    /// The quantization claimed, as a slug of the closed list or a verbatim other.
    pub fn quantization(&self) -> Option<Quantization> {
        self.model.as_ref()?.quantization.as_deref().map(Quantization::parse)
    }

    /// Faults in lengths and ranges; pointers are relative to the claim (`/hardware/gpu`).
    pub fn faults(&self) -> Vec<FieldError> {
        let mut faults = Vec::new();
        if let Some(hardware) = &self.hardware {
            hardware_faults(hardware, &mut faults);
        }
        if let Some(model) = &self.model {
            required(&mut faults, "/model/hf_id", &model.hf_id);
            optional(&mut faults, "/model/revision", model.revision.as_deref());
            optional(&mut faults, "/model/quantization", model.quantization.as_deref());
        }
        if let Some(engine) = &self.engine {
            required(&mut faults, "/engine/name", &engine.name);
            optional(&mut faults, "/engine/version", engine.version.as_deref());
            optional(&mut faults, "/engine/build", engine.build.as_deref());
            optional(&mut faults, "/engine/backend", engine.backend.as_deref());
        }
        faults.extend(self.launch_command.as_deref().and_then(|command| text::prose_fault("/launch_command", command)));
        if self.launch_command.as_ref().is_some_and(|c| c.chars().count() > LAUNCH_COMMAND_CHARS_MAX) {
            let detail = format!("A launch command has at most {LAUNCH_COMMAND_CHARS_MAX} characters.");
            faults.push(FieldError::new("/launch_command", "too_long", detail));
        }
        faults
    }
}

fn hardware_faults(hardware: &ClaimedHardware, faults: &mut Vec<FieldError>) {
    required(faults, "/hardware/gpu", &hardware.gpu);
    for (pointer, text) in [
        ("/hardware/kind", &hardware.kind),
        ("/hardware/cpu", &hardware.cpu),
        ("/hardware/os", &hardware.os),
        ("/hardware/driver", &hardware.driver),
    ] {
        optional(faults, pointer, text.as_deref());
    }
    if hardware.gpu_count.is_some_and(|n| n == 0 || n > GPU_COUNT_MAX) {
        faults.push(FieldError::new("/hardware/gpu_count", "out_of_range", format!("A machine has 1 to {GPU_COUNT_MAX} GPUs.")));
    }
    for (pointer, value, max) in [
        ("/hardware/vram_gib", hardware.vram_gib, MEMORY_GIB_MAX),
        ("/hardware/ram_gib", hardware.ram_gib, MEMORY_GIB_MAX),
        ("/hardware/power_limit_w", hardware.power_limit_w, POWER_W_MAX),
    ] {
        if value.is_some_and(|v| !v.is_finite() || v <= 0.0 || v > max) {
            faults.push(FieldError::new(pointer, "out_of_range", format!("The value is above 0 and at most {max}.")));
        }
    }
}

fn required(faults: &mut Vec<FieldError>, pointer: &str, text: &str) {
    if text.trim().is_empty() {
        faults.push(FieldError::new(pointer, "required", "The value is empty."));
    }
    optional(faults, pointer, Some(text));
}

fn optional(faults: &mut Vec<FieldError>, pointer: &str, given: Option<&str>) {
    faults.extend(given.and_then(|given| text::label_fault(pointer, given)));
    if given.is_some_and(|t| t.chars().count() > NAME_CHARS_MAX) {
        faults.push(FieldError::new(pointer, "too_long", format!("The value has at most {NAME_CHARS_MAX} characters.")));
    }
}
