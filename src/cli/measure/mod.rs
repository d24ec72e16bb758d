//! `rigmark measure`: runs a matrix against any OpenAI-compatible engine, by a challenge of a Rigmark server or by arguments, writes the
//! document and, if wished, uploads it.

mod display;
mod server;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::signals::Signals;
use crate::base::clock::Clock;
use crate::base::secret::Secret;
use crate::base::{Code, Error, Result};
use crate::engines::{EngineAddress, EngineClient, Target};
use crate::measure::matrix::{MatrixOutcome, MatrixPlan, Progress, go_on, parse_tokens};
use crate::measure::resume::Earlier;
use server::{Challenge, RunAnswer, Server};

const DURATION_SECONDS: f64 = 30.0;
const MAX_TOKENS: u64 = 8192;
/// As shells have it for SIGINT.
const INTERRUPTED: u8 = 130;

pub(super) const EXAMPLES: &str = "\
Examples:
  Answer a challenge:
    RIGMARK_API_KEY=rmk_… rigmark measure --url http://127.0.0.1:8000 --challenge chl_… --server https://rigmark.example.org
  Look at an engine for oneself:
    rigmark measure --url http://127.0.0.1:8000 --contexts 0,16k --concurrency 1,8 --prefill-contexts 8k --duration 10 --output mine.json
  Go on after Ctrl-C or a crash, with the same arguments:
    rigmark measure --url http://127.0.0.1:8000 --contexts 0,16k --concurrency 1,8 --prefill-contexts 8k --duration 10 --resume mine.json

What the figures mean:
  prefill   prompt tokens / time to first token, of one request with a prompt that the engine cannot have seen
  decode    tokens that came within the window / seconds from the window's start to its last token; the window opens when every stream has
            had tokens and nothing has waited for some seconds
  tokens    counted from the stream: by the usage of each chunk, or one a chunk where the engine sends usage only at the end
  TTFT      from sending a request to its first token, reasoning or answer; the empty first chunk is none";

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The engine, without /v1: http://127.0.0.1:8000.
    #[arg(long, required_unless_present = "upload_file")]
    url: Option<String>,
    /// Served model, when there are several.
    #[arg(long)]
    model: Option<String>,
    /// Key of the engine, if it wants one.
    #[arg(long, env = "RIGMARK_ENGINE_KEY", hide_env_values = true)]
    engine_key: Option<String>,
    /// Challenge to answer (chl_…).
    #[arg(long, requires = "server", conflicts_with_all = ["contexts", "concurrency", "prefill_contexts", "duration", "max_tokens"])]
    challenge: Option<String>,
    /// The Rigmark server: https://rigmark.example.org.
    #[arg(long)]
    server: Option<String>,
    /// Your Rigmark key (rmk_…) with scope runs:write.
    #[arg(long, env = "RIGMARK_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
    /// Context lengths in tokens, such as 0,16k.
    #[arg(long, value_delimiter = ',', value_parser = parse_tokens, default_value = "0,16k,32k,64k,128k")]
    contexts: Vec<u64>,
    /// Numbers of streams at once.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=4096), default_value = "1,2,4,8,16,32,64,128")]
    concurrency: Vec<u32>,
    /// Contexts whose reading is measured, beside those of --contexts.
    #[arg(long, value_delimiter = ',', value_parser = parse_tokens, default_value = "8k,64k,128k")]
    prefill_contexts: Vec<u64>,
    /// Seconds that each cell is counted for.
    #[arg(long, default_value_t = DURATION_SECONDS)]
    duration: f64,
    /// Longest answer in tokens; decides with the context what fits the KV cache.
    #[arg(long, default_value_t = MAX_TOKENS, value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: u64,
    /// Where the document goes; by default rigmark-<challenge or time>.json here.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Go on with this file of an earlier run: cells that it holds are kept if engine, model and arguments are the same.
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    resume: Option<PathBuf>,
    /// Upload the document (always done with --challenge).
    #[arg(long, requires = "server")]
    upload: bool,
    /// Machine the run belongs to (mch_…), for --upload without a challenge.
    #[arg(long)]
    machine: Option<String>,
    /// Measure nothing; upload this document of an earlier run.
    #[arg(long, requires = "server", conflicts_with_all = ["url", "resume"])]
    upload_file: Option<PathBuf>,
}

pub(super) async fn run(args: Args) -> Result<ExitCode> {
    let server = match &args.server {
        Some(url) => Some(Server::new(url, args.api_key.clone().map(Secret::new))?),
        None => None,
    };
    let challenge = match (&server, &args.challenge) {
        (Some(server), Some(id)) => Some(server.challenge(id).await?),
        _ => None,
    };
    let path = match &args.upload_file {
        Some(path) => path.clone(),
        None => match measure(&args, challenge.as_ref()).await? {
            Some(path) => path,
            None => return Ok(ExitCode::from(INTERRUPTED)),
        },
    };
    let Some(server) = server.filter(|_| args.upload || args.challenge.is_some() || args.upload_file.is_some()) else {
        return Ok(ExitCode::SUCCESS);
    };
    upload(&args, &server, challenge.as_ref(), &path).await
}

/// Runs the matrix and writes the document; `None` when it was interrupted.
async fn measure(args: &Args, challenge: Option<&Challenge>) -> Result<Option<PathBuf>> {
    let target = target(args)?;
    let client = EngineClient::for_measuring()?;
    let plan = plan(args, challenge)?;
    let path = args.resume.clone().or_else(|| args.output.clone()).unwrap_or_else(|| default_path(args.challenge.as_deref()));
    let earlier = args.resume.as_deref().map(read_earlier).transpose()?;
    // Better now than after hours.
    write_beside(&path, "").and_then(std::fs::remove_file).map_err(|e| unwritable(&path, e))?;
    let model = match (&args.model, challenge.and_then(Challenge::model_name)) {
        (Some(model), _) => Some(model.clone()),
        // The challenge names the model by its catalog name, the engine may serve it under another.
        (None, Some(name)) => client.models(&target).await?.into_iter().find(|served| *served == name),
        (None, None) => None,
    };
    let (cancel, mut signals) = (CancellationToken::new(), Signals::new()?);
    let interrupt = cancel.clone();
    let watch = tokio::spawn(async move {
        signals.wait().await;
        interrupt.cancel();
    });
    let display = display::Display::new();
    let observer = |progress: Progress<'_>| match progress {
        // One that fails is tried again after the next cell and at the end.
        Progress::Document(document) => drop(write(&path, document)),
        other => display.show(other),
    };
    let outcome = go_on(&client, &target, model.as_deref(), &plan, earlier.as_ref(), &observer, &cancel).await;
    watch.abort();
    display.finish();
    let outcome = match outcome {
        Err(_) if cancel.is_cancelled() => None,
        outcome => Some(outcome?).filter(|outcome| !outcome.is_empty() || outcome.is_complete),
    };
    let Some(outcome) = outcome else {
        eprintln!("Interrupted before anything was measured.");
        return Ok(None);
    };
    write(&path, &outcome.document)?;
    if outcome.is_complete {
        print_result(&outcome, &path);
        return Ok(Some(path));
    }
    eprintln!("Interrupted. {} holds what was measured; it was not uploaded.", path.display());
    eprintln!("To go on: the same command with --resume {}", path.display());
    Ok(None)
}

fn read_earlier(path: &Path) -> Result<Earlier> {
    let bytes = std::fs::read(path)
        .map_err(|e| Error::new(Code::InvalidInput, format!("{} cannot be read: {e}.", path.display())).with_source(e))?;
    Earlier::parse(&bytes)
}

fn target(args: &Args) -> Result<Target> {
    let text = args.url.as_deref().unwrap_or_default().trim_end_matches('/');
    let text = text.strip_suffix("/v1").unwrap_or(text);
    let address = EngineAddress::parse(text).map_err(|fault| fault.at("--url"))?;
    // The engine is the caller's own and this is the caller's own machine.
    Ok(Target { address, api_key: args.engine_key.clone().map(Secret::new), allow_private: true })
}

fn plan(args: &Args, challenge: Option<&Challenge>) -> Result<MatrixPlan> {
    let plan = match challenge {
        Some(challenge) => challenge.plan()?,
        None => MatrixPlan {
            contexts: without_repeats(&args.contexts),
            concurrency_levels: without_repeats(&args.concurrency),
            prefill_contexts: without_repeats(&args.prefill_contexts),
            duration: duration(args.duration)?,
            max_tokens: args.max_tokens,
        },
    };
    if plan.contexts.is_empty() || plan.concurrency_levels.is_empty() {
        return Err(Error::new(Code::InvalidInput, "There must be at least one context and one concurrency."));
    }
    Ok(plan)
}

fn duration(seconds: f64) -> Result<Duration> {
    if (0.5..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(Error::new(Code::InvalidInput, "The duration must lie between 0.5 and 3600 seconds."))
    }
}

fn without_repeats<T: Copy + PartialEq>(values: &[T]) -> Vec<T> {
    let mut kept = Vec::new();
    for value in values {
        if !kept.contains(value) {
            kept.push(*value);
        }
    }
    kept
}

fn default_path(challenge: Option<&str>) -> PathBuf {
    let name = match challenge {
        Some(id) => id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_' || *c == '-').collect(),
        None => Clock::default().wall_now().format("%Y%m%d-%H%M%S").to_string(),
    };
    PathBuf::from(format!("rigmark-{name}.json"))
}

/// Writes beside the file and renames, so that a broken-off write leaves no half document.
fn write(path: &Path, document: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(document).map_err(Error::internal)?;
    write_beside(path, &text).and_then(|beside| std::fs::rename(beside, path)).map_err(|e| unwritable(path, e))
}

fn write_beside(path: &Path, text: &str) -> std::io::Result<PathBuf> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    std::fs::write(&beside, text)?;
    Ok(beside.into())
}

fn unwritable(path: &Path, error: std::io::Error) -> Error {
    Error::new(Code::Internal, format!("The document cannot be written to {}: {error}.", path.display())).with_source(error)
}

fn print_result(outcome: &MatrixOutcome, path: &Path) {
    let failed = outcome.cells.iter().filter(|cell| cell.failure().is_some()).count();
    let kept = if outcome.kept_cells > 0 { format!(", {} kept", outcome.kept_cells) } else { String::new() };
    println!("{} cells measured{kept}, {failed} failed; document in {}", outcome.cells.len() - failed, path.display());
}

async fn upload(args: &Args, server: &Server, challenge: Option<&Challenge>, path: &Path) -> Result<ExitCode> {
    let document = std::fs::read_to_string(path)
        .map_err(|e| Error::new(Code::InvalidInput, format!("{} cannot be read: {e}.", path.display())).with_source(e))?;
    let machine = args.machine.as_deref().or(challenge.and_then(|c| c.machine_id.as_deref()));
    match server.upload(&document, machine, args.challenge.as_deref()).await {
        Ok(answer) => {
            print_answer(&answer, server);
            Ok(match answer.status.as_str() {
                "verified" => ExitCode::SUCCESS,
                "rejected" => ExitCode::from(2),
                _ => ExitCode::from(1),
            })
        }
        Err(error) => {
            eprintln!("The upload failed: {error}");
            let challenge = args.challenge.as_ref().map(|id| format!(" --challenge {id}")).unwrap_or_default();
            let machine = args.machine.as_ref().map(|id| format!(" --machine {id}")).unwrap_or_default();
            eprintln!("The document is safe in {}. To try again:", path.display());
            eprintln!("  rigmark measure --upload-file {} --server {}{challenge}{machine}", path.display(), server.url());
            Ok(ExitCode::FAILURE)
        }
    }
}

fn print_answer(answer: &RunAnswer, server: &Server) {
    println!("Verdict: {} (evidence level {})", answer.status, answer.evidence_level);
    for check in &answer.checks {
        println!("  {:<10} {}: {}", check.severity, check.code, check.message);
    }
    println!("{}", answer.page(server.url()));
}
