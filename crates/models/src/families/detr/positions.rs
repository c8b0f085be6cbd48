//! Where the places of a feature map are.

use std::f64::consts::TAU;

use burn::tensor::{Bool, DType, Tensor, TensorData};

/// Positions on two axes, in f32: for every place the sines and cosines of its row, then those of its column.
///
/// ```text
/// angle            = 2π · count / (total + 1e-6) / 10000^(4i / d_model)
/// row[2i]          = sin(angle),  row[2i + 1] = cos(angle)           i from 0 to d_model / 4
/// ```
///
/// A row's `count` is how many visible places are above in the column, itself included, and `total` how many the column has: the
/// bottom row is at 2π, in images of any size. Columns are counted in the same way.
///
/// # Shapes
///
/// - `visible`: `[batch, rows, columns]`, `false` where there is only padding
/// - returns `[batch, rows · columns, d_model]`
///
/// # Panics
///
/// When `d_model` is not divisible by 4.
///
/// # Source
///
/// "End-to-end object detection with transformers" (arXiv:2005.12872), appendix A.4. PyTorch equivalent: `DetrSinePositionEmbedding` of Hugging
/// Face's `transformers`, with `normalize=True`.
pub fn sine_positions(visible: Tensor<3, Bool>, d_model: usize) -> Tensor<3> {
    const LONGEST: f64 = 10_000.0;
    assert!(
        d_model.is_multiple_of(4),
        "sine_positions: d_model {d_model} is not divisible by 4"
    );
    let [batch, rows, columns] = visible.dims();
    let pairs = d_model / 4;
    let rate = |pair: usize| TAU / LONGEST.powf(pair as f64 / pairs as f64);
    let rates = TensorData::new((0..pairs).map(rate).collect::<Vec<f64>>(), [1, 1, 1, pairs]);
    let rates = Tensor::<4>::from_data(rates, (&visible.device(), DType::F32));
    let visible = visible.float().cast(DType::F32);
    let waves = |axis: usize, len: usize| {
        let count = visible.clone().cumsum(axis);
        let total = count.clone().narrow(axis, len - 1, 1);
        let angles = (count / (total + 1e-6)).unsqueeze_dim::<4>(3) * rates.clone();
        let waves = Tensor::stack::<5>(vec![angles.clone().sin(), angles.cos()], 4);
        waves.reshape([batch, rows * columns, 2 * pairs])
    };
    Tensor::cat(vec![waves(1, rows), waves(2, columns)], 2)
}
