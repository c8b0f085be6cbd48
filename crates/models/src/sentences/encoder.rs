//! The model.

use std::path::Path;

use burn::tensor::Tensor;
use tokenizers::{
    Encoding, PostProcessor, Tokenizer, TruncationDirection,
    normalizers::{Lowercase, NormalizerWrapper, Sequence},
};

use super::{
    EncodeError, files::unsupported, pipeline::Pipeline, stage::Stage, transformer_config::Prompts,
};
use crate::{
    bert::{Bert, BertInput, Pooling},
    pretrained::{LoadOptions, PretrainedError, folder, tokenizer},
    tokens::padded_tokens,
};

/// The kind of a text, which decides the prompt that some models put before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prompt {
    /// Any text. Python equivalent: `encode`.
    #[default]
    Text,
    /// A query of a search. Python equivalent: `encode_query`.
    Query,
    /// A document that a search may find. Python equivalent: `encode_document`.
    Document,
}

/// A BERT or ALBERT with its tokenizer, and how the states of a text become its vector.
///
/// # Example
///
/// ```no_run
/// // Not run: it reads 90 MB.
/// use burn::tensor::Device;
/// use burn_attn_models::sentences::{Prompt, SentenceEncoder};
///
/// let encoder = SentenceEncoder::from_pretrained("sentence-transformers/all-MiniLM-L6-v2", &Device::default())?;
/// let vectors = encoder.encode(&["A cat sits on the mat.", "hello world"], Prompt::Text)?;
/// assert_eq!(vectors.dims(), [2, 384]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SentenceEncoder {
    /// The encoder of tokens.
    pub bert: Bert,
    tokenizer: Tokenizer,
    truncation: TruncationDirection,
    max_len: usize,
    width: usize,
    prompts: Prompts,
    pooling: Vec<Pooling>,
    stages: Vec<Stage>,
}

impl SentenceEncoder {
    /// Loads a model from a folder that `sentence-transformers` or `transformers` saved, from a [name on the Hub](crate::pretrained), or from a
    /// [GGUF file](crate::pretrained#gguf) with its `tokenizer.json` beside it. [`sentences`](super) says which files are read.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, or a module, a field, a value or a tensor is not supported, which the error names; when the device does not compute
    /// in the dtype of the options.
    ///
    /// # Cost
    ///
    /// The cost of [`Bert::from_pretrained`]. Weights are read, or downloaded, after the other files.
    pub fn from_pretrained(
        source: impl AsRef<Path>,
        options: impl Into<LoadOptions>,
    ) -> Result<Self, PretrainedError> {
        let options = options.into();
        let pipeline = Pipeline::read(source.as_ref(), &options)?;
        let source = pipeline.source;
        let mut tokenizer = tokenizer(&source)?;
        let bert = Bert::from_pretrained(&source, options)?;
        let [_, d_embedding] = bert.tokens.weight.dims();
        let projected = bert.projection.as_ref().map(|layer| layer.weight.dims());
        let found = projected.map_or(d_embedding, |[_, d_model]| d_model);
        let said = pipeline.d_model.unwrap_or(found);
        if said != found {
            let supported = format!("{said}, as its Pooling says");
            let found = found.to_string();
            return Err(unsupported(source, "hidden_size", found, supported));
        }
        let path = folder(&source)?.join("tokenizer.json");
        let unfit = |reason: String| PretrainedError::tokenizer(&path, reason);
        let transformer = pipeline.transformer;
        if transformer.do_lower_case {
            lower_case(&mut tokenizer).map_err(|error| unfit(error.to_string()))?;
        }
        let of_tokenizer = tokenizer.get_truncation().map(|found| found.direction);
        let truncation = transformer.truncation_side.or(of_tokenizer);
        tokenizer.with_padding(None);
        let untruncated = tokenizer.with_truncation(None);
        untruncated.map_err(|error| unfit(error.to_string()))?;
        let max_len = transformer.max_len.unwrap_or(usize::MAX);
        let width = pipeline.prompts.truncate_dim.unwrap_or(usize::MAX);
        let encoder = Self {
            max_len: max_len.min(bert.max_len()),
            width: width.min(pipeline.width.unwrap_or(found)),
            bert,
            tokenizer,
            truncation: truncation.unwrap_or_default(),
            prompts: pipeline.prompts,
            pooling: pipeline.pooling,
            stages: pipeline.stages,
        };
        let (ends, max_len) = (encoder.ends(), encoder.max_len);
        if ends >= max_len {
            return Err(unfit(format!(
                "it puts {ends} tokens around a text, and the model reads at most {max_len}"
            )));
        }
        Ok(encoder)
    }

    /// Longest text (tokens), with its prompt and the tokens that the tokenizer puts around it.
    pub fn max_len(&self) -> usize {
        self.max_len
    }

    /// Width of the vectors.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The poolings whose vectors stand side by side in the vector of a text.
    pub fn pooling(&self) -> &[Pooling] {
        &self.pooling
    }

    /// The prompt before a text of this kind.
    pub fn prompt(&self, prompt: Prompt) -> &str {
        match prompt {
            Prompt::Text => &self.prompts.default,
            Prompt::Query => &self.prompts.query,
            Prompt::Document => &self.prompts.document,
        }
    }

    /// The tokenizer. It neither cuts texts nor fills them up, whatever its file says.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// The tokens of a text behind its prompt, as the model reads them: those beyond [`max_len`](Self::max_len) are cut off.
    ///
    /// # Errors
    ///
    /// When the tokenizer fails, or has a token that the model does not know.
    pub fn tokens(&self, text: &str, prompt: Prompt) -> Result<Encoding, EncodeError> {
        let text = [self.prompt(prompt), text].concat();
        let mut tokens = self.tokenizer.encode(text, false)?;
        tokens.truncate(self.max_len - self.ends(), 0, self.truncation);
        let tokens = self.tokenizer.post_process(tokens, None, true)?;
        let [vocab_size, _] = self.bert.tokens.weight.dims();
        let unknown = |token: &&u32| **token as usize >= vocab_size;
        match tokens.get_ids().iter().find(unknown) {
            Some(&token) => Err(EncodeError::Token { token, vocab_size }),
            None => Ok(tokens),
        }
    }

    /// The vectors of texts, which are one batch.
    ///
    /// # Shapes
    ///
    /// - output: `[texts, width]`
    ///
    /// # Errors
    ///
    /// As [`tokens`](Self::tokens), and when a text has no tokens. The error names the place of the text.
    ///
    /// # Cost
    ///
    /// The cost of [`vectors`](Self::vectors).
    pub fn encode(
        &self,
        texts: &[impl AsRef<str>],
        prompt: Prompt,
    ) -> Result<Tensor<2>, EncodeError> {
        let rows = texts.iter().enumerate().map(|(text, words)| {
            let tokens = self.tokens(words.as_ref(), prompt);
            let tokens = tokens.map_err(|reason| EncodeError::Text {
                text,
                reason: Box::new(reason),
            })?;
            match tokens.is_empty() {
                true => Err(EncodeError::Empty { text }),
                false => Ok(tokens.get_ids().to_vec()),
            }
        });
        let rows: Vec<Vec<u32>> = rows.collect::<Result<_, _>>()?;
        Ok(self.vectors(&rows))
    }

    /// The vectors of texts that are [tokens](Self::tokens).
    ///
    /// # Shapes
    ///
    /// - output: `[rows, width]`
    ///
    /// # Panics
    ///
    /// When a row is empty or longer than the model has positions, or a token is outside the vocabulary (on a CPU backend).
    ///
    /// # Cost
    ///
    /// As [`Bert::forward`] for a batch that is as long as its longest row: rows of similar lengths are fastest.
    pub fn vectors(&self, rows: &[impl AsRef<[u32]>]) -> Tensor<2> {
        let weight = &self.bert.tokens.weight;
        let device = weight.device();
        if rows.is_empty() {
            return Tensor::zeros([0, self.width], (&device, weight.dtype()));
        }
        let lengths: Vec<usize> = rows.iter().map(|row| row.as_ref().len()).collect();
        let input = BertInput::new(padded_tokens(rows, &device)).lengths(&lengths);
        let states = self.bert.forward(input);
        let pooled = self.pooling.iter();
        let pooled = pooled.map(|pooling| pooling.pool(states.clone(), &lengths));
        let vectors = Tensor::cat(pooled.collect(), 1);
        let stages = self.stages.iter();
        let vectors = stages.fold(vectors, |vectors, stage| stage.forward(vectors));
        vectors.narrow(1, 0, self.width)
    }

    /// How many tokens the tokenizer puts around a text.
    fn ends(&self) -> usize {
        let ends = self.tokenizer.get_post_processor();
        ends.map_or(0, |ends| ends.added_tokens(false))
    }
}

/// Puts lower-casing before the normalizers of the tokenizer, unless they have it.
fn lower_case(tokenizer: &mut Tokenizer) -> Result<(), tokenizers::Error> {
    let is_lower = |part: &NormalizerWrapper| matches!(part, NormalizerWrapper::Lowercase(_));
    let parts = match tokenizer.get_normalizer() {
        Some(NormalizerWrapper::Sequence(parts)) => parts.as_ref().to_vec(),
        other => other.into_iter().cloned().collect(),
    };
    if !parts.iter().any(is_lower) {
        let parts = [vec![Lowercase.into()], parts].concat();
        tokenizer.with_normalizer(Some(Sequence::new(parts)))?;
    }
    Ok(())
}
