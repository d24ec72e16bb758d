//! One real Redis server a test run, and a key prefix of its own for each test.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use rigmark::base::clock;

use super::{TempDir, exit::at_exit};

static SERVER: LazyLock<String> = LazyLock::new(|| {
    let url = RedisServer::start();
    at_exit(|| drop(SHARED.lock().unwrap_or_else(PoisonError::into_inner).take()));
    let address = url.url();
    *SHARED.lock().unwrap() = Some(url);
    address
});
static SHARED: Mutex<Option<RedisServer>> = Mutex::new(None);

/// The Redis of this test run, for one test.
pub fn redis() -> TestRedis {
    static NUMBER: AtomicU32 = AtomicU32::new(1);
    TestRedis { url: SERVER.clone(), prefix: format!("t_{}:", NUMBER.fetch_add(1, Ordering::Relaxed)) }
}

pub struct TestRedis {
    pub url: String,
    /// To be put before every key and channel.
    pub prefix: String,
}

/// A server of its own, for tests that stop it.
pub struct RedisServer {
    child: Child,
    port: u16,
    directory: TempDir,
    /// Dropping it lets the thread end that the server's life hangs on.
    _keeper: std::sync::mpsc::Sender<()>,
}

impl RedisServer {
    /// On a free port.
    pub fn start() -> Self {
        // Another program may take the port between the choice and the start.
        (0..10).find_map(|_| Self::start_on(free_port())).expect("redis-server starts on a free port")
    }

    /// On the port of a server that was stopped; `None` when it is not to be had.
    pub fn start_on(port: u16) -> Option<Self> {
        let directory = TempDir::new();
        let (mut child, keeper) = spawn(port, &directory);
        let start = clock::monotonic();
        loop {
            if child.try_wait().unwrap().is_some() {
                return None;
            }
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Some(Self { child, port, directory, _keeper: keeper });
            }
            assert!(start.elapsed() < Duration::from_secs(20), "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub const fn port(&self) -> u16 {
        self.port
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        // The directory goes after the server that writes to it.
        let _ = &self.directory;
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// The parent-death signal comes when the spawning *thread* ends, so one thread spawns the server and waits for the end of the run.
fn spawn(port: u16, directory: &TempDir) -> (Child, std::sync::mpsc::Sender<()>) {
    let (keeper, end) = channel::<()>();
    let (children, child) = channel();
    // Some distributions have Redis by its successor's name only.
    let mut commands = ["redis-server", "valkey-server"].map(|program| command(program, port, directory));
    std::thread::Builder::new()
        .name("test-redis".to_owned())
        .spawn(move || {
            let [redis, valkey] = &mut commands;
            let spawned = redis.spawn().or_else(|error| if error.kind() == ErrorKind::NotFound { valkey.spawn() } else { Err(error) });
            children.send(spawned).unwrap();
            wait_for_end(&end);
        })
        .unwrap();
    let child = child.recv().unwrap().unwrap_or_else(|error| panic!("redis-server: {error}. Install what the tests need: make setup"));
    (child, keeper)
}

fn command(program: &str, port: u16, directory: &TempDir) -> Command {
    let mut command = Command::new(program);
    command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--port", &port.to_string(), "--dir"]).arg(directory.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    // SAFETY: one system call between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    command
}

/// Returns when the sender is dropped.
fn wait_for_end(end: &Receiver<()>) {
    while end.recv().is_ok() {}
}
