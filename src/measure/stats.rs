//! Means and percentiles as the benchmark defines them: over values above 0, percentiles interpolated linearly between neighbours.

/// Mean, median, 90th and 99th percentile; all 0 when there is no value.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    pub avg: f64,
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
}

impl Spread {
    /// Of the values above 0.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().filter(|v| *v > 0.0).collect();
        values.sort_by(f64::total_cmp);
        Self { avg: mean(&values), p50: percentile(&values, 50.0), p90: percentile(&values, 90.0), p99: percentile(&values, 99.0) }
    }
}

/// 0 for no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// Percentile of sorted values; 0 for none.
pub fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let place = last as f64 * percent / 100.0;
    let below = place.floor() as usize;
    let share = place - place.floor();
    let low = sorted.get(below).copied().unwrap_or(0.0);
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * share
}

/// `value` with `digits` digits after the point.
pub fn round(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    let rounded = (value * scale).round() / scale;
    if rounded.is_finite() { rounded } else { value }
}
