//! Weights in 8 bits: a module that `quantize_weights` has packed computes what the same numbers in floats do.
//!
//! Runs the schemes of Burn 0.22.1 that both CPU backends have: symmetric 8 bits, one scale per tensor or per block.
//! ndarray alone has 2 bits, flex alone stores any scheme; neither multiplies 8 bits without making floats of them first.

mod adapters;
mod attention;
mod caches;
mod models;
mod stacks;

use burn::{
    module::{Module, ModuleMapper, Param, Quantizer},
    tensor::{
        Tensor,
        quantization::{Calibration, QuantScheme, QuantStore, QuantValue, ScaleDtype},
    },
};
use burn_attn::{
    HeadsConfig, QkNormConfig,
    positions::{AlibiConfig, PositionEncoding, RotaryConfig},
};
use burn_attn_tests::{
    compare::{assert_close, error},
    devices::with_and_without_autodiff as devices,
};

// Every row of every parameter is some blocks of numbers.
const BLOCK: u8 = 3;
const D_MODEL: usize = 30;
const D_FF: usize = 39;
const HEADS: usize = 6;

/// The same numbers, multiplied by the same kernels or by those for few rows.
const TOLERANCE: f64 = 1e-6;

/// One scale for a whole parameter, and one for every few numbers of it.
pub fn schemes() -> [(&'static str, QuantScheme); 2] {
    let bytes = QuantScheme::default()
        .with_value(QuantValue::Q8S)
        .with_store(QuantStore::Native);
    [
        ("per tensor", bytes.per_tensor(ScaleDtype::F32)),
        ("per block", bytes.per_block([BLOCK], ScaleDtype::F32)),
    ]
}

/// As `quantize_weights` makes of it: every parameter in 8 bits.
pub fn packed<M: Module>(module: M, scheme: QuantScheme) -> M {
    module.quantize_weights(&mut Quantizer::new(Calibration::MinMax, scheme))
}

/// The numbers of a packed module, in floats.
pub fn unpacked<M: Module>(module: M) -> M {
    struct Unpack;
    impl ModuleMapper for Unpack {
        fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
            parameter.map(Tensor::dequantize)
        }
    }
    module.map(&mut Unpack)
}

/// Panics unless the packed module gives what its numbers in floats give, and not what the module gave before.
#[track_caller]
fn check<M: Module, const D: usize>(what: &str, module: &M, run: impl Fn(&M) -> Tensor<D>) {
    let exact = run(module).into_data();
    for (name, scheme) in schemes() {
        let packed = packed(module.clone(), scheme);
        let expected = run(&unpacked(packed.clone())).into_data();
        let actual = run(&packed).into_data();
        assert_close(&format!("{what}, {name}"), &actual, &expected, TOLERANCE);
        let moved = error(&actual, &exact);
        assert!(moved > 1e-5, "{what}, {name}: not in 8 bits ({moved:.1e})");
    }
}

/// Heads with each of the parameters that heads may have.
fn heads() -> Vec<(&'static str, HeadsConfig)> {
    let heads = || {
        HeadsConfig::new()
            .with_n_kv_heads(3)
            .with_d_head(9)
            .with_d_value_head(6)
    };
    let rotary = RotaryConfig::new().with_rotary_dim(4);
    let slopes = AlibiConfig::new().with_learnable(true);
    vec![
        ("plain", HeadsConfig::new()),
        ("sinks", heads().with_sinks(true)),
        (
            "rotary, rms",
            heads()
                .with_position(PositionEncoding::Rotary(rotary))
                .with_qk_norm(QkNormConfig::rms()),
        ),
        (
            "relative, l2",
            heads()
                .with_position(PositionEncoding::relative())
                .with_qk_norm(QkNormConfig::l2()),
        ),
        (
            "learned alibi",
            heads().with_position(PositionEncoding::Alibi(slopes)),
        ),
    ]
}
