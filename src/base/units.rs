//! Units of measurement that are easy to mix up. Memory is GiB (2^30), bandwidth GB/s (10^9); the unit is in the field's name.

/// Bytes of one GiB.
pub const GIB_BYTES: u64 = 1 << 30;

/// MiB of one GiB.
pub const MIB_PER_GIB: f64 = 1024.0;

/// Largest context and concurrency that may be asked for.
pub const CONTEXT_TOKENS_MAX: i32 = 16_777_216;
pub const CONCURRENCY_MAX: i32 = 4_096;

/// `16384`, `16k` (1024 each) or `1m`.
pub fn parse_context(text: &str) -> Option<i32> {
    let lower = text.to_ascii_lowercase();
    let (digits, factor) = match lower.as_bytes().last()? {
        b'k' => (lower.strip_suffix('k')?, 1_024),
        b'm' => (lower.strip_suffix('m')?, 1_048_576),
        _ => (lower.as_str(), 1),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse::<i32>().ok()?.checked_mul(factor).filter(|tokens| *tokens <= CONTEXT_TOKENS_MAX)
}
