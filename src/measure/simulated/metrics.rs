//! Counters and gauges of an engine, and their text under vLLM's names.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::{BLOCK_TOKENS, SimulatedConfig};

#[derive(Default)]
pub struct Totals {
    running: AtomicUsize,
    waiting: AtomicUsize,
    held_tokens: AtomicU64,
    generated_tokens: AtomicU64,
    prompt_tokens: AtomicU64,
    cache_queries: AtomicU64,
    cache_hits: AtomicU64,
    stopped: AtomicU64,
    cut: AtomicU64,
    preemptions: AtomicU64,
}

impl Totals {
    pub fn set_load(&self, running: usize, waiting: usize, held_tokens: u64) {
        self.running.store(running, Relaxed);
        self.waiting.store(waiting, Relaxed);
        self.held_tokens.store(held_tokens, Relaxed);
    }
    pub fn count_generated(&self, tokens: u64) {
        self.generated_tokens.fetch_add(tokens, Relaxed);
    }
    pub fn count_prompt(&self, tokens: u64) {
        self.prompt_tokens.fetch_add(tokens, Relaxed);
    }
    pub fn count_cache(&self, queries: u64, hits: u64) {
        self.cache_queries.fetch_add(queries, Relaxed);
        self.cache_hits.fetch_add(hits, Relaxed);
    }
    pub fn count_finished(&self, by_itself: bool) {
        if by_itself { &self.stopped } else { &self.cut }.fetch_add(1, Relaxed);
    }
    pub fn count_preemption(&self) {
        self.preemptions.fetch_add(1, Relaxed);
    }
    pub fn load(&self) -> (usize, usize) {
        (self.running.load(Relaxed), self.waiting.load(Relaxed))
    }
    pub fn generated(&self) -> u64 {
        self.generated_tokens.load(Relaxed)
    }

    /// The text of `/metrics`.
    pub fn render(&self, config: &SimulatedConfig) -> String {
        let model = config.model.replace(['"', '\\', '\n'], "_");
        let mut out = String::new();
        let mut line = |name: &str, kind: &str, labels: &str, value: f64| {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "# TYPE vllm:{name} {kind}\nvllm:{name}{{engine=\"0\",model_name=\"{model}\"{labels}}} {value:?}");
        };
        let blocks = config.kv_tokens / BLOCK_TOKENS;
        let cache = format!(
            ",block_size=\"{BLOCK_TOKENS}\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",gpu_memory_utilization=\"0.9\",num_cpu_blocks=\"None\",num_gpu_blocks=\"{blocks}\""
        );
        let usage = self.held_tokens.load(Relaxed) as f64 / config.kv_tokens as f64;
        line("num_requests_running", "gauge", "", self.running.load(Relaxed) as f64);
        line("num_requests_waiting", "gauge", "", self.waiting.load(Relaxed) as f64);
        line("kv_cache_usage_perc", "gauge", "", usage.min(1.0));
        line("cache_config_info", "gauge", &cache, 1.0);
        line("generation_tokens_total", "counter", "", self.generated_tokens.load(Relaxed) as f64);
        line("prompt_tokens_total", "counter", "", self.prompt_tokens.load(Relaxed) as f64);
        line("prefix_cache_queries_total", "counter", "", self.cache_queries.load(Relaxed) as f64);
        line("prefix_cache_hits_total", "counter", "", self.cache_hits.load(Relaxed) as f64);
        line("num_preemptions_total", "counter", "", self.preemptions.load(Relaxed) as f64);
        line("request_success_total", "counter", ",finished_reason=\"stop\"", self.stopped.load(Relaxed) as f64);
        line("request_success_total", "counter", ",finished_reason=\"length\"", self.cut.load(Relaxed) as f64);
        out
    }
}
