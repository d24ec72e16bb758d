//! The row of a machine and what the API shows of it.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    base::id::{AccountId, MachineId},
    catalog::{Catalog, HardwareKind},
    db::schema::machines,
};

/// One row of `machines`.
#[derive(Debug, Clone, Queryable, Selectable, Insertable)]
#[diesel(table_name = machines, check_for_backend(diesel::pg::Pg))]
pub struct Machine {
    pub id: MachineId,
    pub account_id: AccountId,
    pub name: String,
    pub hardware_slug: String,
    pub gpu_count: i32,
    /// Of one GPU.
    pub vram_gib: Option<f64>,
    pub kind: String,
    pub cpu: Option<String>,
    pub ram_gib: Option<f64>,
    pub os: Option<String>,
    pub driver: Option<String>,
    pub power_limit_w: Option<f64>,
    pub region: Option<String>,
    /// Without `/v1`. Reach it through `service::target` only.
    pub endpoint_url: Option<String>,
    pub endpoint_key_sealed: Option<Vec<u8>>,
    pub endpoint_changed_at: Option<DateTime<Utc>>,
    pub is_simulated: bool,
    pub hardware_changed_at: Option<DateTime<Utc>>,
    /// The last good sign of life.
    pub last_seen_at: Option<DateTime<Utc>>,
    /// The first failed probe since then.
    pub probe_failed_at: Option<DateTime<Utc>>,
    pub start_failures: i32,
    pub deleted_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
}

/// The columns that a PATCH writes.
#[derive(AsChangeset)]
#[diesel(table_name = machines, treat_none_as_null = true)]
pub(super) struct MachineChange<'a> {
    pub name: &'a str,
    pub hardware_slug: &'a str,
    pub gpu_count: i32,
    pub vram_gib: Option<f64>,
    pub kind: &'a str,
    pub cpu: Option<&'a str>,
    pub ram_gib: Option<f64>,
    pub os: Option<&'a str>,
    pub driver: Option<&'a str>,
    pub power_limit_w: Option<f64>,
    pub region: Option<&'a str>,
    pub endpoint_url: Option<&'a str>,
    pub endpoint_key_sealed: Option<&'a [u8]>,
    pub endpoint_changed_at: Option<DateTime<Utc>>,
    pub is_simulated: bool,
    pub hardware_changed_at: Option<DateTime<Utc>>,
    pub last_seen_at: Option<DateTime<Utc>>,
    pub probe_failed_at: Option<DateTime<Utc>>,
}

impl<'a> From<&'a Machine> for MachineChange<'a> {
    fn from(machine: &'a Machine) -> Self {
        Self {
            name: &machine.name,
            hardware_slug: &machine.hardware_slug,
            gpu_count: machine.gpu_count,
            vram_gib: machine.vram_gib,
            kind: &machine.kind,
            cpu: machine.cpu.as_deref(),
            ram_gib: machine.ram_gib,
            os: machine.os.as_deref(),
            driver: machine.driver.as_deref(),
            power_limit_w: machine.power_limit_w,
            region: machine.region.as_deref(),
            endpoint_url: machine.endpoint_url.as_deref(),
            endpoint_key_sealed: machine.endpoint_key_sealed.as_deref(),
            endpoint_changed_at: machine.endpoint_changed_at,
            is_simulated: machine.is_simulated,
            hardware_changed_at: machine.hardware_changed_at,
            last_seen_at: machine.last_seen_at,
            probe_failed_at: machine.probe_failed_at,
        }
    }
}

/// Payload of the job `machine_changed`: which machine to look at again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MachineChanged {
    pub machine_id: MachineId,
}

/// A machine's hardware, as its owner stated it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct HardwareView {
    /// Name of the hardware model.
    #[schema(example = "RTX 3090")]
    pub gpu: String,
    /// The hardware model in the catalog.
    #[schema(example = "rtx-3090")]
    pub slug: String,
    pub gpu_count: i32,
    /// Memory of one GPU, nominal, in GiB (2^30 bytes).
    pub vram_gib: Option<f64>,
    #[schema(value_type = HardwareKind)]
    pub kind: String,
    pub cpu: Option<String>,
    pub ram_gib: Option<f64>,
    pub os: Option<String>,
    pub driver: Option<String>,
    pub power_limit_w: Option<f64>,
}

impl HardwareView {
    pub fn of(machine: &Machine) -> Self {
        let name = Catalog::builtin().hardware(&machine.hardware_slug).map_or(machine.hardware_slug.as_str(), |row| row.name.as_str());
        Self {
            gpu: name.to_owned(),
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
}

/// The registered engine. Its key is never shown.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EndpointView {
    pub url: String,
    pub has_api_key: bool,
}

/// A machine as its owner sees it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct MachineView {
    pub id: MachineId,
    pub name: String,
    pub hardware: HardwareView,
    /// When the stated GPUs last changed; runs from before do not count for a listing.
    pub hardware_changed_at: Option<DateTime<Utc>>,
    #[schema(example = "us-ca")]
    pub region: Option<String>,
    pub endpoint: Option<EndpointView>,
    /// When a registered address was last replaced or taken away.
    pub endpoint_changed_at: Option<DateTime<Utc>>,
    /// The engine named itself as a simulated one; the sandbox only.
    pub is_simulated: bool,
    /// The last good sign of life, taken while the machine is listed or rented.
    pub last_seen_at: Option<DateTime<Utc>>,
    /// The first failed probe since then; null while the machine answers or nobody asks.
    pub probe_failed_at: Option<DateTime<Utc>>,
    /// Rentals that the machine failed to start.
    pub start_failures: i32,
    pub created_at: DateTime<Utc>,
}

impl From<Machine> for MachineView {
    fn from(machine: Machine) -> Self {
        Self {
            hardware: HardwareView::of(&machine),
            endpoint: machine.endpoint_url.map(|url| EndpointView { url, has_api_key: machine.endpoint_key_sealed.is_some() }),
            id: machine.id,
            name: machine.name,
            hardware_changed_at: machine.hardware_changed_at,
            region: machine.region,
            endpoint_changed_at: machine.endpoint_changed_at,
            is_simulated: machine.is_simulated,
            last_seen_at: machine.last_seen_at,
            probe_failed_at: machine.probe_failed_at,
            start_failures: machine.start_failures,
            created_at: machine.created_at,
        }
    }
}
