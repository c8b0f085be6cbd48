//! Every mistake has its sentence, with the values that were wrong.

/// Sees that a configuration is refused with this reason, after its own name, by both of its methods.
macro_rules! refused {
    ($config:expr, $reason:expr) => {
        let config = $config;
        let name = std::any::type_name_of_val(&config).rsplit("::").next();
        let sentence = format!("{}: {}", name.expect("a name"), $reason);
        let error: burn_attn::ConfigError =
            config.validate().expect_err("the configuration is bad");
        assert_eq!(error.to_string(), sentence);
        let built = burn_attn_tests::sentence(|| config.init(&burn_attn_tests::devices::any()));
        assert_eq!(built, sentence);
    };
}

mod configs;
mod empty;
mod heads;
mod masks;
mod shapes;

use burn_attn::{BlockConfig, TransformerConfig, TransformerStackConfig};

/// Sees that every stack refuses this block, each in its own name.
#[track_caller]
fn refused_by_stacks(block: &BlockConfig, reason: &str) {
    for stack in [
        TransformerStackConfig::encoder,
        TransformerStackConfig::causal,
        TransformerStackConfig::decoder,
    ] {
        refused!(stack(15, 29, 3, 2).with_block(block.clone()), reason);
    }
    let both = TransformerConfig::new(15, 29, 3, 2, 2);
    refused!(both.with_block(block.clone()), reason);
}
