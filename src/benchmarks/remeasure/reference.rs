//! What a matrix says of any place between its measured cells.

use super::super::calculator::Surface;
use super::super::matrix::Matrix;

/// A matrix to compare with.
#[derive(Debug, Clone, Default)]
pub struct Reference {
    surface: Surface,
    /// Context and cold TTFT in seconds, in order of context.
    prefill: Vec<(u64, f64)>,
}

/// What is expected of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Expected {
    pub total_tokens_per_second: f64,
    /// None where no prefill row reaches.
    pub ttft_seconds: Option<f64>,
    /// The TTFT is that of a longer prompt: it says what is too slow, not what is fast.
    pub ttft_is_bound: bool,
}

impl Reference {
    pub fn of(matrix: &Matrix) -> Self {
        let rows = matrix.prefill.iter().filter_map(|row| Some((row.context_tokens, row.ttft_ms? / 1_000.0)));
        let mut prefill: Vec<(u64, f64)> = rows.filter(|(context, ttft)| *context > 0 && *ttft > 0.0).collect();
        prefill.sort_by_key(|(context, _)| *context);
        prefill.dedup_by_key(|(context, _)| *context);
        Self { surface: Surface::of(matrix), prefill }
    }

    /// Measured cells as (context, concurrency).
    pub fn cells(&self) -> Vec<(u64, u32)> {
        self.surface.cells().map(|(context, concurrency, _)| (context, concurrency)).collect()
    }

    /// The largest context with a prefill row; 0 without any.
    pub fn prefill_context_max(&self) -> u64 {
        self.prefill.last().map_or(0, |(context, _)| *context)
    }

    /// None beyond the measured cells.
    pub fn expected(&self, context: u64, concurrency: u32) -> Option<Expected> {
        let point = self.surface.point(context, concurrency).filter(|point| point.inside)?;
        Some(Expected {
            total_tokens_per_second: f64::from(concurrency) / point.seconds,
            ttft_seconds: self.ttft(context),
            ttft_is_bound: self.prefill.first().is_some_and(|(first, _)| context < *first),
        })
    }

    /// Log-log between the neighbouring rows; below the first row, that row's. Prefill time per token is linear in the context (I14), which is
    /// nearly straight on this scale between two neighbours.
    pub fn ttft(&self, context: u64) -> Option<f64> {
        if context == 0 {
            return None;
        }
        let above = self.prefill.iter().find(|(at, _)| *at >= context)?;
        let Some(below) = self.prefill.iter().rev().find(|(at, _)| *at < context) else { return Some(above.1) };
        let share = (real(context) / real(below.0)).ln() / (real(above.0) / real(below.0)).ln();
        Some((below.1.ln() * (1.0 - share) + above.1.ln() * share).exp())
    }
}

#[expect(clippy::cast_precision_loss, reason = "contexts are far below 2^52")]
const fn real(count: u64) -> f64 {
    count as f64
}
