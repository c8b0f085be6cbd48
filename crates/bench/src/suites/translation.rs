//! A whole training step of an encoder–decoder: forward, cross entropy, backward, Adam; dropout 0.1, batch 64.

use crate::case::{
    Case,
    Library::{BurnNn, Pytorch},
};
use crate::work::{Translation, Work};

pub fn cases() -> Vec<Case> {
    // Width, heads, layers, length.
    let sizes = [(128, 4, 2, 12), (256, 8, 3, 24)];
    let cases = sizes.map(|(d_model, heads, layers, len)| {
        let step = Translation {
            batch: 64,
            len,
            d_model,
            heads,
            layers,
            vocabulary: 2000,
            dropout: 0.1,
        };
        let name = format!("d {d_model}, {layers}+{layers} layers, len {len}");
        Case::new(name, Work::Translation(step)).against(&[Pytorch, BurnNn])
    });
    cases.into()
}
