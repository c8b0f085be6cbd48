//! Models from the folders of Hugging Face's transformers.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn_models::{
    bert::{Bert, BertInput},
    generate::{GenerateOptions, generate},
    language_model::LanguageModel,
    llama,
};

use super::op::values;
use super::{Results, Subject};
use crate::generator::{seed, tokens};
use crate::work::{Family, Pretrained};

/// The model of the folder and what it reads.
pub fn build(work: &Pretrained) -> Result<Box<dyn Subject>, String> {
    let device = Device::default();
    let folder = &work.folder;
    let prompts = tokens(seed::QUERY, work.batch * work.len, work.vocabulary);
    let failed = |error: burn_attn_models::pretrained::PretrainedError| error.to_string();
    Ok(match work.family {
        Family::Bert => Box::new(Encoding {
            model: Bert::from_pretrained(folder, &device).map_err(failed)?,
            tokens: Tensor::from_data(TensorData::new(prompts, [work.batch, work.len]), &device),
        }),
        Family::Llama => Box::new(Continuation {
            model: llama::from_pretrained(folder, &device).map_err(failed)?,
            prompts: rows(&prompts, work.len),
            options: GenerateOptions::new(work.tokens),
        }),
    })
}

fn rows(tokens: &[i64], len: usize) -> Vec<Vec<u32>> {
    let rows = tokens.chunks(len);
    rows.map(|row| row.iter().map(|&token| token as u32).collect())
        .collect()
}

struct Encoding {
    model: Bert,
    tokens: Tensor<2, Int>,
}

impl Encoding {
    fn states(&self) -> Tensor<3> {
        self.model.forward(BertInput::new(self.tokens.clone()))
    }
}

impl Subject for Encoding {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        drop(self.states());
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        vec![("states", values(self.states()))]
    }
}

struct Continuation {
    model: LanguageModel,
    prompts: Vec<Vec<u32>>,
    options: GenerateOptions,
}

impl Continuation {
    fn tokens(&self) -> Vec<u32> {
        let state = self.model.start(self.prompts.len());
        let outputs = generate(&self.model, state, &self.prompts, &self.options);
        outputs.into_iter().flat_map(|row| row.tokens).collect()
    }
}

impl Subject for Continuation {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        drop(self.tokens());
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        let tokens = self.tokens();
        vec![("tokens", tokens.iter().map(|&token| token as f32).collect())]
    }
}
