//! One poison: what is put where in a problem, and how far it may get.

use burn_attn_kernels_cpu::{
    AttentionDropout, BlockSize, CausalAlignment, RelativeBuckets, Window,
};

/// What stands where an ordinary number should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Junk {
    /// NaN.
    Nan,
    /// Infinity, of alternating sign.
    Infinity,
    /// The largest finite number, of alternating sign: products and sums of it overflow.
    Largest,
    /// Zero, which keeps a query that sees large numbers from overflowing.
    Zero,
}

impl Junk {
    /// The junk that must not spread.
    const HARMFUL: [Self; 3] = [Self::Nan, Self::Infinity, Self::Largest];

    /// The `index`-th number of a row, where `largest` is the largest finite number of the type of the tensors.
    pub fn number(self, index: usize, largest: f64) -> f64 {
        let number = match self {
            Self::Nan => f64::NAN,
            Self::Infinity => f64::INFINITY,
            Self::Largest => largest,
            Self::Zero => 0.0,
        };
        if index.is_multiple_of(2) {
            number
        } else {
            -number
        }
    }
}

/// The tensor that gets the junk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Rows of `dim_qk` numbers.
    Query,
    /// Rows of `dim_qk` numbers.
    Key,
    /// Rows of `dim_v` numbers.
    Value,
    /// The dense bias: single numbers.
    Bias,
    /// The gradient of the output: rows of `dim_v` numbers.
    OutputGradient,
    /// The gradient of the logsumexp: single numbers.
    LogsumexpGradient,
}

/// Whole rows of one operand, by their indices in the flat row-major tensor.
#[derive(Clone, Debug)]
pub struct Put {
    pub operand: Operand,
    pub rows: Vec<usize>,
    pub junk: Junk,
}

impl Put {
    /// Writes the junk into a tensor whose rows have `dim` numbers.
    pub fn write(&self, tensor: &mut [f64], dim: usize, largest: f64) {
        for &row in &self.rows {
            for (index, number) in tensor[row * dim..][..dim].iter_mut().enumerate() {
                *number = self.junk.number(index, largest);
            }
        }
    }
}

/// How far a poison may spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaches {
    /// No query sees it: every result is the same as without it, and there is no NaN.
    Nothing,
    /// A query sees it: every number that is NaN for the oracle is NaN. The other numbers may be anything.
    Caller,
    /// Some queries see it, for which nothing overflows, and others do not: every number is finite.
    Viewer,
}

impl Reaches {
    /// The index of the first number of a result that breaks the rule: `clean` is the result without the poison, `dirty` the
    /// one with it, and `oracle` what the oracle says of the poisoned tensors.
    pub fn violation(self, clean: &[f64], dirty: &[f64], oracle: &[f64]) -> Option<usize> {
        assert!(clean.len() == dirty.len() && oracle.len() == dirty.len());
        (0..dirty.len()).find(|&at| match self {
            // A NaN equals nothing.
            Self::Nothing => clean[at] != dirty[at],
            Self::Caller => oracle[at].is_nan() && !dirty[at].is_nan(),
            Self::Viewer => !dirty[at].is_finite(),
        })
    }
}

/// One problem: what hides keys in it, and which junk is put where.
#[derive(Clone, Debug)]
pub struct Poison {
    pub name: String,
    /// batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v.
    pub sizes: [usize; 7],
    pub causal: Option<CausalAlignment>,
    pub window: Option<Window>,
    /// Keys that no position hides, the same number for each batch item.
    pub first_keys: Option<usize>,
    pub key_lengths: Option<Vec<usize>>,
    /// Ids of the queries and of the keys.
    pub segments: Option<(Vec<i64>, Vec<i64>)>,
    /// Shape, table and block size.
    pub visible_blocks: Option<([usize; 4], Vec<bool>, BlockSize)>,
    /// Shape, and `true` where hidden.
    pub masked: Option<([usize; 4], Vec<bool>)>,
    pub bias: Option<([usize; 4], Vec<f64>)>,
    /// `[buckets, heads_q]`
    pub relative: Option<(Vec<f64>, RelativeBuckets)>,
    pub sinks: Option<Vec<f64>>,
    pub softcap: Option<f64>,
    pub dropout: Option<AttentionDropout>,
    pub puts: Vec<Put>,
    pub reaches: Reaches,
}

impl Poison {
    /// Nothing hidden, nothing poisoned.
    pub fn new(name: String, sizes: [usize; 7]) -> Self {
        Self {
            name,
            sizes,
            causal: None,
            window: None,
            first_keys: None,
            key_lengths: None,
            segments: None,
            visible_blocks: None,
            masked: None,
            bias: None,
            relative: None,
            sinks: None,
            softcap: None,
            dropout: None,
            puts: Vec::new(),
            reaches: Reaches::Nothing,
        }
    }

    /// The options that act on scores and weights.
    pub fn with_options(mut self) -> Self {
        self.name += ", with softcap, sinks and dropout";
        self.softcap = Some(1.5);
        self.sinks = Some((0..self.sizes[1]).map(|head| head as f64 / 4.0).collect());
        self.dropout = Some(AttentionDropout {
            probability: 0.25,
            seed: 29,
        });
        self
    }

    /// Junk in these rows of some operands, one poison per kind of junk.
    pub fn each_junk(self, operands: &[Operand], rows: &[usize]) -> Vec<Self> {
        let with = |junk| {
            let mut poison = self.clone();
            poison.name += &format!(", {junk:?} in {operands:?}");
            poison.puts.extend(operands.iter().map(|&operand| Put {
                operand,
                rows: rows.to_vec(),
                junk,
            }));
            poison
        };
        Junk::HARMFUL.map(with).into()
    }

    /// The rows of these keys of the first batch item, in the given key/value heads.
    pub fn key_rows(&self, heads: core::ops::Range<usize>, keys: &[usize]) -> Vec<usize> {
        let len_kv = self.sizes[4];
        let of_head = |head| keys.iter().map(move |key| head * len_kv + key);
        heads.flat_map(of_head).collect()
    }
}

/// Sets what hides keys in a poison.
pub type Set<'a> = &'a dyn Fn(&mut Poison);
