//! What a person sees while a matrix is measured: a bar with the time left on a terminal, plain lines elsewhere.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::base::clock::monotonic;
use crate::measure::matrix::Progress;

/// The bar's units for a second.
const UNITS: f64 = 1_000.0;

pub(super) struct Display {
    /// None when standard error is no terminal.
    bar: Option<ProgressBar>,
    started: Instant,
    ends_at: Arc<Mutex<Instant>>,
    /// The step at hand.
    step: Mutex<String>,
}

impl Display {
    pub(super) fn new() -> Self {
        let started = monotonic();
        let ends_at = Arc::new(Mutex::new(started));
        let bar = std::io::stderr().is_terminal().then(|| bar(ends_at.clone()));
        Self { bar, started, ends_at, step: Mutex::default() }
    }

    pub(super) fn show(&self, progress: Progress<'_>) {
        match &self.bar {
            Some(bar) => self.draw(bar, progress),
            None => print(progress),
        }
    }

    fn draw(&self, bar: &ProgressBar, progress: Progress<'_>) {
        match progress {
            // The bar tells what is going on; lines are for results and for what a person must know.
            Progress::Line(line) => {
                if [" done", " failed", "skip ", "timeout", "WARNING"].iter().any(|word| line.contains(word)) {
                    bar.println(line);
                }
            }
            Progress::Step { done, of, seconds_left, next } => {
                *lock(&self.ends_at) = monotonic() + Duration::from_secs_f64(seconds_left.max(0.0));
                let step = format!("{} of {of}, {next}", (done + 1).min(of));
                bar.set_message(step.clone());
                *lock(&self.step) = step;
            }
            Progress::Doing(what) => bar.set_message(format!("{}: {what}", lock(&self.step))),
            Progress::Document(_) => {}
        }
        let (gone, left) = (self.started.elapsed(), lock(&self.ends_at).saturating_duration_since(monotonic()));
        bar.set_length(((gone + left).as_secs_f64() * UNITS) as u64);
        bar.set_position((gone.as_secs_f64() * UNITS) as u64);
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn print(progress: Progress<'_>) {
    match progress {
        Progress::Line(line) => eprintln!("{line}"),
        Progress::Step { done, of, seconds_left, next } if done < of => {
            eprintln!("step {} of {of}, {next}, about {} left", done + 1, seconds_text(seconds_left));
        }
        Progress::Step { .. } | Progress::Doing(_) | Progress::Document(_) => {}
    }
}

fn bar(ends_at: Arc<Mutex<Instant>>) -> ProgressBar {
    let bar = ProgressBar::new(1);
    let left = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let end = *lock(&ends_at);
        // Nothing can be done about a display that fails.
        let _ = out.write_str(&seconds_text(end.saturating_duration_since(monotonic()).as_secs_f64()));
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:30}  about {left} left  {msg}") {
        bar.set_style(style.with_key("left", left));
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn seconds_text(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let mut text = String::new();
    if whole >= 60 {
        let _ = write!(text, "{} min ", whole / 60);
    }
    let _ = write!(text, "{} s", whole % 60);
    text
}
