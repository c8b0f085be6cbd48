//! Models from the folders of Hugging Face's transformers.

use std::time::{Duration, Instant};

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn_models::{
    bert::{Bert, BertInput},
    generate::{GenerateOptions, Generation, generate},
    llama, t5,
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
        Family::Llama => {
            let model = llama::from_pretrained(folder, &device).map_err(failed)?;
            let prompts = rows(&prompts, work.len);
            let options = GenerateOptions::new(work.tokens);
            Box::new(Continuation(move || {
                let state = model.start(prompts.len());
                generate(&model, state, &prompts, &options).expect("the prompts fit the model")
            }))
        }
        Family::T5 => {
            let model = t5::from_pretrained(folder, &device).map_err(failed)?;
            let shape = [work.batch, work.len];
            let source = Tensor::<2, Int>::from_data(TensorData::new(prompts, shape), &device);
            let lengths = Tensor::<1, Int>::full([work.batch], work.len as i64, &device);
            let begin = vec![vec![0]; work.batch];
            let options = GenerateOptions::new(work.tokens);
            Box::new(Continuation(move || {
                let state = model.start(source.clone(), lengths.clone());
                generate(&model, state, &begin, &options).expect("the prompts fit the model")
            }))
        }
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
        vec![("states".into(), values(self.states()))]
    }
}

/// Generates.
struct Continuation<F>(F);

impl<F: Fn() -> Vec<Generation>> Subject for Continuation<F> {
    fn step(&mut self) -> Duration {
        let start = Instant::now();
        drop((self.0)());
        start.elapsed()
    }

    fn results(&mut self) -> Results {
        let tokens = (self.0)().into_iter().flat_map(|row| row.tokens);
        let name = "tokens".into();
        vec![(name, tokens.map(|token| token as f32).collect())]
    }
}
