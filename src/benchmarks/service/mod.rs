//! What can be done with challenges and runs. Each function is one use case.

mod announce;
mod boards;
mod calculator;
mod challenges;
mod copies;
mod history;
mod measuring;
mod queue;
mod read;
mod remeasure;
mod reports;
mod reverify;
mod review;
mod staleness;
mod tool;
mod upload;

pub use super::{
    queries::{RunPlace, RunSort},
    review::model::{
        ComparedCell, ExplainedFinding, ReviewCause, ReviewPlace, ReviewQueueItem, ReviewQueueQuery, ReviewView, SimilarRun, SimilarRuns,
    },
};
pub use boards::{hardware_page, hardware_with_runs, leaderboard, model_page, models_with_runs, publisher_page, publishers};
pub use calculator::{DecodeQuestion, decode};
pub use challenges::{ChallengeRequest, challenge_create, challenge_fetch};
pub use history::{RunHistoryQuery, history, newest_events};
pub use queue::{original, review_queue, review_show, similar};
pub use read::{RunListQuery, cells_csv, document, fetch, fetch_with_related, list};
pub use remeasure::{enqueue_due, remeasure, remeasurements, run_remeasurement};
pub use reports::{CreateReport, ReportListQuery, report_create, report_delete, report_fetch, report_list};
pub use reverify::{Reverification, has_runs_of_other_rules};
pub use review::{AnswerRequest, ReviewDecision, ReviewRequest, answer, answerable, owner_of, review};
pub use staleness::{note_listed_engines, note_machine};
pub use tool::{BenchDocument, BenchLogin, BenchRun, bench_upload, upload_token_create, whoami};
pub use upload::upload;

use std::io::{Read, Write};

use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use sha2::{Digest, Sha256};

use crate::base::{Error, Result};

/// SHA-256 in lower-case hex.
pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).map_err(Error::internal)?;
    encoder.finish().map_err(Error::internal)
}

/// Only for what this server packed itself.
fn gunzip(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut text).map_err(Error::internal)?;
    Ok(text)
}
