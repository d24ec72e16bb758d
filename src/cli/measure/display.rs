//! What a person sees while a matrix is measured: a bar with the time left on a terminal, plain lines elsewhere.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::base::clock::monotonic;
use crate::measure::matrix::Progress;

pub(super) struct Display {
    /// None when standard error is no terminal.
    bar: Option<ProgressBar>,
    ends_at: Arc<Mutex<Instant>>,
}

impl Display {
    pub(super) fn new() -> Self {
        let ends_at = Arc::new(Mutex::new(monotonic()));
        let bar = std::io::stderr().is_terminal().then(|| bar(ends_at.clone()));
        Self { bar, ends_at }
    }

    pub(super) fn show(&self, progress: Progress<'_>) {
        match (progress, &self.bar) {
            (Progress::Line(line), None) => eprintln!("{line}"),
            (Progress::Line(line), Some(bar)) => {
                // On a terminal the bar tells what is going on; lines are for results and for what a person must know.
                if [" done", " failed", "skip ", "timeout", "WARNING"].iter().any(|word| line.contains(word)) {
                    bar.println(line);
                }
            }
            (Progress::Step { done, of, seconds_left, next }, None) => {
                if done < of {
                    eprintln!("step {} of {of}, {next}, about {} left", done + 1, seconds_text(seconds_left));
                }
            }
            (Progress::Step { done, of, seconds_left, next }, Some(bar)) => {
                *self.ends_at.lock().unwrap_or_else(PoisonError::into_inner) = monotonic() + Duration::from_secs_f64(seconds_left.max(0.0));
                bar.set_length(of as u64);
                bar.set_position(done as u64);
                bar.set_message(next);
            }
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(ends_at: Arc<Mutex<Instant>>) -> ProgressBar {
    let bar = ProgressBar::new(1);
    let left = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let end = *ends_at.lock().unwrap_or_else(PoisonError::into_inner);
        // Nothing can be done about a display that fails.
        let _ = out.write_str(&seconds_text(end.saturating_duration_since(monotonic()).as_secs_f64()));
    };
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}  about {left} left") {
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
