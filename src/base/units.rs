//! Units of measurement that are easy to mix up. Memory is GiB (2^30), bandwidth GB/s (10^9); the unit is in the field's name.

/// Bytes of one GiB.
pub const GIB_BYTES: u64 = 1 << 30;

/// MiB of one GiB.
pub const MIB_PER_GIB: f64 = 1024.0;
