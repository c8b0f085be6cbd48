//! What a training step keeps in the memory of a GPU: it grows with the length, not with its square, and is a small part of what Burn's own
//! operation keeps.

use std::{env, process::Command};

use burn::tensor::{DType, Device, Tensor, TensorData, module, ops::AttentionModuleOptions};
use burn_attn::{AttentionBias, AttentionOptions, alibi_slopes, ops};
use burn_attn_tests::{devices, numbers::uniform};

/// What a process measures: all tests of one share the pools of its device.
const MEASURED: &str = "BURN_ATTN_MEASURED";

/// Batch items 1, and so many heads.
const HEADS: usize = 2;
const DIM: usize = 64;

/// By how many bytes the pools of the device grow in a step. An earlier one has compiled the kernels and tuned Burn's.
fn grown(device: &Device, whose: &str, dtype: DType, len: usize) -> u64 {
    step(device, whose, dtype, len);
    device.memory_cleanup();
    let reserved = || {
        device.sync().unwrap();
        device.memory_pool_usage().unwrap().bytes_reserved
    };
    let before = reserved();
    step(device, whose, dtype, len);
    reserved() - before
}

fn step(device: &Device, whose: &str, dtype: DType, len: usize) {
    let device = device.clone().autodiff();
    let tensor = |seed| {
        let data = TensorData::new(uniform(seed, HEADS * len * DIM), [1, HEADS, len, DIM]);
        Tensor::<4>::from_data(data, (&device, dtype)).require_grad()
    };
    let inputs = [1, 2, 3].map(tensor);
    let [query, key, value] = inputs.clone();
    // In half precision, their gradient needs statistics of an output that is not rounded.
    let slopes = TensorData::new(alibi_slopes(HEADS), [HEADS]);
    let slopes = Tensor::<1>::from_data(slopes, (&device, dtype)).require_grad();
    let output = match whose {
        "ours" => {
            let options = AttentionOptions::default().bias(AttentionBias::alibi(slopes));
            ops::attention(query, key, value, options)
        }
        _ => {
            let options = AttentionModuleOptions::default();
            module::attention(query, key, value, None, None, options)
        }
    };
    let gradients = output.sum().backward();
    for input in inputs {
        input.grad(&gradients).unwrap().into_data();
    }
}

/// This program once more, as cargo runs it.
fn again() -> Command {
    let program = env::args_os().next().unwrap();
    match env::var_os("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER") {
        Some(runner) => {
            let runner = runner.into_string().unwrap();
            let mut words = runner.split_whitespace();
            let mut command = Command::new(words.next().unwrap());
            command.args(words).arg(program);
            command
        }
        None => Command::new(program),
    }
}

#[test]
fn a_training_step_on_a_gpu_reserves_memory_linear_in_the_length() {
    let Some(device) = devices::wgpu() else {
        return;
    };
    if let Ok(what) = env::var(MEASURED) {
        let (whose, rest) = what.split_once(' ').unwrap();
        let (dtype, len) = rest.split_once(' ').unwrap();
        let dtype = if dtype == "f16" {
            DType::F16
        } else {
            DType::F32
        };
        let bytes = grown(&device, whose, dtype, len.parse().unwrap());
        // On a line of its own, even where the harness has begun one.
        println!("\n{bytes} bytes");
        return;
    }
    let measured = |what: &str| -> u64 {
        let mut process = again();
        let name = "device_memory::a_training_step_on_a_gpu_reserves_memory_linear_in_the_length";
        process.args(["--exact", name, "--nocapture"]);
        let output = process.env(MEASURED, what).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let bytes = said
            .lines()
            .find_map(|line| line.strip_suffix(" bytes")?.parse().ok());
        bytes.unwrap_or_else(|| panic!("{what}: {said}{}", String::from_utf8_lossy(&output.stderr)))
    };
    let [short, long] = ["ours f32 2048", "ours f32 4096"].map(measured);
    assert!(
        long <= 2 * short,
        "{short} bytes of 2,048 tokens, {long} of 4,096"
    );
    let of_burn = measured("burn f32 3072");
    assert!(
        8 * long <= of_burn,
        "{long} bytes of ours of 4,096 tokens, {of_burn} of Burn's of 3,072"
    );
    // Burn tunes its products in f16 for minutes: half of its bytes in f32.
    if device.supports_dtype(DType::F16) {
        let in_f16 = measured("ours f16 2048");
        assert!(
            8 * in_f16 <= of_burn / 2,
            "{in_f16} bytes of ours in f16, {of_burn} of Burn's in f32"
        );
    }
}
