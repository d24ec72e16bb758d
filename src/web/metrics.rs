//! Prometheus: one recorder a process (the `metrics` crate has only one), and its text for the metrics server.

use std::sync::OnceLock;

use actix_web::{HttpResponse, Responder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::base::{Error, Result};

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// Seconds; from a cached read to a slow upload.
const BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Starts recording. Any number of calls, from any thread, install one recorder.
pub fn install() {
    RECORDER.get_or_init(|| {
        let builder = PrometheusBuilder::new().set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS);
        let installed = builder.map_err(Error::internal).and_then(|b| b.install_recorder().map_err(Error::internal));
        installed.inspect_err(|error| tracing::warn!(%error, "metrics are not recorded")).ok()
    });
}

/// `GET /metrics`, for the server at `RIGMARK_METRICS_BIND` only.
///
/// # Errors
/// `internal` when [`install`] was not called.
#[actix_web::get("/metrics")]
pub async fn metrics_show() -> Result<impl Responder> {
    let handle = RECORDER.get().and_then(Option::as_ref).ok_or_else(|| Error::internal("no metrics recorder"))?;
    handle.run_upkeep();
    Ok(HttpResponse::Ok().content_type("text/plain; version=0.0.4").body(handle.render()))
}
