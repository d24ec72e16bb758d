//! Use cases of machines, and what later domains need of them.

use std::collections::HashSet;

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt;

use super::{
    CHANGED,
    input::{self, Endpoint, EndpointUpdate, Hardware},
    model::{HardwareView, Machine, MachineChanged, MachineView},
    queries,
};
use crate::{
    base::{
        Code, Error, FieldError, Result,
        faults::Faults,
        id::{AccountId, MachineId},
        seal::PurposeKey,
        secret::Secret,
    },
    ctx::Ctx,
    db::{Conn, Tx},
    engines::{EngineAddress, EngineDescription, Target},
    identity::Caller,
    jobs::{self, Job},
};

pub use super::input::{CreateMachine, EndpointInput, HardwareInput, HardwareUpdate, UpdateMachine};

const KEY_PURPOSE: &str = "rigmark engine key v1";
/// Probes at once. A dead machine takes up to three seconds.
const PROBES_AT_ONCE: usize = 64;

fn no_machine() -> Error {
    Error::not_found("machine")
}

/// Registers a machine.
///
/// # Errors
/// `invalid_input` with every fault (and `candidates` for an ambiguous GPU), `forbidden_address`.
pub async fn create(ctx: &Ctx, caller: &Caller, form: CreateMachine) -> Result<MachineView> {
    let mut faults = Faults::default();
    let name = input::check_name(&mut faults, &form.name);
    let hardware = input::check_hardware(&mut faults, form.hardware);
    let region = input::check_region(&mut faults, form.region);
    let endpoint = form.endpoint.and_then(|endpoint| input::check_endpoint(&mut faults, endpoint));
    faults.finish()?;
    let hardware = hardware.ok_or_else(|| Error::internal("hardware neither right nor wrong"))?;
    if let Some(endpoint) = &endpoint {
        check_address(ctx, &endpoint.address).await?;
    }
    let id = MachineId::new();
    let endpoint_key_sealed = endpoint.as_ref().and_then(|e| e.api_key.as_ref()).map(|key| seal(ctx, id, key)).transpose()?;
    let endpoint_url = endpoint.map(|e| e.address.to_string());
    let draft = blank(id, caller.account_id, name, region, hardware);
    let machine = ctx
        .db
        .tx("machine_create", async |tx| {
            let created_at = ctx.business_now(tx).await?;
            let (endpoint_url, endpoint_key_sealed) = (endpoint_url.clone(), endpoint_key_sealed.clone());
            let machine = Machine { endpoint_url, endpoint_key_sealed, created_at, ..draft.clone() };
            queries::machine_insert(tx, &machine).await?;
            Ok(machine)
        })
        .await?;
    Ok(machine.into())
}

fn blank(id: MachineId, account_id: AccountId, name: String, region: Option<String>, hardware: Hardware) -> Machine {
    let mut machine = Machine {
        id,
        account_id,
        name,
        region,
        hardware_slug: String::new(),
        gpu_count: 0,
        vram_gib: None,
        kind: String::new(),
        cpu: None,
        ram_gib: None,
        os: None,
        driver: None,
        power_limit_w: None,
        endpoint_url: None,
        endpoint_key_sealed: None,
        endpoint_changed_at: None,
        is_simulated: false,
        hardware_changed_at: None,
        last_seen_at: None,
        probe_failed_at: None,
        start_failures: 0,
        deleted_at: None,
        created_at: DateTime::UNIX_EPOCH,
    };
    hardware.write_to(&mut machine);
    machine
}

/// The caller's machines, newest first.
///
/// # Errors
/// The database's own faults.
pub async fn list(ctx: &Ctx, caller: &Caller, before: Option<MachineId>, limit: i64) -> Result<Vec<MachineView>> {
    let mut conn = ctx.db.conn().await?;
    let machines = queries::machine_list(&mut conn, caller.account_id, before, limit).await?;
    Ok(machines.into_iter().map(MachineView::from).collect())
}

/// One of the caller's machines.
///
/// # Errors
/// `not_found`.
pub async fn show(ctx: &Ctx, caller: &Caller, id: MachineId) -> Result<MachineView> {
    let mut conn = ctx.db.conn().await?;
    fetch_owned(&mut conn, caller, id).await.map(MachineView::from)
}

/// Changes a machine. A change of its hardware or of its engine's address leaves its instant, and the market is told.
///
/// # Errors
/// `not_found`, `invalid_input` with every fault, `forbidden_address`.
pub async fn update(ctx: &Ctx, caller: &Caller, id: MachineId, form: UpdateMachine) -> Result<MachineView> {
    let old = {
        let mut conn = ctx.db.conn().await?;
        fetch_owned(&mut conn, caller, id).await?
    };
    let change = Change::check(ctx, &old, form)?;
    if let Some(Some(EndpointChange { address, is_new: true, .. })) = &change.endpoint {
        check_address(ctx, address).await?;
    }
    let wall_now = ctx.clock.wall_now();
    let machine = ctx
        .db
        .tx("machine_update", async |tx| {
            let mut machine = queries::machine_lock(tx, id).await?.filter(|m| m.deleted_at.is_none()).ok_or_else(no_machine)?;
            let now = ctx.business_now(tx).await?;
            if change.apply(&mut machine, now)? {
                enqueue_changed(tx, id, wall_now).await?;
            }
            queries::machine_update(tx, &machine).await?;
            Ok(machine)
        })
        .await?;
    Ok(machine.into())
}

/// A checked PATCH, to be applied to the locked row.
struct Change {
    name: Option<String>,
    hardware: Option<HardwareUpdate>,
    region: Option<Option<String>>,
    endpoint: Option<Option<EndpointChange>>,
}

struct EndpointChange {
    /// A new address, or the one that a new key is for.
    address: EngineAddress,
    is_new: bool,
    /// Sealed.
    key: Option<Option<Vec<u8>>>,
}

impl Change {
    fn check(ctx: &Ctx, old: &Machine, form: UpdateMachine) -> Result<Self> {
        let mut faults = Faults::default();
        let name = form.name.map(|name| input::check_name(&mut faults, &name));
        if let Some(update) = &form.hardware {
            input::merge_hardware(&mut faults, &Hardware::of(old), update.clone());
        }
        let region = form.region.map(|region| input::check_region(&mut faults, region));
        let endpoint = match form.endpoint {
            None => None,
            Some(None) => Some(None),
            Some(Some(update)) => Self::check_endpoint(ctx, &mut faults, old, update)?.map(Some),
        };
        faults.finish()?;
        Ok(Self { name, hardware: form.hardware, region, endpoint })
    }

    fn check_endpoint(ctx: &Ctx, faults: &mut Faults, old: &Machine, update: EndpointUpdate) -> Result<Option<EndpointChange>> {
        let seal_key = |key: Option<&Secret<String>>| key.map(|key| seal(ctx, old.id, key)).transpose();
        let new_key = update.api_key.as_ref().cloned().flatten();
        if let Some(url) = update.url {
            let Some(Endpoint { address, api_key }) = input::check_endpoint(faults, EndpointInput { url, api_key: new_key }) else {
                return Ok(None);
            };
            // A key goes with its address: unless the address is the same, no key given means no key.
            let is_new = old.endpoint_url.as_deref() != Some(address.to_string().as_str());
            let key = if is_new || update.api_key.is_some() { Some(seal_key(api_key.as_ref())?) } else { None };
            return Ok(Some(EndpointChange { address, is_new, key }));
        }
        let Some(url) = &old.endpoint_url else {
            return Err(Error::invalid("/endpoint/url", "missing_field", "The machine has no endpoint yet: give its url."));
        };
        input::check_key(faults, new_key.as_ref());
        let key = update.api_key.map(|_| seal_key(new_key.as_ref())).transpose()?;
        Ok(Some(EndpointChange { address: input::check_url(url)?, is_new: false, key }))
    }

    /// Returns whether anything changed that the market must look at.
    fn apply(&self, machine: &mut Machine, now: DateTime<Utc>) -> Result<bool> {
        let mut is_for_market = false;
        if let Some(name) = &self.name {
            machine.name.clone_from(name);
        }
        if let Some(update) = &self.hardware {
            // Against the row that is locked, which may not be the one that was read.
            let mut faults = Faults::default();
            let old = Hardware::of(machine);
            let new = input::merge_hardware(&mut faults, &old, update.clone());
            faults.finish()?;
            if let Some(new) = new.filter(|new| *new != old) {
                // Another set of GPUs makes every older run a claim about another machine; the rest makes it stale, which is for benchmarks.
                if new.is_other_gpus(&old) {
                    machine.hardware_changed_at = Some(now);
                }
                new.write_to(machine);
                is_for_market = true;
            }
        }
        if let Some(region) = &self.region {
            is_for_market |= *region != machine.region;
            machine.region.clone_from(region);
        }
        match &self.endpoint {
            None => {}
            Some(None) => is_for_market |= replace_address(machine, None, now),
            Some(Some(change)) => {
                let address = change.address.to_string();
                if change.is_new {
                    is_for_market |= replace_address(machine, Some(address), now);
                } else if machine.endpoint_url != Some(address) {
                    return Err(Error::new(Code::InvalidState, "The endpoint was changed by another request meanwhile."));
                }
                if let Some(key) = &change.key {
                    machine.endpoint_key_sealed.clone_from(key);
                }
            }
        }
        Ok(is_for_market)
    }
}

/// Returns whether it was another.
fn replace_address(machine: &mut Machine, address: Option<String>, now: DateTime<Utc>) -> bool {
    if machine.endpoint_url == address {
        return false;
    }
    if machine.endpoint_url.is_some() {
        machine.endpoint_changed_at = Some(now);
    }
    machine.endpoint_url = address;
    machine.endpoint_key_sealed = None;
    machine.is_simulated = false;
    true
}

/// Deletes a machine; a second time is the same success.
///
/// # Errors
/// `machine_in_use` while it is published or rented, `not_found` for somebody else's.
pub async fn delete(ctx: &Ctx, caller: &Caller, id: MachineId) -> Result<()> {
    let wall_now = ctx.clock.wall_now();
    ctx.db
        .tx("machine_delete", async |tx| {
            let machine = queries::machine_lock(tx, id).await?;
            let machine = machine.filter(|m| m.account_id == caller.account_id).ok_or_else(no_machine)?;
            if machine.deleted_at.is_some() {
                return Ok(());
            }
            if queries::machine_is_watched(tx, id).await? {
                return Err(Error::new(Code::MachineInUse, "Pause the listing and let rentals end before deleting the machine."));
            }
            let now = ctx.business_now(tx).await?;
            queries::machine_delete(tx, id, now).await?;
            enqueue_changed(tx, id, wall_now).await
        })
        .await
}

async fn enqueue_changed(tx: &mut Tx<'_>, machine_id: MachineId, wall_now: DateTime<Utc>) -> Result<()> {
    let payload = serde_json::to_value(MachineChanged { machine_id }).map_err(Error::internal)?;
    let job = Job { kind: CHANGED, payload, dedupe_key: Some(machine_id.to_string()), run_at: wall_now };
    jobs::enqueue(tx, job).await
}

// For later domains

/// A machine of the caller's account.
///
/// # Errors
/// `not_found` when it is unknown, deleted or somebody else's.
pub async fn fetch_owned(conn: &mut Conn, caller: &Caller, id: MachineId) -> Result<Machine> {
    queries::machine_fetch_owned(conn, caller.account_id, id).await?.ok_or_else(no_machine)
}

/// The account's machines that have an engine, oldest first.
///
/// # Errors
/// The database's own faults.
pub async fn list_with_endpoint(conn: &mut Conn, account: AccountId, limit: i64) -> Result<Vec<Machine>> {
    queries::machine_list_with_endpoint(conn, account, limit).await
}

/// A machine that a row of ours points at; also a deleted one.
///
/// # Errors
/// `not_found`.
pub async fn fetch(conn: &mut Conn, id: MachineId) -> Result<Machine> {
    queries::machine_fetch(conn, id).await?.ok_or_else(no_machine)
}

/// A machine with its row locked against changes until the transaction ends; also a deleted one.
///
/// # Errors
/// `not_found`.
pub async fn lock(tx: &mut Tx<'_>, id: MachineId) -> Result<Machine> {
    queries::machine_lock(tx, id).await?.ok_or_else(no_machine)
}

/// Names as the API shows them.
pub fn hardware_facts(machine: &Machine) -> HardwareView {
    HardwareView::of(machine)
}

/// How to reach the machine's engine. The address is checked again by every use of the target.
///
/// # Errors
/// `engine_unreachable` when it has none, or a simulated one outside the sandbox; `internal` when its key does not open.
pub fn target(ctx: &Ctx, machine: &Machine) -> Result<Target> {
    let unreachable = |detail: &'static str| Error::new(Code::EngineUnreachable, detail);
    let url = machine.endpoint_url.as_deref().filter(|_| machine.deleted_at.is_none());
    let url = url.ok_or_else(|| unreachable("The machine has no endpoint."))?;
    if machine.is_simulated && !ctx.config.mode.is_sandbox() {
        return Err(unreachable("The machine's engine is a simulated one."));
    }
    let address = EngineAddress::parse(url).map_err(|fault| unreachable("The machine's endpoint is not usable.").with_source(fault))?;
    let api_key = machine.endpoint_key_sealed.as_deref().map(|sealed| open(ctx, machine.id, sealed)).transpose()?;
    Ok(Target { address, api_key, allow_private: ctx.config.allow_private_endpoints })
}

/// Asks the engine what it serves.
///
/// # Errors
/// `engine_unreachable`, `engine_error`, `forbidden_address`.
pub async fn describe(ctx: &Ctx, machine: &Machine) -> Result<EngineDescription> {
    ctx.engines.describe(&target(ctx, machine)?).await
}

/// Wants signs of life of the machine for `reason` (`listing:lst_…`, a rental's id), and keeps it from being deleted.
///
/// # Errors
/// `not_found` when the machine was deleted.
pub async fn watch(tx: &mut Tx<'_>, id: MachineId, reason: &str) -> Result<()> {
    // Locked, so that deleting sees this reason or this sees the deletion.
    queries::machine_lock(tx, id).await?.filter(|m| m.deleted_at.is_none()).ok_or_else(no_machine)?;
    queries::watch_insert(tx, id, reason).await
}

/// Wants signs of life for `reason` no longer. Without effect when it did not.
///
/// # Errors
/// The database's own faults.
pub async fn unwatch(tx: &mut Tx<'_>, id: MachineId, reason: &str) -> Result<()> {
    queries::watch_delete(tx, id, reason).await
}

/// Whether a rental has the machine, now or reserved. Whatever wants signs of life of it and is no listing is a rental.
///
/// # Errors
/// The database's own faults.
pub async fn is_rented(conn: &mut Conn, id: MachineId) -> Result<bool> {
    Ok(queries::watch_reasons(conn, id).await?.iter().any(|reason| !reason.starts_with("listing:")))
}

/// Machines on the market.
///
/// # Errors
/// The database's own faults.
pub async fn list_listed(conn: &mut Conn) -> Result<Vec<Machine>> {
    queries::machine_list_listed(conn).await
}

/// Counts a rental that the machine did not start.
///
/// # Errors
/// The database's own faults.
pub async fn note_start_failure(tx: &mut Tx<'_>, id: MachineId) -> Result<()> {
    queries::machine_count_start_failure(tx, id).await
}

/// Writes down a good sign of life at `now`: the engine has just answered somebody.
///
/// # Errors
/// The database's own faults.
pub async fn note_seen(tx: &mut Tx<'_>, id: MachineId, now: DateTime<Utc>) -> Result<()> {
    queries::machine_set_seen(tx, &[id], now).await
}

/// Writes down whether the engine named itself a simulated one.
///
/// # Errors
/// The database's own faults.
pub async fn note_simulated(tx: &mut Tx<'_>, id: MachineId, is_simulated: bool) -> Result<()> {
    queries::machine_set_simulated(tx, id, is_simulated).await
}

// Signs of life

/// Which of the watched machines answer right now.
#[derive(Debug, Default, Clone)]
pub(super) struct Probed {
    pub alive: HashSet<MachineId>,
    pub silent: HashSet<MachineId>,
}

impl Probed {
    pub fn has(&self, id: MachineId) -> bool {
        self.alive.contains(&id) || self.silent.contains(&id)
    }
    pub fn extend(&mut self, other: Self) {
        self.alive.extend(other.alive);
        self.silent.extend(other.silent);
    }
}

/// Asks the machine now if its last sign of life is older than `age` and no probe has failed since, and writes down what came out.
///
/// # Errors
/// The database's own faults.
pub async fn refresh_signs(ctx: &Ctx, id: MachineId, age: TimeDelta) -> Result<()> {
    let (machine, now) = {
        let mut conn = ctx.db.conn().await?;
        (fetch(&mut conn, id).await?, ctx.business_now(&mut conn).await?)
    };
    if machine.probe_failed_at.is_some() || machine.last_seen_at.is_some_and(|seen| now - seen <= age) {
        return Ok(());
    }
    let mut probed = Probed::default();
    let answers = if is_alive(ctx, &machine).await { &mut probed.alive } else { &mut probed.silent };
    answers.insert(id);
    note_probed(ctx, &probed, now).await
}

async fn is_alive(ctx: &Ctx, machine: &Machine) -> bool {
    match target(ctx, machine) {
        Ok(target) => ctx.engines.is_alive(&target).await,
        Err(error) => {
            tracing::debug!(machine.id = %machine.id, %error, "a watched machine has no engine to ask");
            false
        }
    }
}

/// Probes the watched machines that `known` does not hold.
pub(super) async fn probe_watched(ctx: &Ctx, known: &Probed) -> Result<Probed> {
    let watched = {
        let mut conn = ctx.db.conn().await?;
        queries::machine_list_watched(&mut conn).await?
    };
    let asked =
        watched.into_iter().filter(|machine| !known.has(machine.id)).map(async |machine| (machine.id, is_alive(ctx, &machine).await));
    let answers: Vec<(MachineId, bool)> = futures::stream::iter(asked).buffer_unordered(PROBES_AT_ONCE).collect().await;
    let ids = |wanted: bool| answers.iter().filter(|(_, alive)| *alive == wanted).map(|(id, _)| *id).collect();
    Ok(Probed { alive: ids(true), silent: ids(false) })
}

/// Writes down what probes found at `now`.
pub(super) async fn note_probed(ctx: &Ctx, probed: &Probed, now: DateTime<Utc>) -> Result<()> {
    if probed.alive.is_empty() && probed.silent.is_empty() {
        return Ok(());
    }
    let sorted = |ids: &HashSet<MachineId>| {
        let mut ids: Vec<MachineId> = ids.iter().copied().collect();
        ids.sort_unstable();
        ids
    };
    let (alive, silent) = (sorted(&probed.alive), sorted(&probed.silent));
    ctx.db
        .tx("signs_of_life", async |tx| {
            queries::machine_set_seen(tx, &alive, now).await?;
            queries::machine_set_failed(tx, &silent, now).await
        })
        .await
}

// Keys

fn seal(ctx: &Ctx, id: MachineId, key: &Secret<String>) -> Result<Vec<u8>> {
    PurposeKey::derive(&ctx.config.keys.root, KEY_PURPOSE)?.seal(id.uuid().as_bytes(), key.expose().as_bytes())
}

fn open(ctx: &Ctx, id: MachineId, sealed: &[u8]) -> Result<Secret<String>> {
    let plain = PurposeKey::derive(&ctx.config.keys.root, KEY_PURPOSE)?.open(id.uuid().as_bytes(), sealed)?;
    String::from_utf8(plain).map(Secret::new).map_err(Error::internal)
}

/// Refuses an address that must not be reached. One that cannot be reached yet is fine: the engine may come up later.
async fn check_address(ctx: &Ctx, address: &EngineAddress) -> Result<()> {
    let target = Target { address: address.clone(), api_key: None, allow_private: ctx.config.allow_private_endpoints };
    match ctx.engines.check(&target).await {
        Err(error) if error.code() == Code::ForbiddenAddress => {
            let field = FieldError::new("/endpoint/url", Code::ForbiddenAddress.as_str(), error.detail());
            Err(error.with_fields(vec![field]))
        }
        _ => Ok(()),
    }
}
