//! What a document says of its run beside the measurements: the plan, the engine, the client.

use serde_json::{Value, json};

use super::Run;
use crate::measure::document::{SHAPE_VERSION, context_label};

const OPERATING_SYSTEM: &str = if cfg!(target_os = "macos") {
    "Darwin"
} else if cfg!(target_os = "linux") {
    "Linux"
} else {
    "other"
};

impl Run<'_> {
    pub(super) fn metadata(&self) -> Value {
        let seconds = self.plan.duration.as_secs_f64();
        let mut metadata = json!({
            "version": SHAPE_VERSION,
            "client": concat!("rigmark-measure ", env!("CARGO_PKG_VERSION")),
            "engine": self.facts.kind.as_str(), "engine_version": self.facts.version,
            "model": self.facts.model.id, "server": self.target.address.to_string(), "timestamp": self.log.timestamp(),
            "duration_per_test": seconds, "max_tokens": self.plan.max_tokens,
            "max_total_tokens": self.facts.kv_tokens, "metrics_available": self.facts.metrics_available,
            "metrics_warning": if self.facts.metrics_available { "" } else { "no known metrics; queues cannot be seen" },
            "concurrency_levels": self.plan.concurrency_levels, "context_lengths": self.plan.contexts,
            "chars_per_token": self.is_calibrated.then_some(self.prompts.chars_per_token), "ignore_eos": !self.is_plain,
            "decode_warmup_seconds": seconds.min(3.0), "decode_warmup_context": 0, "decode_warmup_concurrency": 1,
        });
        merge(&mut metadata, fixed_metadata());
        metadata
    }

    pub(super) fn startup_diagnostics(&self) -> Value {
        let join = |items: Vec<String>| items.join(",");
        let mut diagnostics = json!({
            "version": SHAPE_VERSION, "server_url": self.target.address.to_string(), "hostname": "",
            "uname": OPERATING_SYSTEM, "env": {},
            "args": {
                "concurrency": join(self.plan.concurrency_levels.iter().map(u32::to_string).collect()),
                "contexts": join(self.plan.contexts.iter().map(|c| context_label(*c)).collect()),
                "prefill_contexts": join(self.plan.prefill_contexts.iter().map(|c| context_label(*c)).collect()),
                "max_tokens": self.plan.max_tokens, "duration": self.plan.duration.as_secs_f64(), "request_count": 0, "run_burst": false,
                "standalone_prefill": false, "prefill_only": false, "skip_prefill": false, "prefill_metric": "client", "dcp_size": 0,
                "kv_budget": 0,
            },
            "p2pmark": {"status": "not_run"}, "amd_fabric": {"status": "not_run"},
        });
        merge(&mut diagnostics, self.hardware.clone());
        diagnostics
    }
}

/// Members that are the same in every document of this client.
fn fixed_metadata() -> Value {
    json!({
        "decode_mode": "duration", "primary_decode_layer": "sustained_decode", "request_count": 0, "warmup_request_count": 0,
        "run_burst": false, "prefill_mode": "integrated_decode_scout", "standalone_prefill": false, "prefill_only": false,
        "skip_prefill": false, "burst_e2e_status": "not_run", "burst_request_count": 0, "burst_warmup_request_count": 0,
        "burst_requests_per_concurrency": 0, "cell_warmup_timeout_seconds": 0.0,
        "cell_warmup_timeout_policy": "<=32k:60s,64k:120s,>=128k:180s when override is 0",
        "show_capacity_limited_values": true, "dcp_size": 0,
        "startup_diagnostics_available": true, "nvidia_p2p_override_effective": false, "p2pmark_status": "not_run",
        "amd_fabric_status": "not_run", "temperature": null, "decode_warmup_loop_diagnostics": [],
        "loop_detection": {"enabled": false},
    })
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(all), Value::Object(more)) = (into, from) {
        all.extend(more);
    }
}
