//! Which parameter of a model is which tensor of another library.

/// In place of a name: a tensor of zeros that the other library does not store.
pub const ZEROS: &str = "{zeros}";

/// One name, or several whose tensors are side by side: see [`Table::row`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// Source tensors, those of the other library, and how they become a parameter: [`same`] or [`transposed`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub(super) names: Names,
    pub(super) transposed: bool,
    /// Empty if all are equal.
    pub(super) shares: Vec<usize>,
    /// Empty if they are not interleaved.
    pub(super) interleaved: Vec<usize>,
    /// Empty if no rotary pair is interleaved.
    pub(super) rotary_pairs: Vec<usize>,
    /// The width of the heads of the first source that have gates.
    pub(super) gated: Option<usize>,
    pub(super) plus_one: bool,
    pub(super) scalar: bool,
    /// The placeholder in the target names that the first axis of the source counts.
    pub(super) stacked: Option<String>,
}

/// Tensors in the layout of the parameter. A bare name means the same.
pub fn same(names: impl Into<Names>) -> Source {
    Source {
        names: names.into(),
        ..Source::default()
    }
}

/// Matrices with the outputs first, as in PyTorch's `nn.Linear`, for a parameter `[.., d_input, d_output]`.
pub fn transposed(names: impl Into<Names>) -> Source {
    Source {
        transposed: true,
        ..same(names)
    }
}

impl<N: Into<Names>> From<N> for Source {
    fn from(names: N) -> Self {
        same(names)
    }
}

impl Source {
    /// How the outputs are divided among the names, as ratios, such as `[n_heads, n_kv_heads, n_kv_heads]`. Default: equally.
    pub fn shares(mut self, shares: impl Into<Vec<usize>>) -> Self {
        self.shares = shares.into();
        self
    }

    /// Declares that the outputs of the source come in groups with parts of these widths, while the parameter has all first parts, then all second
    /// parts, and so on: `[d_head, d_head, d_head]` if the query, key and value of each head are together (GPT-NeoX), `[1, 1]` if gate and up
    /// alternate (gpt-oss).
    pub fn interleaved(mut self, widths: impl Into<Vec<usize>>) -> Self {
        self.interleaved = widths.into();
        self
    }

    /// Declares that in each head of the source, the two numbers that rotary positions turn together are beside each other, while in the parameter
    /// they are half a head apart: the queries and keys of a Llama in llama.cpp's files. Says the width of a head for each of the names, 0 where
    /// nothing is rotated: `[d_head, d_head, 0]`.
    pub fn rotary_pairs(mut self, d_heads: impl Into<Vec<usize>>) -> Self {
        self.rotary_pairs = d_heads.into();
        self
    }

    /// Declares that in the first source tensor the outputs of every head, of width `d_head`, are followed by as many of its gate, while the
    /// parameters have all gates last, behind the outputs of the other source tensors: the queries of Qwen3-Next. Of `gated`,
    /// [`interleaved`](Self::interleaved) and [`rotary_pairs`](Self::rotary_pairs), a source takes one.
    pub fn gated(mut self, d_head: usize) -> Self {
        self.gated = Some(d_head);
        self
    }

    /// Declares that the source tensors have an additional first axis, whose indices 0, 1 and so on are the values of this placeholder in the
    /// target names: experts that the source keeps in one tensor (gpt-oss).
    pub fn stacked(mut self, placeholder: &str) -> Self {
        self.stacked = Some(placeholder.into());
        self
    }

    /// Declares that the parameter is the source plus one: a norm that multiplies by `1 + weight`. The sum is rounded.
    pub fn plus_one(mut self) -> Self {
        self.plus_one = true;
        self
    }

    /// Declares that the source tensor is one number and has no axis, `torch.tensor(1.0)`, while the parameter is `[1]`.
    pub fn scalar(mut self) -> Self {
        self.scalar = true;
        self
    }
}

/// One line of a table: target parameters, side by side, are source tensors, side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) target: Names,
    pub(super) source: Source,
}

/// Which parameter of a model is which tensor of another library, for a whole family of models.
/// [`Weights::load`](super::Weights::load) reads weights by it, and [`save`](super::save()) writes them.
///
/// A placeholder in braces stands for a number, such as that of a layer; the model determines its values. A row for a parameter that the
/// model does not have is ignored, so one table serves models with and without biases. "Side by side" means along the outputs: the last
/// axis of the parameter, and the last but one of the source if it is [`transposed`]. A placeholder that only the source name has runs along the
/// first axis of the parameter (experts that this crate keeps in one tensor).
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

    /// Adds a row: the parameters `target`, side by side, are the tensors `source`, side by side. Several parameters split one tensor.
    pub fn row(mut self, target: impl Into<Names>, source: impl Into<Source>) -> Self {
        self.rows.push(Row {
            target: target.into(),
            source: source.into(),
        });
        self
    }

    /// Adds the rows of linear layers of PyTorch: `weight` [`transposed`], and `bias` as it is.
    pub fn linear(self, target: impl Into<Names>, source: impl Into<Source>) -> Self {
        let (target, source) = (target.into(), source.into());
        let row = |table: Self, name: &str, transposed| {
            let below = |names: &Names| names.named(|whole| joined(whole, name));
            let source = Source {
                names: below(&source.names),
                transposed,
                ..source.clone()
            };
            table.row(below(&target), source)
        };
        row(row(self, "weight", true), "bias", source.transposed)
    }

    /// Adds the rows of a norm of PyTorch: `gamma` is `weight`, `beta` is `bias`.
    pub fn norm(self, target: &str, source: &str) -> Self {
        self.row(joined(target, "gamma"), joined(source, "weight"))
            .row(joined(target, "beta"), joined(source, "bias"))
    }

    /// Adds the rows of a convolution: `weight` and `bias` as they are.
    pub(crate) fn convolution(self, target: &str, source: &str) -> Self {
        self.same_names(target, source, ["weight", "bias"])
    }

    /// Adds a row for each of these parameters, which the source calls the same.
    pub(crate) fn same_names(self, target: &str, source: &str, names: [&str; 2]) -> Self {
        names.iter().fold(self, |table, name| {
            table.row(joined(target, name), joined(source, name))
        })
    }

    /// Adds the rows of `part`, with its names below `target` and `source`.
    pub fn part(mut self, target: &str, source: &str, part: Table) -> Self {
        let within = |name: &str| joined(source, name);
        let pairs = |(a, b): (String, String)| (within(&a), within(&b));
        self.rows.extend(part.rows.into_iter().map(|row| Row {
            target: row.target.named(|name| joined(target, name)),
            source: Source {
                names: row.source.names.named(within),
                ..row.source
            },
        }));
        self.tied.extend(part.tied.into_iter().map(pairs));
        self.renamed.extend(part.renamed.into_iter().map(pairs));
        self.ignored
            .extend(part.ignored.iter().map(|name| within(name)));
        self
    }

    /// As [`part`](Self::part), for each of a list of layers.
    pub(crate) fn layers(self, target: &str, source: &str, layer: Table) -> Self {
        let [target, source] = [target, source].map(|list| joined(list, "{layer}"));
        self.part(&target, &source, layer)
    }

    /// Declares that the source tensor `name` equals `original`, which has a row. If a file has both, they must be equal; if it has only `name`,
    /// that stands in for `original`. `name` is not written.
    pub fn tied(mut self, name: &str, original: &str) -> Self {
        self.tied.push((name.into(), original.into()));
        self
    }

    /// Declares that source tensors of these names, with spaces between them, are no parameters of the model; `*` stands for anything. They are not
    /// written.
    pub fn ignore(mut self, names: &str) -> Self {
        self.ignored
            .extend(names.split_whitespace().map(str::to_owned));
        self
    }

    /// The table of a bare model, whose tensors have no `body.` before their names: rows of other tensors, such as a head, are left out.
    ///
    /// ```
    /// use burn_attn_models::weights::Table;
    ///
    /// let whole = Table::new().row("embedding.weight", "model.embed.weight").row("head.weight", "lm_head.weight");
    /// assert_eq!(whole.bare("model"), Table::new().row("embedding.weight", "embed.weight"));
    /// ```
    pub fn bare(self, body: &str) -> Self {
        // Zeros and names that may be anywhere are in the body too.
        let bare = |name: &String| match name == ZEROS || name.starts_with('*') {
            true => Some(name.clone()),
            false => below(name, body).map(String::from),
        };
        let pair = |(a, b): (String, String)| Some((bare(&a)?, bare(&b)?));
        let rows = self.rows.into_iter().filter_map(|mut row| {
            let names = row.source.names.0.iter().map(bare);
            row.source.names = Names(names.collect::<Option<_>>()?);
            Some(row)
        });
        Self {
            rows: rows.collect(),
            tied: self.tied.into_iter().filter_map(pair).collect(),
            ignored: self.ignored.iter().filter_map(bare).collect(),
            renamed: self.renamed.into_iter().filter_map(pair).collect(),
        }
    }

    /// Declares that tensors may be called `from` instead of `to`; `*` stands for anything, the same in both. They are written as `to`.
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        self.renamed.push((from.into(), to.into()));
        self
    }

    /// Declares that tensors of these names, with spaces between them, may lack `body.` before them, as those of a model that was saved without its
    /// head; `*` stands for anything. They are written with it.
    pub(crate) fn may_lack(self, body: &str, names: &str) -> Self {
        let names = names.split_whitespace();
        names.fold(self, |table, name| table.rename(name, &joined(body, name)))
    }

    /// [`rename`](Self::rename) for each pair of modules, below these prefixes.
    pub(crate) fn rename_all(self, pairs: &[(&str, &str)], [from, to]: [&str; 2]) -> Self {
        pairs.iter().fold(self, |table, (source, name)| {
            table.rename(&format!("{from}{source}.*"), &format!("{to}{name}.*"))
        })
    }
}

impl Names {
    /// Each of them under another name, except zeros.
    fn named(&self, other: impl Fn(&str) -> String) -> Self {
        let names = self.0.iter().map(|name| match name.as_str() {
            ZEROS => ZEROS.into(),
            name => other(name),
        });
        Self(names.collect())
    }
}

/// The name of a part.
pub(crate) fn joined(whole: &str, name: &str) -> String {
    match whole {
        "" => name.into(),
        whole => format!("{whole}.{name}"),
    }
}

/// The part of `name` after `prefix` and a dot.
pub(crate) fn below<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    match prefix {
        "" => Some(name),
        prefix => name.strip_prefix(prefix)?.strip_prefix('.'),
    }
}
