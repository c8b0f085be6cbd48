//! The works a contestant can be given.

use serde::{Deserialize, Serialize};

use crate::text::name;

mod operations;

/// One iteration of what a contestant does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    Op(Op),
    Module(Module),
    Translation(Translation),
    Decoding(Decoding),
    Pretrained(Pretrained),
    Matmul(Matmul),
    /// [`FMA_OPERATIONS`] on each of so many threads, in registers: the peak of this machine.
    Fma(usize),
}

/// Operations of one thread in one iteration of [`Work::Fma`]: tens of milliseconds.
pub const FMA_OPERATIONS: f64 = 4e9;

/// Which part of the operation is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pass {
    /// The output, without a graph.
    Forward,
    /// The gradients alone; the forward before them is not timed.
    Backward,
    /// The output and the gradients of `sum(output · fixed numbers)`.
    Training,
}

/// The type of the tensors, in and out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    F32,
    /// 16 bits with the range of f32.
    Bf16,
    /// 16 bits, eight times as precise as bf16.
    F16,
}

impl Precision {
    /// How far two right results may be apart.
    pub fn tolerance(self) -> Tolerance {
        match self {
            Self::F32 => Tolerance::OfTheLargest(1e-4),
            // Every number is rounded by itself. The largest one says too little: of causal rows the first are far larger than
            // the rest.
            Self::Bf16 => Tolerance::OfEachOrTheRootMeanSquare(5e-2),
            // A rounding is off by at most 2⁻¹¹ of the number, an eighth of one in bf16.
            Self::F16 => Tolerance::OfEachOrTheRootMeanSquare(1e-2),
        }
    }
}

/// How far a number of a result may be away from the right one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// This share of the largest number of the result.
    OfTheLargest(f64),
    /// This share of the number itself or, if that is larger, of the root mean square of the result.
    OfEachOrTheRootMeanSquare(f64),
}

impl Tolerance {
    /// How far away from `right`, a number of a result with this largest number and this root mean square.
    pub fn allowed(self, right: f64, largest: f64, root_mean_square: f64) -> f64 {
        match self {
            Self::OfTheLargest(share) => share * largest,
            Self::OfEachOrTheRootMeanSquare(share) => share * right.abs().max(root_mean_square),
        }
    }
}

/// Which of our implementations computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Implementation {
    /// What a user gets on the device.
    Chosen,
    /// The blockwise one, in blocks that it chooses.
    Blockwise,
    /// The composed one, which keeps the score matrix.
    Composed,
}

/// One call of the operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Op {
    pub pass: Pass,
    pub batch: usize,
    pub heads: usize,
    pub heads_kv: usize,
    /// Queries (tokens).
    pub len_q: usize,
    /// Keys (tokens).
    pub len_kv: usize,
    pub dim: usize,
    /// Whether later keys are hidden.
    pub causal: bool,
    /// Real keys of each batch item, if some are padding.
    pub key_lengths: Option<Vec<usize>>,
    /// How many earlier keys, and no later ones, are seen; all if absent.
    pub window: Option<usize>,
    /// Whether a dense `[1, heads, len_q, len_kv]` bias, tracked in training, is added to the scores.
    pub bias: bool,
    /// Squashes the scores.
    pub softcap: Option<f64>,
    pub dropout: f64,
    /// The precision of all tensors.
    pub precision: Precision,
    /// Which of our implementations computes.
    pub implementation: Implementation,
}

impl Op {
    /// Batch 2, 8 heads of width 64, f32, nothing hidden.
    pub fn new(pass: Pass, len: usize) -> Self {
        Self {
            pass,
            batch: 2,
            heads: 8,
            heads_kv: 8,
            len_q: len,
            len_kv: len,
            dim: 64,
            causal: false,
            key_lengths: None,
            window: None,
            bias: false,
            softcap: None,
            dropout: 0.0,
            precision: Precision::F32,
            implementation: Implementation::Chosen,
        }
    }

    /// The call with so many batch items, and heads that share no keys.
    pub fn sized(self, batch: usize, heads: usize) -> Self {
        Self {
            batch,
            heads,
            heads_kv: heads,
            ..self
        }
    }

    /// "forward causal 1024".
    pub fn title(&self) -> String {
        let shown = if self.causal { "causal" } else { "full" };
        format!("{} {shown} {}", name(self.pass), self.len_kv)
    }

    /// The call by another of our implementations.
    pub fn by(&self, implementation: Implementation) -> Work {
        let op = self.clone();
        Work::Op(Self {
            implementation,
            ..op
        })
    }

    /// Makes half of the first batch item padding, and nothing of the last one.
    pub fn pad(&mut self) {
        self.key_lengths = Some(half_to_whole(self.batch, self.len_kv));
    }
}

/// Lengths of so many sequences, evenly from half of `len` to all of it.
fn half_to_whole(count: usize, len: usize) -> Vec<usize> {
    let half = len / 2;
    let steps = (count - 1).max(1);
    (0..count)
        .map(|item| half + item * (len - half) / steps)
        .collect()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModuleKind {
    /// Query, key and value are projected apart; here from the same sequence.
    MultiHead,
    CausalSelf,
    /// A sequence looks at another one.
    Cross,
}

/// A training step of a module: forward, mean square of the output, gradients of input and parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Module {
    pub kind: ModuleKind,
    pub batch: usize,
    /// Queries (tokens).
    pub len_q: usize,
    /// Keys (tokens).
    pub len_kv: usize,
    pub d_model: usize,
    pub heads: usize,
}

impl Module {
    /// One sequence of so many tokens, 8 heads of width 64.
    pub fn alone(kind: ModuleKind, len: usize) -> Self {
        Self {
            kind,
            batch: 1,
            len_q: len,
            len_kv: len,
            d_model: 512,
            heads: 8,
        }
    }
}

/// A product of two square matrices: what the machine can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Matmul {
    /// Rows, and columns, of each.
    pub size: usize,
    /// The precision of all three matrices.
    pub precision: Precision,
}

/// A training step of an encoder–decoder: forward, cross entropy, backward, Adam.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Translation {
    pub batch: usize,
    /// Tokens of the longest source and of the longest target.
    pub len: usize,
    /// Width of the model; the feed-forward layers are four times as wide.
    pub d_model: usize,
    pub heads: usize,
    /// Encoder layers, and as many decoder layers.
    pub layers: usize,
    /// Tokens in the vocabulary; token 0 is padding.
    pub vocabulary: usize,
    /// Drops numbers and attention weights.
    pub dropout: f64,
}

/// Token by token through a pre-norm stack with GELU and without a last norm, on the keys and values of what came before;
/// the tokens are given, as embeddings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decoding {
    pub batch: usize,
    /// Tokens that are in the cache before the first one that is timed.
    pub context: usize,
    /// Tokens that are timed.
    pub tokens: usize,
    /// Width of the model; the feed-forward layers are four times as wide.
    pub d_model: usize,
    pub heads: usize,
    pub layers: usize,
    /// How many earlier tokens a token sees, besides itself; all if absent.
    pub window: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// An encoder: the states of all tokens.
    Bert,
    /// A language model: the tokens that follow, greedily, on the keys and values of what came before.
    Llama,
    /// An encoder–decoder: the tokens of the output, greedily.
    T5,
}

/// A run of a model from a folder of Hugging Face's transformers, prompt included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pretrained {
    pub family: Family,
    pub folder: String,
    pub vocabulary: usize,
    pub batch: usize,
    /// Tokens that each has.
    pub len: usize,
    /// Tokens that are generated; an encoder generates none.
    pub tokens: usize,
}

impl Translation {
    /// Real tokens of each sentence: the first is half padding, the last has none.
    pub fn lengths(&self) -> Vec<usize> {
        half_to_whole(self.batch, self.len)
    }
}

impl Work {
    /// The work at a size that costs nothing: it wakes up thread pools and loads code before memory is measured.
    pub fn tiny(&self) -> Self {
        const FEW: usize = 16;
        let mut tiny = self.clone();
        match &mut tiny {
            Self::Op(op) => {
                (op.len_q, op.len_kv) = (op.len_q.min(FEW), op.len_kv.min(FEW));
                if op.key_lengths.is_some() {
                    op.pad();
                }
            }
            Self::Module(of) => (of.len_q, of.len_kv) = (of.len_q.min(FEW), of.len_kv.min(FEW)),
            Self::Translation(step) => step.batch = 2,
            // Nobody in Rust is asked for their memory.
            Self::Decoding(_) | Self::Pretrained(_) | Self::Matmul(_) | Self::Fma(_) => {}
        }
        tiny
    }

    /// Whether the other work has the same results: it is the same one, by whichever of our implementations.
    pub fn computes_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Op(op), Self::Op(of_other)) => op.by(of_other.implementation) == *other,
            _ => self == other,
        }
    }

    pub fn precision(&self) -> Precision {
        match self {
            Self::Op(op) => op.precision,
            Self::Matmul(product) => product.precision,
            _ => Precision::F32,
        }
    }

    /// How far two right results may be apart; `None` with dropout, for which every library draws other random numbers.
    pub fn tolerance(&self) -> Option<Tolerance> {
        match self {
            Self::Op(op) if op.dropout > 0.0 => None,
            // Tokens.
            Self::Pretrained(work) if work.tokens > 0 => Some(Tolerance::OfTheLargest(0.0)),
            _ => Some(self.precision().tolerance()),
        }
    }
}
