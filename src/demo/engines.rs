//! The demo's simulated engines. They live in this process, on ports that the data directory remembers, so that a machine keeps its address
//! from one start to the next.
//!
//! Invariant: one process runs the demo of a data directory; the kernel releases its lock however that process ends.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use super::cast::{HOSTS, Host};
use crate::base::{Code, Error, Result};
use crate::config::Config;
use crate::measure::simulated::{self, SimulatedConfig, SimulatedEngine};

/// Below the ports that the system hands out, so that nobody is given one of ours between two starts.
const PORTS: std::ops::Range<u16> = 9_100..9_400;
const PORTS_FILE: &str = "demo-engines.json";
const LOCK_FILE: &str = "demo.lock";

/// The running engines. Dropping them closes their ports.
pub struct Engines {
    running: BTreeMap<&'static str, SimulatedEngine>,
    hosts: Vec<Host>,
    is_first_start: bool,
    _lock: File,
}

impl Engines {
    /// Starts the engines of every host of the demo. Done before the server starts, so that its first look finds the machines answering.
    ///
    /// # Errors
    /// A sentence for the operator: not the sandbox, private addresses not allowed, another demo on this data directory, no free port.
    pub fn start(config: &Config) -> Result<Self> {
        Self::start_some(config, &HOSTS)
    }

    /// [`Engines::start`] for fewer hosts.
    ///
    /// # Errors
    /// As there.
    pub fn start_some(config: &Config, hosts: &[Host]) -> Result<Self> {
        if !config.mode.is_sandbox() {
            return Err(refused("The demo is for the sandbox: unset STRIPE_SECRET_KEY."));
        }
        if !config.allow_private_endpoints {
            let why = "The demo's engines listen on 127.0.0.1, and engines at private addresses are not allowed here: \
                bind the server to a loopback address (RIGMARK_BIND) and do not switch RIGMARK_ALLOW_PRIVATE_ENDPOINTS off.";
            return Err(refused(why));
        }
        std::fs::create_dir_all(&config.data_dir).map_err(at(&config.data_dir))?;
        let lock = lock(&config.data_dir.join(LOCK_FILE))?;
        let file = config.data_dir.join(PORTS_FILE);
        let remembered = read(&file)?;
        let mut ports = remembered.clone().unwrap_or_default();
        let mut running = BTreeMap::new();
        for host in hosts {
            let listener = bind(ports.get(host.machine).copied())?;
            let port = listener.local_addr().map_err(Error::internal)?.port();
            ports.insert(host.machine.to_owned(), port);
            running.insert(host.machine, simulated::start_on(SimulatedConfig::for_hardware(host.model, host.hardware)?, listener)?);
        }
        if remembered.as_ref() != Some(&ports) {
            write(&file, &ports)?;
        }
        Ok(Self { running, hosts: hosts.to_vec(), is_first_start: remembered.is_none(), _lock: lock })
    }

    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Where the engine of a host's machine listens.
    ///
    /// # Errors
    /// `internal` for a host whose engine was not started.
    pub fn url(&self, host: &Host) -> Result<&str> {
        self.running.get(host.machine).map(SimulatedEngine::url).ok_or_else(|| Error::internal("no engine was started for this host"))
    }

    /// Whether this data directory had no demo before: a guess, for choosing what to try first.
    pub const fn is_first_start(&self) -> bool {
        self.is_first_start
    }

    /// Closes the ports and breaks off every answer.
    pub async fn stop(self) {
        for engine in self.running.into_values() {
            engine.stop().await;
        }
    }
}

fn refused(why: &'static str) -> Error {
    Error::new(Code::InvalidInput, why)
}

/// The remembered port, or the first free one of ours.
fn bind(remembered: Option<u16>) -> Result<TcpListener> {
    remembered
        .into_iter()
        .chain(PORTS)
        .find_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
        .ok_or_else(|| Error::new(Code::Unavailable, format!("No free port from {} to {} for a simulated engine.", PORTS.start, PORTS.end)))
}

fn lock(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(at(path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) => Err(at(path)(error)),
        Err(TryLockError::WouldBlock) => {
            let folder = path.parent().unwrap_or(path);
            let detail = format!("Another Rigmark is running the demo of {} already; nothing is left to do.", folder.display());
            Err(Error::new(Code::Unavailable, detail))
        }
    }
}

/// `None` when there is no such file, or when it holds something else: the ports are a convenience.
fn read(path: &Path) -> Result<Option<BTreeMap<String, u16>>> {
    match std::fs::read(path) {
        Ok(text) => Ok(serde_json::from_slice(&text).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
    }
}

/// Whole or not at all.
fn write(path: &Path, ports: &BTreeMap<String, u16>) -> Result<()> {
    let text = serde_json::to_vec_pretty(ports).map_err(Error::internal)?;
    let draft: PathBuf = path.with_extension("draft");
    std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path)).map_err(at(path))
}

fn at(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |error| Error::new(Code::Unavailable, format!("{}: {error}", path.display())).with_source(error)
}
