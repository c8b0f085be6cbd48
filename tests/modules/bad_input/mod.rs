//! Every mistake has its sentence, with the values that were wrong.

/// Sees that a configuration is refused with this sentence by both of its methods.
macro_rules! refused {
    ($config:expr, $sentence:expr) => {
        let config = $config;
        let error: burn_attn::ConfigError =
            config.validate().expect_err("the configuration is bad");
        assert_eq!(error.to_string(), $sentence);
        assert_eq!(sentence(|| config.init(&devices::any())), $sentence);
    };
}

mod configs;
mod empty;
mod heads;
mod masks;
mod shapes;

use burn_attn::{BlockConfig, TransformerConfig, TransformerStackConfig};
use burn_attn_tests::{devices, sentence};

/// Sees that every stack refuses this block, each in its own name.
#[track_caller]
fn refused_by_stacks(block: &BlockConfig, reason: &str) {
    refused!(
        TransformerStackConfig::encoder(15, 29, 3, 2).with_block(block.clone()),
        format!("TransformerStackConfig: {reason}")
    );
    refused!(
        TransformerStackConfig::causal(15, 29, 3, 2).with_block(block.clone()),
        format!("TransformerStackConfig: {reason}")
    );
    refused!(
        TransformerStackConfig::decoder(15, 29, 3, 2).with_block(block.clone()),
        format!("TransformerStackConfig: {reason}")
    );
    refused!(
        TransformerConfig::new(15, 29, 3, 2, 2).with_block(block.clone()),
        format!("TransformerConfig: {reason}")
    );
}
