//! Conversions between the attention modules: the same numbers in one linear layer or in several.

use super::{
    CrossAttention, MultiHeadAttention, SelfAttention,
    projections::{fuse, separate},
};

impl MultiHeadAttention {
    /// The same attention with query, key and value fused into one linear layer, for a single input. The output projection and the heads
    /// keep their parameters.
    ///
    /// That layer has new parameters, frozen if the old ones are; see [`into_multi_head`](SelfAttention::into_multi_head) for
    /// quantised and adapted layers. Panics when the inputs of query, key and value differ in width, or some of the three layers are
    /// frozen and others are not.
    pub fn into_self_attention(self) -> SelfAttention {
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
            gate: self.gate,
            heads: self.heads,
            causal: self.causal,
            window: self.window,
            shared_key_value: false,
        }
    }

    /// The same attention with key and value fused into one linear layer, for keys and values from one memory. Where positions
    /// count, the two modules have different defaults: [`QueryOffset`](crate::positions::QueryOffset).
    ///
    /// What becomes of the parameters is as in [`into_self_attention`](Self::into_self_attention); those of the query projection are kept.
    /// Panics when the module is causal or has a window, the inputs of key and value differ in width, or one of the two layers is frozen and the other is
    /// not.
    pub fn into_cross_attention(self) -> CrossAttention {
        assert!(
            !self.causal && self.window.is_none(),
            "MultiHeadAttention: a module that is causal or has a window cannot become a cross-attention"
        );
        let widths = [&self.key, &self.value].map(|layer| layer.weight.dims()[0]);
        assert!(
            widths[0] == widths[1],
            "MultiHeadAttention: cross-attention has one memory, but key and value are {widths:?} wide"
        );
        CrossAttention {
            query: self.query,
            key_value: fuse([("key", self.key), ("value", self.value)]),
            output: self.output,
            gate: self.gate,
            heads: self.heads,
        }
    }
}

impl SelfAttention {
    /// The same attention with separate linear layers for query, key and value.
    ///
    /// The three layers have new parameters, unknown to any optimizer, and are frozen if the old layer was. They hold
    /// floats even if the layer was quantised, with its adapter merged into them as by `Module::materialize`; LoRA freezes
    /// what it adapts. The output projection and the heads keep their parameters. Panics when the layer shares keys and values.
    pub fn into_multi_head(self) -> MultiHeadAttention {
        assert!(
            !self.shared_key_value,
            "SelfAttention: a layer that shares the keys and values of another has no projections of its own for them"
        );
        let widths = self.heads.sizes.widths();
        let [query, key, value] = separate(self.query_key_value, widths);
        MultiHeadAttention {
            query,
            key,
            value,
            output: self.output,
            gate: self.gate,
            heads: self.heads,
            causal: self.causal,
            window: self.window,
        }
    }
}

impl CrossAttention {
    /// The same attention with separate linear layers for key and value, made as by [`SelfAttention::into_multi_head`]; the
    /// query projection keeps its parameters too. Where positions count, an
    /// [`offset`](crate::MultiHeadAttentionInput::offset) of 0 reproduces the default of this module.
    pub fn into_multi_head(self) -> MultiHeadAttention {
        let [_, key, value] = self.heads.sizes.widths();
        let [key, value] = separate(self.key_value, [key, value]);
        MultiHeadAttention {
            query: self.query,
            key,
            value,
            output: self.output,
            gate: self.gate,
            heads: self.heads,
            causal: false,
            window: None,
        }
    }
}
