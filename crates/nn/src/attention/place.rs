//! The offset of queries that have keys of another sequence, by the rule that [`QueryOffset`] documents.

use burn::tensor::Tensor;
use burn_attn_ops::{AttentionMask, AttentionOptions, CausalAlignment};

use super::heads::Heads;
use crate::positions::{QueryOffset, SettledOffset};

/// What decides where queries stand among their keys.
pub(super) struct Place<'a> {
    pub(super) module: &'static str,
    /// What the caller says.
    pub(super) offset: Option<QueryOffset>,
    /// The lengths of the keys, if the host knows them.
    pub(super) lengths: Option<&'a [usize]>,
    /// Whether queries and keys may be one sequence: queries are then padded as their keys are, if their numbers are equal, and
    /// otherwise are its newest tokens.
    pub(super) may_be_one_sequence: bool,
}

impl Heads {
    /// Queries as they enter the dot products, and the options of their attention, both for queries that stand at `place`.
    pub(super) fn place(
        &self,
        query: Tensor<4>,
        len_kv: usize,
        options: AttentionOptions,
        place: Place,
    ) -> (Tensor<4>, AttentionOptions) {
        let [batch, _, len_q, _] = query.dims();
        place.check(batch, &options.mask);
        let query = self.normalised_query(query);
        let counts = options.counts_positions();
        if self.position.rotary.is_none() && !counts {
            return (query, options);
        }
        let offset = place.settle(&options.mask, [len_q, len_kv]);
        let options = match &offset {
            SettledOffset::Host(offsets) => options.placed(&query, len_kv, offsets),
            SettledOffset::OnDevice(offsets) if counts => options.query_offsets(offsets.clone()),
            SettledOffset::OnDevice(_) => options,
        };
        (self.position.rotate_from(query, &offset), options)
    }
}

impl Place<'_> {
    /// Panics unless there is an offset, and a length if there are any, for each sequence.
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

    fn settle(self, mask: &AttentionMask, [len_q, len_kv]: [usize; 2]) -> SettledOffset {
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
                    return SettledOffset::OnDevice(lengths - len_q as i64);
                }
                None => vec![newest(len_kv)],
            },
        };
        SettledOffset::Host(host)
    }
}
