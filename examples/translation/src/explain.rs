//! The attention of every layer and head for one sentence.

use burn_attn_models::tokens::padded;
use burn_attn_viz::{AttentionGroup, AttentionPage};
use example_common::error::Error;
use example_common::pictures::maps;

use crate::batches;
use crate::sentence::composed;
use crate::translator::{Translator, most_tokens};
use crate::vocabulary::{BOS, EOS};

/// The page in the folder of a run.
pub const FILE: &str = "attention.html";

/// The translation of a sentence, and the page of it.
pub fn explain(translator: &Translator, sentence: &str) -> Result<(String, AttentionPage), Error> {
    let source = translator.encode(sentence)?;
    let target = translator
        .translate(std::slice::from_ref(&source))?
        .remove(0);
    let translation = translator.text(&target)?;
    let page = page(translator, sentence, &translation, &source, &target)?;
    Ok((translation, page))
}

fn page(
    translator: &Translator,
    sentence: &str,
    translation: &str,
    source: &[u32],
    target: &[u32],
) -> Result<AttentionPage, Error> {
    let device = &translator.device;
    let (ids, lengths) = batches::sources(std::iter::once(source), device);
    // What the decoder reads is one token behind what it writes.
    let mut input = [&[BOS], target].concat();
    input.truncate(translator.config.model.max_len);
    let (row, _) = padded(&[&input], device);
    let attention = translator.model.attention(ids, &lengths, row);

    let read = translator.vocabulary.labels(&[source, &[EOS]].concat());
    let written = translator.vocabulary.labels(&input);
    let mut next = translator.vocabulary.labels(target);
    next.push(
        match target.len() < most_tokens(&translator.model, source.len()) {
            true => translator.vocabulary.labels(&[EOS]).concat(),
            // The translation was cut off.
            false => "…".into(),
        },
    );
    next.truncate(input.len());
    Ok(AttentionPage::new("What the translator looks at")
        .source(composed(sentence))
        .translation(translation)
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
        ))
}
