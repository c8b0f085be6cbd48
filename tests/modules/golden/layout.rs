//! Where our parameters are in PyTorch's state dict: other names, transposed weights, query, key and value stacked.

use burn::{module::Module, tensor::TensorData};
use burn_attn_tests::{golden::GoldenFile, parameters};

/// Which module of PyTorch a golden file holds.
#[derive(Clone, Copy, PartialEq)]
pub enum Layout {
    /// An `nn.MultiheadAttention`.
    Attention,
    /// One `nn.TransformerEncoderLayer` or a `Block` of the script, ours in a stack of one.
    EncoderLayer,
    /// One `nn.TransformerDecoderLayer`, ours in a stack of one.
    DecoderLayer,
    /// An `nn.Transformer`.
    Transformer,
}

/// A parameter of ours in the state dict.
pub struct Place {
    /// Name in the state dict.
    pub name: String,
    /// Which thirds of its rows, where query, key and value are stacked.
    thirds: Option<(usize, usize)>,
}

impl Layout {
    /// The module with the parameters of the file.
    pub fn load<M: Module>(self, module: M, file: &GoldenFile) -> M {
        parameters::replace(module, |path, shape| {
            let data = self.place(path).data(file, "");
            assert_eq!(data.shape().as_slice(), shape, "{path}");
            data.iter::<f32>().collect()
        })
    }

    /// Where our parameter `path` is.
    pub fn place(self, path: &str) -> Place {
        let (module, parameter) = path.rsplit_once('.').expect("a parameter is in a module");
        let (parent, linear) = module.rsplit_once('.').unwrap_or(("", module));
        let decoder = self == Self::DecoderLayer || path.starts_with("decoder.");
        let parent = match self {
            // The state dict of one layer knows nothing of a stack.
            Self::EncoderLayer | Self::DecoderLayer => parent
                .trim_start_matches("layers.0")
                .trim_start_matches('.'),
            Self::Attention | Self::Transformer => parent,
        };
        let parameter = match parameter {
            "gamma" => "weight",
            "beta" => "bias",
            parameter => parameter,
        };
        let (linear, thirds) = match linear {
            "query_key_value" => ("in_proj", Some((0, 3))),
            "query" => ("in_proj", Some((0, 1))),
            "key" => ("in_proj", Some((1, 2))),
            "value" => ("in_proj", Some((2, 3))),
            "key_value" => ("in_proj", Some((1, 3))),
            "output" => ("out_proj", None),
            "linear_inner" => ("linear1", None),
            "linear_outer" => ("linear2", None),
            linear => (linear, None),
        };
        // The stacked projection is a parameter of the attention itself, not of a linear layer in it.
        let separator = if linear == "in_proj" { '_' } else { '.' };
        let parent: Vec<&str> = parent
            .split('.')
            .filter_map(|segment| match segment {
                "" | "feed_forward" => None,
                "attention" | "self_attention" => Some("self_attn"),
                "cross_attention" => Some("multihead_attn"),
                "attention_residual" | "self_attention_residual" => Some("norm1"),
                "cross_attention_residual" => Some("norm2"),
                "feed_forward_residual" if decoder => Some("norm3"),
                "feed_forward_residual" => Some("norm2"),
                segment => Some(segment),
            })
            .collect();
        let parent = parent.join(".");
        let in_residual = parent
            .rsplit('.')
            .next()
            .is_some_and(|last| last.starts_with("norm"));
        let name = match (in_residual, parent.is_empty()) {
            (true, _) if linear == "output_norm" => format!("{parent}_output.{parameter}"),
            (true, _) => format!("{parent}.{parameter}"),
            (false, true) => format!("{linear}{separator}{parameter}"),
            (false, false) => format!("{parent}.{linear}{separator}{parameter}"),
        };
        Place { name, thirds }
    }
}

impl Place {
    /// The numbers of `{prefix}{name}` as our parameter has them.
    pub fn data(&self, file: &GoldenFile, prefix: &str) -> TensorData {
        let data = file.data(&format!("{prefix}{}", self.name));
        let rows = data.shape()[0];
        let width = data.shape().num_elements() / rows;
        let numbers: Vec<f32> = data.iter().collect();
        let (first, last) = self.thirds.map_or((0, rows), |(first, last)| {
            (first * rows / 3, last * rows / 3)
        });
        let numbers = &numbers[first * width..last * width];
        if data.shape().len() == 1 {
            return TensorData::new(numbers.to_vec(), [last - first]);
        }
        // PyTorch keeps weights as `[out, in]`.
        let transposed = (0..width).flat_map(|column| numbers.iter().skip(column).step_by(width));
        TensorData::new(transposed.copied().collect(), [width, last - first])
    }
}
