//! Masks of which one has to show a key.

use burn::{
    backend::Dispatch,
    tensor::{Bool, Device, Int, Tensor},
};
use burn_attn_kernels_cpu::{CausalAlignment, PositionMask};

use crate::{
    AttentionMask,
    backend::{AttentionScalars, Body, MaskInputs},
    blocks::VisibleBlocks,
    check,
    composed::{function, hidden::Hidden, part::Part, position::both},
    devices,
    segments::Segments,
};

/// The keys that position does not hide.
pub(crate) struct FirstKeys {
    /// `[batch]`
    pub(crate) counts: Tensor<1, Int>,
    /// Whether they stay hidden from the queries before them.
    pub(crate) are_causal: bool,
}

/// The scores that a mask is for, and what decides how a mask by position counts.
pub(crate) struct Place<'a> {
    /// `[batch, heads_q, len_q, len_kv]`
    pub(crate) scores: [usize; 4],
    pub(crate) device: Device,
    pub(crate) query_offsets: Option<&'a Tensor<1, Int>>,
}

impl AttentionMask {
    /// This mask for several calls of self-attention with scores `[batch, heads_q, len, len]`, on the device of `like`: unions that would
    /// become dense in each call are dense now. In a call that adds a window, the others become dense too. Panics, as the calls would, unless it fits
    /// the scores.
    pub fn for_calls<const D: usize>(mut self, scores: [usize; 4], like: &Tensor<D>) -> Self {
        if self.unions.is_empty() {
            return self;
        }
        check::mask(&self, scores);
        devices::of_mask(&like.device(), &self);
        let place = Place {
            scores,
            device: like.device(),
            query_offsets: None,
        };
        let mut is_free = self.by_position.window.is_none();
        let may_be_structural = |[first, second]: &[Self; 2]| {
            let may_be = is_free && first.unites_with(second).is_some();
            is_free &= !may_be;
            may_be
        };
        let unions = core::mem::take(&mut self.unions).into_iter();
        let (structural, dense): (Vec<_>, Vec<_>) = unions.partition(may_be_structural);
        self.unions = structural;
        match scores.contains(&0) {
            true => self,
            false => dense
                .into_iter()
                .fold(self, |mask, union| mask.and_dense(union, &place)),
        }
    }

    /// The position of the first query, if the alignment is not the default one, as it is named or as
    /// [`placed`](crate::options::AttentionOptions::placed) set it: a part alone, or a union, does not see the alignment of another part.
    pub(crate) fn named_offset(&self, [len_q, len_kv]: [usize; 2]) -> Option<i64> {
        let named = self.named_alignment().or(self.by_position.causal)?;
        let [offset, default] = [named, CausalAlignment::default()]
            .map(|alignment| alignment.offset(len_q, len_kv) as i64);
        (offset != default).then_some(offset)
    }

    /// This mask without unions: one may become first keys, the others become dense.
    pub(crate) fn resolved(mut self, place: &Place<'_>) -> (Self, Option<FirstKeys>) {
        let mut first_keys = None;
        for [first, second] in core::mem::take(&mut self.unions) {
            let is_free = first_keys.is_none() && self.by_position.window.is_none();
            let structural = first.unites_with(&second).filter(|_| is_free);
            if let Some((by_position, counts)) = structural {
                let are_causal = self.by_position.causal.is_some();
                self.by_position = PositionMask {
                    causal: self.by_position.causal.or(by_position.causal),
                    window: by_position.window,
                };
                first_keys = Some(FirstKeys { counts, are_causal });
                continue;
            }
            self = self.and_dense([first, second], place);
        }
        (self, first_keys)
    }

    /// This mask and a union, which becomes dense.
    fn and_dense(self, union: [Self; 2], place: &Place<'_>) -> Self {
        match union.map(|mask| mask.hidden(place)) {
            [Some(first), Some(second)] => {
                let hidden = both::<Dispatch>(first.into_dispatch(), second.into_dispatch());
                self.and(Self::masked(Tensor::from_dispatch(hidden)))
            }
            _ => self,
        }
    }

    /// The mask by position and the first keys of a union that may be structural.
    fn unites_with(&self, other: &Self) -> Option<(PositionMask, Tensor<1, Int>)> {
        match (self.only_position(), other.only_position()) {
            (Some(by_position), None) => Some(by_position).zip(other.only_lengths()),
            (None, Some(by_position)) => Some(by_position).zip(self.only_lengths()),
            _ => None,
        }
    }

    /// The mask by position, if the mask is nothing else.
    fn only_position(&self) -> Option<PositionMask> {
        let by_position = self.by_position;
        let rest = Self {
            by_position: PositionMask::default(),
            ..self.clone()
        };
        (by_position != PositionMask::default() && rest.is_none()).then_some(by_position)
    }

    /// The key lengths of a mask that has nothing else.
    fn only_lengths(&self) -> Option<Tensor<1, Int>> {
        let rest = Self {
            key_lengths: None,
            ..self.clone()
        };
        self.key_lengths.clone().filter(|_| rest.is_none())
    }

    /// This mask, with `change` made to it and to the masks of its unions.
    pub(crate) fn map_all(mut self, change: &impl Fn(Self) -> Self) -> Self {
        let unions = core::mem::take(&mut self.unions);
        let mut changed = change(self);
        let unions = unions.into_iter();
        let unions = unions.map(|union| union.map(|mask| mask.map_all(change)));
        changed.unions.extend(unions);
        changed
    }

    /// Whether the mask, or one of its unions, has a part for which `holds`.
    pub(crate) fn any(&self, holds: &impl Fn(&Self) -> bool) -> bool {
        holds(self) || self.unions.iter().flatten().any(|mask| mask.any(holds))
    }

    /// The operands and the scalars of this mask, which has no unions, on `device`. The scalars say nothing of anything else.
    pub(crate) fn into_inputs(
        self,
        first_keys: Option<FirstKeys>,
        query_offsets: Option<Tensor<1, Int>>,
        lengths @ [len_q, len_kv]: [usize; 2],
        device: &Device,
    ) -> (MaskInputs<Dispatch>, AttentionScalars) {
        let (first_keys, are_causal) = first_keys.map(|it| (it.counts, it.are_causal)).unzip();
        let segments = self.segments.map(Segments::of_one_type);
        let (query_segments, key_segments) = segments.map(|it| (it.query, it.key)).unzip();
        let is_default = query_offsets.is_none()
            && self.by_position.offset(len_q, len_kv)
                == PositionMask::default().offset(len_q, len_kv);
        let mut visible = self.visible_blocks;
        let (mut functions, mut tables) = (Vec::new(), Vec::new());
        for mut function in self.functions {
            // A table says what the function shows of queries at their default positions.
            function.table = function.table.filter(|_| is_default);
            let table = function.table.clone();
            let is_exact = table.as_ref().is_some_and(|table| table.is_exact());
            tables.extend(table.clone());
            if let Some(table) = table.filter(|_| is_exact || function.is_scalar()) {
                visible.push(VisibleBlocks {
                    // One table may be for calls on several devices.
                    table: table.visible.clone().to_device(device),
                    size: table.size,
                });
            }
            if !is_exact {
                functions.push(function);
            }
        }
        let blocks = VisibleBlocks::intersection(visible, lengths);
        let (visible_blocks, block_size) = blocks.map(|it| (it.table, it.size)).unzip();
        let inputs = MaskInputs {
            visible_blocks: visible_blocks.map(Tensor::into_dispatch).into(),
            masked: self.masked.map(Tensor::into_dispatch).into(),
            key_lengths: self.key_lengths.map(Tensor::into_dispatch).into(),
            first_keys: first_keys.map(Tensor::into_dispatch).into(),
            query_offsets: query_offsets.map(Tensor::into_dispatch).into(),
            query_segments: query_segments.map(Tensor::into_dispatch).into(),
            key_segments: key_segments.map(Tensor::into_dispatch).into(),
            functions,
            tables,
        };
        let scalars = AttentionScalars {
            scale: 1.0,
            softcap: None,
            by_position: self.by_position,
            first_keys_are_causal: are_causal.unwrap_or_default(),
            block_size,
            dropout: None,
            body: Body::default(),
        };
        (inputs, scalars)
    }

    /// What the mask hides, `[batch or 1, heads_q or 1, len_q or 1, len_kv or 1]`: `None` if nothing.
    fn hidden(self, place: &Place<'_>) -> Option<Tensor<4, Bool>> {
        let [batch, heads, len_q, len_kv] = place.scores;
        let (mask, first_keys) = self.resolved(place);
        let (offsets, device) = (place.query_offsets.cloned(), &place.device);
        let (inputs, scalars) = mask.into_inputs(first_keys, offsets, [len_q, len_kv], device);
        let part = Part::whole(len_q, len_kv);
        let offsets = inputs.query_offsets.as_ref();
        let by_functions = function::hidden::<Dispatch>(&inputs.functions, &part, |frame| {
            let sizes = [batch, heads];
            function::block::<Dispatch>(frame, sizes, &part, offsets, scalars.by_position, device)
        });
        let hidden = Hidden::<Dispatch>::new(
            device.as_dispatch(),
            batch,
            &part,
            (inputs, by_functions),
            &scalars,
            [None, None],
        );
        hidden.into_tensor().map(Tensor::from_dispatch)
    }
}
