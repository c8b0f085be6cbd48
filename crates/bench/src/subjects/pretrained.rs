//! Models from the folders of Hugging Face's transformers.

use burn::tensor::{Device, Int, Tensor, TensorData};
use burn_attn_models::{
    bert::{Bert, BertInput},
    generate::{GenerateOptions, Generation, generate},
    llama, t5,
};

use super::subject::{Results, Subject, calls, values};
use crate::generator::{seed, tokens};
use crate::work::{Family, Pretrained};

/// The model of the folder and what it reads.
pub fn build(work: &Pretrained) -> Result<Box<dyn Subject>, String> {
    let device = Device::default();
    let (folder, batch, len) = (&work.folder, work.batch, work.len);
    let prompts = tokens(seed::QUERY, batch * len, work.vocabulary);
    let failed = |error: burn_attn_models::pretrained::PretrainedError| error.to_string();
    let options = GenerateOptions::new(work.tokens);
    let source =
        |prompts| Tensor::<2, Int>::from_data(TensorData::new(prompts, [batch, len]), &device);
    Ok(match work.family {
        Family::Bert => {
            let model = Bert::from_pretrained(folder, &device).map_err(failed)?;
            let tokens = source(prompts);
            let encode = move || model.forward(BertInput::new(tokens.clone()));
            calls(encode, |states: Tensor<3>| {
                vec![("states".into(), values(states))]
            })
        }
        Family::Llama => {
            let model = llama::from_pretrained(folder, &device).map_err(failed)?;
            let prompts = prompts.chunks(len);
            let prompts: Vec<Vec<u32>> = prompts
                .map(|row| row.iter().map(|&token| token as u32).collect())
                .collect();
            let go_on = move || {
                let state = model.start(prompts.len());
                generate(&model, state, &prompts, &options).expect("the prompts fit the model")
            };
            calls(go_on, generated)
        }
        Family::T5 => {
            let model = t5::from_pretrained(folder, &device).map_err(failed)?;
            let source = source(prompts);
            let lengths = vec![len; batch];
            let begin = vec![vec![0]; batch];
            let answer = move || {
                let state = model.start(source.clone(), &lengths);
                generate(&model, state, &begin, &options).expect("the prompts fit the model")
            };
            calls(answer, generated)
        }
    })
}

fn generated(rows: Vec<Generation>) -> Results {
    let tokens = rows.into_iter().flat_map(|row| row.tokens);
    vec![("tokens".into(), tokens.map(|token| token as f32).collect())]
}
