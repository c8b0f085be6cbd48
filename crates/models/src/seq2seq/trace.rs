//! Every step of the encoder–decoder model, by name.

use burn::tensor::{Device, Int, Tensor};
use burn_attn::Trace;

use super::{Memory, Seq2Seq};

impl Seq2Seq {
    /// Every step of [`forward`](Self::forward), by name.
    ///
    /// | name | what it is | shape |
    /// | --- | --- | --- |
    /// | `source.tokens`, `target.tokens` | what encoder and decoder read | `[batch, len]` |
    /// | `encoder.embedded`, `decoder.embedded` | the embedded tokens | `[batch, len, d_model]` |
    /// | `encoder.positions`, `decoder.positions` | what is added to them, if there is a table of positions | `[batch, len, d_model]` |
    /// | `encoder.0.…`, `decoder.0.…` and so on, `encoder.output`, `decoder.output` | the steps of the [stacks](burn_attn::Trace) | |
    /// | `logits` | bit for bit those of `forward` | `[batch, len_target, vocab_size]` |
    ///
    /// Shapes and panics are those of [`forward`](Self::forward); cost as
    /// [`SelfAttention::forward_traced`](burn_attn::SelfAttention::forward_traced), layer by layer.
    pub fn forward_traced(
        &self,
        source: Tensor<2, Int>,
        source_lengths: &[usize],
        target: Tensor<2, Int>,
    ) -> Trace {
        let device = source.device();
        let mut trace = Trace::new();
        self.trace_embedding("encoder", "source", &source, &mut trace);
        let input = self.encoder_input(source, source_lengths);
        let steps = self.transformer.encoder.forward_traced(input);
        let memory = Memory {
            states: output(&steps, &device),
            lengths: source_lengths.to_vec(),
        };
        trace.extend("encoder", steps);
        self.trace_embedding("decoder", "target", &target, &mut trace);
        let input = self.decoder_input(target, &memory);
        let steps = self.transformer.decoder.forward_traced(input);
        let logits = self.logits(output(&steps, &device));
        trace.extend("decoder", steps);
        trace.add("logits", logits);
        trace
    }

    fn trace_embedding(&self, stack: &str, text: &str, tokens: &Tensor<2, Int>, trace: &mut Trace) {
        trace.add(&format!("{text}.tokens"), tokens.clone());
        let embedded = self.embedding.forward(tokens.clone());
        let zeros = embedded.zeros_like();
        trace.add(&format!("{stack}.embedded"), embedded);
        let positions = match (&self.sinusoidal, &self.learned) {
            (Some(sinusoidal), _) => sinusoidal.forward(zeros),
            (_, Some(learned)) => learned.forward(zeros),
            (None, None) => return,
        };
        trace.add(&format!("{stack}.positions"), positions);
    }
}

/// The states that a stack returned.
fn output(steps: &Trace, device: &Device) -> Tensor<3> {
    let data = steps.get("output").expect("a stack has an output");
    Tensor::from_data(data.clone(), (device, data.dtype()))
}
