//! One attention problem, described once for the oracle, a plain implementation and the kernels.

use burn_attn_kernels_cpu::{
    AttentionDropout, BlockSize, Blocks, Broadcast, CausalAlignment, DistanceAxis, FirstKeys, Mask,
    Options, PositionMask, Problem, RelativeBuckets, Segments, Window, oracle,
};

/// Results and gradients by name, in f64, which holds those of every precision exactly.
pub type Tensors = Vec<(&'static str, Vec<f64>)>;

/// Steps of 1/64 in (−1, 1): every precision, bf16 included, reads the same input.
pub fn coarse(seed: u64, count: usize) -> Vec<f64> {
    numbers(seed, count, 7)
}

/// Numbers in (−1, 1) with all the bits of an f32.
pub fn fine(seed: u64, count: usize) -> Vec<f64> {
    numbers(seed, count, 24)
}

/// `count` numbers in (−1, 1) with a sign and `bits − 1` bits, the same on every run: splitmix64.
fn numbers(seed: u64, count: usize, bits: u32) -> Vec<f64> {
    let mut state = seed << 32;
    let half = 1_i64 << (bits - 1);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> (64 - bits)) as i64 - half
    };
    (0..count)
        .map(|_| next().max(1 - half) as f64 / half as f64)
        .collect()
}

/// A problem with its data, mask and options.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub problem: Problem,
    pub query: Vec<f64>,
    pub key: Vec<f64>,
    pub value: Vec<f64>,
    pub causal: Option<CausalAlignment>,
    pub window: Option<Window>,
    /// Counts, and whether the first keys stay causal.
    pub first_keys: Option<(Vec<usize>, bool)>,
    pub key_lengths: Option<Vec<usize>>,
    pub query_offsets: Option<Vec<i64>>,
    pub segments: Option<(Vec<i64>, Vec<i64>)>,
    pub visible_blocks: Option<([usize; 4], Vec<bool>, BlockSize)>,
    pub masked: Option<([usize; 4], Vec<bool>)>,
    pub bias: Option<([usize; 4], Vec<f64>)>,
    pub alibi: Option<Vec<f64>>,
    pub relative: Option<(Vec<f64>, RelativeBuckets)>,
    pub sinks: Option<Vec<f64>>,
    pub softcap: Option<f64>,
    pub scale: Option<f64>,
    pub dropout: Option<AttentionDropout>,
    pub output_gradient: Vec<f64>,
    pub logsumexp_gradient: Option<Vec<f64>>,
}

impl Case {
    /// Coarse numbers; nothing masked. Sizes: batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v.
    pub fn new(name: &str, sizes: [usize; 7]) -> Self {
        Self::with_numbers(name, sizes, coarse)
    }

    /// Numbers that round at every step, in f32 and f64.
    pub fn fine(name: &str, sizes: [usize; 7]) -> Self {
        Self::with_numbers(name, sizes, fine)
    }

    fn with_numbers(name: &str, sizes: [usize; 7], numbers: fn(u64, usize) -> Vec<f64>) -> Self {
        let [batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v] = sizes;
        let problem = Problem {
            batch,
            heads_q,
            heads_kv,
            len_q,
            len_kv,
            dim_qk,
            dim_v,
        };
        let query = numbers(1, problem.query_elements());
        Self {
            name: name.to_string(),
            problem,
            // Larger than (−1, 1), so that the softmax is far from uniform.
            query: query.iter().map(|x| 4.0 * x).collect(),
            key: numbers(2, problem.key_elements()),
            value: numbers(3, problem.value_elements()),
            causal: None,
            window: None,
            first_keys: None,
            key_lengths: None,
            query_offsets: None,
            segments: None,
            visible_blocks: None,
            masked: None,
            bias: None,
            alibi: None,
            relative: None,
            sinks: None,
            softcap: None,
            scale: None,
            dropout: None,
            output_gradient: numbers(4, problem.output_elements()),
            logsumexp_gradient: None,
        }
    }

    /// The sizes of the scores.
    pub fn scores(&self) -> [usize; 4] {
        let p = self.problem;
        [p.batch, p.heads_q, p.len_q, p.len_kv]
    }

    /// The sizes of a table of blocks that repeats nothing.
    pub fn table(&self, size: BlockSize) -> [usize; 4] {
        let [batch, heads, len_q, len_kv] = self.scores();
        let [rows, columns] = size.table(len_q, len_kv);
        [batch, heads, rows, columns]
    }

    pub fn mask(&self) -> Mask<'_> {
        let masked = self.masked.as_ref();
        let blocks = self.visible_blocks.as_ref();
        let segments = self.segments.as_ref();
        let first_keys = self.first_keys.as_ref();
        Mask {
            by_position: PositionMask::new(self.causal, self.window),
            first_keys: first_keys.map(|(counts, causal)| FirstKeys {
                counts,
                causal: *causal,
            }),
            key_lengths: self.key_lengths.as_deref(),
            query_offsets: self.query_offsets.as_deref(),
            segments: segments.map(|(queries, keys)| Segments { queries, keys }),
            blocks: blocks.map(|(shape, data, size)| Blocks {
                visible: Broadcast::new(data, *shape).unwrap(),
                size: *size,
            }),
            masked: masked.map(|(shape, data)| Broadcast::new(data, *shape).unwrap()),
        }
    }

    pub fn axis(&self) -> DistanceAxis {
        DistanceAxis::new(&self.problem, &self.mask())
    }

    /// ALiBi and the relative bias as kernels read them, `[heads_q, distances]`.
    pub fn distance_bias(&self) -> Option<Vec<f64>> {
        if self.alibi.is_none() && self.relative.is_none() {
            return None;
        }
        let heads = self.problem.heads_q;
        let entry = |head: usize, position: isize| {
            let alibi = self
                .alibi
                .as_ref()
                .map_or(0.0, |slopes| -slopes[head] * position.unsigned_abs() as f64);
            let relative = self.relative.as_ref().map_or(0.0, |(table, buckets)| {
                table[buckets.bucket(position) * heads + head]
            });
            alibi + relative
        };
        let positions: Vec<isize> = self.axis().relative_positions().collect();
        let of_head = |head| positions.iter().map(move |&position| entry(head, position));
        Some((0..heads).flat_map(of_head).collect())
    }

    /// Replaces the gradient of the distance bias by those of the slopes and the table, as the oracle names them.
    pub fn of_parameters(&self, tensors: Tensors) -> Tensors {
        let heads = self.problem.heads_q;
        let mut result = Tensors::new();
        for (name, gradient) in tensors {
            if name != "distance bias gradient" {
                result.push((name, gradient));
                continue;
            }
            let axis = self.axis();
            let terms = gradient.iter().enumerate().map(|(at, &gradient)| {
                let (head, entry) = (at / axis.len(), at % axis.len());
                (head, axis.relative_position(entry), gradient)
            });
            if self.alibi.is_some() {
                let mut slopes = vec![0.0; heads];
                for (head, position, gradient) in terms.clone() {
                    slopes[head] -= gradient * position.unsigned_abs() as f64;
                }
                result.push(("slopes gradient", slopes));
            }
            if let Some((table, buckets)) = &self.relative {
                let mut sums = vec![0.0; table.len()];
                for (head, position, gradient) in terms {
                    sums[buckets.bucket(position) * heads + head] += gradient;
                }
                result.push(("table gradient", sums));
            }
        }
        result
    }

    /// The results of the naive f64 oracle.
    pub fn oracle(&self) -> Tensors {
        let bias = self.bias.as_ref();
        let relative = self.relative.as_ref();
        let inputs = oracle::Inputs {
            options: Options {
                mask: self.mask(),
                bias: bias.map(|(shape, data)| Broadcast::new(data, *shape).unwrap()),
                sinks: self.sinks.as_deref(),
                softcap: self.softcap,
                scale: self.scale,
                dropout: self.dropout,
            },
            alibi: self.alibi.as_deref(),
            relative: relative.map(|(table, buckets)| (table.as_slice(), *buckets)),
            ..oracle::Inputs::new(&self.query, &self.key, &self.value)
        };
        let forward = oracle::forward(&self.problem, &inputs).unwrap();
        let of_logsumexp = self.logsumexp_gradient.as_deref();
        let gradients =
            oracle::backward(&self.problem, &inputs, &self.output_gradient, of_logsumexp).unwrap();
        let all = [
            ("output", Some(forward.output)),
            ("logsumexp", Some(forward.logsumexp)),
            ("query gradient", Some(gradients.q)),
            ("key gradient", Some(gradients.k)),
            ("value gradient", Some(gradients.v)),
            ("bias gradient", gradients.bias),
            ("slopes gradient", gradients.alibi),
            ("table gradient", gradients.relative),
            ("sinks gradient", gradients.sinks),
        ];
        let present = all.into_iter();
        present
            .filter_map(|(name, data)| Some((name, data?)))
            .collect()
    }
}

/// The tensor of this name.
#[track_caller]
pub fn tensor<'a>(tensors: &'a Tensors, name: &str) -> &'a [f64] {
    let found = tensors.iter().find(|(other, _)| *other == name);
    &found.unwrap_or_else(|| panic!("there is no {name}")).1
}
