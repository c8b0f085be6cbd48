//! The sizes of a ResNet.

use burn::tensor::Device;
use burn_attn::{ConfigError, expect_valid};
use burn_attn_derive::Config;

use super::{NormedConv, ResNet, ResNetLayer};

const NAME: &str = "ResNetConfig";

/// How many times wider the output of a bottleneck layer is than its middle.
const EXPANSION: usize = 4;

/// Configuration of [`ResNet`], by default ResNet-50.
#[derive(Config, Debug)]
pub struct ResNetConfig {
    /// Channels of an image.
    #[config(default = 3)]
    pub n_channels: usize,
    /// Channels after the first convolution.
    #[config(default = 64)]
    pub d_stem: usize,
    /// Channels of each stage.
    #[config(default = "vec![256, 512, 1024, 2048]", into)]
    pub widths: Vec<usize>,
    /// Number of layers of each stage.
    #[config(default = "vec![3, 4, 6, 3]", into)]
    pub depths: Vec<usize>,
    /// Whether a layer is a bottleneck, of three convolutions with a quarter of the channels in the middle, or basic, of two (ResNet-18 and
    /// ResNet-34).
    #[config(default = true)]
    pub bottleneck: bool,
}

impl ResNetConfig {
    /// Basic layers of 64, 128, 256 and 512 channels: ResNet-18 is `basic([2, 2, 2, 2])`, ResNet-34 `basic([3, 4, 6, 3])`.
    pub fn basic(depths: [usize; 4]) -> Self {
        let config = Self::new().with_widths([64, 128, 256, 512]);
        config.with_depths(depths).with_bottleneck(false)
    }

    /// Channels of the feature map: those of the last stage.
    pub fn d_features(&self) -> usize {
        self.widths.last().copied().unwrap_or(self.d_stem)
    }

    /// Checks that a model can be built.
    ///
    /// # Errors
    ///
    /// When fields contradict each other. The error names the fields and their values.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (widths, depths) = (&self.widths, &self.depths);
        let of_same_stages = !widths.is_empty() && widths.len() == depths.len();
        ConfigError::check(NAME, of_same_stages, || {
            format!("widths {widths:?} and depths {depths:?} are not of the same stages")
        })?;
        ConfigError::check_positive(NAME, &sizes!(self; n_channels, d_stem))?;
        for (name, numbers) in [("widths", widths), ("depths", depths)] {
            let sizes: Vec<_> = numbers.iter().map(|&number| (name, number)).collect();
            ConfigError::check_positive(NAME, &sizes)?;
        }
        widths.iter().try_for_each(|width| {
            let fits = !self.bottleneck || width.is_multiple_of(EXPANSION);
            ConfigError::check(NAME, fits, || {
                format!("width {width} of bottleneck layers is not divisible by {EXPANSION}")
            })
        })
    }

    /// Builds the model.
    ///
    /// # Panics
    ///
    /// With the message of [`validate`](Self::validate).
    pub fn init(&self, device: &Device) -> ResNet {
        expect_valid(self.validate());
        let before = [self.d_stem].into_iter().chain(self.widths.iter().copied());
        let stages = before.zip(&self.widths).zip(&self.depths).enumerate();
        let stages = stages.map(|(stage, ((before, &width), &depth))| {
            let stride = if stage == 0 { 1 } else { 2 };
            let layers = (0..depth).map(|layer| match layer {
                0 => self.layer([before, width, stride], device),
                _ => self.layer([width, width, 1], device),
            });
            layers.collect()
        });
        ResNet {
            stem: NormedConv::new([self.n_channels, self.d_stem, 7, 2], device),
            stages: stages.collect(),
        }
    }

    fn layer(&self, [from, width, stride]: [usize; 3], device: &Device) -> ResNetLayer {
        let conv = |sizes| NormedConv::new(sizes, device);
        let inner = width / EXPANSION;
        let convolutions = match self.bottleneck {
            true => vec![
                conv([from, inner, 1, 1]),
                conv([inner, inner, 3, stride]),
                conv([inner, width, 1, 1]),
            ],
            false => vec![conv([from, width, 3, stride]), conv([width, width, 3, 1])],
        };
        let changes = from != width || stride != 1;
        ResNetLayer {
            convolutions,
            shortcut: changes.then(|| conv([from, width, 1, stride])),
        }
    }
}
