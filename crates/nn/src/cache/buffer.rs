//! The buffers of a cache: keys or values of all sequences, unchanged or in 8 bits.

use burn::tensor::{DType, Device, FloatDType, Int, IntDType, Tensor, kind::Basic};

use super::CacheStorage;

/// `[batch, heads, capacity, dim]`
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "handles of tensors, one pair per layer; a box would be one more allocation"
)]
pub(super) enum Buffer {
    /// In the dtype of the model.
    Exact(Tensor<4>),
    /// One byte per number.
    Quantized(Quantized),
}

/// Numbers as multiples, from −127 to 127, of one scale per token and head.
#[derive(Clone, Debug)]
pub(super) struct Quantized {
    codes: Tensor<4, Int>,
    /// `[batch, heads, capacity, 1]`, f32
    scales: Tensor<4>,
}

/// The shape and type of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) dim: usize,
    pub(super) dtype: DType,
    pub(super) device: Device,
    pub(super) storage: CacheStorage,
}

impl Buffer {
    pub(super) fn new(layout: &Layout, capacity: usize) -> Self {
        let Layout {
            batch, heads, dim, ..
        } = *layout;
        let options = (&layout.device, layout.dtype);
        if layout.storage == CacheStorage::Float {
            return Self::Exact(Tensor::zeros([batch, heads, capacity, dim], options));
        }
        let codes = Tensor::<4, Int>::zeros([batch, heads, capacity, dim], &layout.device);
        Self::Quantized(Quantized {
            codes: codes.cast(IntDType::I8),
            scales: Tensor::zeros([batch, heads, capacity, 1], (&layout.device, DType::F32)),
        })
    }

    /// Overwrites the rows `from .. from + len` of the sequences `batch_item .. batch_item + n` with `rows`, in place unless
    /// the buffer is shared.
    pub(super) fn write(self, rows: Tensor<4>, batch_item: usize, from: usize) -> Self {
        let [batch, heads, len, dim] = rows.dims();
        let place = |dim: usize| {
            [
                batch_item..batch_item + batch,
                0..heads,
                from..from + len,
                0..dim,
            ]
        };
        match self {
            Self::Exact(buffer) => Self::Exact(buffer.slice_assign(place(dim), rows)),
            Self::Quantized(Quantized { codes, scales }) => {
                let new = Quantized::new(rows);
                Self::Quantized(Quantized {
                    codes: codes.slice_assign(place(dim), new.codes),
                    scales: scales.slice_assign(place(1), new.scales),
                })
            }
        }
    }

    /// The rows `from .. from + len` of all sequences: a view, or the decoded numbers.
    pub(super) fn read(&self, layout: &Layout, from: usize, len: usize) -> Tensor<4> {
        match self {
            Self::Exact(buffer) => buffer.clone().narrow(2, from, len),
            Self::Quantized(Quantized { codes, scales }) => {
                let scales = scales.clone().narrow(2, from, len);
                let codes = codes.clone().narrow(2, from, len).float();
                (codes.cast(FloatDType::F32) * scales).cast(FloatDType::from(layout.dtype))
            }
        }
    }

    /// A buffer of `capacity` rows that starts with the rows `from[b] .. from[b] + len` of each sequence `b`.
    pub(super) fn moved(
        &self,
        layout: &Layout,
        from: &[usize],
        len: usize,
        capacity: usize,
    ) -> Self {
        let new = Self::new(layout, capacity);
        if len == 0 {
            return new;
        }
        match (self, new) {
            (Self::Exact(old), Self::Exact(new)) => Self::Exact(with_rows(new, old, from, len)),
            (Self::Quantized(old), Self::Quantized(new)) => Self::Quantized(Quantized {
                codes: with_rows(new.codes, &old.codes, from, len),
                scales: with_rows(new.scales, &old.scales, from, len),
            }),
            _ => unreachable!("both buffers have one layout"),
        }
    }

    /// The sequences `items`, in this order.
    pub(super) fn select(self, items: Tensor<1, Int>) -> Self {
        match self {
            Self::Exact(buffer) => Self::Exact(buffer.select(0, items)),
            Self::Quantized(Quantized { codes, scales }) => Self::Quantized(Quantized {
                codes: codes.select(0, items.clone()),
                scales: scales.select(0, items),
            }),
        }
    }

    /// These sequences, then those of `other`, which has the same layout and capacity.
    pub(super) fn joined(self, other: Self) -> Self {
        match (self, other) {
            (Self::Exact(own), Self::Exact(others)) => {
                Self::Exact(Tensor::cat(vec![own, others], 0))
            }
            (Self::Quantized(own), Self::Quantized(others)) => Self::Quantized(Quantized {
                codes: Tensor::cat(vec![own.codes, others.codes], 0),
                scales: Tensor::cat(vec![own.scales, others.scales], 0),
            }),
            _ => unreachable!("both buffers have one layout"),
        }
    }

    pub(super) fn capacity(&self) -> usize {
        match self {
            Self::Exact(buffer) => buffer.dims()[2],
            Self::Quantized(quantized) => quantized.codes.dims()[2],
        }
    }

    /// Memory held (bytes).
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Exact(buffer) => buffer.shape().num_elements() * buffer.dtype().size(),
            Self::Quantized(Quantized { codes, scales }) => {
                codes.shape().num_elements() + scales.shape().num_elements() * scales.dtype().size()
            }
        }
    }
}

impl Quantized {
    fn new(rows: Tensor<4>) -> Self {
        // In f32, whatever the model computes in: the scale of a row of small numbers underflows in f16.
        let rows = rows.cast(FloatDType::F32);
        // A row of zeros may have any scale except zero.
        let scales = rows.clone().abs().max_dim(3).clamp_min(1e-30) / 127.0;
        let codes = (rows / scales.clone()).round().int().cast(IntDType::I8);
        Self { codes, scales }
    }
}

/// `new`, whose first rows become the rows `from[b] .. from[b] + len` of each sequence `b` of `old`.
fn with_rows<K: Basic>(
    new: Tensor<4, K>,
    old: &Tensor<4, K>,
    from: &[usize],
    len: usize,
) -> Tensor<4, K> {
    let [batch, heads, _, dim] = old.dims();
    let even = from.iter().all(|&first| first == from[0]);
    if even {
        let rows = old.clone().narrow(2, from[0], len);
        return new.slice_assign([0..batch, 0..heads, 0..len, 0..dim], rows);
    }
    from.iter().enumerate().fold(new, |new, (item, &first)| {
        let rows = old.clone().narrow(0, item, 1).narrow(2, first, len);
        new.slice_assign([item..item + 1, 0..heads, 0..len, 0..dim], rows)
    })
}
