//! Checks that new tokens belong to the layer that a cache was made for, and fit into it.

use burn::tensor::Tensor;

use super::KvCache;

impl KvCache {
    /// Panics unless the cache was made for a layer with these keys, values and window, and no sequence gets too long.
    pub(crate) fn check(
        &self,
        key: &Tensor<4>,
        value: &Tensor<4>,
        counts: &[usize],
        window: Option<usize>,
    ) {
        for (name, tensor, layout) in [
            ("keys", key, &self.keys.layout),
            ("values", value, &self.values.layout),
        ] {
            let [batch, heads, _, dim] = tensor.dims();
            assert!(
                batch == layout.batch,
                "KvCache: {name} of {batch} sequences do not fit a cache of {}",
                layout.batch
            );
            assert!(
                [heads, dim] == [layout.heads, layout.dim],
                "KvCache: {name} of {heads} heads of width {dim} do not fit a cache of {} heads of width {}: it was made \
                 for another layer",
                layout.heads,
                layout.dim
            );
            assert!(
                tensor.dtype() == layout.dtype,
                "KvCache: {name} in {:?} do not fit a cache in {:?}",
                tensor.dtype(),
                layout.dtype
            );
            let device = tensor.device();
            assert!(
                layout.is_on(&device),
                "KvCache: {name} on {device:?} do not fit a cache on {:?}",
                layout.device
            );
        }
        let described = |window: Option<usize>| match window {
            Some(window) => format!("a window of {window}"),
            None => "no window".to_owned(),
        };
        assert!(
            window == self.window,
            "KvCache: a cache for {} does not fit a layer with {}: it was made for another layer",
            described(self.window),
            described(window)
        );
        let [batch, _, new, _] = key.dims();
        assert!(
            counts.len() == batch,
            "KvCache: {} counts of new tokens for {batch} sequences",
            counts.len()
        );
        for (b, (&count, tokens)) in counts.iter().zip(&self.tokens).enumerate() {
            let length = tokens.count();
            assert!(
                count <= new,
                "KvCache: sequence {b} has {count} new tokens among {new}"
            );
            assert!(
                length + count <= self.max_len,
                "KvCache: sequence {b} has {length} tokens and cannot take {count} more: its max_len is {}",
                self.max_len
            );
        }
    }
}
