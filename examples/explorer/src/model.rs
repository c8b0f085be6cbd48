//! The translator, with the configuration that a request asks for.

use burn::{
    module::Module,
    nn::Linear,
    tensor::{Tensor, TensorData},
};
use burn_attn_models::{
    generate::{GenerateOptions, generate},
    language_model::AbsolutePosition,
    seq2seq::{Seq2Seq, Seq2SeqConfig},
    tokens::padded,
};
use serde::Serialize;

use crate::{
    ModelFile,
    request::{AttentionKind, HeadPlace, Request, Side, Switches},
};

/// The token that every translation begins with.
const BOS: u32 = 1;
/// The token that ends it.
const EOS: u32 = 2;

/// A translator that can be asked for its translation of a sentence and for every step on the way.
#[derive(Debug)]
pub struct Explorer {
    config: Seq2SeqConfig,
    model: Seq2Seq,
    /// The configuration of the last request that changed it, and its model.
    switched: Option<(Switches, Seq2Seq)>,
}

/// What the page gets: JSON, and the numbers to which it refers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Answer {
    /// The tokens of a translation, without those at its beginning and end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Vec<u32>>,
    /// The tensors of a trace, in the order of computation.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<TensorPlace>,
    /// The numbers of all tensors: a bool is 0 or 1, a token its id.
    #[serde(skip)]
    pub numbers: Vec<f32>,
}

/// A tensor among the numbers of an [`Answer`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TensorPlace {
    /// Its name in the trace, as `encoder.0.self.scaled`.
    pub name: String,
    /// Its shape; that of a step without the batch.
    pub shape: Vec<usize>,
    /// Where its first number is.
    pub offset: usize,
}

impl Answer {
    fn add(&mut self, name: &str, shape: &[usize], data: &TensorData) {
        self.tensors.push(TensorPlace {
            name: name.to_owned(),
            shape: shape.to_vec(),
            offset: self.numbers.len(),
        });
        self.numbers.extend(data.iter::<f32>());
    }
}

impl Explorer {
    /// The translator of a file.
    pub fn new(file: ModelFile) -> Self {
        let ModelFile { config, model } = file;
        Self {
            config,
            model,
            switched: None,
        }
    }

    /// Answers a request. Errors are sentences about what is wrong with it.
    pub fn answer(&mut self, request: &Request) -> Result<Answer, String> {
        match request {
            Request::Translate { source, switches } => {
                self.check("source", source)?;
                if !switches.causal {
                    return Err("without the causal mask nothing can be generated".into());
                }
                let model = self.switched(switches)?;
                let (source, lengths) = padded(&[source], &model.embedding.weight.device());
                let limit = (2 * source.dims()[1] + 20).min(model.max_len());
                let options = GenerateOptions::new(limit).stop_tokens([EOS]);
                let state = model.start(source, &lengths);
                let found = generate(model, state, &[vec![BOS]], &options);
                let mut found = found.map_err(|error| error.to_string())?;
                Ok(Answer {
                    target: Some(found.remove(0).tokens),
                    ..Answer::default()
                })
            }
            Request::Trace {
                source,
                target,
                switches,
            } => {
                self.check("source", source)?;
                self.check("target", target)?;
                let model = self.switched(switches)?;
                let device = model.embedding.weight.device();
                let (source, lengths) = padded(&[source], &device);
                let (target, _) = padded(&[target], &device);
                let trace = model.forward_traced(source, &lengths, target);
                let mut answer = Answer::default();
                for (name, data) in trace.tensors() {
                    // The batch is one sentence.
                    answer.add(name, &data.shape()[1..], data);
                }
                Ok(answer)
            }
            Request::Parameter { name } => {
                let data = parameter(&self.model, name);
                let data = data.ok_or_else(|| format!("there is no parameter {name:?}"))?;
                let mut answer = Answer::default();
                answer.add(name, data.shape(), &data);
                Ok(answer)
            }
        }
    }

    /// Refuses tokens that the model does not have, and more or fewer than it reads.
    fn check(&self, name: &str, tokens: &[u32]) -> Result<(), String> {
        let (len, most) = (tokens.len(), self.config.max_len - 1);
        if !(1..=most).contains(&len) {
            return Err(format!(
                "the {name} has {len} tokens, but this model reads from 1 to {most}"
            ));
        }
        let vocab_size = self.config.vocab_size;
        match tokens.iter().find(|&&token| token as usize >= vocab_size) {
            Some(token) => Err(format!(
                "the {name} has the token {token}, but the vocabulary {vocab_size} tokens"
            )),
            None => Ok(()),
        }
    }

    /// The model with these switches.
    fn switched(&mut self, switches: &Switches) -> Result<&Seq2Seq, String> {
        if *switches == Switches::default() {
            return Ok(&self.model);
        }
        let is_known = self
            .switched
            .as_ref()
            .is_some_and(|(known, _)| known == switches);
        if !is_known {
            self.switched = Some((switches.clone(), self.configured(switches)?));
        }
        Ok(self
            .switched
            .as_ref()
            .map_or(&self.model, |(_, model)| model))
    }

    /// The same weights in another configuration.
    fn configured(&self, switches: &Switches) -> Result<Seq2Seq, String> {
        let mut config = self.config.clone();
        if let Some(scale) = switches.scale {
            if !(scale.is_finite() && scale > 0.0) {
                return Err(format!("the scale must be above 0 and finite, got {scale}"));
            }
            config.block = Some(config.block().with_scale(Some(scale)));
        }
        if !switches.positions {
            config.absolute_position = AbsolutePosition::None;
        }
        let device = self.model.embedding.weight.device();
        let record = self.model.clone().into_record();
        let loaded = config.init(&device).try_load_record(record);
        let mut model = loaded.map_err(|error| error.to_string())?;
        if !switches.causal {
            for layer in &mut model.transformer.decoder.layers {
                layer.self_attention.causal = false;
            }
        }
        for place in &switches.cut {
            cut(&mut model, place)?;
        }
        Ok(model)
    }
}

/// The numbers of a parameter.
fn parameter(model: &Seq2Seq, name: &str) -> Option<TensorData> {
    if name == "embedding.weight" {
        return Some(model.embedding.weight.to_data());
    }
    let parts: Vec<&str> = name.split('.').collect();
    let &[side, layer, attention, linear, kind] = parts.as_slice() else {
        return None;
    };
    let stack = match side {
        "encoder" => &model.transformer.encoder,
        "decoder" => &model.transformer.decoder,
        _ => return None,
    };
    let layer = stack.layers.get(layer.parse::<usize>().ok()?)?;
    let of_self = &layer.self_attention;
    let cross = || layer.cross_attention.as_ref();
    let linear: &Linear = match (attention, linear) {
        ("self", "query_key_value") => &of_self.query_key_value,
        ("self", "output") => &of_self.output,
        ("cross", "query") => &cross()?.query,
        ("cross", "key_value") => &cross()?.key_value,
        ("cross", "output") => &cross()?.output,
        _ => return None,
    };
    match kind {
        "weight" => Some(linear.weight.to_data()),
        "bias" => Some(linear.bias.as_ref()?.to_data()),
        _ => None,
    }
}

/// Makes the output projection leave out a head.
fn cut(model: &mut Seq2Seq, place: &HeadPlace) -> Result<(), String> {
    let transformer = &mut model.transformer;
    let stack = match place.side {
        Side::Encoder => &mut transformer.encoder,
        Side::Decoder => &mut transformer.decoder,
    };
    let layer = stack.layers.get_mut(place.layer);
    let attention = layer.and_then(|layer| match place.attention {
        AttentionKind::SelfAttention => {
            let attention = &mut layer.self_attention;
            Some((&mut attention.output, attention.heads.n_heads()))
        }
        AttentionKind::Cross => {
            let attention = layer.cross_attention.as_mut()?;
            Some((&mut attention.output, attention.heads.n_heads()))
        }
    });
    let attention = attention.filter(|(_, heads)| place.head < *heads);
    let (output, heads) = attention.ok_or_else(|| format!("there is no head {place:?}"))?;
    let head = place.head;
    // ANCHOR: cut-head
    output.weight = output.weight.clone().map(|weight| {
        let [rows, columns] = weight.dims();
        let width = rows / heads;
        let zeros = Tensor::zeros([width, columns], &weight.device());
        weight.slice_assign([head * width..(head + 1) * width, 0..columns], zeros)
    });
    // ANCHOR_END: cut-head
    Ok(())
}
