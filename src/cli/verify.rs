//! `rigmark verify FILE`: the verdict of the service, offline.
//!
//! Exit status: 0 verified, 1 needs review, 2 rejected, 3 unreadable; 64 wrong usage (a file that cannot be opened among it).

use std::{
    fs::File,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use serde_json::json;

use super::USAGE;
use crate::benchmarks::assess;
use crate::benchmarks::checks::{Finding, Severity};
use crate::benchmarks::claim::Claim;
use crate::benchmarks::document::UNPACKED_BYTES_MAX;
use crate::benchmarks::json::{Unreadable, UnreadableCode, parse};
use crate::benchmarks::matrix::CellStatus;
use crate::benchmarks::verdict::{AssessContext, Assessment, Verdict};

const UNREADABLE: u8 = 3;

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The document: JSON as the benchmark wrote it, plain or wrapped, or gzip of it.
    pub file: PathBuf,
    /// What an uploader adds: JSON with `hardware`, `model`, `engine`, `launch_command`; other keys are ignored.
    #[arg(long, value_name = "META.json")]
    pub claim: Option<PathBuf>,
    /// Print JSON: verdict, rules_version, checks and the matrix.
    #[arg(long)]
    pub json: bool,
}

/// Runs the command; the answer goes to standard output, faults to standard error.
pub fn run(args: &VerifyArgs) -> ExitCode {
    let mut out = std::io::stdout().lock();
    ExitCode::from(verify(args, &mut out, &mut std::io::stderr().lock()))
}

/// The command with its outputs as parameters, for tests. Returns the exit status.
pub fn verify(args: &VerifyArgs, out: &mut impl Write, errors: &mut impl Write) -> u8 {
    let (bytes, claim) = match inputs(args) {
        Ok(inputs) => inputs,
        Err(fault) => {
            let _closed = writeln!(errors, "rigmark verify: {fault}");
            return USAGE;
        }
    };
    match assess(&bytes, &claim, &AssessContext::default()) {
        Ok(assessment) => {
            let _closed = if args.json { print_json(&assessment, out) } else { print_text(&assessment, out) };
            match assessment.verdict {
                Verdict::Verified => 0,
                Verdict::NeedsReview => 1,
                Verdict::Rejected => 2,
            }
        }
        Err(unreadable) => {
            let _closed = print_unreadable(&unreadable, args.json, out, errors);
            UNREADABLE
        }
    }
}

fn inputs(args: &VerifyArgs) -> Result<(Vec<u8>, Claim), String> {
    let bytes = read(&args.file)?;
    let Some(path) = &args.claim else { return Ok((bytes, Claim::default())) };
    let fault = |detail: String| format!("{}: {detail}", path.display());
    let value = parse(&read(path)?).map_err(|e| fault(e.to_string()))?;
    let claim: Claim = serde_json::from_value(value).map_err(|e| fault(e.to_string()))?;
    match claim.faults().first() {
        Some(first) => Err(fault(format!("{}: {}", first.pointer, first.detail))),
        None => Ok((bytes, claim)),
    }
}

/// At most one byte more than the largest document, so that a huge file costs no memory.
fn read(path: &Path) -> Result<Vec<u8>, String> {
    let fault = |e: std::io::Error| format!("{}: {e}", path.display());
    let limit = u64::try_from(UNPACKED_BYTES_MAX).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    File::open(path).map_err(fault)?.take(limit).read_to_end(&mut bytes).map_err(fault)?;
    Ok(bytes)
}

fn print_json(assessment: &Assessment, out: &mut impl Write) -> std::io::Result<()> {
    let body = json!({
        "verdict": assessment.verdict,
        "rules_version": assessment.rules_version,
        "title": assessment.title,
        "tool": assessment.tool,
        "document_sha256": assessment.document_sha256,
        "checks": assessment.findings,
        "matrix": assessment.matrix,
    });
    writeln!(out, "{body:#}")
}

fn print_text(assessment: &Assessment, out: &mut impl Write) -> std::io::Result<()> {
    let matrix = &assessment.matrix;
    writeln!(out, "{}", assessment.verdict.as_str())?;
    writeln!(out, "  {}", assessment.title)?;
    for line in [&assessment.engine_summary, &assessment.matrix_summary].into_iter().filter(|line| !line.is_empty()) {
        writeln!(out, "  {line}")?;
    }
    let counts: Vec<String> = [
        CellStatus::Valid,
        CellStatus::Queued,
        CellStatus::OverCapacity,
        CellStatus::Error,
        CellStatus::Loop,
        CellStatus::Skipped,
        CellStatus::NotRun,
    ]
    .into_iter()
    .map(|status| (status, matrix.count(status)))
    .filter(|(_, count)| *count > 0)
    .map(|(status, count)| format!("{count} {}", status.as_str().replace('_', " ")))
    .collect();
    writeln!(out, "  {} prefill rows; {} decode cells: {}", matrix.prefill.len(), matrix.decode.len(), counts.join(", "))?;
    writeln!(out, "  rules {}, document sha256 {}", assessment.rules_version, assessment.document_sha256)?;
    for finding in &assessment.findings {
        print_finding(finding, out)?;
    }
    Ok(())
}

fn print_finding(finding: &Finding, out: &mut impl Write) -> std::io::Result<()> {
    let mark = match finding.severity {
        Severity::Error => "error",
        Severity::Suspicious => "suspicious",
        Severity::Note => "note",
    };
    writeln!(out, "{mark:>10}  {}: {}", finding.code, finding.message)?;
    if let (Some(expected), Some(observed)) = (&finding.expected, &finding.observed) {
        writeln!(out, "            expected {expected}, observed {observed}")?;
    }
    let cells: Vec<String> = finding.cells.iter().take(8).map(|cell| format!("{}×{}", cell.context_tokens, cell.concurrency)).collect();
    if !cells.is_empty() {
        let more = finding.cells.len().saturating_sub(cells.len());
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        writeln!(out, "            at {}{rest}", cells.join(", "))?;
    }
    Ok(())
}

fn print_unreadable(fault: &Unreadable, as_json: bool, out: &mut impl Write, errors: &mut impl Write) -> std::io::Result<()> {
    if as_json {
        return writeln!(out, "{:#}", json!({ "verdict": null, "unreadable": fault }));
    }
    let place = if fault.pointer.is_empty() { String::new() } else { format!(" at {}", fault.pointer) };
    let code: UnreadableCode = fault.code;
    writeln!(errors, "unreadable: {}{place}: {}", code.as_str(), fault.detail)
}
