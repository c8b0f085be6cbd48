//! Batches of tokens, and the tokens to predict.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::hash::fnv1a;
use crate::tokens::{filled_up, padded, padded_tokens};

/// Texts to train a [`LanguageModel`](crate::language_model::LanguageModel) on.
#[derive(Clone, Debug)]
pub struct LanguageModelBatch {
    /// `[batch, len]`: what the model reads, padded with 0.
    pub input: Tensor<2, Int>,
    /// What it should predict: the same, one token later.
    pub targets: Targets,
}

/// Pairs to train a [`Seq2Seq`](crate::seq2seq::Seq2Seq) on.
#[derive(Clone, Debug)]
pub struct Seq2SeqBatch {
    /// `[batch, len_source]`, padded with 0.
    pub source: Tensor<2, Int>,
    /// Tokens of each source.
    pub source_lengths: Vec<usize>,
    /// `[batch, len]`: what the decoder reads, padded with 0.
    pub input: Tensor<2, Int>,
    /// What it should predict: the same, one token later.
    pub targets: Targets,
}

/// Images to train a [`Vit`](crate::vit::Vit) or a [`Segformer`](crate::segformer::Segformer) on. An image, or a pixel, counts as one token, whose
/// number is its class.
#[derive(Clone, Debug)]
pub struct ImageBatch {
    /// `[batch, channels, height, width]`: the input of the model.
    pub images: Tensor<4>,
    /// The classes, `[batch, 1]` of images and `[batch, height · width]` of pixels.
    pub targets: Targets,
}

/// What a model should predict, and how its loss is computed.
#[derive(Clone, Debug)]
pub struct Targets {
    /// `[batch, len]`: the token that follows each position, padded with 0.
    pub tokens: Tensor<2, Int>,
    /// `[batch, len]`: 1 for a token, 0 for padding and for what the loss leaves out.
    pub weights: Tensor<2>,
    /// Number of tokens with weight 1; 0 for images without objects, for instance.
    pub count: usize,
    /// What the sum of the tokens' losses is divided by for training.
    pub divisor: usize,
    /// How much of the probability is spread over all tokens in training (label smoothing), from 0 to 1.
    pub smoothing: f64,
    /// Where the dropout seeds of a step on this batch begin: a hash of its tokens, and [`TokenBatch::seed`].
    pub dropout_seed: [u64; 2],
    /// The largest token of texts, sources or targets, or the largest class, which the model must have.
    pub largest: u32,
}

/// A batch of tokens to predict.
pub trait TokenBatch: Send + Sized + 'static {
    /// The tokens that the model should predict.
    fn targets(&mut self) -> &mut Targets;

    /// Divides the sum of losses by this many tokens instead of the tokens of the batch, for training: the tokens of the batches of all devices whose
    /// gradients are added up.
    ///
    /// # Panics
    ///
    /// When it is 0.
    fn divided_by(mut self, tokens: usize) -> Self {
        assert!(tokens > 0, "a loss cannot be divided by 0 tokens");
        self.targets().divisor = tokens;
        self
    }

    /// Smooths the labels by `smoothing`; see [`smoothed_cross_entropy`](crate::loss::smoothed_cross_entropy).
    ///
    /// # Panics
    ///
    /// Unless it is from 0 to 1.
    fn smoothing(mut self, smoothing: f64) -> Self {
        assert!(
            (0.0..=1.0).contains(&smoothing),
            "smoothing must be from 0 to 1, got {smoothing}"
        );
        self.targets().smoothing = smoothing;
        self
    }

    /// Makes dropout on this batch differ from that of other runs, or of other epochs with the same batch. Default: 0.
    fn seed(mut self, seed: u64) -> Self {
        self.targets().dropout_seed[1] = seed;
        self
    }
}

impl LanguageModelBatch {
    /// A batch of texts. The model reads all but the last token of each, and predicts all but the first.
    ///
    /// # Shapes
    ///
    /// - `texts`: at least 2 tokens each; shorter ones are padded
    ///
    /// # Panics
    ///
    /// When there is no text, or one has fewer than 2 tokens.
    pub fn new<T: AsRef<[u32]>>(texts: &[T], device: &Device) -> Self {
        let rows: Vec<&[u32]> = texts.iter().map(AsRef::as_ref).collect();
        let (input, targets) = shifted("LanguageModelBatch", "text", &rows, device);
        Self { input, targets }
    }

    /// A batch of texts that begin with a prompt. The model reads the prompts, but the loss leaves them out: only what follows is learnt.
    ///
    /// # Shapes
    ///
    /// - `texts`: as for [`new`](Self::new)
    /// - `prompts`: how many tokens of each text are its prompt, from none to all
    ///
    /// # Panics
    ///
    /// As [`new`](Self::new), when the numbers of texts and prompts differ, or a prompt is longer than its text.
    pub fn with_prompts<T: AsRef<[u32]>>(texts: &[T], prompts: &[usize], device: &Device) -> Self {
        let lengths = texts.iter().map(|text| text.as_ref().len());
        let lengths: Vec<usize> = lengths.collect();
        assert!(
            lengths.len() == prompts.len() && prompts.iter().zip(&lengths).all(|(a, b)| a <= b),
            "LanguageModelBatch: prompts of {prompts:?} tokens do not fit texts of {lengths:?} tokens"
        );
        let Self { input, targets } = Self::new(texts, device);
        let [_, len] = input.dims();
        let rows = lengths.into_iter().zip(prompts);
        // A place predicts the token after it.
        let counted = rows.flat_map(|(text, &prompt)| {
            (1..=len).map(move |token| prompt <= token && token < text)
        });
        Self {
            input,
            targets: targets.with_counted(&counted.collect::<Vec<_>>()),
        }
    }
}

impl Seq2SeqBatch {
    /// A batch of sources and their targets. The decoder reads all but the last token of each target, and predicts all but the first.
    ///
    /// # Shapes
    ///
    /// - `sources`: as many as targets, at least one token each, usually ending in a token for the end
    /// - `targets`: at least 2 tokens each, beginning with the token that begins every output and usually ending in one for the end
    ///
    /// # Panics
    ///
    /// When there is no target, one has fewer than 2 tokens, a source has none, or the numbers of sources and targets differ.
    pub fn new<S: AsRef<[u32]>, T: AsRef<[u32]>>(
        sources: &[S],
        targets: &[T],
        device: &Device,
    ) -> Self {
        assert!(
            sources.len() == targets.len(),
            "Seq2SeqBatch: there are {} sources, but {} targets",
            sources.len(),
            targets.len()
        );
        if let Some(empty) = sources.iter().position(|source| source.as_ref().is_empty()) {
            panic!("Seq2SeqBatch: source {empty} has no tokens");
        }
        let rows: Vec<&[u32]> = targets.iter().map(AsRef::as_ref).collect();
        let (input, mut targets) = shifted("Seq2SeqBatch", "target", &rows, device);
        let of_sources: Vec<&[u32]> = sources.iter().map(AsRef::as_ref).collect();
        targets.largest = targets.largest.max(largest(&of_sources));
        let (source, source_lengths) = padded(sources, device);
        Self {
            source,
            source_lengths,
            input,
            targets,
        }
    }
}

impl ImageBatch {
    /// A batch of images and their classes.
    ///
    /// # Shapes
    ///
    /// - `images`: `[batch, channels, height, width]`
    /// - `classes`: one for each image
    ///
    /// # Panics
    ///
    /// When there is no image, or the numbers of images and classes differ.
    pub fn new(images: Tensor<4>, classes: &[u32]) -> Self {
        let ([batch, ..], device) = (images.dims(), images.device());
        assert!(batch > 0, "ImageBatch: there are no images");
        assert!(
            batch == classes.len(),
            "ImageBatch: there are {batch} images, but {} classes",
            classes.len()
        );
        let rows: Vec<&[u32]> = classes.chunks(1).collect();
        Self {
            images,
            targets: Targets::of(&rows, &device),
        }
    }

    /// A batch of images and the classes of their pixels.
    ///
    /// # Shapes
    ///
    /// - `images`: `[batch, channels, height, width]`
    /// - `classes`: `[batch, height, width]`, row by row
    /// - `ignored`: the class of pixels that the loss leaves out, 255 for instance; it need not be one of the model
    ///
    /// # Panics
    ///
    /// When there is no image, or none has pixels, or the numbers of pixels and classes differ.
    pub fn of_pixels(images: Tensor<4>, classes: &[u32], ignored: Option<u32>) -> Self {
        let ([batch, _, height, width], device) = (images.dims(), images.device());
        assert!(batch > 0, "ImageBatch: there are no images");
        assert!(
            height * width > 0,
            "ImageBatch: there are images of {height} × {width} pixels"
        );
        assert!(
            classes.len() == batch * height * width,
            "ImageBatch: there are {batch} images of {height} × {width} pixels, but {} classes",
            classes.len()
        );
        let seen = classes.iter().map(|class| ignored != Some(*class));
        let seen: Vec<bool> = seen.collect();
        let classes = classes.iter().zip(&seen);
        let classes: Vec<u32> = classes
            .map(|(class, is_seen)| if *is_seen { *class } else { 0 })
            .collect();
        let rows: Vec<&[u32]> = classes.chunks(height * width).collect();
        Self {
            images,
            targets: Targets::of(&rows, &device).with_counted(&seen),
        }
    }
}

impl TokenBatch for ImageBatch {
    fn targets(&mut self) -> &mut Targets {
        &mut self.targets
    }
}

impl TokenBatch for LanguageModelBatch {
    fn targets(&mut self) -> &mut Targets {
        &mut self.targets
    }
}

impl TokenBatch for Seq2SeqBatch {
    fn targets(&mut self) -> &mut Targets {
        &mut self.targets
    }
}

/// All but the last token of each row, and what follows each of them.
fn shifted(batch: &str, row: &str, rows: &[&[u32]], device: &Device) -> (Tensor<2, Int>, Targets) {
    assert!(!rows.is_empty(), "{batch}: there are no {row}s");
    if let Some(short) = rows.iter().position(|row| row.len() < 2) {
        panic!(
            "{batch}: {row} {short} must have at least 2 tokens, got {}",
            rows[short].len()
        );
    }
    let input: Vec<&[u32]> = rows.iter().map(|row| &row[..row.len() - 1]).collect();
    let expected: Vec<&[u32]> = rows.iter().map(|row| &row[1..]).collect();
    let targets = Targets {
        largest: largest(rows),
        ..Targets::new(&expected, hash(rows), device)
    };
    (padded_tokens(&input, device), targets)
}

impl Targets {
    /// The seed of all that a step on the batch draws, for [`with_dropout_seed`](burn_attn::with_dropout_seed).
    pub fn step_seed(&self) -> u64 {
        // An odd factor keeps different seeds apart.
        let [of_tokens, seed] = self.dropout_seed;
        of_tokens ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// These classes of the members of the batch.
    pub(super) fn of<T: AsRef<[u32]>>(classes: &[T], device: &Device) -> Self {
        let rows: Vec<&[u32]> = classes.iter().map(AsRef::as_ref).collect();
        Self::new(&rows, hash(&rows), device)
    }

    /// These tokens, a row for each member of the batch.
    fn new(rows: &[&[u32]], dropout_seed: u64, device: &Device) -> Self {
        let (weights, shape) = filled_up(rows, 0.0f32, |_| 1.0);
        let count = rows.iter().map(|row| row.len()).sum();
        Self {
            tokens: padded_tokens(rows, device),
            weights: Tensor::from_data(TensorData::new(weights, shape), device),
            count,
            divisor: count.max(1),
            smoothing: 0.0,
            dropout_seed: [dropout_seed, 0],
            largest: largest(rows),
        }
    }

    /// These targets with a loss of the `counted` tokens alone, `[batch, len]` row by row, which are no padding.
    fn with_counted(self, counted: &[bool]) -> Self {
        let count = counted.iter().filter(|is_counted| **is_counted).count();
        let weights: Vec<f32> = counted.iter().copied().map(f32::from).collect();
        let weights = TensorData::new(weights, self.weights.dims());
        Self {
            weights: Tensor::from_data(weights, &self.weights.device()),
            count,
            divisor: count.max(1),
            ..self
        }
    }

    /// Panics unless a model with these logits has the largest token: GPUs would read and write beyond them.
    pub(super) fn check(&self, logits: &Tensor<3>) {
        let ([_, _, classes], largest) = (logits.dims(), self.largest);
        assert!(
            (largest as usize) < classes,
            "a batch has token or class {largest}, for a model of {classes}"
        );
    }
}

fn largest(rows: &[&[u32]]) -> u32 {
    rows.iter().copied().flatten().copied().max().unwrap_or(0)
}

/// A hash of the tokens and where rows end.
fn hash(rows: &[&[u32]]) -> u64 {
    let tokens = rows
        .iter()
        .flat_map(|row| row.iter().chain(std::iter::once(&u32::MAX)));
    fnv1a(tokens.flat_map(|token| token.to_le_bytes()))
}
