//! What a layer computes.

use burn::tensor::Tensor;

use super::{LayerInput, LayerOutput, TransformerLayer, input::LayerOptions};
use crate::{MixerCall, TokenMixer, trace::Recorder};

impl<M: TokenMixer> TransformerLayer<M> {
    pub(super) fn run(
        &self,
        input: LayerInput,
        state: Option<&mut M::State>,
        call: &mut MixerCall,
    ) -> LayerOutput {
        let LayerInput { x, context, more } = input;
        more.check_memory(self.cross_attention.is_some());
        let mut recorder = Recorder::new(more.kept);
        recorder.step("input", &x);
        let normalised = self.self_attention_residual.input(x.clone());
        recorder.step("self.normed", &normalised);
        let mixer_input = more.self_attention(normalised.clone(), context);
        call.recorder = recorder.for_part();
        let attended = self.self_attention.mix(mixer_input, state, call);
        let self_weights = call.recorder.take_weights();
        recorder.part("self", core::mem::take(&mut call.recorder));
        let of_attention = &self.self_attention_residual;
        let residual = self.feed_forward_residual.as_ref();
        let (states, cross_weights, router_logits) = if self.parallel {
            let normalised = match residual.filter(|residual| residual.norm.is_some()) {
                Some(residual) => residual.input(x.clone()),
                None => normalised,
            };
            let (output, router_logits) = self.feed(normalised, &mut recorder);
            let states = match residual {
                Some(residual) => residual.sum(of_attention.sum(x, attended), output),
                None => of_attention.sum(x, attended + output),
            };
            (states, None, router_logits)
        } else {
            let x = of_attention.sum(x, attended);
            recorder.step("after_self", &x);
            let (x, cross_weights) = self.cross_attend(x, more, &mut recorder);
            let residual = residual.expect("only some parallel layers have no such sum");
            let (output, router_logits) = self.feed(residual.input(x.clone()), &mut recorder);
            (residual.sum(x, output), cross_weights, router_logits)
        };
        recorder.step("output", &states);
        LayerOutput {
            states,
            self_weights,
            cross_weights,
            router_logits,
            trace: recorder.into_trace(),
        }
    }

    /// The output of the feed-forward network, or of the experts with the logits of their router.
    fn feed(&self, x: Tensor<3>, recorder: &mut Recorder) -> (Tensor<3>, Option<Tensor<2>>) {
        recorder.step("feed_forward.normed", &x);
        let (output, router_logits) = match (&self.feed_forward, &self.mixture_of_experts) {
            (_, Some(experts)) => {
                let output = experts.forward_with_logits(x);
                (output.states, Some(output.router_logits))
            }
            (Some(feed_forward), None) => (feed_forward.forward(x), None),
            (None, None) => {
                panic!("TransformerLayer: there is neither a feed-forward network nor experts")
            }
        };
        recorder.step("feed_forward.output", &output);
        (output, router_logits)
    }

    /// The residual sum of the cross-attention, and its weights if they were requested; `x` without cross-attention.
    fn cross_attend(
        &self,
        x: Tensor<3>,
        more: LayerOptions,
        recorder: &mut Recorder,
    ) -> (Tensor<3>, Option<Tensor<4>>) {
        let parts = self.cross_attention.as_ref();
        let Some((attention, residual)) = parts.zip(self.cross_attention_residual.as_ref()) else {
            return (x, None);
        };
        let normalised = residual.input(x.clone());
        recorder.step("cross.normed", &normalised);
        let mut of_attention = recorder.for_part();
        let attended = attention.run(more.cross_attention(normalised), &mut of_attention);
        let weights = of_attention.take_weights();
        recorder.part("cross", of_attention);
        let x = residual.sum(x, attended);
        recorder.step("after_cross", &x);
        (x, weights)
    }
}
