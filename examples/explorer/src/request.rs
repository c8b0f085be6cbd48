//! What the page asks for, in JSON.

use serde::Deserialize;

/// What the page asks for. Tokens are ids of the model's vocabulary.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "task", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The greedy translation.
    Translate {
        /// The sentence.
        source: Vec<u32>,
        /// The configuration.
        #[serde(default)]
        switches: Switches,
    },
    /// Every step of the computation.
    Trace {
        /// The sentence.
        source: Vec<u32>,
        /// What the decoder reads: the begin token, and the words after it.
        target: Vec<u32>,
        /// The configuration.
        #[serde(default)]
        switches: Switches,
    },
    /// The numbers of a linear layer or of the embedding.
    Parameter {
        /// Its name, as `embedding.weight`, `encoder.0.self.query_key_value.weight` or `decoder.1.cross.output.bias`.
        name: String,
    },
}

/// How the configuration differs from the trained one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Switches {
    /// The factor on the scores of every attention; by default, `1 / √d_head`.
    pub scale: Option<f64>,
    /// Whether the decoder's self-attention hides later tokens. Without it, nothing can be generated.
    pub causal: bool,
    /// Whether positions are added to the embedded tokens.
    pub positions: bool,
    /// Heads whose rows of the output projection are replaced by zeros.
    pub cut: Vec<HeadPlace>,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            scale: None,
            causal: true,
            positions: true,
            cut: Vec::new(),
        }
    }
}

/// Where a head is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeadPlace {
    /// Its stack.
    pub side: Side,
    /// Its layer in the stack, from 0.
    pub layer: usize,
    /// Its attention in the layer.
    pub attention: AttentionKind,
    /// Its number in the attention, from 0.
    pub head: usize,
}

/// A stack of the translator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Reads the sentence.
    Encoder,
    /// Writes the translation.
    Decoder,
}

/// An attention of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttentionKind {
    /// To the stack's own tokens.
    #[serde(rename = "self")]
    SelfAttention,
    /// To the encoder's states.
    Cross,
}
