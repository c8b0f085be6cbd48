//! Suites over the operation: against the f64 oracle, and the properties of its contract, on every backend of the build.

mod activation;
mod activation_backward;
mod at_positions;
mod bad_input;
mod bias;
mod block_tables;
mod body;
mod case;
mod default_integers;
mod dense_twins;
#[cfg(feature = "wgpu")]
mod device_memory;
mod dropout;
mod every_case;
mod extreme;
mod few_rows;
mod function_costs;
mod function_forms;
mod function_values;
mod functions;
mod golden;
mod heads;
mod hidden_pairs;
mod mask_functions;
mod merge;
mod onnx;
mod option_tensors;
mod options;
mod oracle;
mod poisons;
mod properties;
#[cfg(feature = "flex")]
mod random_calls;
mod rotation;
mod scalar_forms;
mod strided;
mod subsets;
mod unions;
