//! Attention between two sequences, and the offset of the queries among the keys, by the rule that [`QueryOffset`] documents.

use burn::tensor::{Int, Tensor};
use burn_attn_ops::{AttentionMask, AttentionOptions, CausalAlignment, backend::counting};

use super::{context::AttentionContext, heads::Heads, masks::hide_padding};
use crate::positions::{Positions, QueryOffset, ResolvedOffset};

/// `options` for queries and keys at these positions: windows and biases count between them. If the queries are simply from some offset
/// among the keys on, `options` as they are, and the offsets. Panics, in the name of `module`, when positions do not fit.
pub(super) fn at_positions(
    options: AttentionOptions,
    (module, may_be_one_sequence): (&str, bool),
    [of_query, of_key]: [&Positions; 2],
    (query, len_kv): (&Tensor<4>, usize),
) -> (AttentionOptions, Option<Vec<i64>>) {
    let [batch, _, len_q, _] = query.dims();
    if !options.counts_distances() {
        of_query.check(module, [batch, len_q]);
        of_key.check(module, [batch, len_kv]);
        return (options, None);
    }
    let of_query = of_query.listed(module, [batch, len_q]);
    let of_key = of_key.listed(module, [batch, len_kv]);
    // Lists without tokens start nowhere, and there are no scores.
    if [batch, len_q, len_kv].contains(&0) {
        return (options, None);
    }
    let starts = starts_of_runs(&of_query).zip(starts_of_runs(&of_key));
    let offsets: Option<Vec<i64>> = starts.map(|(query, key)| {
        let sequences = query.len().max(key.len());
        let key = key.into_iter().cycle();
        let pairs = query.into_iter().cycle().zip(key).take(sequences);
        pairs.map(|(query, key)| query - key).collect()
    });
    match offsets {
        // A function counts tokens, whatever a window or a bias beside it counts.
        Some(offsets) if !options.is_causal() && !options.has_functions() => {
            (options, Some(offsets))
        }
        // The default offset is 0 too.
        Some(offsets)
            if (may_be_one_sequence || options.mask.named_alignment().is_none())
                && len_q == len_kv
                && offsets.iter().all(|&offset| offset == 0) =>
        {
            (options, None)
        }
        _ => (
            options.at_positions(&of_query, &of_key, query, len_kv),
            None,
        ),
    }
}

/// Where each sequence starts, if every token of all is one position after the token before it.
fn starts_of_runs(positions: &[Vec<usize>]) -> Option<Vec<i64>> {
    let start = |list: &Vec<usize>| {
        let is_run = list
            .windows(2)
            .all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        is_run.then(|| list.first().map_or(0, |&first| first as i64))
    };
    positions.iter().map(start).collect()
}

impl Heads {
    /// The queries, prepared, and the options of their attention to the prepared keys `key` of another sequence, in a module in which both
    /// may also be one sequence or never are. If they may, as many queries as keys are padded alike, and fewer are the newest tokens.
    pub(super) fn prepare_pair(
        &self,
        query: Tensor<4>,
        key: &Tensor<4>,
        context: AttentionContext,
        (module, may_be_one_sequence): (&str, bool),
    ) -> (Tensor<4>, AttentionOptions) {
        let position = context.position.as_ref().unwrap_or(&self.position);
        let ([batch, _, len_q, _], [_, _, len_kv, _]) = (query.dims(), key.dims());
        let of_keys = context.positions_of_keys(module, may_be_one_sequence && len_q == len_kv);
        let lengths = context.lengths.as_deref();
        // The mask may shorten the lengths further, which only the device knows.
        let are_of_mask = context.mask.lengths(batch).is_some();
        let known = lengths.filter(|_| !are_of_mask);
        let (sizes, device) = ([batch, len_kv], key.device());
        let mask = hide_padding(module, context.mask, lengths, sizes, &device);
        let bias = context.bias.and(position.bias());
        let options = self.options(mask, bias, context.score_function);
        if let Some(QueryOffset::Each(offsets)) = &context.offset {
            let count = offsets.len();
            assert!(
                count == batch,
                "{module}: {count} offsets for {batch} sequences"
            );
        }
        let (options, offset_of_positions) = match &context.positions {
            Some(positions) => {
                let module = (module, may_be_one_sequence);
                at_positions(options, module, [positions, &of_keys], (&query, len_kv))
            }
            None => (options, None),
        };
        let counts = options.counts_positions();
        let is_rotated = position.rotary.is_some() && context.positions.is_none();
        let offset = (is_rotated || counts).then(|| match (offset_of_positions, context.offset) {
            (Some(offsets), _) => ResolvedOffset::Host(offsets),
            (None, Some(QueryOffset::All(offset))) => ResolvedOffset::Host(vec![offset]),
            (None, Some(QueryOffset::Each(offsets))) => ResolvedOffset::Host(offsets),
            (None, None) => {
                let lengths = (known, options.mask.lengths(batch));
                default_offset(may_be_one_sequence, &options.mask, lengths, [len_q, len_kv])
            }
        });
        let options = match &offset {
            Some(ResolvedOffset::Host(offsets)) => options.placed(&query, len_kv, offsets),
            Some(ResolvedOffset::OnDevice(offsets)) if counts => {
                options.query_offsets(offsets.clone())
            }
            _ => options,
        };
        let query = self.prepare_query(query, |query| match (&context.positions, &offset) {
            (Some(positions), _) => position.rotate(query, positions),
            (None, Some(offset)) => position.rotate_from(query, offset),
            (None, None) => query,
        });
        (query, options)
    }
}

/// The offset that applies where the caller says none. `lengths` are those of the keys, if the host knows them, and those of the mask.
fn default_offset(
    may_be_one_sequence: bool,
    mask: &AttentionMask,
    lengths: (Option<&[usize]>, Option<&Tensor<1, Int>>),
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
    match lengths {
        (Some(lengths), _) => ResolvedOffset::Host(lengths.iter().copied().map(newest).collect()),
        (None, Some(lengths)) => {
            let (_, dtype) = counting(&lengths.device());
            ResolvedOffset::OnDevice(lengths.clone().cast(dtype) - len_q as i64)
        }
        (None, None) => ResolvedOffset::Host(vec![newest(len_kv)]),
    }
}
