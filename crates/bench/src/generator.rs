//! Inputs that every contestant makes for itself, the same bits in Rust and in Python.

/// Scrambles an index into 32 bits (a multiply–xorshift hash; `peers.py` has the same lines).
fn hash(seed: u32, index: u32) -> u32 {
    let mut h = index
        .wrapping_mul(0x1e37_79b1)
        .wrapping_add(seed.wrapping_mul(0x05eb_ca6b));
    h ^= h >> 15;
    h = h.wrapping_mul(0x2c1b_3c6d);
    h ^= h >> 12;
    h = h.wrapping_mul(0x297a_2d39);
    h ^ (h >> 15)
}

/// `count` numbers in `[−scale, scale)`; with a power of two as the scale f32 holds them exactly.
pub fn numbers(seed: u32, count: usize, scale: f32) -> Vec<f32> {
    (0..count as u32)
        .map(|index| ((hash(seed, index) >> 8) as f32 / 8_388_608.0 - 1.0) * scale)
        .collect()
}

/// `count` tokens in `1..vocabulary`.
pub fn tokens(seed: u32, count: usize, vocabulary: usize) -> Vec<i64> {
    (0..count as u32)
        .map(|index| i64::from(hash(seed, index)) % (vocabulary as i64 - 1) + 1)
        .collect()
}

/// A seed for everything that is drawn; a name each, so that no two inputs are the same by accident.
pub mod seed {
    /// Queries, or the input of a module, or the source tokens.
    pub const QUERY: u32 = 1;
    /// Keys, or the memory of a module, or the target tokens.
    pub const KEY: u32 = 2;
    pub const VALUE: u32 = 3;
    pub const GRADIENT: u32 = 4;
    pub const BIAS: u32 = 5;
    /// Weights of a module's projections, in the order query, key, value, output.
    pub const WEIGHTS: [u32; 4] = [11, 12, 13, 14];
    /// Their biases.
    pub const BIASES: [u32; 4] = [21, 22, 23, 24];
    /// Weight and bias of the inner and the outer layer of a feed-forward network.
    pub const FEED_FORWARD: [[u32; 2]; 2] = [[15, 25], [16, 26]];
    /// Gains of the norms before self-attention, cross-attention and feed-forward network: all ones, but norms have their place
    /// among the parameters by it.
    pub const GAINS: [u32; 3] = [31, 32, 33];
    /// Their biases, all zeros.
    pub const SHIFTS: [u32; 3] = [41, 42, 43];
    pub const EMBEDDING: u32 = 51;
    /// Between the seeds of one layer of a stack and those of the next.
    pub const LAYER: u32 = 100;
}

/// Queries are larger than the rest, so that the softmax is far from uniform.
pub const QUERY_SCALE: f32 = 4.0;

#[cfg(test)]
mod tests;
