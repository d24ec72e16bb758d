//! The thread that lets the planned time of each step pass. Steps begin where the one before ended by plan, not by the clock, so late
//! wake-ups do not add up and the mean rate is the law's.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::SimulatedConfig;
use super::metrics::Totals;
use super::request::Job;
use super::scheduler::{Event, Scheduler};
use crate::base::{Error, Result, clock};

/// A delay beyond this is a stall of the machine; it is not made up for by a burst of tokens.
const CATCH_UP_MAX: Duration = Duration::from_millis(250);

enum Command {
    Submit(Job, tokio::sync::mpsc::UnboundedSender<Event>),
    Stop,
}

pub struct Driver {
    commands: Mutex<Sender<Command>>,
    stopped: AtomicBool,
    totals: Arc<Totals>,
    speed_factor: Arc<AtomicU64>,
}

impl Driver {
    pub fn start(config: Arc<SimulatedConfig>) -> Result<Arc<Self>> {
        let (commands, inbox) = channel();
        let totals = Arc::new(Totals::default());
        let speed_factor = Arc::new(AtomicU64::new(1.0_f64.to_bits()));
        let scheduler = Scheduler::new(config, totals.clone());
        let factor = speed_factor.clone();
        std::thread::Builder::new()
            .name("simulated-engine".to_owned())
            .spawn(move || run(scheduler, &inbox, &factor))
            .map_err(Error::internal)?;
        Ok(Arc::new(Self { commands: Mutex::new(commands), stopped: AtomicBool::new(false), totals, speed_factor }))
    }

    /// Queues a request. The receiver ends without `Event::End` when the engine is stopped.
    pub fn submit(&self, job: Job) -> UnboundedReceiver<Event> {
        let (sender, receiver) = unbounded_channel();
        self.send(Command::Submit(job, sender));
        receiver
    }

    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    pub fn stop(&self) {
        if !self.stopped.swap(true, Relaxed) {
            self.send(Command::Stop);
        }
    }

    pub fn set_speed_factor(&self, factor: f64) {
        self.speed_factor.store(factor.clamp(1e-3, 1e3).to_bits(), Relaxed);
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    fn send(&self, command: Command) {
        let commands = self.commands.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // The thread is gone only after a stop; then the request's channel closes by itself.
        let _gone = commands.send(command);
    }
}

fn run(mut scheduler: Scheduler, inbox: &Receiver<Command>, speed_factor: &AtomicU64) {
    let mut free_at = clock::monotonic();
    loop {
        let Some(planned) = scheduler.plan() else {
            match inbox.recv() {
                Ok(Command::Submit(job, events)) => scheduler.submit(job, events),
                Ok(Command::Stop) | Err(_) => return,
            }
            free_at = clock::monotonic();
            continue;
        };
        free_at += planned.div_f64(f64::from_bits(speed_factor.load(Relaxed)));
        if !wait_until(&mut scheduler, inbox, free_at) {
            return;
        }
        scheduler.complete();
        let now = clock::monotonic();
        if now.saturating_duration_since(free_at) > CATCH_UP_MAX {
            free_at = now;
        }
    }
}

/// Takes in requests until `end`; `false` when the engine is to stop.
fn wait_until(scheduler: &mut Scheduler, inbox: &Receiver<Command>, end: Instant) -> bool {
    loop {
        match inbox.recv_timeout(end.saturating_duration_since(clock::monotonic())) {
            Ok(Command::Submit(job, events)) => scheduler.submit(job, events),
            Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => return true,
        }
    }
}
