//! From images to a feature map.

use std::f64::consts::SQRT_2;

use burn::{
    module::{Module, Param},
    nn::{Initializer, conv::Conv2d},
    tensor::{
        Device, Tensor,
        activation::relu,
        module::{conv2d, max_pool2d},
        ops::{ConvOptions, MaxPoolOptions},
    },
};

use crate::{
    families::grid::{check_images, convolution},
    loss::wide,
};

/// Added to a variance.
const EPSILON: f64 = 1e-5;

/// The convolutions of a ResNet. Training changes them, but not the norms; [`freeze`](Module::freeze) keeps all.
///
/// # Source
///
/// "Deep residual learning for image recognition" (arXiv:1512.03385), sections 3.3 and 4.1, with the stride of a bottleneck in its middle. PyTorch
/// equivalents: `ResNetBackbone` of Hugging Face's `transformers`, and `resnet50` of `timm` or `torchvision` without its head, with frozen norms.
///
/// ```
/// use burn::tensor::{Device, Tensor};
/// use burn_attn_models::resnet::ResNetConfig;
///
/// let device = Device::default();
/// let config = ResNetConfig::new().with_d_stem(4).with_widths([8, 16]).with_depths([1, 1]);
/// let features = config.init(&device).forward(Tensor::zeros([1, 3, 64, 96], &device));
/// assert_eq!(features.dims(), [1, 16, 8, 12]);
/// ```
#[derive(Module, Debug)]
pub struct ResNet {
    /// The first convolution, 7 × 7.
    pub stem: NormedConv,
    /// The layers, stage by stage.
    pub stages: Vec<Vec<ResNetLayer>>,
}

impl ResNet {
    /// The feature map of images, `[batch, channels, height, width]`: that of the last stage, `[batch, d_features, rows, columns]`. Each
    /// stage but the first halves rows and columns, which are a quarter of height and width before; halves are rounded up.
    ///
    /// # Panics
    ///
    /// When there are no images, the channels differ, or the images have no pixels.
    ///
    /// # Cost
    ///
    /// For every convolution `2 · batch · rows · columns · kernel² · channels in · channels out` operations: 8 billion in ResNet-50 for an image of
    /// 224 × 224.
    pub fn forward(&self, images: Tensor<4>) -> Tensor<4> {
        let [_, _, height, width] = images.dims();
        check_images("ResNet", &self.stem.convolution, &images);
        assert!(
            height > 0 && width > 0,
            "ResNet: images of {height} × {width} have no pixels"
        );
        let x = images.cast(self.stem.convolution.weight.dtype());
        let pool = MaxPoolOptions::new([3, 3]);
        let pool = pool.with_stride([2, 2]).with_padding([1, 1]);
        let x = max_pool2d(relu(self.stem.forward(x)), pool);
        let layers = self.stages.iter().flatten();
        layers.fold(x, |x, layer| layer.forward(x))
    }
}

/// Two or three convolutions, and what is added to them.
#[derive(Module, Debug)]
pub struct ResNetLayer {
    /// The convolutions in their order.
    pub convolutions: Vec<NormedConv>,
    /// Makes the input of the layer as large as its output, if they differ.
    pub shortcut: Option<NormedConv>,
}

impl ResNetLayer {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let convolutions = self.convolutions.iter().enumerate();
        let branch = convolutions.fold(x.clone(), |branch, (index, convolution)| {
            // The input was a ReLU's output already.
            let branch = if index == 0 { branch } else { relu(branch) };
            convolution.forward(branch)
        });
        let x = match &self.shortcut {
            Some(shortcut) => shortcut.forward(x),
            None => x,
        };
        relu(branch + x)
    }
}

/// A convolution without a bias, and a batch norm with fixed statistics.
#[derive(Module, Debug)]
pub struct NormedConv {
    /// The convolution, which keeps the size but for its stride.
    pub convolution: Conv2d,
    /// The factor on every channel, `[d_output]`.
    pub gamma: Param<Tensor<1>>,
    /// What is added to every channel, `[d_output]`.
    pub beta: Param<Tensor<1>>,
    /// The mean of every channel, `[d_output]`.
    pub mean: Param<Tensor<1>>,
    /// The variance of every channel, `[d_output]`.
    pub variance: Param<Tensor<1>>,
}

impl NormedConv {
    pub(super) fn new(sizes: [usize; 4], device: &Device) -> Self {
        let [_, to, ..] = sizes;
        let initializer = Initializer::KaimingNormal {
            gain: SQRT_2,
            fan_out_only: true,
        };
        let convolution = convolution(sizes)
            .with_bias(false)
            .with_initializer(initializer);
        let fixed = |value| {
            let numbers = Initializer::Constant { value }.init([to], device);
            numbers.set_require_grad(false)
        };
        Self {
            convolution: convolution.init(device),
            gamma: fixed(1.0),
            beta: fixed(0.0),
            mean: fixed(0.0),
            variance: fixed(1.0),
        }
    }

    /// The norm as a part of the convolution: activations, which are larger than weights, are not read again for it.
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        // Fixed even after a model was frozen and unfrozen.
        // In half precision, the difference below would lose its digits.
        let fixed = |numbers: &Param<Tensor<1>>| {
            let numbers = numbers.val().detach();
            let dtype = wide(numbers.dtype());
            numbers.cast(dtype)
        };
        let factor = fixed(&self.gamma) / (fixed(&self.variance) + EPSILON).sqrt();
        let bias = fixed(&self.beta) - fixed(&self.mean) * factor.clone();
        let Conv2d {
            weight,
            stride,
            kernel_size,
            ..
        } = &self.convolution;
        let [d_output, ..] = weight.dims();
        let dtype = weight.dtype();
        let (factor, bias) = (factor.cast(dtype), bias.cast(dtype));
        let weight = weight.val() * factor.reshape([d_output, 1, 1, 1]);
        let padding = kernel_size.map(|kernel| kernel / 2);
        let options = ConvOptions::new(*stride, padding, [1, 1], 1);
        conv2d(x, weight, Some(bias), options)
    }
}
