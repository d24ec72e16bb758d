//! `rigmark reverify`.

use std::{io::IsTerminal, process::ExitCode, time::Duration};

use indicatif::{ProgressBar, ProgressStyle};

use super::{private_database, signals::Signals};
use crate::{
    app::{self, Parts},
    base::Result,
    benchmarks::{reverify::model::Pass, service::Reverification},
    config::{LogArgs, ServeArgs},
};

/// Runs between two lines of progress where there is no terminal.
const RUNS_A_LINE: i64 = 1_000;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    serve: ServeArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    args.log.install(true);
    let mut config = args.serve.into_config()?;
    private_database::join(&mut config)?;
    let mut signals = Signals::new()?;
    let running = app::start(config, Parts { http: false, workers: false }).await?;
    let mut work = Reverification::begin(&running.ctx).await?;
    let mut display = Display::of(work.pass());
    let done = loop {
        tokio::select! {
            step = work.step() => match step {
                Ok(true) => display.show(work.pass()),
                Ok(false) => break Ok(true),
                Err(error) => break Err(error),
            },
            () = signals.wait() => break Ok(false),
        }
    };
    display.finish();
    running.stop().await?;
    Ok(report(work.pass(), done?))
}

fn report(pass: &Pass, is_finished: bool) -> ExitCode {
    let Pass { runs_done, runs_changed, runs_unreadable, rules_version, .. } = pass;
    if !is_finished {
        println!("Stopped after {runs_done} of {} runs. The same command goes on from here.", pass.runs_total);
        return ExitCode::from(130);
    }
    println!("Runs judged by rules {rules_version}: {runs_done}. With another verdict or evidence level: {runs_changed}.");
    if *runs_unreadable == 0 {
        return ExitCode::SUCCESS;
    }
    println!("Not to be judged, so left as they were: {runs_unreadable}. The log names them.");
    ExitCode::FAILURE
}

/// A bar with the time left on a terminal, a line now and then elsewhere.
struct Display {
    bar: Option<ProgressBar>,
    /// Lines written where there is none.
    lines: i64,
}

impl Display {
    fn of(pass: &Pass) -> Self {
        if pass.runs_done > 0 {
            eprintln!("Going on after {} runs.", pass.runs_done);
        }
        Self { bar: std::io::stderr().is_terminal().then(|| bar(pass)), lines: pass.runs_done / RUNS_A_LINE }
    }

    fn show(&mut self, pass: &Pass) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(pass.runs_total.max(pass.runs_done).unsigned_abs());
                bar.set_position(pass.runs_done.unsigned_abs());
            }
            None if pass.runs_done / RUNS_A_LINE > self.lines => {
                self.lines = pass.runs_done / RUNS_A_LINE;
                eprintln!("{} of {} runs, {} changed", pass.runs_done, pass.runs_total, pass.runs_changed);
            }
            None => {}
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn bar(pass: &Pass) -> ProgressBar {
    let bar = ProgressBar::new(pass.runs_total.unsigned_abs()).with_position(pass.runs_done.unsigned_abs());
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} runs  {per_sec}  about {eta} left") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(250));
    bar.reset_eta();
    bar
}
