//! Benchmarks: documents, matrices, checks, verdicts, redaction and challenges, on real documents and on forged ones.

mod calculator;
mod challenge;
mod claim;
mod command;
mod copies;
mod documents;
mod export;
mod forge;
mod forgeries;
mod forgery;
mod hardware;
mod honest;
mod mutations;
mod parser;
mod physical;
mod redaction;
mod reference;
mod reverify;
mod uploads;

use std::path::{Path, PathBuf};

use rigmark::benchmarks::checks;
use rigmark::benchmarks::document::Document;
use rigmark::benchmarks::{AssessContext, Assessment, Claim, Finding, Matrix, Verdict, assess, read_value};
use serde_json::Value;

pub fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents").join(name)
}

pub fn bytes(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

pub fn value(name: &str) -> Value {
    read_value(&bytes(name)).unwrap()
}

/// What the uploader of the reference run added.
pub fn reference_claim() -> Claim {
    serde_json::from_slice(&bytes("reference-run.meta.json")).unwrap()
}

/// The assessment with nothing but the document.
pub fn judge(name: &str) -> Assessment {
    assess(&bytes(name), &Claim::default(), &AssessContext::default()).unwrap()
}

/// Findings of the checks on a value that is redacted already.
pub fn findings(value: &Value) -> Vec<Finding> {
    let document = Document::of(value).unwrap();
    checks::findings(&document, &Matrix::of(&document))
}

pub fn verdict(value: &Value) -> Verdict {
    Verdict::of(&findings(value))
}

pub fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|finding| finding.code.as_ref()).collect()
}

pub fn has(findings: &[Finding], code: &str) -> bool {
    findings.iter().any(|finding| finding.code == code)
}

/// Public documents of other people: read where they lie beside the repository, if they do.
pub fn public_documents() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let found = ["../shared/runs-public", "../../shared/runs-public"].iter().map(|near| root.join(near)).find(|path| path.is_dir());
    if found.is_none() {
        println!("skipped: the public documents are not beside the repository (../shared/runs-public)");
    }
    found
}
