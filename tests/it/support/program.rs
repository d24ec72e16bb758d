//! The real program in a process of its own, for tests of starting, stopping and being killed. Its private database is in its data directory.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A first start makes a cluster and migrates; the machine may be busy.
const START_SECONDS_MAX: u64 = 120;

/// A running `rigmark serve` in the sandbox. Killed when dropped.
pub struct Program {
    child: Child,
    pub base_url: String,
}

impl Program {
    /// Starts on a free port and returns when it says that it serves. `more` are further arguments.
    pub fn serve(data_dir: &Path, more: &[&str]) -> Self {
        let log = std::fs::OpenOptions::new().create(true).append(true).open(data_dir.join("test-stderr.log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rigmark"));
        command.args(["serve", "--bind", "127.0.0.1:0", "--data-dir"]).arg(data_dir).args(more);
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        if let Some(bin_dir) = std::env::var_os("PG_BIN_DIR") {
            command.env("PG_BIN_DIR", bin_dir);
        }
        let mut child = command.process_group(0).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        match address(stdout) {
            Ok(base_url) => Self { child, base_url },
            Err(said) => {
                child.kill().ok();
                child.wait().ok();
                let log = std::fs::read_to_string(data_dir.join("test-stderr.log")).unwrap_or_default();
                panic!("rigmark serve did not start.\n{said}\n{log}");
            }
        }
    }

    /// As `kill -9`: nothing is written or closed.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// As Ctrl-C; waits for the end.
    pub fn interrupt(mut self) -> ExitStatus {
        // SAFETY: a system call on values; the child has not been reaped.
        assert_eq!(unsafe { libc::kill(self.child.id().cast_signed(), libc::SIGINT) }, 0);
        self.child.wait().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Reads up to the line with the address; goes on reading on a thread, so that the program never waits for a reader. `Err`: what it said.
fn address(stdout: ChildStdout) -> Result<String, String> {
    let (lines, line) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            lines.send(line).ok();
        }
    });
    let mut said = String::new();
    loop {
        match line.recv_timeout(Duration::from_secs(START_SECONDS_MAX)) {
            Ok(line) => match line.split_once(" serves http") {
                Some((_, address)) => return Ok(format!("http{}", address.trim())),
                None => said.push_str(&format!("{line}\n")),
            },
            Err(RecvTimeoutError::Timeout) => return Err(format!("{said}(silent for {START_SECONDS_MAX} s)")),
            Err(RecvTimeoutError::Disconnected) => return Err(said),
        }
    }
}
