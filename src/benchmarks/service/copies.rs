//! What only the runs before it can say of a run: copies put the newcomer, and only the newcomer, into review.

pub(super) use super::super::copies::Newcomer;
use super::super::{
    assess::{device_finding, duplicate_finding},
    checks::Finding,
    copies::{close_prints, exact_print, wall_print},
    queries::{self, CloseCell},
    verdict::Assessment,
};
use crate::{base::Result, db::Conn};

/// Copies, replays and devices of others.
///
/// # Errors
/// The database's own faults.
pub(super) async fn findings(conn: &mut Conn, newcomer: &Newcomer, is_answer: bool, assessment: &Assessment) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    if queries::run_of_document(conn, &assessment.document_sha256, newcomer).await? {
        findings.push(duplicate_finding(true));
    } else if queries::run_shares_half(conn, "cell", &prints(assessment), newcomer).await?
        || queries::run_shares_half(conn, "cell_wall", &walls(assessment), newcomer).await?
        || queries::run_shares_half_closely(conn, &close_cells(assessment), newcomer).await?
    {
        findings.push(duplicate_finding(false));
    }
    if !assessment.device_hashes.is_empty() && queries::mark_seen_elsewhere(conn, "device", &assessment.device_hashes, newcomer).await? {
        findings.push(device_finding());
    }
    for (kind, value) in [("nonce", &assessment.nonce), ("tool_run", &assessment.run_id)] {
        let Some(value) = value else { continue };
        if queries::mark_seen(conn, kind, value, newcomer.run).await? {
            let message = "The benchmark's own run identifier was uploaded before.";
            findings.push(if is_answer { Finding::error("run_replayed", message) } else { Finding::suspicious("run_replayed", message) });
        }
    }
    Ok(findings)
}

/// Kind and value of everything by which later copies of the run are found.
pub(super) fn marks(assessment: &Assessment) -> Vec<(&'static str, String)> {
    let mut marks: Vec<(&'static str, String)> = prints(assessment).into_iter().map(|print| ("cell", print)).collect();
    marks.extend(walls(assessment).into_iter().map(|print| ("cell_wall", print)));
    let close = close_cells(assessment).into_iter().flat_map(|cell| cell.prints);
    marks.extend(close.map(|print| ("close_cell", print)));
    marks.extend(assessment.device_hashes.iter().map(|d| ("device", d.clone())));
    marks.extend(assessment.nonce.iter().map(|n| ("nonce", n.clone())));
    marks.extend(assessment.run_id.iter().map(|r| ("tool_run", r.clone())));
    marks
}

fn prints(assessment: &Assessment) -> Vec<String> {
    assessment.fingerprint.iter().map(exact_print).collect()
}

fn walls(assessment: &Assessment) -> Vec<String> {
    assessment.fingerprint.iter().filter_map(wall_print).collect()
}

fn close_cells(assessment: &Assessment) -> Vec<CloseCell> {
    let close = assessment.fingerprint.iter().filter_map(|cell| {
        Some(CloseCell {
            context_tokens: i32::try_from(cell.context_tokens).ok()?,
            concurrency: i32::try_from(cell.concurrency).ok()?,
            ttft_ms: cell.ttft_ms?,
            prints: close_prints(cell)?,
        })
    });
    close.collect()
}
