//! What a call reads and writes, in a device's memory.

use burn_attn_kernels_cpu::{BlockSize, Dropout, PositionMask};
use cubecl::{ir::ElemType, server::Handle};

/// A tensor in a device's memory.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Its memory, from its first element on; as long as shape and strides need.
    pub handle: Handle,
    /// Sizes.
    pub shape: Vec<usize>,
    /// Strides in elements; those of a dimension of size 1 mean nothing.
    pub strides: Vec<usize>,
    /// Type of the elements.
    pub elem: ElemType,
}

/// Everything that a call reads; the contract is that of [`burn_attn_kernels_cpu`].
///
/// Query, key and value may have any strides but the last, which is 1; bias, mask and table any. All others are row-major. No size is 0.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// `[batch, heads_q, len_q, dim_qk]` in f32, f16 or bf16.
    pub query: Operand,
    /// `[batch, heads_kv, len_kv, dim_qk]`, of the query's type.
    pub key: Operand,
    /// `[batch, heads_kv, len_kv, dim_v]`, of the query's type.
    pub value: Operand,
    /// `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]` in f32.
    pub bias: Option<Operand>,
    /// `[heads_q, len_q + len_kv - 1]`, with query offsets `[heads_q, 2 * (len_q + len_kv) - 1]`, in f32.
    pub distance_bias: Option<Operand>,
    /// `[heads_q]` in f32.
    pub sinks: Option<Operand>,
    /// `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`: hides where not 0. Any type of integers.
    pub masked: Option<Operand>,
    /// `[batch or 1, heads_q or 1, blocks of queries or 1, blocks of keys or 1]`, and the size of the blocks: hides where 0. Of the type of
    /// `masked`, if both are given.
    pub visible_blocks: Option<(Operand, BlockSize)>,
    /// `[batch]` in i32; counted as 0 if negative, as `len_kv` if larger.
    pub key_lengths: Option<Operand>,
    /// `[batch]` in i32, clamped to `-len_q ..= len_kv`.
    pub query_offsets: Option<Operand>,
    /// `[batch, len_q]` and `[batch, len_kv]` in i32.
    pub segments: Option<[Operand; 2]>,
    /// Causal mask and window.
    pub by_position: PositionMask,
    /// Factor on the dot products.
    pub scale: f64,
    /// Bound on the scores.
    pub softcap: Option<f64>,
    /// Dropout on the weights.
    pub dropout: Option<Dropout>,
}

impl Inputs {
    /// Which optional tensors there are.
    pub(crate) fn present(&self) -> [bool; 9] {
        [
            self.bias.is_some(),
            self.distance_bias.is_some(),
            self.sinks.is_some(),
            self.masked.is_some(),
            self.visible_blocks.is_some(),
            self.key_lengths.is_some(),
            self.query_offsets.is_some(),
            // Two tensors.
            self.segments.is_some(),
            self.segments.is_some(),
        ]
    }

    /// How many optional tensors there are.
    pub(crate) fn optional(&self) -> usize {
        self.present().into_iter().filter(|&there| there).count()
    }
}

/// The results of the forward pass and their gradients. `logsumexp` is row-major, the last stride of `output` and `output_gradient` is 1.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// `[batch, heads_q, len_q, dim_v]`, of the query's type.
    pub output: Operand,
    /// `[batch, heads_q, len_q]` in f32.
    pub logsumexp: Operand,
    /// As `output`.
    pub output_gradient: Operand,
    /// As `logsumexp`.
    pub logsumexp_gradient: Operand,
}

/// Where the wanted gradients go; nothing is read from them, and every element is written. Their last stride is 1; those of biases and
/// sinks are row-major.
#[derive(Clone, Debug, Default)]
pub struct Gradients {
    /// In the shape and type of the query.
    pub query: Option<Operand>,
    /// In the shape and type of the key.
    pub key: Option<Operand>,
    /// In the shape and type of the value.
    pub value: Option<Operand>,
    /// In the shape of the bias, in f32.
    pub bias: Option<Operand>,
    /// In the shape of the distance bias, in f32.
    pub distance_bias: Option<Operand>,
    /// In the shape of the sinks, in f32.
    pub sinks: Option<Operand>,
}
