//! Which layer's keys and values each layer of a stack attends to.

use super::{BlockConfig, TransformerStackConfig};
use crate::{QkNormConfig, error::ConfigError};

impl TransformerStackConfig {
    /// For each layer, in the order in which they run: whose keys and values it attends to, as a number from 0 among the layers that project
    /// some. That is itself, or else the nearest earlier layer with the same window. An error, in the name of `config`, if there is none or
    /// it does not fit.
    pub(super) fn sources(&self, config: &'static str) -> Result<Vec<usize>, ConfigError> {
        let blocks = self.pattern.blocks(&self.block, self.n_layers);
        let mut own: Vec<(usize, &BlockConfig)> = Vec::new();
        let source = |layer| {
            let block = blocks[self.pattern.layer(layer, self.n_layers)];
            if !block.shared_key_value {
                own.push((layer, block));
                return Ok(own.len() - 1);
            }
            let nearest = own.iter().rposition(|(_, of)| of.window == block.window);
            let nearest = nearest.ok_or_else(|| {
                let window = match block.window {
                    Some(window) => format!("with a window of {window}"),
                    None => "without a window".to_owned(),
                };
                let reason = format!(
                    "shared_key_value is true in layer {layer}, but no earlier layer {window} has keys and values of its own"
                );
                ConfigError::new(config, reason)
            })?;
            let (earlier, of_earlier) = own[nearest];
            let fields = self.of_keys(block).into_iter();
            for ((field, value), (_, other)) in fields.zip(self.of_keys(of_earlier)) {
                ConfigError::check(config, value == other, || {
                    format!(
                        "shared_key_value is true in layer {layer}, whose {field} is {value}, but {field} is {other} in layer {earlier}, which has \
                         the keys and values"
                    )
                })?;
            }
            Ok(nearest)
        };
        (0..self.n_layers).map(source).collect()
    }

    /// The fields that say what keys and values are like, and their values.
    fn of_keys(&self, block: &BlockConfig) -> [(&'static str, String); 5] {
        let heads = &block.heads;
        let d_head = heads.d_head.unwrap_or(self.d_model / self.n_heads);
        let n_kv_heads = heads.n_kv_heads.unwrap_or(self.n_heads);
        let d_value_head = heads.d_value_head.unwrap_or(d_head);
        // L2 has another default scale than the others.
        let qk_norm = match heads.qk_norm {
            Some(QkNormConfig::L2 { .. }) => "L2",
            _ => "not L2",
        };
        [
            ("n_kv_heads", n_kv_heads.to_string()),
            ("d_head", d_head.to_string()),
            ("d_value_head", d_value_head.to_string()),
            ("position", format!("{:?}", heads.position)),
            ("qk_norm", qk_norm.to_owned()),
        ]
    }
}
