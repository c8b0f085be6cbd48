//! A case from a few arbitrary numbers, for property tests and for the fuzzer.

use core::ops::Range;

use burn_attn_kernels_cpu::{
    AttentionDropout, BlockSize,
    CausalAlignment::{BottomRight, TopLeft},
    RelativeBuckets, Window,
};

use super::{
    case::{Case, coarse, fine},
    number::Number,
    options::{hides_a_third, key_lengths, query_offsets, shapes, shows_a_third},
};

/// Any numbers make a case.
#[derive(Clone, Copy, Debug)]
pub struct Choices {
    /// Numbers for batch, heads_kv, group, len_q, len_kv, dim_qk, dim_v.
    pub sizes: [u8; 7],
    /// One bit per option, and some more for its kind.
    pub options: u32,
    pub seed: u16,
    /// One bit each for sinks, biases, scale and softcap of any size, and one for a query that makes up for the scale.
    pub extremes: u8,
}

impl Choices {
    /// The case of these choices, whose lengths are less than `longest`, and whose numbers are all exact in `T`.
    pub fn case<T: Number>(self, longest: usize) -> Case {
        let size = |index: usize, end: usize| usize::from(self.sizes[index]) % end;
        let (heads_kv, group) = (1 + size(1, 3), 1 + size(2, 3));
        let sizes = [
            size(0, 3),
            heads_kv * group,
            heads_kv,
            size(3, longest),
            size(4, longest),
            1 + size(5, 19),
            1 + size(6, 19),
        ];
        let mut case = Case::new(&format!("{self:?}"), sizes);
        let [batch, heads, len_q, len_kv] = case.scores();
        let seed = u64::from(self.seed);
        let chosen = |bit: u32| self.options >> bit & 1 == 1;
        if chosen(0) {
            case.causal = Some(if chosen(1) { TopLeft } else { BottomRight });
        }
        if chosen(2) {
            let reach = |bit: u32, tokens: usize| chosen(bit).then_some(tokens % (len_kv + 1));
            case.window = Some(Window {
                left: reach(3, usize::from(self.seed)),
                right: reach(4, usize::from(self.seed / 7)),
            });
        }
        if self.seed % 11 < 3 && (case.causal.is_some() || case.window.is_some()) {
            let count = |item| usize::from(self.seed) * (item + 3) % (len_kv + 1);
            let counts = (0..batch).map(count).collect();
            let are_causal = case.causal.is_some() && self.seed.is_multiple_of(2);
            case.first_keys = Some((counts, are_causal));
        }
        if chosen(5) {
            case.key_lengths = Some(key_lengths(&case));
        }
        if chosen(31) {
            // Offsets at the ends of the sequences of a cache, or anywhere.
            let ends = case.key_lengths.iter().flatten();
            let ends = ends.map(|&end| end as i64 - len_q as i64).collect();
            case.query_offsets = Some(match case.key_lengths {
                Some(_) if self.seed.is_multiple_of(2) => ends,
                _ => query_offsets(&case),
            });
        }
        if chosen(6) {
            let ids = |stream: u64, count| {
                coarse(stream, count)
                    .iter()
                    .map(|x| (3.0 * x) as i64)
                    .collect()
            };
            case.segments = Some((
                ids(seed + 11, batch * len_q),
                ids(seed + 12, batch * len_kv),
            ));
        }
        let all_shapes = shapes(case.scores());
        let shape = |first: u32| all_shapes[(self.options >> first & 15) as usize];
        if chosen(7) {
            case.masked = Some((shape(8), hides_a_third(shape(8))));
        }
        if chosen(12) {
            let mut bias = coarse(seed + 6, shape(13).iter().product());
            if chosen(17) {
                let hidden = bias.iter_mut().filter(|bias| **bias > 0.6);
                hidden.for_each(|bias| *bias = f64::NEG_INFINITY);
            }
            case.bias = Some((shape(13), bias));
        }
        case.alibi = chosen(18).then(|| coarse(seed + 13, heads));
        if chosen(19) {
            let buckets = RelativeBuckets {
                buckets: 8,
                max_distance: 11,
                bidirectional: chosen(20),
            };
            case.relative = Some((coarse(seed + 9, 8 * heads), buckets));
        }
        case.sinks = chosen(21).then(|| coarse(seed + 10, heads));
        case.softcap = chosen(22).then_some(1.5);
        case.scale = chosen(23).then_some(0.7);
        case.dropout = chosen(24).then_some(AttentionDropout {
            probability: 0.3,
            seed,
        });
        if chosen(26) {
            let size = BlockSize {
                queries: 1 + usize::from(self.seed) % 40,
                keys: 1 + usize::from(self.seed / 40) % 90,
            };
            let shape = shapes(case.table(size))[(self.options >> 27 & 15) as usize];
            case.visible_blocks = Some((shape, shows_a_third(shape), size));
        }
        case.logsumexp_gradient = chosen(25).then(|| coarse(seed + 7, batch * heads * len_q));
        self.stretch::<T>(&mut case);
        case
    }

    /// Gives some options of the case numbers of any magnitude.
    fn stretch<T: Number>(self, case: &mut Case) {
        let chosen = |bit: u32| self.extremes >> bit & 1 == 1;
        let any = |stream: u64, count| of_any_size::<T>(u64::from(self.seed) + stream, count);
        if let Some(sinks) = case.sinks.as_mut().filter(|_| chosen(0)) {
            *sinks = any(21, sinks.len());
        }
        if let Some((_, bias)) = case.bias.as_mut().filter(|_| chosen(1)) {
            let numbers = any(22, bias.len());
            let visible = bias
                .iter_mut()
                .zip(numbers)
                .filter(|(bias, _)| bias.is_finite());
            visible.for_each(|(bias, number)| *bias = number);
        }
        // Not beside ALiBi: the sum of both would have to be exact.
        let relative = case
            .relative
            .as_mut()
            .filter(|_| chosen(1) && case.alibi.is_none());
        if let Some((table, _)) = relative {
            *table = any(23, table.len());
        }
        if case.scale.is_some() && chosen(2) {
            let scale = any(24, 1)[0];
            // The oracle, which computes in f64, has to hold the scale times a gradient.
            let scale = scale.abs().clamp(power(-900), power(900)).copysign(scale);
            case.scale = Some(scale);
            if chosen(4) {
                let most = T::LARGEST.log2().ceil();
                let bounded =
                    |exponent: f64, share: f64| exponent.clamp(-share * most, share * most);
                let of_query = bounded(-scale.abs().log2(), 0.75).round();
                let of_key = bounded(-scale.abs().log2() - of_query, 0.12).round();
                let query = case.query.iter_mut().map(|x| (x, of_query));
                let key = case.key.iter_mut().map(|x| (x, of_key));
                query
                    .chain(key)
                    .for_each(|(x, exponent)| *x *= power(exponent as i32));
            }
        }
        if case.softcap.is_some() && chosen(3) {
            case.softcap = Some(of_any_size::<f64>(u64::from(self.seed) + 25, 1)[0].abs());
        }
    }
}

/// Numbers from the smallest to the largest, of either sign, whose exponents are equally likely; one in sixteen is the largest.
fn of_any_size<T: Number>(seed: u64, count: usize) -> Vec<f64> {
    let exponents = exponents::<T>();
    let (places, signs) = (fine(seed, count), coarse(seed + 1, count));
    let pairs = places.into_iter().zip(signs);
    pairs
        .map(|(place, sign)| {
            let place = (place + 1.0) / 2.0 * exponents.len() as f64;
            let size = match sign.abs() < 1.0 / 16.0 {
                true => T::LARGEST,
                false => power(exponents.start + place as i32),
            };
            size.copysign(sign)
        })
        .collect()
}

/// The exponents of the powers of two in `T`.
fn exponents<T: Number>() -> Range<i32> {
    if T::LARGEST > f64::from(f32::MAX) {
        -1074..1024
    } else {
        -149..128
    }
}

/// A power of two, which may be subnormal.
fn power(exponent: i32) -> f64 {
    let half = exponent / 2;
    2_f64.powi(half) * 2_f64.powi(exponent - half)
}
