//! What tells a process that runs until it is told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::base::{Error, Result};

/// SIGINT (Ctrl-C) and SIGTERM. From the making of this on they no longer end the process by themselves.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).map_err(Error::internal)?,
            interrupt: signal(SignalKind::interrupt()).map_err(Error::internal)?,
        })
    }

    /// Returns with the next of them.
    pub(super) async fn wait(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
