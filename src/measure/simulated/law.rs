//! How long a step takes. The numbers are those fitted to the one published matrix (Nemotron-Cascade-2-30B-A3B, 4-bit, on an RTX 3090):
//!
//! * decode step with B requests at mean context c: `T(B, c) = t0 + W(B) / (eta * BW) + c * alpha * B^q`,
//!   `W(B) = fixed + routed * (1 - (1 - k/N)^B)` bytes of weights;
//! * reading tokens a..b of a prompt: `linear * (b - a) + quadratic * (b^2 - a^2)`.
//!
//! Another GPU: weights and attention scale with bandwidth, reading with bf16 operations (with bandwidth where those are unknown), `t0`
//! stays. A law by wished speeds stretches the same curves. A step that does both takes the sum of both times.

use std::time::Duration;

use crate::base::{Code, Error, Result};

/// KV budget of the reference run, on a card of 24 GiB.
pub const REFERENCE_KV_TOKENS: u64 = 622_592;
const REFERENCE_MEMORY_GIB: f64 = 24.0;
const REFERENCE_BANDWIDTH: f64 = 936.2;
const REFERENCE_BF16_TFLOPS: f64 = 71.2;

const STEP_SECONDS: f64 = 1.79e-3;
const WEIGHT_EFFICIENCY: f64 = 0.934;
const FIXED_BYTES: f64 = 3.70e9;
const ROUTED_BYTES: f64 = 16.36e9;
const EXPERTS_READ_BY_ONE: f64 = 6.0 / 128.0;
const ATTENTION_SECONDS: f64 = 43.5e-9;
const ATTENTION_EXPONENT: f64 = 0.20;
const READ_SECONDS: f64 = 99.5e-6;
const READ_SECONDS_PER_SQUARE: f64 = 2.807e-9;

/// Speed of an engine; see the module's text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeedLaw {
    step_seconds: f64,
    weight_scale: f64,
    attention_scale: f64,
    read_scale: f64,
}

impl SpeedLaw {
    fn reference() -> Self {
        Self { step_seconds: STEP_SECONDS, weight_scale: 1.0, attention_scale: 1.0, read_scale: 1.0 }
    }

    /// One stream at context 0 decodes at `decode_tps`; short prompts are read at `prefill_tps`.
    pub fn at_speed(decode_tps: f64, prefill_tps: f64) -> Result<Self> {
        if !(decode_tps.is_finite() && prefill_tps.is_finite() && decode_tps > 0.0 && prefill_tps > 0.0) {
            return Err(Error::new(Code::InvalidInput, "Speeds must be positive numbers of tokens per second."));
        }
        let stretch = 1.0 / (decode_tps * Self::reference().decode_step(1, 0.0).as_secs_f64());
        Ok(Self {
            step_seconds: STEP_SECONDS * stretch,
            weight_scale: stretch,
            attention_scale: stretch,
            read_scale: 1.0 / (prefill_tps * READ_SECONDS),
        })
    }

    /// Time of one decode step with `running` requests whose mean context is `context` tokens.
    pub fn decode_step(&self, running: u32, context: f64) -> Duration {
        if running == 0 {
            return Duration::ZERO;
        }
        let batch = f64::from(running);
        let weights = FIXED_BYTES + ROUTED_BYTES * (1.0 - (1.0 - EXPERTS_READ_BY_ONE).powf(batch));
        let weight_seconds = self.weight_scale * weights / (WEIGHT_EFFICIENCY * REFERENCE_BANDWIDTH * 1e9);
        let attention_seconds = self.attention_scale * context * ATTENTION_SECONDS * batch.powf(ATTENTION_EXPONENT);
        Duration::from_secs_f64(self.step_seconds + weight_seconds + attention_seconds)
    }

    /// Time to read the tokens `from..to` of a prompt.
    pub fn read(&self, from: u64, to: u64) -> Duration {
        let (from, to) = (from as f64, to as f64);
        let seconds = READ_SECONDS * (to - from) + READ_SECONDS_PER_SQUARE * (to * to - from * from);
        Duration::from_secs_f64((self.read_scale * seconds).max(0.0))
    }

    /// How many tokens from `from` on can be read in `budget`; at least one.
    pub fn readable(&self, from: u64, budget: Duration) -> u64 {
        // Solves the quadratic of `read` for `to`.
        let (start, seconds) = (from as f64, budget.as_secs_f64() / self.read_scale);
        let half = READ_SECONDS / (2.0 * READ_SECONDS_PER_SQUARE);
        let square = start * start + 2.0 * half * start + seconds / READ_SECONDS_PER_SQUARE;
        let to = (square + half * half).sqrt() - half;
        ((to - start) as u64).max(1)
    }
}

#[derive(serde::Deserialize)]
struct GpuRow {
    slug: String,
    memory_gib: Option<f64>,
    bandwidth_gb_s: Option<f64>,
    bf16_dense_tflops: Option<f64>,
}

/// Law and KV tokens of a hardware model of data/gpus.csv.
pub fn of_hardware(slug: &str) -> Result<(SpeedLaw, u64)> {
    let rows = csv::Reader::from_reader(include_str!("../../../data/gpus.csv").as_bytes()).into_deserialize::<GpuRow>();
    let row = rows.filter_map(std::result::Result::ok).find(|row| row.slug == slug);
    let Some(GpuRow { memory_gib: Some(memory), bandwidth_gb_s: Some(bandwidth), bf16_dense_tflops, .. }) = row else {
        return Err(Error::new(Code::NotFound, format!("No hardware model {slug} with a known bandwidth (see data/gpus.csv).")));
    };
    let by_bandwidth = REFERENCE_BANDWIDTH / bandwidth;
    let law = SpeedLaw {
        weight_scale: by_bandwidth,
        attention_scale: by_bandwidth,
        read_scale: bf16_dense_tflops.map_or(by_bandwidth, |tflops| REFERENCE_BF16_TFLOPS / tflops),
        ..SpeedLaw::reference()
    };
    Ok((law, (REFERENCE_KV_TOKENS as f64 * memory / REFERENCE_MEMORY_GIB) as u64))
}
