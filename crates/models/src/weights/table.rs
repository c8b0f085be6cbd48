//! Which parameter of a model is which tensor of another library.

/// In place of a name: a tensor of zeros that the other library does not store.
pub const ZEROS: &str = "{zeros}";

/// One name, or several whose tensors are side by side: see [`Table::row`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names(pub(super) Vec<String>);

impl From<&str> for Names {
    fn from(name: &str) -> Self {
        Self(vec![name.into()])
    }
}

impl From<String> for Names {
    fn from(name: String) -> Self {
        Self(vec![name])
    }
}

impl From<Vec<String>> for Names {
    fn from(names: Vec<String>) -> Self {
        Self(names)
    }
}

impl<const N: usize> From<[&str; N]> for Names {
    fn from(names: [&str; N]) -> Self {
        Self(names.map(String::from).into())
    }
}

/// Tensors of the other library, and how they become a parameter: [`same`] or [`transposed`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theirs {
    pub(super) names: Names,
    pub(super) transposed: bool,
    /// Empty if all are equal.
    pub(super) shares: Vec<usize>,
    /// Empty if they are not interleaved.
    pub(super) interleaved: Vec<usize>,
    /// Empty if no rotary pair is interleaved.
    pub(super) rotary_pairs: Vec<usize>,
    pub(super) plus_one: bool,
    /// The placeholder in our names that their first axis counts.
    pub(super) stacked: Option<String>,
}

/// Tensors in the layout of the parameter. A bare name means the same.
pub fn same(names: impl Into<Names>) -> Theirs {
    Theirs {
        names: names.into(),
        transposed: false,
        shares: Vec::new(),
        interleaved: Vec::new(),
        rotary_pairs: Vec::new(),
        plus_one: false,
        stacked: None,
    }
}

/// Matrices with the outputs first, as in PyTorch's `nn.Linear`, for a parameter `[.., d_input, d_output]`.
pub fn transposed(names: impl Into<Names>) -> Theirs {
    Theirs {
        transposed: true,
        ..same(names)
    }
}

impl<N: Into<Names>> From<N> for Theirs {
    fn from(names: N) -> Self {
        same(names)
    }
}

impl Theirs {
    /// How the outputs are divided among the names, as ratios, such as `[n_heads, n_kv_heads, n_kv_heads]`. Default: equally.
    pub fn shares(mut self, shares: impl Into<Vec<usize>>) -> Self {
        self.shares = shares.into();
        self
    }

    /// Declares that their outputs come in groups with parts of these widths, while ours has all first parts, then all second parts, and so
    /// on: `[d_head, d_head, d_head]` if the query, key and value of each head are together (GPT-NeoX), `[1, 1]` if gate and up
    /// alternate (gpt-oss).
    pub fn interleaved(mut self, widths: impl Into<Vec<usize>>) -> Self {
        self.interleaved = widths.into();
        self
    }

    /// Declares that in each head of theirs, the two numbers that rotary positions turn together are beside each other, while in ours they are half
    /// a head apart: the queries and keys of a Llama in llama.cpp's files. Says the width of a head for each of the names, 0 where
    /// nothing is rotated: `[d_head, d_head, 0]`.
    pub fn rotary_pairs(mut self, d_heads: impl Into<Vec<usize>>) -> Self {
        self.rotary_pairs = d_heads.into();
        self
    }

    /// Declares that their tensors have an additional first axis, whose indices 0, 1 and so on are the values of this placeholder in our
    /// names: experts that they keep in one tensor (gpt-oss).
    pub fn stacked(mut self, placeholder: &str) -> Self {
        self.stacked = Some(placeholder.into());
        self
    }

    /// Declares that ours is theirs plus one: a norm that multiplies by `1 + weight`. The sum is rounded.
    pub fn plus_one(mut self) -> Self {
        self.plus_one = true;
        self
    }
}

/// One line of a table: parameters of ours, side by side, are tensors of theirs, side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) ours: Names,
    pub(super) theirs: Theirs,
}

/// Which parameter of a model is which tensor of another library, for a whole family of models.
/// [`Weights::load`](super::Weights::load) reads weights by it, and [`save`](super::save()) writes them.
///
/// A placeholder in braces stands for a number, such as that of a layer; the model determines its values. A row for a parameter that the
/// model does not have is ignored, so one table serves models with and without biases. "Side by side" means along the outputs: the last
/// axis of ours, and the last but one of theirs if they are [`transposed`]. A placeholder that only their name has runs along our first
/// axis (experts that we keep in one tensor).
///
/// # Example
///
/// ```
/// use burn_attn_models::weights::{Table, ZEROS, same, transposed};
///
/// let layer = Table::new()
///     .linear("attention.query_key_value", same(["q_proj", "k_proj", "v_proj"]).shares([4, 2, 2]))
///     .linear("attention.output", "o_proj")
///     .row("feed_forward.linear_inner.weight", transposed(["gate_proj.weight", "up_proj.weight"]))
///     .row("feed_forward.linear_inner.bias", ["gate_proj.bias", ZEROS])
///     .norm("norm", "input_layernorm");
/// let table = Table::new()
///     .row("embedding.weight", "embed_tokens.weight")
///     .part("transformer.layers.{layer}", "layers.{layer}", layer)
///     .tied("lm_head.weight", "embed_tokens.weight")
///     .ignore("*.rotary_emb.inv_freq")
///     .rename("model.*", "*");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub(super) rows: Vec<Row>,
    pub(super) tied: Vec<(String, String)>,
    pub(super) ignored: Vec<String>,
    pub(super) renamed: Vec<(String, String)>,
}

impl Table {
    /// A table without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a row: parameters of ours, side by side, are tensors of theirs, side by side. Several of ours split one of theirs.
    pub fn row(mut self, ours: impl Into<Names>, theirs: impl Into<Theirs>) -> Self {
        self.rows.push(Row {
            ours: ours.into(),
            theirs: theirs.into(),
        });
        self
    }

    /// Adds the rows of linear layers of PyTorch: `weight` [`transposed`], and `bias` as it is.
    pub fn linear(self, ours: impl Into<Names>, theirs: impl Into<Theirs>) -> Self {
        let (ours, theirs) = (ours.into(), theirs.into());
        let weight = Theirs {
            transposed: true,
            ..theirs.below("weight")
        };
        self.row(ours.below("weight"), weight)
            .row(ours.below("bias"), theirs.below("bias"))
    }

    /// Adds the rows of a norm of PyTorch: `gamma` is `weight`, `beta` is `bias`.
    pub fn norm(self, ours: &str, theirs: &str) -> Self {
        let [gamma, beta] = ["gamma", "beta"].map(|name| joined(ours, name));
        self.row(gamma.as_str(), joined(theirs, "weight").as_str())
            .row(beta.as_str(), joined(theirs, "bias").as_str())
    }

    /// Adds the rows of `part`, with its names below `ours` and `theirs`.
    pub fn part(mut self, ours: &str, theirs: &str, part: Table) -> Self {
        self.rows.extend(part.rows.into_iter().map(|row| Row {
            ours: row.ours.within(ours),
            theirs: Theirs {
                names: row.theirs.names.within(theirs),
                ..row.theirs
            },
        }));
        let pairs = |pairs: Vec<(String, String)>| {
            let within = move |(a, b): (String, String)| (joined(theirs, &a), joined(theirs, &b));
            pairs.into_iter().map(within)
        };
        self.tied.extend(pairs(part.tied));
        self.renamed.extend(pairs(part.renamed));
        let ignored = part.ignored.iter().map(|name| joined(theirs, name));
        self.ignored.extend(ignored);
        self
    }

    /// Declares that their tensor `name` equals `original`, which has a row. If a file has both, they must be equal; if it has only `name`,
    /// that stands in for `original`. `name` is not written.
    pub fn tied(mut self, name: &str, original: &str) -> Self {
        self.tied.push((name.into(), original.into()));
        self
    }

    /// Declares that their tensors of this name are not parameters of ours; `*` stands for anything. They are not written.
    pub fn ignore(mut self, pattern: &str) -> Self {
        self.ignored.push(pattern.into());
        self
    }

    /// Declares that tensors may be called `from` instead of `to`; `*` stands for anything, the same in both. They are written as `to`.
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        self.renamed.push((from.into(), to.into()));
        self
    }
}

impl Table {
    /// [`rename`](Self::rename) for each pair of modules, below these prefixes.
    pub(crate) fn rename_all(self, pairs: &[(&str, &str)], [from, to]: [&str; 2]) -> Self {
        pairs.iter().fold(self, |table, (theirs, name)| {
            table.rename(&format!("{from}{theirs}.*"), &format!("{to}{name}.*"))
        })
    }
}

impl Names {
    /// `name` in each of them.
    fn below(&self, name: &str) -> Self {
        let names = self.0.iter().map(|whole| match whole.as_str() {
            ZEROS => ZEROS.into(),
            whole => joined(whole, name),
        });
        Self(names.collect())
    }

    /// Each of them in `whole`.
    fn within(&self, whole: &str) -> Self {
        let names = self.0.iter().map(|name| match name.as_str() {
            ZEROS => ZEROS.into(),
            name => joined(whole, name),
        });
        Self(names.collect())
    }
}

impl Theirs {
    fn below(&self, name: &str) -> Self {
        Self {
            names: self.names.below(name),
            ..self.clone()
        }
    }
}

fn joined(whole: &str, name: &str) -> String {
    match whole {
        "" => name.into(),
        whole => format!("{whole}.{name}"),
    }
}
