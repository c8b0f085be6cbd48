//! Appending the sequences of another cache.

use super::{KvCache, buffer::Buffer};

impl KvCache {
    /// Appends the sequences of `other`: requests join a running batch. [`reorder`](Self::reorder) lets sequences leave.
    ///
    /// # Panics
    ///
    /// When the two caches differ in heads, widths, window, `max_len`, storage, dtype or device.
    ///
    /// # Cost
    ///
    /// A copy of both, with the larger of the two capacities for every sequence.
    ///
    /// # Example
    ///
    /// ```
    /// use burn::tensor::{Device, Distribution, Tensor};
    /// use burn_attn::{KvCacheConfig, SelfAttentionConfig, SelfAttentionInput};
    ///
    /// let device = Device::default();
    /// let attention = SelfAttentionConfig::new(32, 4).with_causal(true).init(&device);
    /// let random = |batch, len| SelfAttentionInput::new(Tensor::random([batch, len, 32], Distribution::Default, &device));
    /// let mut running = attention.cache(2, &KvCacheConfig::new(100));
    /// attention.forward_cached(random(2, 9), &mut running);
    ///
    /// let mut new = attention.cache(1, &KvCacheConfig::new(100));
    /// attention.forward_cached(random(1, 3), &mut new);
    /// running.join(new);
    /// assert_eq!(running.lengths(), [9, 9, 3]);
    /// attention.forward_cached(random(3, 1), &mut running);
    /// ```
    pub fn join(&mut self, mut other: Self) {
        self.check_join(&other);
        // A cache that has had no keys yet may not know their dtype.
        let dtype = match self.dtype_is_fixed {
            true => self.key_layout.dtype,
            false => other.key_layout.dtype,
        };
        if self.dtype_is_fixed || other.dtype_is_fixed {
            self.fix_dtype(dtype);
            other.fix_dtype(dtype);
        }
        // In Burn 0.22.1 tensors without elements corrupt the memory of other tensors on wgpu.
        if other.batch() == 0 {
            return;
        }
        if self.batch() == 0 {
            *self = other;
            return;
        }
        if self.lengths().iter().all(|&length| length == 0) {
            // The bias belongs to the module that saw the first tokens.
            self.bias = other.bias.clone();
        }
        let capacity = self.capacity().max(other.capacity());
        self.grow_to(capacity);
        other.grow_to(capacity);
        let joined = |(own, others): (Buffer, Buffer)| own.joined(others);
        self.keys = self.keys.take().zip(other.keys).map(joined);
        self.values = self.values.take().zip(other.values).map(joined);
        self.stored.extend(other.stored);
        self.dropped.extend(other.dropped);
        self.key_layout.batch = self.stored.len();
        self.value_layout.batch = self.stored.len();
    }

    fn check_join(&self, other: &Self) {
        let of_layer = |cache: &Self| {
            let (keys, values) = (&cache.key_layout, &cache.value_layout);
            (keys.heads, keys.dim, values.dim, cache.window)
        };
        assert!(
            of_layer(self) == of_layer(other),
            "KvCache: a cache of (heads, widths of keys and values, window) {:?} cannot join one of {:?}: they were made for different layers",
            of_layer(other),
            of_layer(self)
        );
        let of_config = |cache: &Self| (cache.max_len, cache.key_layout.storage);
        assert!(
            of_config(self) == of_config(other),
            "KvCache: a cache of (max_len, storage) {:?} cannot join one of {:?}",
            of_config(other),
            of_config(self)
        );
        let (own, others) = (&self.key_layout, &other.key_layout);
        assert!(
            !(self.dtype_is_fixed && other.dtype_is_fixed) || own.dtype == others.dtype,
            "KvCache: a cache in {:?} cannot join one in {:?}",
            others.dtype,
            own.dtype
        );
        // Devices are equal whether or not they record for autodiff.
        assert!(
            own.device == others.device && own.device.is_autodiff() == others.device.is_autodiff(),
            "KvCache: a cache on {:?} cannot join one on {:?}",
            others.device,
            own.device
        );
    }

    /// Grows to `capacity` tokens per sequence, which is not less than the present capacity.
    fn grow_to(&mut self, capacity: usize) {
        if self.capacity() == capacity {
            return;
        }
        let longest = self.stored.iter().copied().max().unwrap_or(0);
        self.move_to(&vec![0; self.batch()], longest, capacity);
    }
}
