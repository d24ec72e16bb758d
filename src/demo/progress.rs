//! What a person sees while the demo is filled: on a terminal one bar a machine and the time left, elsewhere a line every few seconds.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::base::clock::monotonic;
use crate::measure::matrix::Progress as Measuring;

const LINE_EVERY: Duration = Duration::from_secs(10);
/// Registering, publishing and renting after the last cell.
const AFTERWARDS: Duration = Duration::from_secs(3);

/// Shared by everything that is filled at once.
pub struct Display {
    /// None when standard error is no terminal.
    bars: Option<MultiProgress>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    machines: BTreeMap<&'static str, Machine>,
    last_line: Option<Instant>,
}

struct Machine {
    done: usize,
    of: usize,
    ends_at: Instant,
    bar: Option<ProgressBar>,
}

impl Default for Display {
    fn default() -> Self {
        Self { bars: std::io::stderr().is_terminal().then(MultiProgress::new), state: Mutex::default() }
    }
}

impl Display {
    /// A machine is about to be measured.
    pub(super) fn begin(&self, machine: &'static str, gpu: &str) {
        let mut state = self.lock();
        if state.machines.is_empty() {
            self.line("Filling the sandbox with demo data: its machines are measured now, which takes about a minute.");
            self.line("Stopping is safe: the next start goes on from there.");
        }
        let bar = self.bars.as_ref().map(|bars| bars.add(bar(&format!("{machine} ({gpu})"))));
        state.machines.insert(machine, Machine { done: 0, of: 0, ends_at: monotonic(), bar });
    }

    pub(super) fn measuring(&self, machine: &'static str, progress: Measuring<'_>) {
        let Measuring::Step { done, of, seconds_left, next } = progress else { return };
        let mut state = self.lock();
        let Some(at) = state.machines.get_mut(machine) else { return };
        at.done = done;
        at.of = of;
        at.ends_at = monotonic() + Duration::from_secs_f64(seconds_left.max(0.0));
        if let Some(bar) = &at.bar {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
            let left = format!("{next}, about {} s left", seconds_left.max(1.0).round());
            bar.set_message(if done < of { left } else { "measured".to_owned() });
        }
        self.tell(&mut state);
    }

    fn tell(&self, state: &mut State) {
        let now = monotonic();
        let is_due = state.last_line.is_none_or(|last| now.duration_since(last) >= LINE_EVERY);
        if self.bars.is_some() || !is_due {
            return;
        }
        state.last_line = Some(now);
        let done: usize = state.machines.values().map(|m| m.done).sum();
        let of: usize = state.machines.values().map(|m| m.of).sum();
        let left = state.machines.values().map(|m| m.ends_at.saturating_duration_since(now)).max().unwrap_or_default() + AFTERWARDS;
        self.line(&format!("  {done} of {of} steps measured on {} machines, about {} s left", state.machines.len(), left.as_secs().max(1)));
    }

    /// Something a person should know.
    pub(super) fn line(&self, text: &str) {
        match &self.bars {
            // Nothing can be done about a display that fails.
            Some(bars) => drop(bars.println(text)),
            None => eprintln!("{text}"),
        }
    }

    pub(super) fn finish(&self) {
        for machine in self.lock().machines.values() {
            if let Some(bar) = &machine.bar {
                bar.finish();
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bar(name: &str) -> ProgressBar {
    let bar = ProgressBar::new(1).with_prefix(name.to_owned());
    if let Ok(style) = ProgressStyle::with_template("  {prefix:28} {bar:20} {pos:>2}/{len:<2} {msg}") {
        bar.set_style(style);
    }
    bar
}
