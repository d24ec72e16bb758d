//! The address of an engine that is gone. It stays taken, since another test's engine would otherwise soon answer there.

use std::net::TcpListener;
use std::time::Duration;

use rigmark::measure::simulated::{self, SimulatedConfig, SimulatedEngine};
use tokio::task::JoinHandle;

use super::wait_for;

/// Whoever connects is hung up on. Until it is dropped.
pub struct Gone {
    listener: TcpListener,
    hanging_up: JoinHandle<()>,
}

impl Gone {
    /// Stops the engine and takes its address.
    pub async fn engine(engine: SimulatedEngine) -> Self {
        let url = engine.url().to_owned();
        engine.stop().await;
        Self::at(&url).await
    }

    /// Takes the address as soon as whoever had it has let go.
    pub async fn at(url: &str) -> Self {
        let address = url.strip_prefix("http://").unwrap();
        let mut bound = None;
        wait_for("the address to be free", Duration::from_secs(10), async || {
            bound = TcpListener::bind(address).ok();
            bound.is_some()
        })
        .await;
        let listener = bound.unwrap();
        listener.set_nonblocking(true).unwrap();
        let door = tokio::net::TcpListener::from_std(listener.try_clone().unwrap()).unwrap();
        let hanging_up = tokio::spawn(async move { while door.accept().await.is_ok() {} });
        Self { listener, hanging_up }
    }

    /// A new engine at the same address.
    pub async fn come_back(self) -> SimulatedEngine {
        self.hanging_up.abort();
        let listener = self.listener.try_clone().unwrap();
        let config = SimulatedConfig::at_speed("org/model", 500.0, 50_000.0).unwrap();
        simulated::start_on(config, listener).unwrap()
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        self.hanging_up.abort();
    }
}
