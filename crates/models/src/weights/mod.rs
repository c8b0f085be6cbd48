//! Weights of other libraries' models, by a [`Table`] of which parameter is which tensor. [`Weights::load`] reads such weights, and [`save()`] writes
//! them, by the same table.
//!
//! | a parameter is | row |
//! | --- | --- |
//! | a source tensor | `.row("embedding.weight", "wte.weight")` |
//! | a source tensor, transposed | `.row("head.weight", transposed("lm_head.weight"))` |
//! | weight and bias of `nn.Linear` | `.linear("attention.output", "o_proj")` |
//! | gamma and beta of `nn.LayerNorm` or an RMS norm | `.norm("norm", "ln_f")` |
//! | several source tensors, side by side | `.linear("key_value", ["k_proj", "v_proj"])` |
//! | several source tensors, of different widths | `.linear("query_key_value", same(["q", "k", "v"]).shares([8, 2, 2]))` |
//! | a part of a source tensor | `.linear(["query", "key", "value"], "qkv")` |
//! | interleaved in the source | `.linear("query_key_value", same("qkv").interleaved([64, 64, 64]))` |
//! | rotated in pairs beside each other in the source | `.linear("query_key_value", same(["q", "k", "v"]).rotary_pairs([64, 64, 0]))` |
//! | in the source, each head before its gate | `.linear(["query_key_value", "gate"], same(["q", "k", "v"]).shares([16, 2, 2]).gated(64))` |
//! | a source tensor plus one | `.row("norm.gamma", same("norm.weight").plus_one())` |
//! | a source tensor without an axis | `.row("scale", same("logit_scale").scalar())` |
//! | zeros, which they do not store | `.row("key_value.bias", [ZEROS, "v_proj.bias"])` |
//! | in one of many layers | `.part("layers.{layer}", "h.{layer}", Table::new()…)` |
//! | one index of a tensor that they stack | `.row("experts.{expert}.weight", same("experts.down").stacked("expert"))` |
//! | all experts of the source, stacked | `.row("experts.weight", transposed("experts.{expert}.w2.weight"))` |
//!
//! | a source tensor is | |
//! | --- | --- |
//! | equal to another | `.tied("lm_head.weight", "wte.weight")` |
//! | no parameter of the model | `.ignore("*.position_ids")` |
//! | under another name in some files | `.rename("bert.*", "*")` |

mod error;
mod fit;
mod layout;
mod load;
mod numbers;
mod pattern;
mod plan;
mod precision;
mod save;
mod source;
mod table;

pub use error::{Mismatch, Missing, WeightsError, WrongDType, WrongShape};
pub(crate) use error::{Reason, ensure, list};
pub use fit::NotLoaded;
pub use load::Weights;
#[cfg(feature = "flex")]
pub use precision::in_int8;
pub use precision::{in_f16, in_f32};
pub use save::save;
pub(crate) use source::{Format, format, is_float, lfs_pointer};
#[cfg(feature = "hub")]
pub(crate) use source::{WEIGHT_FILES, shards};
pub use table::{Names, Source, Table, ZEROS, same, transposed};
pub(crate) use table::{below, joined};
