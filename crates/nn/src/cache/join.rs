//! Appending the sequences of another cache.

use super::KvCache;
use crate::parameter::is_same_device;

impl KvCache {
    /// Appends the sequences of `other`: requests join a running batch. [`reorder`](Self::reorder) lets sequences leave. Both are copied,
    /// with the larger of the two capacities for every sequence. Panics when the two caches differ in heads, widths, window, `max_len`,
    /// storage, sink tokens, dtype or device.
    pub fn join(&mut self, mut other: Self) {
        if let Some(reason) = self.refuses_join(&other) {
            panic!("{reason}");
        }
        // A cache that has had no keys yet may not know their dtype.
        let dtype = match self.dtype_is_fixed {
            true => self.keys.layout.dtype,
            false => other.keys.layout.dtype,
        };
        if self.dtype_is_fixed || other.dtype_is_fixed {
            self.fix_dtype(dtype);
            other.fix_dtype(dtype);
        }
        // In Burn 0.22.1 tensors without elements corrupt the memory of other tensors on wgpu.
        if other.batch() == 0 {
            return;
        }
        self.copy_prefix();
        other.copy_prefix();
        if self.batch() == 0 {
            *self = other;
            return;
        }
        if self.tokens.iter().all(|tokens| tokens.count() == 0) {
            // The bias belongs to the module that saw the first tokens.
            self.bias = other.bias.clone();
        }
        let capacity = self.capacity().max(other.capacity());
        self.grow_to(capacity);
        other.grow_to(capacity);
        if self.positions.is_some() || other.positions.is_some() {
            let positions = [&*self, &other].map(Self::all_positions);
            self.positions = Some(positions.concat());
        }
        self.keys.join(other.keys);
        self.values.join(other.values);
        self.tokens.extend(other.tokens);
    }

    /// Why [`join`](Self::join) would panic, if it would.
    pub(crate) fn refuses_join(&self, other: &Self) -> Option<String> {
        let of_layer = |cache: &Self| {
            let (keys, values) = (&cache.keys.layout, &cache.values.layout);
            (keys.heads, keys.dim, values.dim, cache.window)
        };
        let (own, others) = (of_layer(self), of_layer(other));
        if own != others {
            return Some(format!(
                "KvCache: a cache of (heads, widths of keys and values, window) {others:?} cannot join one of {own:?}: they were made for different layers"
            ));
        }
        let [own, others] = [self, other].map(|cache| cache.values.is_elsewhere());
        if own != others {
            let (own, others) = (contents(own), contents(others));
            return Some(format!(
                "KvCache: a cache of {others} cannot join one of {own}: they were made for different layers"
            ));
        }
        let of_config = |cache: &Self| {
            let storage = cache.keys.layout.storage;
            (cache.max_len, storage, cache.sink_tokens)
        };
        let (own, others) = (of_config(self), of_config(other));
        if own != others {
            return Some(format!(
                "KvCache: a cache of (max_len, storage, sink_tokens) {others:?} cannot join one of {own:?}"
            ));
        }
        let (own, others) = (self.keys.layout.dtype, other.keys.layout.dtype);
        if self.dtype_is_fixed && other.dtype_is_fixed && own != others {
            return Some(format!(
                "KvCache: a cache in {others:?} cannot join one in {own:?}"
            ));
        }
        let (own, others) = (&self.keys.layout.device, &other.keys.layout.device);
        (!is_same_device(others, own))
            .then(|| format!("KvCache: a cache on {others:?} cannot join one on {own:?}"))
    }

    /// Grows to `capacity` tokens per sequence, which is not less than the present capacity.
    fn grow_to(&mut self, capacity: usize) {
        if self.capacity() == capacity {
            return;
        }
        self.move_to(&vec![0; self.batch()], self.most_stored(), capacity);
    }
}

/// What a cache holds, or a layer has, whose values are the last numbers of its keys or not.
pub(super) fn contents(values_in_keys: bool) -> &'static str {
    match values_in_keys {
        true => "latent vectors",
        false => "keys and values",
    }
}
