//! The text of made-up tokens, and the hashes of prompts.

const WORDS: [&str; 64] = [
    "the", "of", "and", "to", "in", "is", "that", "for", "as", "with", "by", "on", "are", "from", "at", "this", "each", "which", "step",
    "time", "light", "water", "stone", "river", "cloud", "field", "north", "south", "early", "later", "small", "large", "green", "amber",
    "glass", "paper", "metal", "sound", "voice", "house", "street", "garden", "winter", "summer", "morning", "evening", "open", "close",
    "turn", "move", "carry", "count", "write", "read", "hold", "keep", "make", "find", "long", "short", "near", "far", "high", "low",
];

/// A well-mixed 64-bit value of `x` (the finaliser of splitmix64).
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Text of token `index` of the answer with this seed. The same seed gives the same answer; answers do not repeat themselves.
pub fn token(seed: u64, index: u64) -> &'static str {
    let at = mix(seed ^ mix(index)) % 64;
    WORDS.get(usize::try_from(at).unwrap_or(0)).copied().unwrap_or("the")
}

/// Hash of `bytes` continued from `state` (FNV-1a over eight bytes at a time, mixed).
pub fn hash(state: u64, bytes: &[u8]) -> u64 {
    let mut state = state;
    for piece in bytes.chunks(8) {
        let mut word = [0; 8];
        for (to, from) in word.iter_mut().zip(piece) {
            *to = *from;
        }
        state = (state ^ u64::from_le_bytes(word)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }
    mix(state ^ bytes.len() as u64)
}
