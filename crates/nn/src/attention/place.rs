//! Attention between two sequences, and the offset of the queries among the keys, by the rule that [`QueryOffset`] documents.

use burn_attn_ops::{AttentionMask, CausalAlignment};

use super::{
    context::AttentionContext,
    heads::{Attended, Heads, Projected},
    masks::hide_padding,
};
use crate::positions::{QueryOffset, ResolvedOffset};

/// How queries and keys of two sequences belong together.
pub(super) struct Pair {
    pub(super) module: &'static str,
    /// Whether queries and keys may be one sequence. Then as many queries as keys are padded alike; otherwise the queries are the
    /// newest tokens.
    pub(super) may_be_one_sequence: bool,
    /// What the module hides.
    pub(super) mask: AttentionMask,
}

/// What decides where queries stand among their keys.
struct Place<'a> {
    module: &'static str,
    /// What the caller says.
    offset: Option<QueryOffset>,
    /// The lengths of the keys, if the host knows them.
    lengths: Option<&'a [usize]>,
    may_be_one_sequence: bool,
}

impl Heads {
    /// [`attend`](Self::attend) of queries, projected but not prepared, to prepared keys of another sequence.
    pub(super) fn attend_pair(
        &self,
        [query, key, value]: Projected,
        context: AttentionContext,
        pair: Pair,
        with_weights: bool,
    ) -> Attended {
        let Pair {
            module,
            may_be_one_sequence,
            mask: of_module,
        } = pair;
        let AttentionContext {
            mask,
            bias,
            lengths,
            offset,
            position,
        } = context;
        let position = position.as_ref().unwrap_or(&self.position);
        let ([batch, _, len_q, _], [_, _, len_kv, _]) = (query.dims(), key.dims());
        let lengths = lengths.as_deref();
        let place = Place {
            module,
            offset,
            // The mask may shorten the lengths further, which only the device knows.
            lengths: lengths.filter(|_| mask.lengths().is_none()),
            may_be_one_sequence,
        };
        let mask = hide_padding(module, mask, lengths, [batch, len_kv], &key.device());
        let options = self.options(mask.and(of_module), bias.and(position.bias()));
        place.check(batch, &options.mask);
        let query = self.normalised_query(query);
        let counts = options.counts_positions();
        if position.rotary.is_none() && !counts {
            return self.attend([query, key, value], options, with_weights);
        }
        let offset = place.resolve(&options.mask, [len_q, len_kv]);
        let options = match &offset {
            ResolvedOffset::Host(offsets) => options.placed(&query, len_kv, offsets),
            ResolvedOffset::OnDevice(offsets) if counts => options.query_offsets(offsets.clone()),
            ResolvedOffset::OnDevice(_) => options,
        };
        let query = position.rotate_from(query, &offset);
        self.attend([query, key, value], options, with_weights)
    }
}

impl Place<'_> {
    /// Panics unless offsets and lengths, if there are any, are one for each sequence.
    fn check(&self, batch: usize, mask: &AttentionMask) {
        let module = self.module;
        if let Some(QueryOffset::Each(offsets)) = &self.offset {
            let count = offsets.len();
            assert!(
                count == batch,
                "{module}: {count} offsets for {batch} sequences"
            );
        }
        if let Some(lengths) = mask.lengths() {
            let [count] = lengths.dims();
            assert!(
                count == batch,
                "attention: {count} key lengths were given for a batch of {batch}"
            );
        }
    }

    fn resolve(self, mask: &AttentionMask, [len_q, len_kv]: [usize; 2]) -> ResolvedOffset {
        let starts_together = match mask.named_alignment() {
            Some(CausalAlignment::TopLeft) => true,
            Some(CausalAlignment::BottomRight) => self.may_be_one_sequence && len_q == len_kv,
            None => !self.may_be_one_sequence || len_q == len_kv,
        };
        let newest = |length: usize| length as i64 - len_q as i64;
        let host = match (self.offset, self.lengths) {
            (Some(QueryOffset::All(offset)), _) => vec![offset],
            (Some(QueryOffset::Each(offsets)), _) => offsets,
            (None, _) if starts_together => vec![0],
            (None, Some(lengths)) => lengths.iter().copied().map(newest).collect(),
            (None, None) => match mask.lengths() {
                Some(lengths) => {
                    let dtype = lengths.device().settings().int_dtype;
                    // Cast only where needed: Burn 0.22.1's remote servers cannot cast integers.
                    let lengths = match lengths.dtype() == dtype.into() {
                        true => lengths.clone(),
                        false => lengths.clone().cast(dtype),
                    };
                    return ResolvedOffset::OnDevice(lengths - len_q as i64);
                }
                None => vec![newest(len_kv)],
            },
        };
        ResolvedOffset::Host(host)
    }
}
