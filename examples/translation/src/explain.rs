//! The attention of every layer and head for one sentence.

use burn_attn_models::tokens::padded;
use burn_attn_viz::{AttentionGroup, AttentionPage};
use example_common::error::Error;
use example_common::pictures::maps;

use crate::batches;
use crate::sentence::composed;
use crate::translator::{Translator, most_tokens};
use crate::vocabulary::{BOS, EOS};

/// The translation of a sentence, and the page of its attention.
pub fn explain(translator: &Translator, sentence: &str) -> Result<(String, AttentionPage), Error> {
    let source = translator.encode(sentence)?;
    let target = translator.translate(&[&source])?.remove(0);
    let translation = translator.text(&target)?;

    let (model, vocabulary) = (&translator.model, &translator.vocabulary);
    let device = model.embedding.weight.device();
    let (ids, lengths) = batches::sources(std::iter::once(source.as_slice()), &device);
    // What the decoder reads is one token behind what it writes.
    let mut input = [&[BOS], target.as_slice()].concat();
    input.truncate(translator.config.model.max_len);
    let (row, _) = padded(&[&input], &device);
    let attention = model.attention(ids, &lengths, row);

    let read = vocabulary.labels(&[source.as_slice(), &[EOS]].concat());
    let written = vocabulary.labels(&input);
    let mut next = vocabulary.labels(&target);
    next.push(match target.len() < most_tokens(model, source.len()) {
        true => vocabulary.labels(&[EOS]).concat(),
        // The translation was cut off.
        false => "…".into(),
    });
    next.truncate(input.len());
    let page = AttentionPage::new("What the translator looks at")
        .source(composed(sentence))
        .translation(translation.as_str())
        .metadata("checkpoint", translator.checkpoint.as_str())
        .metadata("corpus", translator.config.data.name())
        .group(
            AttentionGroup::new(
                "Encoder self-attention",
                maps(attention.encoder, &read, &read)?,
            )
            .note("Every source token looks at every source token."),
        )
        .group(
            AttentionGroup::new(
                "Decoder self-attention",
                maps(attention.decoder, &written, &written)?,
            )
            .written(next.clone()),
        )
        .group(
            AttentionGroup::new("Cross-attention", maps(attention.cross, &written, &read)?)
                .note("Each step of the translation looks at the source.")
                .written(next),
        );
    Ok((translation, page))
}
