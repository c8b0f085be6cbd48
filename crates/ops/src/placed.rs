//! Queries at any offset, in the cheapest form that the operation has.

use burn::{
    backend::Dispatch,
    tensor::{Bool, Device, Tensor, TensorData},
};
use burn_attn_kernels_cpu::{CausalAlignment, PositionMask};

use crate::{
    AttentionBias, AttentionMask, AttentionOptions,
    at_positions::one_if_equal,
    bias::DistancePart,
    check,
    composed::{counting, relative::relative_shift, statistics_dtype},
    distance::bias_at_positions,
};

impl AttentionOptions {
    /// Whether a mask, a bias or a function counts from the positions of the queries.
    pub fn counts_positions(&self) -> bool {
        let has_function = self.score_function.is_some();
        has_function || self.mask.counts_positions() || !self.bias.by_distance.is_empty()
    }

    /// Whether there is a function of scores or of what is visible.
    pub fn has_functions(&self) -> bool {
        self.score_function.is_some() || self.mask.any(&|mask| !mask.functions.is_empty())
    }

    /// Whether a part of the mask is causal.
    pub fn is_causal(&self) -> bool {
        self.mask.any(&|mask| mask.by_position.causal.is_some())
    }

    /// These options, with query `i` of batch item `b` at key `offsets[b] + i`: one number for all, or one for each. Modules
    /// place their queries by this method. Unlike those of [`query_offsets`](method@Self::query_offsets), the offsets may be any
    /// numbers. Without unions, offsets that are equivalent to a causal alignment become that alignment.
    ///
    /// # Panics
    ///
    /// When the number of offsets is neither 1 nor the batch, a bias by [distances](crate::AttentionBias::distances), or what a function has captured by
    /// distance, has no entry for a distance that occurs, or a bias does not fit the query.
    ///
    /// # Cost
    ///
    /// Nothing if the queries stand there anyway; a number per batch item for offsets from `−len_q` to `len_kv`. For other
    /// offsets, masks and biases by position become dense: `batch · heads_q · len_q · len_kv` numbers, or
    /// `heads_q · (len_q + len_kv)` without a mask if the offsets are equal. Functions take their tensor form there.
    pub fn placed(mut self, query: &Tensor<4>, len_kv: usize, offsets: &[i64]) -> Self {
        let [batch, heads, len_q, _] = query.dims();
        assert!(
            [1, batch].contains(&offsets.len()),
            "attention: {} positions of the first query were given for a batch of {batch}",
            offsets.len()
        );
        self.query_offsets = None;
        self.set_beyond(&[]);
        if !self.counts_positions() || [batch, len_q, len_kv].contains(&0) {
            return self;
        }
        let lengths = [len_q, len_kv];
        let offsets = one_if_equal(offsets);
        let alignment = self.mask.named_alignment();
        let alignment = alignment
            .or(self.mask.by_position.causal)
            .unwrap_or_default();
        if offsets == [alignment.offset(len_q, len_kv) as i64] {
            return self;
        }
        let is_numbers = |part: &DistancePart| matches!(part, DistancePart::Numbers(_));
        let captured_numbers = self.score_function.as_ref();
        let captured_numbers = captured_numbers.is_some_and(|it| it.captures.has_distances());
        let has_numbers = captured_numbers || self.bias.by_distance.iter().any(is_numbers);
        // Numbers by distance have their zero where the default alignment has it.
        let is_causal = self.mask.by_position.causal.is_some() && self.mask.unions.is_empty();
        if let ([offset], true, false) = (offsets, is_causal, has_numbers) {
            for alignment in [CausalAlignment::TopLeft, CausalAlignment::BottomRight] {
                if *offset == alignment.offset(len_q, len_kv) as i64 {
                    self.mask.by_position.causal = Some(alignment);
                    return self;
                }
            }
        }
        let device = query.device();
        let is_near = |offset: &i64| (-(len_q as i64)..=len_kv as i64).contains(offset);
        let is_masked = self.mask.counts_positions();
        let has_function = self.score_function.is_some();
        let by_formula = !is_masked && !has_numbers && !has_function && offsets.len() == 1;
        if offsets.iter().all(is_near) && !by_formula {
            return self.at_offsets(offsets, batch, &device);
        }
        assert!(
            !has_numbers,
            "attention: what is given by distance has no entries for queries from {offsets:?} on: it has those for offsets from -{len_q} to \
             {len_kv}, for {len_q} queries and {len_kv} keys"
        );
        check::biases(&self.bias, [batch, heads, len_q, len_kv], true);
        let numbers = numbers_at(self.bias.clone(), query, offsets, lengths);
        self.bias.by_distance.clear();
        if let Some(numbers) = numbers {
            if by_formula {
                self.bias.by_distance.push(DistancePart::Numbers(numbers));
            } else {
                let numbers = numbers.reshape([heads, offsets.len(), len_q + len_kv - 1]);
                let numbers = numbers.swap_dims(0, 1).into_dispatch();
                let dense = relative_shift::<Dispatch>(numbers, len_q, len_kv);
                self.bias.dense.push(Tensor::from_dispatch(dense));
            }
        }
        if is_masked {
            self.mask = self.mask.map_all(&|mut mask| {
                let by_position = core::mem::take(&mut mask.by_position);
                if by_position == PositionMask::default() {
                    return mask;
                }
                let hidden = hidden(by_position, offsets, lengths, &device);
                mask.and(AttentionMask::masked(hidden))
            });
        }
        match self.has_functions() {
            true => self.functions_at(offsets, [batch, len_q, len_kv], &device),
            false => self,
        }
    }

    /// With the nearest offsets that the operation takes, and the rest for the functions, which alone count from them.
    fn functions_at(
        mut self,
        offsets: &[i64],
        [batch, len_q, len_kv]: [usize; 3],
        device: &Device,
    ) -> Self {
        let nearest = |offset: &i64| (*offset).clamp(-(len_q as i64), len_kv as i64);
        let beyond: Vec<i64> = offsets.iter().map(|it| it - nearest(it)).collect();
        self.set_beyond(&beyond);
        let offsets: Vec<i64> = offsets.iter().map(nearest).collect();
        self.at_offsets(&offsets, batch, device)
    }

    /// With these query offsets: one for all batch items, or one for each.
    fn at_offsets(self, offsets: &[i64], batch: usize, device: &Device) -> Self {
        let offsets = match offsets {
            [offset] => vec![*offset; batch],
            _ => offsets.to_vec(),
        };
        self.query_offsets(Tensor::from_data(offsets.as_slice(), counting(device)))
    }

    fn set_beyond(&mut self, beyond: &[i64]) {
        if !self.has_functions() {
            return;
        }
        self.mask = core::mem::take(&mut self.mask).map_all(&|mut mask| {
            for function in &mut mask.functions {
                function.captures.frame.beyond = beyond.to_vec();
            }
            mask
        });
        if let Some(function) = &mut self.score_function {
            function.captures.frame.beyond = beyond.to_vec();
        }
    }
}

/// The biases by distance of queries at each offset, side by side: `[heads_q, offsets · (len_q + len_kv − 1)]`, entry
/// `i − j + len_kv − 1` of an offset for score `(i, j)`.
fn numbers_at(
    bias: AttentionBias,
    query: &Tensor<4>,
    offsets: &[i64],
    [len_q, len_kv]: [usize; 2],
) -> Option<Tensor<2>> {
    let distances = |&offset: &i64| {
        let last = len_kv as i64 - 1;
        let entries = 0..len_q as i64 + last;
        entries.map(move |entry| (last - entry).saturating_sub(offset) as isize)
    };
    let positions: Vec<isize> = offsets.iter().flat_map(distances).collect();
    let dtype = statistics_dtype(query.dtype().into()).into();
    bias_at_positions(bias, &positions, dtype)
}

/// True where a query at an offset does not see a key: `[offsets, 1, len_q, len_kv]`.
fn hidden(
    mask: PositionMask,
    offsets: &[i64],
    [len_q, len_kv]: [usize; 2],
    device: &Device,
) -> Tensor<4, Bool> {
    let hidden: Vec<bool> = offsets
        .iter()
        .flat_map(|&offset| (0..len_q as i64).map(move |query| offset.saturating_add(query)))
        .flat_map(|position| {
            let visible = mask.key_range(position as isize, len_kv);
            (0..len_kv).map(move |key| !visible.contains(&key))
        })
        .collect();
    let hidden = TensorData::new(hidden, [offsets.len(), 1, len_q, len_kv]);
    Tensor::from_data(hidden, device)
}
