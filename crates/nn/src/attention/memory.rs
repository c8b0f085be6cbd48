//! The memory of cross-attention: an encoder's states, or the keys and values made of them.

use burn::tensor::{Device, Int, Tensor};

/// The memory that [`CrossAttention`](crate::CrossAttention) attends to: an encoder's states, or their projection.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "handles of tensors, moved once per call; a box would be one more allocation"
)]
pub enum CrossMemory {
    /// `[batch, len_kv, d_memory]`
    States(Tensor<3>),
    /// The result of [`CrossAttention::project_memory`](crate::CrossAttention::project_memory).
    Projected(ProjectedMemory),
}

/// Keys and values of a memory, projected once for all tokens to come by
/// [`CrossAttention::project_memory`](crate::CrossAttention::project_memory).
#[derive(Clone, Debug)]
pub struct ProjectedMemory {
    /// `[batch, n_kv_heads, len_kv, d_head]`
    pub(super) key: Tensor<4>,
    /// `[batch, n_kv_heads, len_kv, d_value_head]`
    pub(super) value: Tensor<4>,
}

impl ProjectedMemory {
    pub(crate) fn device(&self) -> Device {
        self.key.device()
    }

    pub(crate) fn len(&self) -> usize {
        self.key.dims()[2]
    }

    /// These batch items, then those of `other`. The shorter memory is padded with keys of zeros at its end, which a mask must
    /// hide. Both are copied. Panics when the two differ in heads, widths or dtype. Devices are not compared: both memories must be on one
    /// device.
    pub fn join(self, other: Self) -> Self {
        if let Some(reason) = self.refuses_join(&other) {
            panic!("{reason}");
        }
        let (key, value) = (joined(self.key, other.key), joined(self.value, other.value));
        Self { key, value }
    }

    /// Why [`join`](Self::join) would panic, if it would.
    pub(crate) fn refuses_join(&self, other: &Self) -> Option<String> {
        let both = [(&self.key, &other.key), (&self.value, &other.value)];
        both.into_iter().find_map(|(own, others)| {
            let ([_, heads, _, dim], [_, other_heads, _, other_dim]) = (own.dims(), others.dims());
            let (dtype, other_dtype) = (own.dtype(), others.dtype());
            let fits = [heads, dim] == [other_heads, other_dim] && dtype == other_dtype;
            (!fits).then(|| {
                format!(
                    "ProjectedMemory: a memory of {other_heads} heads of width {other_dim} in {other_dtype:?} cannot join one of {heads} \
                     heads of width {dim} in {dtype:?}"
                )
            })
        })
    }

    /// A copy of the memory of the batch items `items`, `[batch of the result]`, each below the batch size and in this order; an item may be
    /// repeated.
    pub fn select(&self, items: Tensor<1, Int>) -> Self {
        // In Burn 0.22.1 tensors without elements corrupt the memory of other tensors on wgpu when something is selected.
        let selected = |from: &Tensor<4>| match items.dims() {
            [0] => {
                let [_, heads, len, dim] = from.dims();
                Tensor::zeros([0, heads, len, dim], (&from.device(), from.dtype()))
            }
            _ => from.clone().select(0, items.clone()),
        };
        Self {
            key: selected(&self.key),
            value: selected(&self.value),
        }
    }
}

/// `[batch, heads, len, dim]` of one memory, then of the other, which fits, with zeros at the end of the shorter one.
fn joined(own: Tensor<4>, others: Tensor<4>) -> Tensor<4> {
    let ([own_batch, heads, own_len, dim], [batch, _, other_len, _]) = (own.dims(), others.dims());
    let dtype = own.dtype();
    // In Burn 0.22.1 tensors without elements corrupt the memory of other tensors on wgpu.
    match (own_batch, batch) {
        (_, 0) => return own,
        (0, _) => return others,
        _ => {}
    }
    let len = own_len.max(other_len);
    let padded = |memory: Tensor<4>| {
        let [batch, _, own_len, _] = memory.dims();
        let missing = [batch, heads, len - own_len, dim];
        let zeros = || Tensor::zeros(missing, (&memory.device(), dtype));
        match own_len {
            _ if own_len == len => memory,
            0 => zeros(),
            _ => Tensor::cat(vec![memory.clone(), zeros()], 2),
        }
    };
    Tensor::cat(vec![padded(own), padded(others)], 0)
}

impl From<Tensor<3>> for CrossMemory {
    fn from(states: Tensor<3>) -> Self {
        Self::States(states)
    }
}

impl From<ProjectedMemory> for CrossMemory {
    fn from(memory: ProjectedMemory) -> Self {
        Self::Projected(memory)
    }
}
