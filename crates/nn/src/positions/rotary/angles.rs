//! The angles of rotary positions.

use burn::tensor::{DType, Int, Tensor, TensorData};

/// What tables are made of.
#[derive(Clone, Debug)]
pub(super) struct Angles {
    /// The angle per token of each pair (radians).
    pub(super) frequencies: Vec<f64>,
    /// Factor on cosine and sine.
    pub(super) factor: f64,
}

impl Angles {
    /// The cosines and the sines at these positions, `[positions, pairs]` in f64.
    ///
    /// In f32 the angle of position 5,000 would be off by up to 0.0004, that of position one million by 0.06.
    pub(super) fn tables(&self, positions: &[usize]) -> [TensorData; 2] {
        let Self {
            frequencies,
            factor,
        } = self;
        [f64::cos, f64::sin].map(|wave: fn(f64) -> f64| {
            let angles = positions.iter().flat_map(|&position| {
                let angle = move |frequency| position as f64 * frequency;
                frequencies.iter().map(angle)
            });
            let values: Vec<f64> = angles.map(|angle| factor * wave(angle)).collect();
            TensorData::new(values, [positions.len(), frequencies.len()])
        })
    }

    /// As [`tables`](Self::tables), at positions of any sign that may be known to the device alone.
    pub(super) fn on_device(&self, positions: Tensor<1, Int>) -> [Tensor<2>; 2] {
        let [count] = positions.dims();
        let frequencies = TensorData::new(self.frequencies.clone(), [1, self.frequencies.len()]);
        let frequencies = Tensor::<2>::from_data(frequencies, (&positions.device(), DType::F64));
        let angles = positions.float().cast(DType::F64).reshape([count, 1]) * frequencies;
        [angles.clone().cos(), angles.sin()].map(|wave| wave * self.factor)
    }
}
