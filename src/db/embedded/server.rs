//! The running server process.
//!
//! Linux sends the parent-death signal when the *thread* that spawned the child ends, so one thread spawns the server and stays with it until
//! the end. It also starts the server again, on the same port, should it end by itself.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::base::{Result, clock};

use super::{account::Account, at, binaries::Binaries, cluster, home::Home};

const STOP_ORDERLY_SECONDS: u64 = 30;
const STOP_AT_ONCE_SECONDS: u64 = 5;
const RESTARTS_MAX: u32 = 5;
/// A server that ran this long counts as healthy again.
const HEALTHY_SECONDS: u64 = 60;
const LOG_BYTES_MAX: u64 = 10_000_000;

/// For a server whose data need not survive the machine: nothing waits for the disk, and nothing is written to it early. Not
/// `synchronous_commit=off`: that loses commits already when only the server is killed.
const UNSAFE_SETTINGS: [&str; 9] = [
    "fsync=off",
    "full_page_writes=off",
    "wal_level=minimal",
    "max_wal_senders=0",
    "max_wal_size=512MB",
    "checkpoint_timeout=1h",
    "checkpoint_flush_after=0",
    "bgwriter_flush_after=0",
    "backend_flush_after=0",
];

/// Everything needed to start the server, again and again.
pub(super) struct Launch {
    account: Account,
    program: PathBuf,
    cluster: PathBuf,
    log: PathBuf,
    port: u16,
    settings: Vec<String>,
}

impl Launch {
    /// Chooses a free port.
    pub(super) fn new(home: &Home, account: Account, binaries: &Binaries, fsync: bool) -> Result<Self> {
        let loopback = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let port = loopback.map_err(at(&home.cluster()))?.port();
        let mut settings: Vec<String> = [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=200",
            "timezone=UTC",
            "log_timezone=UTC",
            "log_min_messages=warning",
            // Details quote the values of rows: mail addresses have no place in a log.
            "log_error_verbosity=terse",
            // Compiling a query takes longer than any of ours.
            "jit=off",
            "log_line_prefix=%m [%p] ",
        ]
        .map(str::to_owned)
        .into();
        settings.push(format!("port={port}"));
        if !fsync {
            settings.extend(UNSAFE_SETTINGS.map(str::to_owned));
        }
        Ok(Self { account, program: binaries.path("postgres"), cluster: home.cluster(), log: home.log(), port, settings })
    }

    fn spawn(&self) -> std::io::Result<Child> {
        if std::fs::metadata(&self.log).is_ok_and(|log| log.len() > LOG_BYTES_MAX) {
            std::fs::rename(&self.log, self.log.with_extension("log.1"))?;
        }
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(&self.log)?;
        self.account.own(&self.log).map_err(std::io::Error::other)?;
        let mut command = self.account.command(&self.program);
        command.arg("-D").arg(&self.cluster);
        for setting in &self.settings {
            command.arg("-c").arg(setting);
        }
        command.stdout(log.try_clone()?).stderr(Stdio::from(log)).spawn()
    }

    /// Whether the server `pid` accepts connections: it says so in the eighth line of its pid file.
    fn is_ready(&self, pid: u32) -> bool {
        let text = std::fs::read_to_string(self.cluster.join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines();
        lines.next().is_some_and(|line| line.trim() == pid.to_string()) && lines.nth(6).is_some_and(|line| line.trim() == "ready")
    }

    fn log_length(&self) -> u64 {
        std::fs::metadata(&self.log).map_or(0, |log| log.len())
    }

    fn log_since(&self, offset: u64) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.log)?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(20_000).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
    }
}

/// Why the server did not start.
pub(super) struct StartFailure {
    text: String,
}

impl StartFailure {
    /// The port was taken meanwhile, or the last processes of a killed server are just ending.
    pub(super) fn is_transient(&self) -> bool {
        ["could not bind", "could not create any TCP/IP sockets", "is still in use"].iter().any(|sign| self.text.contains(sign))
    }
}

impl fmt::Display for StartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL did not start: {}", self.text)
    }
}

#[derive(Default)]
struct State {
    pid: Option<libc::pid_t>,
    /// Set once the first start succeeded: from then on the thread restarts the server.
    established: bool,
    stopping: bool,
    /// The thread will not start the server again.
    over: bool,
    failure: Option<String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `true` when the server's thread has come to its end within `bound`.
    fn wait_over(&self, bound: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), bound, |state| !state.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    fn signal(&self, signal: libc::c_int) {
        if let Some(pid) = self.lock().pid {
            // SAFETY: a system call on values. The child is not reaped while its id is in the state, so the id is still its own.
            unsafe { libc::kill(pid, signal) };
        }
    }
}

pub(super) struct Server {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    port: u16,
}

impl Server {
    /// Returns when the server accepts connections.
    pub(super) fn start(launch: Launch, bound: Duration) -> Result<Self, StartFailure> {
        let launch = Arc::new(launch);
        let shared = Arc::new(Shared::default());
        let offset = launch.log_length();
        let thread = std::thread::Builder::new().name("postgres".to_owned()).spawn({
            let (launch, shared) = (Arc::clone(&launch), Arc::clone(&shared));
            move || supervise(&launch, &shared)
        });
        let thread = thread.map_err(|error| StartFailure { text: error.to_string() })?;
        let mut server = Self { shared, thread: Some(thread), port: launch.port };
        let mut ended = false;
        super::poll(bound, || {
            let mut state = server.shared.lock();
            ended = state.over;
            state.established = !ended && state.pid.is_some_and(|pid| launch.is_ready(pid.cast_unsigned()));
            ended || state.established
        });
        if server.shared.lock().established {
            return Ok(server);
        }
        let spawn_failure = server.shared.lock().failure.take();
        server.stop();
        let said = launch.log_since(offset);
        let text = spawn_failure.unwrap_or_else(|| if ended { said } else { format!("not ready after {} s.\n{said}", bound.as_secs()) });
        Err(StartFailure { text })
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.shared.lock().pid.map(libc::pid_t::cast_unsigned)
    }

    /// Stops the server: open connections are ended, then everything is written; harder if that takes too long.
    pub(super) fn stop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        for (signal, seconds) in [(libc::SIGINT, STOP_ORDERLY_SECONDS), (libc::SIGQUIT, STOP_AT_ONCE_SECONDS), (libc::SIGKILL, 1)] {
            self.shared.signal(signal);
            if self.shared.wait_over(Duration::from_secs(seconds)) {
                break;
            }
        }
        if thread.join().is_err() {
            tracing::error!("the thread that keeps PostgreSQL has panicked");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Body of the thread: one server after the other until it is told to stop, the first start fails, or there were too many restarts.
fn supervise(launch: &Launch, shared: &Shared) {
    let mut restarts = 0;
    loop {
        let start = clock::monotonic();
        let how = match run(launch, shared) {
            Ok(how) => how,
            Err(error) => {
                shared.lock().failure = Some(format!("{}: {error}", launch.program.display()));
                error.to_string()
            }
        };
        if start.elapsed() > Duration::from_secs(HEALTHY_SECONDS) {
            restarts = 0;
        }
        let mut state = shared.lock();
        if state.stopping || !state.established || restarts == RESTARTS_MAX {
            if state.established && !state.stopping {
                tracing::error!(how, "PostgreSQL has ended again; giving up");
            }
            state.over = true;
            shared.changed.notify_all();
            return;
        }
        drop(state);
        restarts += 1;
        tracing::error!(how, restarts, log = %launch.log.display(), "PostgreSQL has ended; starting it again");
        cluster::settle(&launch.cluster);
        let pause = Duration::from_millis(100 << restarts);
        drop(shared.changed.wait_timeout_while(shared.lock(), pause, |state| !state.stopping).unwrap_or_else(PoisonError::into_inner));
    }
}

/// Runs the server once, to its end.
fn run(launch: &Launch, shared: &Shared) -> std::io::Result<String> {
    let mut child = {
        let mut state = shared.lock();
        if state.stopping {
            return Ok("stopped".to_owned());
        }
        let child = launch.spawn()?;
        state.pid = Some(child.id().cast_signed());
        child
    };
    wait_unreaped(&child);
    // Reaped only after the id is withdrawn, so that nobody signals a stranger.
    shared.lock().pid = None;
    child.wait().map(|status| status.to_string())
}

fn wait_unreaped(child: &Child) {
    loop {
        // SAFETY: siginfo_t is plain data, and the call writes only to it.
        let code = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, child.id(), &raw mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if code == 0 || std::io::Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
            return;
        }
    }
}
