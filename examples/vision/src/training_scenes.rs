//! The scenes that models are trained on.

use burn::tensor::{Device, Tensor};
use burn_attn_models::train::{TokenBatch, TrainingData};

use crate::{
    mnist::Mnist,
    preprocessing,
    scenes::{SIDE, Scene, Scenes},
    training_task::{Recipe, VALIDATION},
};

/// Scenes of an epoch. None is seen twice.
const EPOCH: usize = 4_096;
/// Scenes of the validation part, and how many are read at once.
const HELD_OUT: usize = 512;
const AT_ONCE: usize = 64;

/// Scenes of the scans that the model of digits is trained on, and, for validation, of those that it is not.
///
/// A sample is a scene in an epoch, `epoch · EPOCH + scene`.
pub struct TrainingScenes<B> {
    mnist: Mnist,
    training: Scenes,
    batch: usize,
    /// What a model sees of scenes.
    seen: fn(&[Scene], &Device) -> B,
}

impl<B> TrainingScenes<B> {
    /// The scenes of a run, which become batches by `seen`.
    pub fn of(mnist: Mnist, recipe: &Recipe, seen: fn(&[Scene], &Device) -> B) -> Self {
        let training = Scenes {
            scans: 0..mnist.len() - mnist.len() / VALIDATION,
            augments: true,
            seed: recipe.seed,
        };
        Self {
            mnist,
            training,
            batch: recipe.batch,
            seen,
        }
    }

    /// The scenes of these samples.
    fn scenes(&self, samples: &[usize]) -> Vec<Scene> {
        let scene = |&sample| self.training.scene(&self.mnist, sample);
        samples.iter().map(scene).collect()
    }
}

impl<B: TokenBatch> TrainingData for TrainingScenes<B> {
    type Batch = B;

    fn steps(&self, epoch: usize) -> Vec<Vec<usize>> {
        let samples: Vec<usize> = (epoch * EPOCH..(epoch + 1) * EPOCH).collect();
        samples.chunks(self.batch).map(<[usize]>::to_vec).collect()
    }

    fn tokens(&self, _: usize) -> usize {
        1
    }

    fn batch(&self, samples: &[usize], device: &Device) -> B {
        (self.seen)(&self.scenes(samples), device)
    }

    fn validation(&self, device: &Device) -> impl Iterator<Item = B> {
        // Not the seed of the test: digits would stand at the same places.
        let scenes = Scenes::unseen(self.training.scans.end..self.mnist.len(), u64::MAX);
        (0..HELD_OUT).step_by(AT_ONCE).map(move |first| {
            let numbers = first..first + AT_ONCE;
            let batch = numbers.map(|number| scenes.scene(&self.mnist, number));
            (self.seen)(&batch.collect::<Vec<_>>(), device)
        })
    }
}

/// Scenes as a model sees them, `[scenes, 1, SIDE, SIDE]`.
pub fn images(scenes: &[Scene], device: &Device) -> Tensor<4> {
    let pixels = scenes.iter().flat_map(|scene| &scene.pixels);
    let pixels = pixels.map(|&pixel| f32::from(pixel)).collect();
    preprocessing::images(pixels, SIDE, device)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{objects::Objects, segments::Segments, training_task::TrainingTask};

    #[test]
    fn batches_hold_what_scenes_hold() {
        let recipe = Recipe {
            batch: 3,
            ..Objects::RECIPE
        };
        // Light squares of 20 × 20 pixels.
        let mnist = || Mnist::of(60, |at| if at / 28 < 20 && at % 28 < 20 { 255 } else { 0 });
        let scenes = Objects::new(mnist(), &recipe);
        let steps = scenes.steps(1);
        assert_eq!(steps.len(), EPOCH.div_ceil(3));
        assert_eq!(steps[0], [EPOCH, EPOCH + 1, EPOCH + 2]);
        assert_eq!(scenes.scenes(&steps[0]), scenes.scenes(&steps[0]));
        assert_ne!(scenes.scenes(&[0]), scenes.scenes(&[EPOCH]));
        let scenes = scenes.scenes(&[7, 8, 9]);
        let device = Device::default();
        let objects = Objects::new(mnist(), &recipe).batch(&[7, 8, 9], &device);
        for (scene, objects) in scenes.iter().zip(&objects.objects) {
            assert_eq!(scene.objects.len(), objects.len());
            for (object, (class, [x, _, width, _])) in scene.objects.iter().zip(objects) {
                assert_eq!(u32::from(object.digit), *class);
                let [left, _, right, _] = object.corners;
                assert!((96.0 * (x - width / 2.0) - left).abs() < 1e-3);
                assert!((96.0 * (x + width / 2.0) - right).abs() < 1e-3);
            }
        }
        let pixels = Segments::new(mnist(), &recipe).batch(&[7, 8, 9], &device);
        assert_eq!(pixels.images.dims(), [3, 1, 96, 96]);
        let classes = scenes
            .iter()
            .flat_map(|scene| scene.classes.iter().copied());
        let batch = pixels.targets.tokens.into_data();
        assert!(classes.eq(batch.iter::<u8>()));
    }
}
