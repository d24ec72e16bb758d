//! A stand-in for Stripe over HTTP, with Stripe's objects, errors, idempotency keys and webhooks, and with controls over what goes wrong.
//!
//! It is a program (`cargo run --example stripe_double`) and, included by path, a server within a test:
//! [`StripeDouble::start`]. It keeps everything in memory; nothing of Rigmark is used here, so that what it says is checked against Stripe's
//! published schema and not against our reading of it.

#![allow(dead_code, unused_imports, reason = "the program and the tests use different parts of it")]

mod balance;
mod call;
mod cards;
mod catalog;
mod changes;
mod charges;
mod checkout;
mod clock;
mod connect;
mod control;
mod customers;
mod disputes;
mod expand;
mod faults;
mod form;
mod idempotency;
mod invoices;
mod lists;
mod pages;
mod payments;
mod payouts;
mod portal;
mod refunds;
mod refusal;
mod routes;
mod server;
mod setup;
mod shapes;
mod subscriptions;
mod transfers;
mod webhooks;
mod world;

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use actix_web::dev::ServerHandle;
use actix_web::web::{Data, PayloadConfig};
use actix_web::{App, HttpServer, web};
use serde_json::Value;

pub use control::HELP;
pub use faults::{Fault, Kind};
pub use webhooks::{Release, Signature, signature};
pub use world::World;

#[derive(Clone, Debug)]
pub struct StripeDoubleConfig {
    /// `127.0.0.1:0` for a free port.
    pub bind: String,
    pub webhook_url: Option<String>,
    /// Signs webhooks.
    pub secret: String,
}

pub struct Shared {
    world: Mutex<World>,
    client: reqwest::Client,
}

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running double. Dropping it stops it.
pub struct StripeDouble {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: ServerHandle,
    thread: Option<JoinHandle<()>>,
}

impl StripeDouble {
    /// Starts on a thread and a runtime of its own. A process that has installed no TLS provider must not use another one afterwards.
    pub fn start(config: &StripeDoubleConfig) -> std::io::Result<Self> {
        let listener = TcpListener::bind(&config.bind)?;
        let address = listener.local_addr()?;
        // Fails only when one is installed already, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().map_err(std::io::Error::other)?;
        let mut world = World::default();
        world.url = format!("http://{address}");
        world.outbox.endpoint.clone_from(&config.webhook_url);
        world.outbox.secret.clone_from(&config.secret);
        let shared = Arc::new(Shared { world: Mutex::new(world), client });
        let (ready, started) = mpsc::channel();
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || serve(listener, &shared, &ready)
        });
        let server = started.recv().map_err(std::io::Error::other)??;
        Ok(Self { address, shared, server, thread: Some(thread) })
    }

    /// Without a trailing slash.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Looks at, or changes, all that the double knows.
    pub fn with<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        act(&mut self.shared.lock())
    }

    pub fn fault(&self, fault: Fault) {
        self.with(|world| world.faults.add(fault));
    }

    /// Requests to `/v1` so far, as `/_double/calls` has them.
    pub fn calls(&self) -> Vec<Value> {
        self.with(|world| world.calls.clone())
    }

    /// Moves the clock and does what falls due.
    pub fn advance(&self, seconds: i64) {
        self.with(|world| advance(world, seconds));
    }

    /// Where webhooks go from now on.
    pub fn set_webhook_url(&self, url: &str) {
        self.with(|world| world.outbox.endpoint = Some(url.to_owned()));
    }

    /// Keeps webhooks until [`Self::release`] or [`Self::resume_webhooks`].
    pub fn hold_webhooks(&self) {
        self.with(|world| world.outbox.hold());
    }

    pub fn resume_webhooks(&self) {
        self.with(|world| world.outbox.go_on());
    }

    /// Delivers as told and gives `{"event", "type", "status"}` of each delivery.
    pub async fn release(&self, how: &Release) -> Result<Vec<Value>, String> {
        webhooks::release(&self.shared, how).await
    }

    /// What `/_double/{path}` does, without HTTP; the error is Stripe's error object.
    pub fn control(&self, method: &str, path: &str, body: &Value) -> Result<Value, Value> {
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        self.with(|world| control::act(world, method, &steps, body)).map_err(|refusal| refusal.error)
    }

    /// Returns when nothing is served any more.
    pub fn stop(mut self) {
        self.end();
    }

    /// Serves until the process is told to stop.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // The command goes out at the call; the future only waits for its end, as joining does.
        drop(self.server.stop(false));
        thread.join().ok();
    }
}

impl Drop for StripeDouble {
    fn drop(&mut self) {
        self.end();
    }
}

/// Moves the clock and does what falls due.
fn advance(world: &mut World, seconds: i64) {
    world.clock.advance(seconds);
    for owner in world.owners() {
        world.acting = owner;
        balance::clear(world);
        checkout::tick(world);
        subscriptions::tick(world);
        payouts::tick(world);
    }
    world.acting = None;
}

fn serve(listener: TcpListener, shared: &Arc<Shared>, ready: &mpsc::Sender<std::io::Result<ServerHandle>>) {
    actix_web::rt::System::new().block_on(async {
        let data = Data::new(Arc::clone(shared));
        let app = move || App::new().app_data(data.clone()).app_data(PayloadConfig::new(1 << 20)).default_service(web::to(server::serve));
        let server = HttpServer::new(app).workers(1).shutdown_timeout(0).listen(listener).map(HttpServer::run);
        match server {
            Ok(server) => {
                ready.send(Ok(server.handle())).ok();
                let deliveries = actix_web::rt::spawn(webhooks::run(Arc::clone(shared)));
                server.await.ok();
                deliveries.abort();
            }
            Err(error) => {
                ready.send(Err(error)).ok();
            }
        }
    });
}
