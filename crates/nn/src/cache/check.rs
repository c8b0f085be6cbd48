//! Checks that new tokens belong to the layer that a cache was made for, and fit into it.

use burn::tensor::Tensor;

use super::{KvCache, join::contents};
use crate::parameter::is_same_device;

impl KvCache {
    pub(crate) fn check(
        &self,
        key: &Tensor<4>,
        value: &Tensor<4>,
        counts: &[usize],
        (window, values_in_keys): (Option<usize>, bool),
    ) {
        for (name, tensor, layout) in [
            ("keys", key, &self.keys.layout),
            ("values", value, &self.values.layout),
        ] {
            let [batch, heads, _, dim] = tensor.dims();
            let (own_batch, own_heads, own_dim) = (layout.batch, layout.heads, layout.dim);
            assert!(
                batch == own_batch,
                "KvCache: {name} of {batch} sequences do not fit a cache of {own_batch}"
            );
            assert!(
                [heads, dim] == [own_heads, own_dim],
                "KvCache: {name} of {heads} heads of width {dim} do not fit a cache of {own_heads} heads of width {own_dim}: it was made \
                 for another layer"
            );
            let own_dtype = match self.dtype_is_fixed {
                true => layout.dtype,
                false => key.dtype(),
            };
            let dtype = tensor.dtype();
            assert!(
                dtype == own_dtype,
                "KvCache: {name} in {dtype:?} do not fit a cache in {own_dtype:?}"
            );
            let (device, own_device) = (tensor.device(), &layout.device);
            assert!(
                is_same_device(&device, own_device),
                "KvCache: {name} on {device:?} do not fit a cache on {own_device:?}"
            );
        }
        let has_values_in_keys = self.values.is_elsewhere();
        assert!(
            values_in_keys == has_values_in_keys,
            "KvCache: a cache of {} does not fit a layer with {}: it was made for another layer",
            contents(has_values_in_keys),
            contents(values_in_keys)
        );
        let described = |window: Option<usize>| match window {
            Some(window) => format!("a window of {window}"),
            None => "no window".to_owned(),
        };
        let (of_layer, own) = (described(window), described(self.window));
        assert!(
            window == self.window,
            "KvCache: a cache for {own} does not fit a layer with {of_layer}: it was made for another layer"
        );
        let [batch, _, new, _] = key.dims();
        assert!(
            counts.len() == batch,
            "KvCache: {} counts of new tokens for {batch} sequences",
            counts.len()
        );
        for (b, &count) in counts.iter().enumerate() {
            assert!(
                count <= new,
                "KvCache: sequence {b} has {count} new tokens among {new}"
            );
        }
        if let Some(reason) = self.refuses_tokens(counts) {
            panic!("{reason}");
        }
    }

    /// Why there is no room for `counts[b]` more tokens of each sequence `b`, if there is none.
    pub(crate) fn refuses_tokens(&self, counts: &[usize]) -> Option<String> {
        let max_len = self.max_len;
        let mut sequences = counts.iter().zip(&self.tokens).enumerate();
        sequences.find_map(|(b, (&count, tokens))| match self.sink_tokens {
            Some(sinks) => {
                let most = max_len - sinks;
                (count > most && count > max_len.saturating_sub(tokens.stored)).then(|| {
                    format!(
                        "KvCache: sequence {b} cannot take {count} tokens at once: beside {sinks} sink tokens, its max_len has room for {most}"
                    )
                })
            }
            None => {
                let length = tokens.count();
                (count > max_len.saturating_sub(length)).then(|| {
                    format!(
                        "KvCache: sequence {b} has {length} tokens and cannot take {count} more: its max_len is {max_len}"
                    )
                })
            }
        })
    }
}
