//! Attention from the formulas of the papers, in plain tensor operations of f64, for everything that heads can be told.

use std::ops::Range;

use burn::tensor::{Bool, DType, Device, Tensor, TensorData, activation::softmax};
use burn_attn::{
    HeadsConfig, QkNormConfig,
    positions::{PositionEncoding, RelativeBiasConfig, RotaryConfig, RotaryLayout},
};

use super::{BATCH, N_HEADS, weights::Weights};

/// The authors' slopes of six heads: those of four, then every second one of eight.
const SLOPES: [f64; N_HEADS] = [
    1.0 / 4.0,
    1.0 / 16.0,
    1.0 / 64.0,
    1.0 / 256.0,
    1.0 / 2.0,
    1.0 / 8.0,
];

/// A tensor of these numbers in f64.
pub fn wide<const D: usize>(numbers: Vec<f64>, shape: [usize; D], device: &Device) -> Tensor<D> {
    Tensor::from_data(TensorData::new(numbers, shape), (device, DType::F64))
}

/// `x` times the columns `range` of the linear layer `name`.
pub fn linear(weights: &Weights, name: &str, range: Range<usize>, x: Tensor<3>) -> Tensor<3> {
    let weight: Tensor<2> = weights.get(&format!("{name}.weight"));
    let columns = weight.slice([0..x.dims()[2], range.clone()]);
    let y = x.matmul(columns.unsqueeze());
    match weights.find(&[name, "bias"]) {
        Some(bias) => {
            let bias: Tensor<1> = weights.get(&bias);
            y + bias.slice([range]).unsqueeze()
        }
        None => y,
    }
}

/// All columns of it.
pub fn whole(weights: &Weights, name: &str, x: Tensor<3>) -> Tensor<3> {
    let weight: Tensor<2> = weights.get(&format!("{name}.weight"));
    linear(weights, name, 0..weight.dims()[1], x)
}

/// Projected queries, keys and values that meet in the heads.
pub struct Heads<'a> {
    pub config: &'a HeadsConfig,
    pub weights: &'a Weights,
    pub d_model: usize,
    /// Position of each item's first query among its keys.
    pub offsets: [i64; BATCH],
    /// What the caller adds to the scores, which broadcasts to them.
    pub bias: Option<Tensor<4>>,
    /// Which key a query of a batch item sees.
    pub visible: &'a dyn Fn(usize, usize, usize) -> bool,
}

impl Heads<'_> {
    pub fn d_head(&self) -> usize {
        self.config.d_head.unwrap_or(self.d_model / N_HEADS)
    }

    pub fn n_kv_heads(&self) -> usize {
        self.config.n_kv_heads.unwrap_or(N_HEADS)
    }

    pub fn d_value_head(&self) -> usize {
        self.config.d_value_head.unwrap_or(self.d_head())
    }

    /// The columns of queries, keys and values in a projection that has all three.
    pub fn columns(&self) -> [Range<usize>; 3] {
        let query = N_HEADS * self.d_head();
        let key = query + self.n_kv_heads() * self.d_head();
        let value = key + self.n_kv_heads() * self.d_value_head();
        [0..query, query..key, key..value]
    }

    /// The contexts of all heads side by side, projected, and the weights.
    pub fn attend(
        &self,
        query: Tensor<3>,
        key: Tensor<3>,
        value: Tensor<3>,
    ) -> (Tensor<3>, Tensor<4>) {
        let [batch, len_q, _] = query.dims();
        let query = split(query, N_HEADS);
        let key = split(key, self.n_kv_heads());
        let value = split(value, self.n_kv_heads());
        let (query, key) = self.normalised(query, key);
        let query = self.rotated(query, self.offsets);
        let key = repeated(self.rotated(key, [0; BATCH]));
        let value = repeated(value);

        let mut scores = query.matmul(key.swap_dims(2, 3)) * self.scale();
        if let Some(softcap) = self.config.softcap {
            scores = (scores / softcap).tanh() * softcap;
        }
        let [_, _, _, len_kv] = scores.dims();
        for bias in [self.bias.clone(), self.position_bias(len_q, len_kv)] {
            scores = bias.into_iter().fold(scores, |scores, bias| scores + bias);
        }
        let hidden = self.hidden([batch, len_q, len_kv]);
        let mut scores = scores.mask_fill(hidden, f64::NEG_INFINITY);
        if let Some(sinks) = self.weights.find(&["sinks"]) {
            let sinks: Tensor<1> = self.weights.get(&sinks);
            let sinks = sinks.reshape([1, N_HEADS, 1, 1]);
            scores = Tensor::cat(vec![scores, sinks.expand([batch, N_HEADS, len_q, 1])], 3);
        }
        let weights = softmax(scores, 3).narrow(3, 0, len_kv);
        let context = weights.clone().matmul(value);
        let width = N_HEADS * self.d_value_head();
        let context = context.swap_dims(1, 2).reshape([batch, len_q, width]);
        (whole(self.weights, "output", context), weights)
    }

    fn scale(&self) -> f64 {
        let of_norm = match self.config.qk_norm {
            // Cosines times the learned factor, and nothing else.
            Some(QkNormConfig::L2 { .. }) => 1.0,
            _ => (self.d_head() as f64).powf(-0.5),
        };
        self.config.scale.unwrap_or(of_norm)
    }

    fn normalised(&self, query: Tensor<4>, key: Tensor<4>) -> (Tensor<4>, Tensor<4>) {
        let lengths = |x: &Tensor<4>| (x.clone() * x.clone()).sum_dim(3).sqrt();
        match &self.config.qk_norm {
            None => (query, key),
            Some(QkNormConfig::Rms { epsilon }) => {
                let d_head = self.d_head() as f64;
                let normalised = |x: Tensor<4>, of: &str| {
                    let path = self.weights.find(&["qk_norm", of]).expect("a gamma");
                    let gamma: Tensor<1> = self.weights.get(&path);
                    let mean = (x.clone() * x.clone()).sum_dim(3).mul_scalar(1.0 / d_head);
                    x / (mean + *epsilon).sqrt() * gamma.unsqueeze()
                };
                (normalised(query, "query"), normalised(key, "key"))
            }
            Some(QkNormConfig::L2 { epsilon, .. }) => {
                let unit = |x: Tensor<4>| x.clone() / lengths(&x).clamp_min(*epsilon);
                let path = self.weights.find(&["qk_norm", "factor"]);
                let factor: Tensor<1> = self.weights.get(&path.expect("a factor per head"));
                (unit(query) * factor.reshape([1, N_HEADS, 1, 1]), unit(key))
            }
            Some(other) => panic!("{other:?} is not written out here"),
        }
    }

    fn rotated(&self, x: Tensor<4>, offsets: [i64; BATCH]) -> Tensor<4> {
        let PositionEncoding::Rotary(rotary) = &self.config.position else {
            return x;
        };
        let items = offsets.into_iter().enumerate();
        let items =
            items.map(|(item, offset)| rotated(rotary, x.clone().narrow(0, item, 1), offset));
        Tensor::cat(items.collect(), 0)
    }

    /// What ALiBi or T5 add to the scores.
    fn position_bias(&self, len_q: usize, len_kv: usize) -> Option<Tensor<4>> {
        let device = self.weights.device();
        let distance =
            |item: usize, i: usize, j: usize| (j as i64 - i as i64 - self.offsets[item]) as f64;
        let per_pair = |number: &dyn Fn(f64) -> f64| {
            let of_item = |item| move |at: usize| (item, at / len_kv, at % len_kv);
            let pairs = (0..BATCH).flat_map(|item| (0..len_q * len_kv).map(of_item(item)));
            let numbers = pairs.map(|(item, i, j)| number(distance(item, i, j)));
            wide::<4>(numbers.collect(), [BATCH, 1, len_q, len_kv], device)
        };
        match &self.config.position {
            PositionEncoding::None | PositionEncoding::Rotary(_) => None,
            PositionEncoding::Alibi(alibi) => {
                let slopes = match self.weights.find(&["slopes"]) {
                    Some(slopes) => self.weights.get(&slopes),
                    None => wide(SLOPES.into(), [N_HEADS], device),
                };
                assert_eq!(self.weights.find(&["slopes"]).is_some(), alibi.learnable);
                let slopes: Tensor<4> = slopes.reshape([1, N_HEADS, 1, 1]);
                Some(slopes * per_pair(&|distance| -distance.abs()))
            }
            PositionEncoding::Relative(relative) => {
                let table: Tensor<2> = self
                    .weights
                    .get(&self.weights.find(&["table"]).expect("a table"));
                // Row after row of the table, wherever the distance is in its bucket.
                let rows = (0..relative.buckets).map(|row| {
                    let here = per_pair(&|distance| f64::from(bucket(relative, distance) == row));
                    let biases = table.clone().narrow(0, row, 1);
                    here * biases.reshape([1, N_HEADS, 1, 1])
                });
                rows.reduce(|sum, row| sum + row)
            }
            other => panic!("{other:?} is not written out here"),
        }
    }

    fn hidden(&self, [batch, len_q, len_kv]: [usize; 3]) -> Tensor<4, Bool> {
        let mut hidden = Vec::new();
        for item in 0..batch {
            for i in 0..len_q {
                hidden.extend((0..len_kv).map(|j| !(self.visible)(item, i, j)));
            }
        }
        let data = TensorData::new(hidden, [batch, 1, len_q, len_kv]);
        let hidden = Tensor::<4, Bool>::from_data(data, self.weights.device());
        hidden.expand([batch, N_HEADS, len_q, len_kv])
    }
}

/// `[batch, len, heads · d]` to `[batch, heads, len, d]`.
fn split(x: Tensor<3>, heads: usize) -> Tensor<4> {
    let [batch, len, width] = x.dims();
    x.reshape([batch, len, heads, width / heads])
        .swap_dims(1, 2)
}

/// Each head of keys or values as often as query heads share it, one copy after the other.
fn repeated(x: Tensor<4>) -> Tensor<4> {
    let [batch, heads, len, d] = x.dims();
    let copies = N_HEADS / heads;
    let x: Tensor<5> = x.unsqueeze_dim(2);
    x.expand([batch, heads, copies, len, d])
        .reshape([batch, N_HEADS, len, d])
}

/// Every pair of numbers as a complex number, times that of its position and pair.
fn rotated(config: &RotaryConfig, x: Tensor<4>, offset: i64) -> Tensor<4> {
    let [_, _, len, d_head] = x.dims();
    let rotary_dim = config.rotary_dim.unwrap_or(d_head);
    let pairs = rotary_dim / 2;
    let at = |pair: usize| match config.layout {
        RotaryLayout::HalfSplit => [pair, pair + pairs],
        RotaryLayout::Interleaved => [2 * pair, 2 * pair + 1],
    };
    let number = |index: usize| x.clone().narrow(3, index, 1);
    let mut numbers: Vec<Tensor<4>> = (0..d_head).map(number).collect();
    for pair in 0..pairs {
        let frequency = config.base.powf(-2.0 * pair as f64 / rotary_dim as f64);
        let angles = (offset..offset + len as i64).map(|position| position as f64 * frequency);
        let wave = |wave: fn(f64) -> f64| {
            wide::<4>(
                angles.clone().map(wave).collect(),
                [1, 1, len, 1],
                &x.device(),
            )
        };
        let [real, imaginary] = at(pair).map(number);
        let [cos, sin] = [wave(f64::cos), wave(f64::sin)];
        let [first, second] = at(pair);
        numbers[first] = real.clone() * cos.clone() - imaginary.clone() * sin.clone();
        numbers[second] = real * sin + imaginary * cos;
    }
    Tensor::cat(numbers, 3)
}

/// T5's bucket of a key so many tokens after its query: half of a direction's buckets hold one distance each, the others share
/// those up to `max_distance` on a logarithmic scale.
fn bucket(config: &RelativeBiasConfig, position: f64) -> usize {
    let bidirectional = config.bidirectional.expect("every case says it");
    let (first, buckets, distance) = match bidirectional {
        true if position > 0.0 => (config.buckets / 2, config.buckets / 2, position),
        true => (0, config.buckets / 2, -position),
        false => (0, config.buckets, (-position).max(0.0)),
    };
    let exact = buckets / 2;
    if distance < exact as f64 {
        return first + distance as usize;
    }
    let share = (distance / exact as f64).ln() / (config.max_distance as f64 / exact as f64).ln();
    let shared = (share * (buckets - exact) as f64) as usize;
    first + (exact + shared).min(buckets - 1)
}
