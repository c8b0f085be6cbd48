//! Corpus BLEU, equal to sacreBLEU's default (`nrefs:any|case:mixed|eff:no|tok:13a|smooth:exp`).

mod score;
mod tokenize;

pub use score::corpus_bleu;

#[cfg(test)]
mod tests;
