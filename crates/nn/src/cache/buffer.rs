//! The buffers of a cache: keys or values of all sequences, unchanged or in 8 bits.

use core::ops::Range;

use burn::tensor::{DType, Device, FloatDType, Int, IntDType, Tensor, kind::Basic};

use super::CacheStorage;
use crate::parameter::bytes;

/// Room for rows of all sequences.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    pub(super) layout: Layout,
    /// Rows per sequence.
    pub(super) capacity: usize,
    /// Absent only while being written.
    rows: Option<Rows>,
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

/// `[batch, heads, len, dim]`
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "handles of tensors, one pair per layer; a box would be one more allocation"
)]
enum Rows {
    /// In the dtype of the model.
    Float(Tensor<4>),
    /// Multiples, from −127 to 127, of one scale per token and head: `[batch, heads, len, 1]`, f32.
    Int8(Tensor<4, Int>, Tensor<4>),
    /// None: these are the last numbers of the rows of another buffer.
    Elsewhere,
}

impl Buffer {
    pub(super) fn new(layout: Layout, capacity: usize) -> Self {
        let shape = |dim| [layout.batch, layout.heads, capacity, dim];
        let rows = match layout.storage {
            CacheStorage::Float => {
                let options = (&layout.device, layout.dtype);
                Rows::Float(Tensor::zeros(shape(layout.dim), options))
            }
            CacheStorage::Int8 => {
                let codes = Tensor::<4, Int>::zeros(shape(layout.dim), (&layout.device, DType::I8));
                let scales = Tensor::zeros(shape(1), (&layout.device, DType::F32));
                Rows::Int8(codes, scales)
            }
        };
        Self {
            layout,
            capacity,
            rows: Some(rows),
        }
    }

    /// An empty buffer like this one, for `batch` sequences.
    pub(super) fn emptied(&self, batch: usize, capacity: usize) -> Self {
        let layout = self.layout.clone();
        let layout = Layout { batch, ..layout };
        match self.is_elsewhere() {
            true => Self::elsewhere(layout, capacity),
            false => Self::new(layout, capacity),
        }
    }

    /// A buffer of rows that are the last numbers of those of another one.
    pub(super) fn elsewhere(layout: Layout, capacity: usize) -> Self {
        Self {
            layout,
            capacity,
            rows: Some(Rows::Elsewhere),
        }
    }

    pub(super) fn is_elsewhere(&self) -> bool {
        matches!(self.rows, Some(Rows::Elsewhere))
    }

    fn rows(&self) -> &Rows {
        self.rows.as_ref().expect("absent only while being written")
    }

    /// Overwrites the rows `from .. from + len` of all sequences with `rows`, in place unless the buffer is shared.
    pub(super) fn write(&mut self, rows: Tensor<4>, from: usize) {
        let new = self.stored(rows);
        self.assign(new, 0, from);
    }

    /// Overwrites the rows `from[b] .. from[b] + counts[b]` of each sequence `b` with the first ones of `rows`, in place unless the buffer is
    /// shared.
    pub(super) fn write_each(&mut self, rows: Tensor<4>, from: &[usize], counts: &[usize]) {
        let new = self.stored(rows);
        for (item, (&from, &count)) in from.iter().zip(counts).enumerate() {
            if count > 0 {
                self.assign(new.narrow(0, item, 1).narrow(2, 0, count), item, from);
            }
        }
    }

    /// `rows` as this buffer stores them.
    fn stored(&self, rows: Tensor<4>) -> Rows {
        match self.layout.storage {
            _ if self.is_elsewhere() => Rows::Elsewhere,
            CacheStorage::Float => Rows::Float(rows),
            CacheStorage::Int8 => Rows::encoded(rows),
        }
    }

    fn assign(&mut self, new: Rows, item: usize, from: usize) {
        // Taken out, so that it is not shared and is written in place.
        self.rows = self.rows.take().map(|rows| rows.assigned(new, item, from));
    }

    /// The rows `from .. from + len` of all sequences: a view, or the decoded numbers.
    pub(super) fn read(&self, from: usize, len: usize) -> Tensor<4> {
        match self.rows().narrow(2, from, len) {
            Rows::Float(rows) => rows,
            Rows::Int8(codes, scales) => {
                let numbers = codes.float().cast(FloatDType::F32) * scales;
                numbers.cast(FloatDType::from(self.layout.dtype))
            }
            Rows::Elsewhere => unreachable!("they are read with those of the other buffer"),
        }
    }

    /// Moves the rows `from[b] .. from[b] + len` of each sequence `b` to the front of a buffer of `capacity` rows.
    pub(super) fn move_to(&mut self, from: &[usize], len: usize, capacity: usize) {
        let mut new = self.emptied(self.layout.batch, capacity);
        let old = self.rows();
        if len > 0 && from.iter().all(|first| *first == from[0]) {
            new.assign(old.narrow(2, from[0], len), 0, 0);
        } else if len > 0 {
            for (item, &first) in from.iter().enumerate() {
                // A sequence that has fewer rows may have those at the end.
                let len = len.min(self.capacity - first);
                new.assign(old.narrow(0, item, 1).narrow(2, first, len), item, 0);
            }
        }
        *self = new;
    }

    /// Copies `rows` of the sequences `items` to those from `to` on.
    pub(super) fn copy(&mut self, items: Range<usize>, rows: Tensor<1, Int>, to: usize) {
        let of_items = self.rows().narrow(0, items.start, items.len());
        self.assign(of_items.selected(2, rows), items.start, to);
    }

    /// Copies all rows of `first`, which has one sequence, before the first `len` rows of every sequence.
    pub(super) fn prepend(&mut self, first: &Self, len: usize) {
        let before = first.capacity;
        let mut new = self.emptied(self.layout.batch, before + self.capacity);
        for item in 0..self.layout.batch {
            new.assign(first.rows().narrow(2, 0, before), item, 0);
        }
        if len > 0 {
            new.assign(self.rows().narrow(2, 0, len), 0, before);
        }
        *self = new;
    }

    /// Keeps the sequences `items`, in this order.
    pub(super) fn select(&mut self, items: Tensor<1, Int>) {
        [self.layout.batch] = items.dims();
        self.rows = self.rows.take().map(|rows| rows.selected(0, items));
    }

    /// Appends the sequences of `other`, which has the same storage and capacity.
    pub(super) fn join(&mut self, other: Self) {
        self.layout.batch += other.layout.batch;
        self.rows = self.rows.take().zip(other.rows).map(|both| match both {
            (Rows::Float(own), Rows::Float(other)) => Rows::Float(Tensor::cat(vec![own, other], 0)),
            (Rows::Int8(codes, scales), Rows::Int8(other_codes, other_scales)) => Rows::Int8(
                Tensor::cat(vec![codes, other_codes], 0),
                Tensor::cat(vec![scales, other_scales], 0),
            ),
            (Rows::Elsewhere, Rows::Elsewhere) => Rows::Elsewhere,
            _ => unreachable!("both buffers have one storage"),
        });
    }

    pub(super) fn bytes(&self) -> usize {
        match self.rows() {
            Rows::Float(rows) => bytes(rows),
            Rows::Int8(codes, scales) => bytes(codes) + bytes(scales),
            Rows::Elsewhere => 0,
        }
    }
}

/// The rows `from .. from + len` of keys and values.
pub(super) fn read(keys: &Buffer, values: &Buffer, (from, len): (usize, usize)) -> [Tensor<4>; 2] {
    let key = keys.read(from, len);
    let value = match values.is_elsewhere() {
        true => {
            let dim = values.layout.dim;
            key.clone().narrow(3, keys.layout.dim - dim, dim)
        }
        false => values.read(from, len),
    };
    [key, value]
}

impl Rows {
    fn encoded(rows: Tensor<4>) -> Self {
        // In f32, whatever the model computes in: the scale of a row of small numbers underflows in f16.
        let rows = rows.cast(FloatDType::F32).detach();
        // A row of zeros may have any scale except zero.
        let scales = rows.clone().abs().max_dim(3).clamp_min(1e-30) / 127.0;
        let codes = (rows / scales.clone()).round().int().cast(IntDType::I8);
        Self::Int8(codes, scales)
    }

    fn narrow(&self, axis: usize, start: usize, len: usize) -> Self {
        match self {
            Self::Float(rows) => Self::Float(rows.clone().narrow(axis, start, len)),
            Self::Int8(codes, scales) => Self::Int8(
                codes.clone().narrow(axis, start, len),
                scales.clone().narrow(axis, start, len),
            ),
            Self::Elsewhere => Self::Elsewhere,
        }
    }

    fn selected(self, axis: usize, items: Tensor<1, Int>) -> Self {
        match self {
            Self::Float(rows) => Self::Float(rows.select(axis, items)),
            Self::Int8(codes, scales) => {
                let codes = codes.select(axis, items.clone());
                Self::Int8(codes, scales.select(axis, items))
            }
            Self::Elsewhere => Self::Elsewhere,
        }
    }

    /// These rows, with those from `from` on of the sequences from `item` on replaced by `new`.
    fn assigned(self, new: Self, item: usize, from: usize) -> Self {
        match (self, new) {
            (Self::Float(rows), Self::Float(new)) => Self::Float(assigned(rows, new, item, from)),
            (Self::Int8(codes, scales), Self::Int8(new_codes, new_scales)) => Self::Int8(
                assigned(codes, new_codes, item, from),
                assigned(scales, new_scales, item, from),
            ),
            (Self::Elsewhere, Self::Elsewhere) => Self::Elsewhere,
            _ => unreachable!("both have the storage of one buffer"),
        }
    }
}

fn assigned<K: Basic>(
    rows: Tensor<4, K>,
    new: Tensor<4, K>,
    item: usize,
    from: usize,
) -> Tensor<4, K> {
    let [batch, heads, len, dim] = new.dims();
    rows.slice_assign(
        [item..item + batch, 0..heads, from..from + len, 0..dim],
        new,
    )
}
