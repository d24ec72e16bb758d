//! What a host may say of a machine, checked: all faults of a request at once, each with its pointer.

use serde::Deserialize;
use utoipa::ToSchema;

use super::{model::Machine, region::Region};
use crate::{
    base::{
        Result,
        faults::Faults,
        given::{given, given_object, object, optional_object},
        secret::Secret,
        shape::{NameText, RegionText},
        text,
        units::MIB_PER_GIB,
    },
    catalog::{self, HardwareKind, HardwareModel},
    engines::EngineAddress,
};

const NAME_CHARS_MAX: usize = 80;
const TEXT_CHARS_MAX: usize = 200;
const GPU_COUNT_MAX: i32 = 64;
const MEMORY_GIB_MAX: f64 = 1_048_576.0;
const POWER_W_MAX: f64 = 100_000.0;
const KEY_CHARS_MAX: usize = 512;

/// A machine to register.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateMachine {
    /// 1 to 80 characters.
    #[schema(value_type = NameText)]
    pub name: String,
    #[serde(deserialize_with = "object")]
    pub hardware: HardwareInput,
    /// Lower-case ISO 3166 country code, optionally with `-subdivision`.
    #[schema(value_type = Option<RegionText>)]
    pub region: Option<String>,
    #[serde(default, deserialize_with = "optional_object")]
    pub endpoint: Option<EndpointInput>,
}

/// Hardware as the host states it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HardwareInput {
    /// Any usual name of one GPU or SoC; resolved to a hardware model.
    #[schema(example = "RTX 3090")]
    pub gpu: String,
    #[schema(minimum = 1, maximum = 64)]
    pub gpu_count: i32,
    /// Memory of one GPU in GiB; chooses between models of one name, and must not contradict the model.
    #[schema(exclusive_minimum = 0, maximum = 1_048_576)]
    pub vram_gib: Option<f64>,
    /// Taken from the hardware model unless given.
    pub kind: Option<HardwareKind>,
    #[schema(max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    pub cpu: Option<String>,
    #[schema(exclusive_minimum = 0, maximum = 1_048_576)]
    pub ram_gib: Option<f64>,
    #[schema(max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    pub os: Option<String>,
    #[schema(max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    pub driver: Option<String>,
    #[schema(exclusive_minimum = 0, maximum = 100_000)]
    pub power_limit_w: Option<f64>,
}

/// An OpenAI-compatible engine.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointInput {
    /// `http` or `https`, without `/v1`.
    #[schema(pattern = "^https?://")]
    pub url: String,
    /// Sent as a bearer token to this address; never shown again.
    #[schema(value_type = Option<String>, pattern = "^[!-~]{1,512}$")]
    pub api_key: Option<Secret<String>>,
}

/// Changes of a machine; what is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateMachine {
    #[schema(value_type = Option<NameText>)]
    pub name: Option<String>,
    /// Another set of GPUs takes a listing off the market until there is a new run; another driver or power limit makes its run stale.
    #[serde(default, deserialize_with = "optional_object")]
    pub hardware: Option<HardwareUpdate>,
    /// Null takes it away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<RegionText>)]
    pub region: Option<Option<String>>,
    /// Null takes it away.
    #[serde(default, deserialize_with = "given_object")]
    #[schema(value_type = Option<EndpointUpdate>)]
    pub endpoint: Option<Option<EndpointUpdate>>,
}

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HardwareUpdate {
    pub gpu: Option<String>,
    #[schema(minimum = 1, maximum = 64)]
    pub gpu_count: Option<i32>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1_048_576)]
    pub vram_gib: Option<Option<f64>>,
    pub kind: Option<HardwareKind>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    pub cpu: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1_048_576)]
    pub ram_gib: Option<Option<f64>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    pub os: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, max_length = 200, pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*$")]
    pub driver: Option<Option<String>>,
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 100_000)]
    pub power_limit_w: Option<Option<f64>>,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndpointUpdate {
    /// A key stays with the address it was given for: send it again with a new address.
    #[schema(pattern = "^https?://")]
    pub url: Option<String>,
    /// Null takes it away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, pattern = "^[!-~]{1,512}$")]
    pub api_key: Option<Option<Secret<String>>>,
}

/// The columns that state the hardware.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hardware {
    pub slug: String,
    pub gpu_count: i32,
    pub vram_gib: Option<f64>,
    pub kind: String,
    pub cpu: Option<String>,
    pub ram_gib: Option<f64>,
    pub os: Option<String>,
    pub driver: Option<String>,
    pub power_limit_w: Option<f64>,
}

impl Hardware {
    pub fn of(machine: &Machine) -> Self {
        Self {
            slug: machine.hardware_slug.clone(),
            gpu_count: machine.gpu_count,
            vram_gib: machine.vram_gib,
            kind: machine.kind.clone(),
            cpu: machine.cpu.clone(),
            ram_gib: machine.ram_gib,
            os: machine.os.clone(),
            driver: machine.driver.clone(),
            power_limit_w: machine.power_limit_w,
        }
    }

    pub fn is_other_gpus(&self, old: &Self) -> bool {
        let gpus = |hardware: &Self| (hardware.slug.clone(), hardware.gpu_count, hardware.vram_gib, hardware.kind.clone());
        gpus(self) != gpus(old)
    }

    pub fn write_to(self, machine: &mut Machine) {
        machine.hardware_slug = self.slug;
        machine.gpu_count = self.gpu_count;
        machine.vram_gib = self.vram_gib;
        machine.kind = self.kind;
        machine.cpu = self.cpu;
        machine.ram_gib = self.ram_gib;
        machine.os = self.os;
        machine.driver = self.driver;
        machine.power_limit_w = self.power_limit_w;
    }
}

/// A checked engine address and its key.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub address: EngineAddress,
    pub api_key: Option<Secret<String>>,
}

pub(super) fn check_name(faults: &mut Faults, name: &str) -> String {
    if name.trim().is_empty() || name.chars().count() > NAME_CHARS_MAX {
        faults.add("/name", "wrong_length", format!("A name has 1 to {NAME_CHARS_MAX} characters."));
    }
    faults.extend(text::label_fault("/name", name));
    name.trim().to_owned()
}

pub(super) fn check_region(faults: &mut Faults, region: Option<String>) -> Option<String> {
    let region = region?;
    if let Err(error) = region.parse::<Region>() {
        faults.add("/region", "unknown_region", format!("This is no region: {error}."));
    }
    Some(region)
}

/// The address and key of a new endpoint.
pub(super) fn check_endpoint(faults: &mut Faults, input: EndpointInput) -> Option<Endpoint> {
    check_key(faults, input.api_key.as_ref());
    let address = faults.take(check_url(&input.url))?;
    Some(Endpoint { address, api_key: input.api_key })
}

pub(super) fn check_url(url: &str) -> Result<EngineAddress> {
    EngineAddress::parse(url).map_err(|fault| fault.at("/endpoint/url"))
}

pub(super) fn check_key(faults: &mut Faults, key: Option<&Secret<String>>) {
    let fits = |key: &str| (1..=KEY_CHARS_MAX).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic());
    if key.is_some_and(|key| !fits(key.expose())) {
        let detail = format!("A key has 1 to {KEY_CHARS_MAX} visible ASCII characters.");
        faults.add("/endpoint/api_key", "invalid_value", detail);
    }
}

/// The hardware of a new machine.
pub(super) fn check_hardware(faults: &mut Faults, input: HardwareInput) -> Option<Hardware> {
    check_bounds(faults, input.gpu_count, [input.vram_gib, input.ram_gib, input.power_limit_w]);
    let row = faults.take(catalog::service::hardware_input("/hardware/gpu", &input.gpu, input.vram_gib));
    let mut text = |pointer: &str, text: Option<String>| check_text(faults, pointer, text);
    let (cpu, os, driver) = (text("/hardware/cpu", input.cpu), text("/hardware/os", input.os), text("/hardware/driver", input.driver));
    let row = row?;
    Some(Hardware {
        vram_gib: check_vram(faults, row, input.vram_gib),
        slug: row.slug.clone(),
        gpu_count: input.gpu_count,
        kind: input.kind.unwrap_or(row.kind).as_str().to_owned(),
        cpu,
        ram_gib: input.ram_gib,
        os,
        driver,
        power_limit_w: input.power_limit_w,
    })
}

/// The hardware of a machine after a change.
pub(super) fn merge_hardware(faults: &mut Faults, old: &Hardware, update: HardwareUpdate) -> Option<Hardware> {
    let given_vram = update.vram_gib.flatten();
    let row = match &update.gpu {
        Some(gpu) => faults.take(catalog::service::hardware_input("/hardware/gpu", gpu, given_vram)),
        None => faults.take(catalog::service::hardware_fetch(&old.slug)),
    };
    let mut text = |pointer: &str, new: Option<Option<String>>, old: &Option<String>| match new {
        Some(text) => check_text(faults, pointer, text),
        None => old.clone(),
    };
    let cpu = text("/hardware/cpu", update.cpu, &old.cpu);
    let os = text("/hardware/os", update.os, &old.os);
    let driver = text("/hardware/driver", update.driver, &old.driver);
    let row = row?;
    let is_other = row.slug != old.slug;
    let merged = Hardware {
        slug: row.slug.clone(),
        gpu_count: update.gpu_count.unwrap_or(old.gpu_count),
        vram_gib: match update.vram_gib {
            Some(vram_gib) => check_vram(faults, row, vram_gib),
            None if is_other => row.memory_gib,
            None => old.vram_gib,
        },
        kind: match update.kind {
            Some(kind) => kind.as_str().to_owned(),
            None if is_other => row.kind.as_str().to_owned(),
            None => old.kind.clone(),
        },
        cpu,
        ram_gib: update.ram_gib.unwrap_or(old.ram_gib),
        os,
        driver,
        power_limit_w: update.power_limit_w.unwrap_or(old.power_limit_w),
    };
    check_bounds(faults, merged.gpu_count, [given_vram, merged.ram_gib, merged.power_limit_w]);
    Some(merged)
}

fn check_bounds(faults: &mut Faults, gpu_count: i32, [vram_gib, ram_gib, power_limit_w]: [Option<f64>; 3]) {
    if !(1..=GPU_COUNT_MAX).contains(&gpu_count) {
        faults.add("/hardware/gpu_count", "out_of_range", format!("A machine has 1 to {GPU_COUNT_MAX} GPUs."));
    }
    let numbers = [
        ("/hardware/vram_gib", vram_gib, MEMORY_GIB_MAX),
        ("/hardware/ram_gib", ram_gib, MEMORY_GIB_MAX),
        ("/hardware/power_limit_w", power_limit_w, POWER_W_MAX),
    ];
    for (pointer, value, max) in numbers {
        if value.is_some_and(|value| !(value > 0.0 && value <= max)) {
            faults.add(pointer, "out_of_range", format!("The value is above 0 and at most {max}."));
        }
    }
}

/// An empty text is none.
fn check_text(faults: &mut Faults, pointer: &str, text: Option<String>) -> Option<String> {
    let text = text?;
    if text.chars().count() > TEXT_CHARS_MAX {
        faults.add(pointer, "too_long", format!("The value has at most {TEXT_CHARS_MAX} characters."));
    }
    faults.extend(text::label_fault(pointer, &text));
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The size to store: nominal for a GPU with memory of its own (a 24 GB card reports 23.99 GiB), the size fitted where the model's memory is
/// the machine's.
fn check_vram(faults: &mut Faults, row: &HardwareModel, given: Option<f64>) -> Option<f64> {
    let Some(vram_gib) = given else { return row.memory_gib };
    if row.memory_fits_mib(vram_gib * MIB_PER_GIB) == Some(false) {
        let nominal = row.memory_gib.map_or_else(String::new, |gib| format!(" of {gib} GiB"));
        faults.add("/hardware/vram_gib", "contradicts_hardware", format!("This is not the memory{nominal} of one {}.", row.name));
    }
    if row.unified { given } else { row.memory_gib.or(given) }
}
