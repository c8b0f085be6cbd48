//! What a call reads and writes, in a device's memory.

use burn_attn_kernels_cpu::{AttentionDropout, BlockSize, PositionMask};
use cubecl::{
    ir::ElemType,
    prelude::{ComptimeOptionArgs, LaunchArg, TensorArg, VectorSize},
    server::Handle,
};

/// A tensor in a device's memory.
#[derive(Clone, Debug)]
pub struct Operand {
    /// Memory from the first element on, at least as long as shape and strides need.
    pub handle: Handle,
    /// Size of each dimension.
    pub shape: Vec<usize>,
    /// Stride of each dimension in elements, ignored if its size is 1.
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
    /// `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`: hides where not 0. Any type of integers that the device has.
    pub masked: Option<Operand>,
    /// `[batch or 1, heads_q or 1, blocks of queries or 1, blocks of keys or 1]`, and the size of the blocks, which is not 0: hides where 0. If
    /// `masked` is given, both have one type.
    pub visible_blocks: Option<(Operand, BlockSize)>,
    /// `[batch]` in i32, clamped to `0 ..= len_kv`.
    pub key_lengths: Option<Operand>,
    /// How many first keys position does not hide: `[batch]` in i32, clamped to `0 ..= len_kv`.
    pub first_keys: Option<Operand>,
    /// Whether the first keys stay hidden from the queries before them.
    pub first_keys_are_causal: bool,
    /// `[batch]` in i32, clamped to `-len_q ..= len_kv`.
    pub query_offsets: Option<Operand>,
    /// `[batch, len_q + len_kv]` in i32: segments of the queries, then of the keys. One tensor, because a device may bind few.
    pub segments: Option<Operand>,
    /// Causal mask and window.
    pub by_position: PositionMask,
    /// Factor on the dot products, within [`supports_scalars`](crate::supports_scalars).
    pub scale: f64,
    /// Bound on the scores, within [`supports_scalars`](crate::supports_scalars).
    pub softcap: Option<f64>,
    /// Dropout on the weights, with a [valid](AttentionDropout::validate) probability.
    pub dropout: Option<AttentionDropout>,
}

impl Inputs {
    /// Without any option.
    #[must_use]
    pub fn new(query: Operand, key: Operand, value: Operand, scale: f64) -> Self {
        Self {
            query,
            key,
            value,
            bias: None,
            distance_bias: None,
            sinks: None,
            masked: None,
            visible_blocks: None,
            key_lengths: None,
            first_keys: None,
            first_keys_are_causal: false,
            query_offsets: None,
            segments: None,
            by_position: PositionMask::default(),
            scale,
            softcap: None,
            dropout: None,
        }
    }

    /// Which optional tensors there are, the sinks last.
    pub(crate) fn present(&self) -> [bool; 9] {
        [
            self.bias.is_some(),
            self.distance_bias.is_some(),
            self.masked.is_some(),
            self.visible_blocks.is_some(),
            self.key_lengths.is_some(),
            self.first_keys.is_some(),
            self.query_offsets.is_some(),
            self.segments.is_some(),
            self.sinks.is_some(),
        ]
    }

    /// How many optional tensors there are besides the sinks: an argument of [`supports`](crate::supports).
    #[must_use]
    pub fn optional(&self) -> usize {
        let [others @ .., _sinks] = self.present();
        others.into_iter().filter(|&there| there).count()
    }

    /// The type of the elements of `masked` and `visible_blocks`, if there is one of them.
    #[must_use]
    pub fn mask_elem(&self) -> Option<ElemType> {
        let table = self.visible_blocks.as_ref().map(|(table, _)| table);
        self.masked.as_ref().or(table).map(|tensor| tensor.elem)
    }
}

/// The results of the forward pass and their gradients. Logsumexp and its gradient are row-major; the last stride of output and its gradient is 1.
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

/// Memory for the wanted gradients: nothing is read, and every element is written. The last stride is 1; gradients of biases and sinks are
/// row-major.
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

/// Numbers that a unit reads at a time: 4 if every row of every operand begins and ends at a multiple of 4, else 1.
pub(crate) fn vector_size<const N: usize>(operands: [&Operand; N]) -> VectorSize {
    let aligned = |operand: &Operand| {
        let bytes = operand.handle.offset_start.unwrap_or(0) as usize;
        let [.., dim] = dims(operand);
        let strides = &operand.strides[..3];
        let shape = &operand.shape[..3];
        let mut outer = strides.iter().zip(shape).filter(|(_, size)| **size > 1);
        dim.is_multiple_of(4)
            && outer.all(|(stride, _)| stride.is_multiple_of(4))
            && bytes.is_multiple_of(4 * operand.elem.size())
    };
    match operands.into_iter().all(aligned) {
        true => 4,
        false => 1,
    }
}

/// The sizes of an operand that `check` has seen.
pub(crate) fn dims(operand: &Operand) -> [usize; 4] {
    operand.shape[..].try_into().expect("four dimensions")
}

pub(crate) fn optional<T: LaunchArg<RuntimeArg = TensorArg>>(
    operand: Option<&Operand>,
) -> ComptimeOptionArgs<T> {
    operand.map(Operand::arg).into()
}

impl Operand {
    /// A row-major tensor.
    #[must_use]
    pub fn row_major(handle: Handle, shape: &[usize], elem: ElemType) -> Self {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        Self {
            handle,
            shape: shape.to_vec(),
            strides,
            elem,
        }
    }

    #[allow(
        unsafe_code,
        reason = "a tensor of a kernel is raw memory with a shape"
    )]
    pub(crate) fn arg(&self) -> TensorArg {
        // SAFETY: shape and strides fit the memory, which `check` has compared or `scratch` has allocated.
        unsafe {
            TensorArg::from_raw_parts(
                self.handle.clone(),
                self.strides.iter().copied().collect(),
                self.shape.iter().copied().collect(),
            )
        }
    }

    /// Repeated to `shape`: a dimension of size 1 gets stride 0.
    pub(crate) fn broadcast(&self, shape: [usize; 4]) -> TensorArg {
        let strides = self.strides.iter().zip(&self.shape);
        let strides = strides.map(|(&stride, &size)| if size == 1 { 0 } else { stride });
        Self {
            strides: strides.collect(),
            shape: shape.to_vec(),
            ..self.clone()
        }
        .arg()
    }
}
