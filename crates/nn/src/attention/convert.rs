//! Each attention module made of another: the same numbers in one linear layer or in several.

use super::{
    CrossAttention, MultiHeadAttention, SelfAttention,
    projections::{fuse, separate},
};

impl MultiHeadAttention {
    /// The same attention with query, key and value in one linear layer, for inputs that are one.
    ///
    /// That layer has a parameter of its own, frozen if the three are; see [`into_multi_head`](SelfAttention::into_multi_head)
    /// for quantised and adapted ones. The output and the heads keep theirs.
    ///
    /// # Panics
    ///
    /// When query, key and value come in with different widths, or some of the three are frozen and others are not.
    pub fn into_self_attention(self, causal: bool) -> SelfAttention {
        let widths = [&self.query, &self.key, &self.value].map(|layer| layer.weight.dims()[0]);
        assert!(
            widths == [widths[0]; 3],
            "MultiHeadAttention: self-attention has one input, but query, key and value are {widths:?} wide"
        );
        SelfAttention {
            query_key_value: fuse([
                ("query", self.query),
                ("key", self.key),
                ("value", self.value),
            ]),
            output: self.output,
            heads: self.heads,
            causal,
            window: None,
        }
    }

    /// The same attention with key and value in one linear layer, for keys and values that are one memory.
    ///
    /// That layer has a parameter of its own, frozen if the two are; see [`into_multi_head`](SelfAttention::into_multi_head)
    /// for quantised and adapted ones. The query, the output and the heads keep theirs.
    ///
    /// # Panics
    ///
    /// When key and value come in with different widths, or one of them is frozen and the other is not.
    pub fn into_cross_attention(self) -> CrossAttention {
        let widths = [&self.key, &self.value].map(|layer| layer.weight.dims()[0]);
        assert!(
            widths[0] == widths[1],
            "MultiHeadAttention: cross-attention has one memory, but key and value are {widths:?} wide"
        );
        CrossAttention {
            query: self.query,
            key_value: fuse([("key", self.key), ("value", self.value)]),
            output: self.output,
            heads: self.heads,
        }
    }
}

impl SelfAttention {
    /// The same attention with a linear layer each for query, key and value; what `causal` and a window hide has to be
    /// said by a mask.
    ///
    /// The three have parameters of their own, which an optimizer has not met, frozen if the one they were is. They are
    /// floats, also of a quantised layer, and have the adapter of the layer merged into them, as by `Module::materialize`; LoRA
    /// freezes what it adapts. The output and the heads keep their parameters.
    pub fn into_multi_head(self) -> MultiHeadAttention {
        let widths = self.heads.sizes().widths();
        let [query, key, value] = separate(self.query_key_value, widths);
        MultiHeadAttention {
            query,
            key,
            value,
            output: self.output,
            heads: self.heads,
        }
    }
}

impl CrossAttention {
    /// The same attention with a linear layer each for key and value, as [`SelfAttention::into_multi_head`] has them; the query
    /// keeps its parameter too.
    pub fn into_multi_head(self) -> MultiHeadAttention {
        let [_, key, value] = self.heads.sizes().widths();
        let [key, value] = separate(self.key_value, [key, value]);
        MultiHeadAttention {
            query: self.query,
            key,
            value,
            output: self.output,
            heads: self.heads,
        }
    }
}
