//! Attention between two sequences, and the offset of the queries among the keys, by the rule that [`QueryOffset`] documents.

use burn::tensor::Tensor;
use burn_attn_ops::{AttentionMask, AttentionOptions, CausalAlignment};

use super::{
    context::AttentionContext,
    heads::{Attended, Heads, Projected},
    masks::hide_padding,
};
use crate::positions::{Positions, QueryOffset, ResolvedOffset};

/// `options` for queries and keys at these positions, if they are not simply from the beginning on or from one offset: windows and
/// biases count between them. Panics, in the name of `module`, when positions do not fit.
pub(super) fn at_positions(
    options: AttentionOptions,
    module: &str,
    [of_query, of_key]: [&Positions; 2],
    (query, len_kv): (&Tensor<4>, usize),
) -> AttentionOptions {
    let [batch, _, len_q, _] = query.dims();
    let is_one_sequence = of_query == of_key && len_q == len_kv && of_query.in_order();
    if is_one_sequence || !options.counts_distances() {
        return options;
    }
    let of_query = of_query.listed(module, [batch, len_q]);
    let of_key = of_key.listed(module, [batch, len_kv]);
    options.at_positions(&of_query, &of_key, query)
}

impl Heads {
    /// [`attend`](Self::attend) of queries, projected but not prepared, to prepared keys of another sequence, in a module in which both
    /// may also be one sequence or never are. If they may, as many queries as keys are padded alike, and fewer are the newest tokens.
    pub(super) fn attend_pair(
        &self,
        [query, key, value]: Projected,
        context: AttentionContext,
        (module, may_be_one_sequence): (&str, bool),
        with_weights: bool,
    ) -> Attended {
        let position = context.position.as_ref().unwrap_or(&self.position);
        let ([batch, _, len_q, _], [_, _, len_kv, _]) = (query.dims(), key.dims());
        let of_keys = context.positions_of_keys(module, may_be_one_sequence && len_q == len_kv);
        let lengths = context.lengths.as_deref();
        // The mask may shorten the lengths further, which only the device knows.
        let known = lengths.filter(|_| context.mask.lengths().is_none());
        let mask = hide_padding(
            module,
            context.mask,
            lengths,
            [batch, len_kv],
            &key.device(),
        );
        let options = self.options(mask, context.bias.and(position.bias()));
        if let Some(QueryOffset::Each(offsets)) = &context.offset {
            let count = offsets.len();
            assert!(
                count == batch,
                "{module}: {count} offsets for {batch} sequences"
            );
        }
        if let Some(lengths) = options.mask.lengths() {
            let [count] = lengths.dims();
            assert!(
                count == batch,
                "attention: {count} key lengths were given for a batch of {batch}"
            );
        }
        let query = self.normalised_query(query);
        let (query, options) = match &context.positions {
            Some(positions) => {
                let pair = [positions, &of_keys];
                let options = at_positions(options, module, pair, (&query, len_kv));
                (position.rotate(query, positions), options)
            }
            None => (query, options),
        };
        let counts = options.counts_positions();
        let is_rotated = position.rotary.is_none() || context.positions.is_some();
        if is_rotated && !counts {
            return self.attend([query, key, value], options, with_weights);
        }
        let offset = match context.offset {
            Some(QueryOffset::All(offset)) => ResolvedOffset::Host(vec![offset]),
            Some(QueryOffset::Each(offsets)) => ResolvedOffset::Host(offsets),
            None => default_offset(may_be_one_sequence, &options.mask, known, [len_q, len_kv]),
        };
        let options = match &offset {
            ResolvedOffset::Host(offsets) => options.placed(&query, len_kv, offsets),
            ResolvedOffset::OnDevice(offsets) if counts => options.query_offsets(offsets.clone()),
            ResolvedOffset::OnDevice(_) => options,
        };
        let query = match is_rotated {
            true => query,
            false => position.rotate_from(query, &offset),
        };
        self.attend([query, key, value], options, with_weights)
    }
}

/// The offset that applies where the caller says none. `lengths` are those of the keys, if the host knows them.
fn default_offset(
    may_be_one_sequence: bool,
    mask: &AttentionMask,
    lengths: Option<&[usize]>,
    [len_q, len_kv]: [usize; 2],
) -> ResolvedOffset {
    let starts_together = match mask.named_alignment() {
        Some(CausalAlignment::TopLeft) => true,
        Some(CausalAlignment::BottomRight) => may_be_one_sequence && len_q == len_kv,
        None => !may_be_one_sequence || len_q == len_kv,
    };
    if starts_together {
        return ResolvedOffset::Host(vec![0]);
    }
    let newest = |length: usize| length as i64 - len_q as i64;
    match (lengths, mask.lengths()) {
        (Some(lengths), _) => ResolvedOffset::Host(lengths.iter().copied().map(newest).collect()),
        (None, Some(lengths)) => {
            let dtype = lengths.device().settings().int_dtype;
            // Cast only where needed: Burn 0.22.1's remote servers cannot cast integers.
            let lengths = match lengths.dtype() == dtype.into() {
                true => lengths.clone(),
                false => lengths.clone().cast(dtype),
            };
            ResolvedOffset::OnDevice(lengths - len_q as i64)
        }
        (None, None) => ResolvedOffset::Host(vec![newest(len_kv)]),
    }
}
