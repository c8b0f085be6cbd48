//! What must not spread, and what must not get lost: NaN, infinity and huge numbers in places that are hidden or seen.
//!
//! Plain data, so that every implementation of the contract can be held to the same list: the suite of the kernels includes
//! this file, and so does that of the Burn operation, by `#[path]`. It needs nothing but this crate's public types.
//!
//! For each [`Poison`] a suite fills its tensors with ordinary numbers, computes, puts the [`Put`]s in, computes again, and
//! asks [`Reaches::violation`] about every result and gradient, with what the oracle says of the poisoned tensors.

use burn_attn_kernels_cpu::{
    BlockSize,
    CausalAlignment::{self, BottomRight, TopLeft},
    Dropout, RelativeBuckets, Window,
};

/// What stands where an ordinary number should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Junk {
    /// NaN.
    Nan,
    /// Infinity, of both signs by turns.
    Infinity,
    /// The largest finite number, of both signs by turns: products and sums of it overflow.
    Largest,
    /// Zero, which keeps a query that sees large numbers from overflowing.
    Zero,
}

impl Junk {
    /// What must not spread.
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

/// Where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Rows of `dim_qk` numbers.
    Query,
    /// Rows of `dim_qk` numbers.
    Key,
    /// Rows of `dim_v` numbers.
    Value,
    /// Of the dense bias: single numbers.
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
    /// Writes it into a tensor whose rows have `dim` numbers.
    pub fn write(&self, tensor: &mut [f64], dim: usize, largest: f64) {
        for &row in &self.rows {
            for (index, number) in tensor[row * dim..][..dim].iter_mut().enumerate() {
                *number = self.junk.number(index, largest);
            }
        }
    }
}

/// How far it may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaches {
    /// Nobody sees it: every result is the same as without it, and there is no NaN.
    Nothing,
    /// A query sees it: every number that is NaN for the oracle is NaN. Of the other numbers nothing is said.
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

/// One problem with what hides, and what is put where.
#[derive(Clone, Debug)]
pub struct Poison {
    pub name: String,
    /// batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v.
    pub sizes: [usize; 7],
    pub causal: Option<CausalAlignment>,
    pub window: Option<Window>,
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
    pub dropout: Option<Dropout>,
    pub puts: Vec<Put>,
    pub reaches: Reaches,
}

/// Grouped heads and several batch items in less than one tile.
const SHORT: [usize; 7] = [2, 6, 2, 7, 23, 5, 11];
/// Two tiles of queries and several blocks of keys.
const TILES: [usize; 7] = [1, 2, 1, 131, 211, 5, 7];
const ONE_QUERY: [usize; 7] = [2, 6, 2, 1, 19, 5, 11];
/// Keys of several tasks.
const ONE_QUERY_LONG: [usize; 7] = [1, 4, 2, 1, 1097, 3, 17];
/// More queries than keys.
const TALL: [usize; 7] = [2, 3, 3, 29, 13, 5, 7];
const TALL_TILES: [usize; 7] = [1, 2, 1, 211, 199, 3, 5];

/// The whole list.
pub fn poisons() -> Vec<Poison> {
    let mut all = Vec::new();
    for (name, sizes) in [
        ("short", SHORT),
        ("several tiles", TILES),
        ("one query", ONE_QUERY),
        ("one query, many keys", ONE_QUERY_LONG),
    ] {
        all.extend(hidden_keys(name, sizes));
        all.extend(keys_hidden_from_a_group(name, sizes));
        all.extend(seen(name, sizes));
        all.extend(seen_by_one(name, sizes));
    }
    for (name, sizes) in [
        ("more queries than keys", TALL),
        ("several tiles, more queries than keys", TALL_TILES),
        ("short", SHORT),
        ("one query", ONE_QUERY),
    ] {
        all.extend(hidden_rows(name, sizes));
    }
    all
}

impl Poison {
    /// Nothing hidden, nothing poisoned.
    fn new(name: String, sizes: [usize; 7]) -> Self {
        Self {
            name,
            sizes,
            causal: None,
            window: None,
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
    fn with_options(mut self) -> Self {
        self.name += ", with softcap, sinks and dropout";
        self.softcap = Some(1.5);
        self.sinks = Some((0..self.sizes[1]).map(|head| head as f64 / 4.0).collect());
        self.dropout = Some(Dropout {
            probability: 0.25,
            seed: 29,
        });
        self
    }

    /// Junk in these rows of some operands, one poison per kind of it.
    fn each_junk(self, operands: &[Operand], rows: &[usize]) -> Vec<Self> {
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
    fn key_rows(&self, heads: core::ops::Range<usize>, keys: &[usize]) -> Vec<usize> {
        let len_kv = self.sizes[4];
        let of_head = |head| keys.iter().map(move |key| head * len_kv + key);
        heads.flat_map(of_head).collect()
    }
}

/// Sets what hides.
type Set<'a> = &'a dyn Fn(&mut Poison);

/// Keys that no query of the first batch item sees, hidden in every way.
fn hidden_keys(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, heads_kv, len_q, len_kv, ..] = sizes;
    let mut all = Vec::new();
    let mut hide = |way: &str, keys: &dyn Fn(usize) -> bool, set: Set<'_>| {
        let keys: Vec<usize> = (0..len_kv).filter(|&key| keys(key)).collect();
        assert!(!keys.is_empty(), "{path}: {way} hides nothing");
        let mut plain = Poison::new(format!("{path}: keys hidden by {way}"), sizes);
        set(&mut plain);
        for poison in [plain.clone(), plain.with_options()] {
            let rows = poison.key_rows(0..heads_kv, &keys);
            all.extend(poison.each_junk(&[Operand::Key, Operand::Value], &rows));
        }
    };
    // Every third key, so that hidden and visible keys stand side by side, or all from one on.
    let third = |key: usize| key % 3 == 1;
    let first = |at: usize| at < len_kv;
    let tail = len_kv - len_kv / 3;
    let per_key = [batch, 1, 1, len_kv];
    let every = |shape: [usize; 4]| 0..shape.iter().product::<usize>();
    let every_score = [batch, heads, len_q, len_kv];
    let hides = |at: usize| at < heads * len_q * len_kv && third(at % len_kv);
    let infinite = |hides: bool| if hides { f64::NEG_INFINITY } else { 0.5 };

    hide("a key length", &|key| key >= tail, &|p| {
        p.key_lengths = Some(
            (0..batch)
                .map(|b| if b == 0 { tail } else { len_kv })
                .collect(),
        );
    });
    hide(
        "the causal mask from the top left",
        &|key| key >= len_q,
        &|p| {
            p.causal = Some(TopLeft);
        },
    );
    // The first query of the default alignment stands on key `len_kv - len_q`.
    hide("a window", &|key| key + 2 < len_kv - len_q, &|p| {
        p.window = Some(Window {
            left: Some(2),
            right: Some(0),
        });
    });
    hide("segments", &third, &|p| {
        let keys = (0..batch * len_kv).map(|at| i64::from(first(at) && third(at)));
        p.segments = Some((vec![0; batch * len_q], keys.collect()));
    });
    hide("single blocks", &third, &|p| {
        let visible = every(per_key).map(|at| !(first(at) && third(at)));
        p.visible_blocks = Some((per_key, visible.collect(), BlockSize::from([5, 1])));
    });
    hide("a mask per key", &third, &|p| {
        p.masked = Some((
            per_key,
            every(per_key).map(|at| first(at) && third(at)).collect(),
        ));
    });
    hide("a causal mask and one per score", &third, &|p| {
        p.causal = Some(BottomRight);
        p.masked = Some((every_score, every(every_score).map(hides).collect()));
    });
    hide("a bias per key", &third, &|p| {
        let bias = every(per_key).map(|at| infinite(first(at) && third(at)));
        p.bias = Some((per_key, bias.collect()));
    });
    hide("a bias per score", &third, &|p| {
        let bias = every(every_score).map(|at| infinite(hides(at)));
        p.bias = Some((every_score, bias.collect()));
    });
    hide("a relative bias", &|key| key + 2 < len_kv - len_q, &|p| {
        // A bucket for every distance; those of more than two tokens back hide.
        let buckets = RelativeBuckets {
            buckets: 4 * (len_q + len_kv),
            max_distance: 2 * (len_q + len_kv),
            bidirectional: true,
        };
        let mut table = vec![0.5; buckets.buckets * heads];
        for distance in 3..(len_q + len_kv) as isize {
            table[buckets.bucket(-distance) * heads..][..heads].fill(f64::NEG_INFINITY);
        }
        p.relative = Some((table, buckets));
    });

    // What is masked may have any bias.
    let mut biased = Poison::new(
        format!("{path}: keys and their bias hidden by a mask"),
        sizes,
    );
    biased.masked = Some((every_score, every(every_score).map(hides).collect()));
    biased.bias = Some((every_score, vec![0.5; every(every_score).len()]));
    let elements: Vec<usize> = every(every_score).filter(|&at| hides(at)).collect();
    all.extend(biased.each_junk(&[Operand::Bias], &elements));
    all
}

/// Keys hidden from all query heads of their group, while the heads of another group see the keys of the same index.
fn keys_hidden_from_a_group(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, heads_kv, _, len_kv, ..] = sizes;
    if heads_kv == 1 {
        return Vec::new();
    }
    let keys: Vec<usize> = (0..len_kv).filter(|key| key % 3 == 1).collect();
    let shape = [batch, heads, 1, len_kv];
    let hides = |at: usize| at < heads / heads_kv * len_kv && at % len_kv % 3 == 1;
    let all_hides = || (0..batch * heads * len_kv).map(hides);
    let mut by_mask = Poison::new(format!("{path}: keys hidden from a group by a mask"), sizes);
    by_mask.masked = Some((shape, all_hides().collect()));
    let mut by_bias = Poison::new(format!("{path}: keys hidden from a group by a bias"), sizes);
    let infinite = |hides: bool| if hides { f64::NEG_INFINITY } else { 0.5 };
    by_bias.bias = Some((shape, all_hides().map(infinite).collect()));
    let with_puts = |poison: Poison| {
        let rows = poison.key_rows(0..1, &keys);
        poison.each_junk(&[Operand::Key, Operand::Value], &rows)
    };
    [by_mask, by_bias].into_iter().flat_map(with_puts).collect()
}

/// Queries that see nothing: neither they nor what comes in at their rows goes anywhere.
fn hidden_rows(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, _, len_q, len_kv, ..] = sizes;
    let rows = batch * heads * len_q;
    let mut all = Vec::new();
    let mut hide = |way: &str, hidden: &dyn Fn(usize) -> bool, set: Set<'_>| {
        let hidden: Vec<usize> = (0..rows).filter(|&row| hidden(row)).collect();
        let mut plain = Poison::new(format!("{path}: rows hidden by {way}"), sizes);
        set(&mut plain);
        let mut sinks = plain.clone();
        sinks.name += ", with sinks";
        sinks.sinks = Some((0..heads).map(|head| head as f64 / 4.0).collect());
        let both = [Operand::Query, Operand::OutputGradient];
        for operand in [both[0], both[1], Operand::LogsumexpGradient] {
            all.extend(plain.clone().each_junk(&[operand], &hidden));
        }
        // The logsumexp of such a row is its sink, to which its gradient belongs.
        for operand in both {
            all.extend(sinks.clone().each_junk(&[operand], &hidden));
        }
        all.extend(plain.with_options().each_junk(&both, &hidden));
    };
    let per_row = [batch, heads, len_q, 1];
    if len_q > len_kv {
        hide(
            "the causal mask",
            &|row| row % len_q < len_q - len_kv,
            &|p| {
                p.causal = Some(BottomRight);
            },
        );
    }
    if batch > 1 {
        hide("a key length of 0", &|row| row / len_q / heads == 1, &|p| {
            p.key_lengths = Some(
                (0..batch)
                    .map(|b| if b == 1 { 0 } else { len_kv })
                    .collect(),
            );
        });
        hide(
            "segments",
            &|row| (row / len_q / heads + row % len_q) % 3 == 1,
            &|p| {
                let ids =
                    (0..batch * len_q).map(|at| i64::from((at / len_q + at % len_q) % 3 == 1));
                p.segments = Some((ids.collect(), vec![0; batch * len_kv]));
            },
        );
    }
    hide(
        "blocks",
        &|row| row / len_q % heads == 1 && row % len_q < 5,
        &|p| {
            let size = BlockSize::from([5, len_kv]);
            let blocks = len_q.div_ceil(5);
            let visible = (0..heads * blocks).map(|at| at != blocks);
            p.visible_blocks = Some(([1, heads, blocks, 1], visible.collect(), size));
        },
    );
    hide("a mask", &|row| row % 5 == 1, &|p| {
        p.masked = Some((per_row, (0..rows).map(|row| row % 5 == 1).collect()));
    });
    hide("a bias", &|row| row % 5 == 1, &|p| {
        let bias = (0..rows).map(|row| if row % 5 == 1 { f64::NEG_INFINITY } else { 0.5 });
        p.bias = Some((per_row, bias.collect()));
    });
    all
}

/// NaN that a query sees: it must not get lost.
fn seen(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [_, heads, heads_kv, len_q, len_kv, ..] = sizes;
    let mut all = Vec::new();
    let mut see = |what: &str, set: Set<'_>, puts: Vec<(Operand, Vec<usize>)>| {
        let mut poison = Poison::new(format!("{path}: NaN in {what}"), sizes);
        set(&mut poison);
        poison.reaches = Reaches::Caller;
        let junk = Junk::Nan;
        let put = |(operand, rows)| Put {
            operand,
            rows,
            junk,
        };
        poison.puts = puts.into_iter().map(put).collect();
        let mut sinks = poison.clone();
        sinks.name += ", with sinks";
        sinks.sinks = Some((0..heads).map(|head| head as f64 / 4.0).collect());
        all.extend([poison, sinks]);
    };
    // The last query of the first head.
    let query = vec![len_q - 1];
    see("a query", &|_| {}, vec![(Operand::Query, query.clone())]);
    see(
        "the gradients of a row",
        &|_| {},
        vec![
            (Operand::OutputGradient, query.clone()),
            (Operand::LogsumexpGradient, query),
        ],
    );
    // The last key of the last key/value head.
    let key = vec![heads_kv * len_kv - 1];
    let both = || vec![(Operand::Key, key.clone()), (Operand::Value, key.clone())];
    see("a key", &|p| p.causal = Some(BottomRight), both());
    see("the only key that a query sees", &only_the_last_key, both());
    see("a value", &|_| {}, vec![(Operand::Value, key.clone())]);
    all
}

fn only_the_last_key(poison: &mut Poison) {
    poison.window = Some(Window {
        left: Some(0),
        right: Some(0),
    });
}

/// Keys and values of the largest numbers that only the last query sees, whose own numbers are zero: for all other queries
/// their products overflow, but these have no weight for them.
fn seen_by_one(path: &str, sizes: [usize; 7]) -> Vec<Poison> {
    let [batch, heads, heads_kv, len_q, len_kv, ..] = sizes;
    let mut all = Vec::new();
    let mut see = |way: &str, key: usize, set: Set<'_>| {
        let mut poison = Poison::new(format!("{path}: hidden by {way} from all but one"), sizes);
        poison.reaches = Reaches::Viewer;
        set(&mut poison);
        let key_rows = poison.key_rows(0..heads_kv, &[key]);
        let viewers: Vec<usize> = (0..heads).map(|head| head * len_q + len_q - 1).collect();
        let put = |operand, rows: &[usize], junk| Put {
            operand,
            rows: rows.to_vec(),
            junk,
        };
        poison.puts = vec![
            put(Operand::Key, &key_rows, Junk::Largest),
            put(Operand::Value, &key_rows, Junk::Largest),
            put(Operand::Query, &viewers, Junk::Zero),
            put(Operand::OutputGradient, &viewers, Junk::Zero),
            put(Operand::LogsumexpGradient, &viewers, Junk::Zero),
        ];
        let mut capped = poison.clone();
        capped.name += ", with softcap";
        capped.softcap = Some(1.5);
        all.extend([poison, capped]);
    };
    see("the causal mask", len_kv - 1, &|p| {
        p.causal = Some(BottomRight)
    });
    see("the causal mask from the top left", len_q - 1, &|p| {
        p.causal = Some(TopLeft)
    });
    see("a window", len_kv - 1, &|p| {
        p.window = Some(Window {
            left: None,
            right: Some(0),
        });
    });
    let shape = [batch, heads, len_q, len_kv];
    let hides = |at: usize| at % len_kv == 1 && at / len_kv % len_q != len_q - 1;
    let scores = batch * heads * len_q * len_kv;
    see("a mask", 1, &|p| {
        p.masked = Some((shape, (0..scores).map(hides).collect()));
    });
    see("a bias", 1, &|p| {
        let bias = (0..scores).map(|at| if hides(at) { f64::NEG_INFINITY } else { 0.5 });
        p.bias = Some((shape, bias.collect()));
    });
    all
}
