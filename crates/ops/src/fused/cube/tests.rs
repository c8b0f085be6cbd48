use burn::{
    backend::ops::{BoolTensorOps, IntTensorOps},
    tensor::{BoolDType, FloatDType, IntDType, TensorData, read_sync},
};
use burn_attn_kernels_cpu::{AttentionDropout, PositionMask};
use burn_cubecl::cubecl::{
    features::TypeUsage,
    future::block_on,
    ir::{ElemType, FloatKind, IntKind},
};
use burn_fusion::Fusion;
use burn_wgpu::{
    RuntimeOptions, WgpuDevice, WgpuSetup, init_device,
    wgpu::{DeviceDescriptor, Features, Limits},
};

use super::*;
use crate::{
    backend::{AttentionScalars, MaskInputs},
    blockwise::tests::{finds_adapter, found},
};

fn device() -> CubeDevice {
    CubeDevice::from(WgpuDevice::default())
}

/// `0, 1, 2, ..`
fn counted(shape: &[usize]) -> CubeTensor {
    let numbers: Vec<f32> = (0..shape.iter().product())
        .map(|x: usize| x as f32)
        .collect();
    CubeBackend::float_from_data(TensorData::new(numbers, shape.to_vec()), &device())
}

fn numbers(tensor: CubeTensor) -> Vec<f32> {
    let data = read_sync(CubeBackend::float_into_data(tensor)).expect("the device computes");
    data.iter::<f32>().collect()
}

fn ints(shape: &[usize], dtype: IntDType) -> OptionalInt<CubeBackend> {
    let shape = Shape::from(shape.to_vec());
    OptionalInt::Present(CubeBackend::int_empty(shape, &device(), dtype))
}

fn floats(shape: &[usize], dtype: FloatDType) -> CubeTensor {
    CubeBackend::float_empty(Shape::from(shape.to_vec()), &device(), dtype)
}

/// A call with every tensor that the kernels read.
fn call() -> (ScoreInputs<CubeBackend>, CubeTensor) {
    let f16 = |shape: &[usize]| floats(shape, FloatDType::F16);
    let masked = Shape::new([1, 6, 1, 23]);
    let inputs = ScoreInputs {
        query: f16(&[2, 6, 17, 5]),
        key: f16(&[2, 3, 23, 5]),
        bias: OptionalFloat::Present(f16(&[1, 6, 17, 1])),
        distance_bias: OptionalFloat::Present(floats(&[6, 39], FloatDType::F32)),
        sinks: OptionalFloat::Present(floats(&[6], FloatDType::F64)),
        captured: OptionalFloat::Absent,
        score_function: None,
        mask: MaskInputs {
            masked: OptionalBool::Present(bools(masked)),
            key_lengths: ints(&[2], IntDType::I32),
            first_keys: ints(&[2], IntDType::I32),
            query_offsets: ints(&[2], IntDType::I8),
            query_segments: ints(&[2, 17], IntDType::U16),
            key_segments: ints(&[2, 23], IntDType::I16),
            ..MaskInputs::default()
        },
        scalars: AttentionScalars {
            scale: 0.5,
            softcap: None,
            by_position: PositionMask::default(),
            first_keys_are_causal: false,
            block_size: None,
            dropout: None,
            body: Body::Fastest,
        },
    };
    (inputs, f16(&[2, 3, 23, 7]))
}

fn bools(shape: Shape) -> CubeTensor {
    CubeBackend::bool_empty(shape, &device(), BoolDType::U32)
}

#[test]
fn calls_that_the_kernels_cannot_read_are_left_to_the_blockwise_body() {
    if !finds_adapter() {
        println!("skipped: no adapter");
        return;
    }
    let readable_after = |change: fn(&mut ScoreInputs<CubeBackend>, &mut CubeTensor)| {
        let (mut inputs, mut value) = call();
        change(&mut inputs, &mut value);
        readable(&inputs, &value).is_some()
    };
    assert!(readable_after(|_, _| ()));
    let unreadable: [fn(&mut ScoreInputs<CubeBackend>, &mut CubeTensor); 13] = [
        |inputs, _| inputs.scalars.body = Body::Blockwise(None),
        |inputs, _| inputs.scalars.body = Body::Blockwise(Some(17)),
        |inputs, _| inputs.query.dtype = DType::F32,
        |inputs, _| inputs.key.dtype = DType::BF16,
        |_, value| value.dtype = DType::F32,
        |inputs, value| {
            for tensor in [&mut inputs.query, &mut inputs.key, value] {
                tensor.dtype = DType::F64;
            }
        },
        |inputs, _| {
            let mut masked = bools(Shape::new([1, 6, 1, 23]));
            masked.dtype = DType::Bool(BoolDType::Native);
            inputs.mask.masked = OptionalBool::Present(masked);
        },
        |inputs, _| inputs.mask.key_lengths = ints(&[2], IntDType::I64),
        |inputs, _| inputs.mask.query_offsets = ints(&[2], IntDType::U32),
        |inputs, _| inputs.mask.query_segments = ints(&[2, 17], IntDType::U64),
        |inputs, _| inputs.mask.key_segments = ints(&[2, 23], IntDType::I64),
        |_, value| *value = floats(&[2, 3, 23, 0], FloatDType::F16),
        |inputs, value| {
            let no_keys = |dim| floats(&[2, 3, 0, dim], FloatDType::F16);
            (inputs.key, *value) = (no_keys(5), no_keys(7));
        },
    ];
    for (index, change) in unreadable.into_iter().enumerate() {
        assert!(!readable_after(change), "change {index}");
    }
}

#[test]
fn indices_have_31_bits() {
    let reaches = |shape: &[usize]| indexable(&Shape::from(shape.to_vec()));
    assert!(reaches(&[1 << 15, (1 << 16) - 1]));
    assert!(!reaches(&[1 << 15, 1 << 16]));
    assert!(!reaches(&[usize::MAX, usize::MAX]));
    assert!(!reaches(&[3, 0, 5]));
    assert!(!reaches(&[0, usize::MAX]));
}

#[test]
fn operands_lie_as_their_tensors_where_the_kernels_can_read_that() {
    if !finds_adapter() {
        println!("skipped: no adapter");
        return;
    }
    // Heads split from a projection, rows apart from each other, and one row for all: nothing is copied.
    let split = CubeBackend::float_swap_dims(counted(&[2, 5, 3, 7]), 1, 2);
    let operand = rows(split.clone());
    assert_eq!(operand.shape, [2, 3, 5, 7]);
    assert_eq!(operand.strides, [105, 7, 21, 1]);
    assert_eq!(operand.elem, ElemType::Float(FloatKind::F32));
    let expanded = CubeBackend::float_expand(counted(&[1, 1, 1, 7]), Shape::new([2, 3, 5, 7]));
    assert_eq!(rows(expanded.clone()).strides[3], 1);
    assert_eq!(
        strided(expanded.clone()).strides,
        expanded.meta.strides().to_vec()
    );
    // Rows that are not contiguous are copied.
    let columns = CubeBackend::float_swap_dims(counted(&[2, 3, 7, 5]), 2, 3);
    assert_eq!(rows(columns.clone()).strides, [105, 35, 7, 1]);
    assert_eq!(strided(columns).strides, [105, 35, 1, 5]);
    // What has to be row-major becomes so, in the dtype.
    assert_eq!(
        contiguous(split.clone(), DType::F32).strides,
        [105, 35, 7, 1]
    );
    let lengths = CubeBackend::int_from_data(TensorData::from([7_i32, 3]), &device());
    let operand = contiguous(lengths, DType::I32);
    assert_eq!(operand.elem, ElemType::Int(IntKind::I32));

    // Results lie as their operands.
    let merged = empty_rows(&split, &rows(split.clone()), [2, 3, 5, 11]);
    assert_eq!(merged.meta.shape().to_vec(), [2, 3, 5, 11]);
    assert_eq!(merged.meta.strides().to_vec(), [165, 11, 33, 1]);
    let plain = counted(&[2, 3, 5, 7]);
    let result = empty_rows(&plain, &rows(plain.clone()), [2, 3, 5, 11]);
    assert_eq!(result.meta.strides().to_vec(), [165, 55, 11, 1]);
    // What no kernel writes is not a number.
    #[cfg(debug_assertions)]
    for tensor in [merged, result] {
        let numbers = numbers(tensor);
        assert_eq!(numbers.len(), 2 * 3 * 5 * 11);
        assert!(numbers.iter().all(|x| x.is_nan()));
    }
}

/// The adapter that wgpu finds, as a device that refuses cubes which CubeCL believes it can run: CubeCL asks the adapter for the limit.
fn refusing(found: WgpuSetup) -> CubeDevice {
    let adapter = &found.adapter;
    let left_out = Features::MAPPABLE_PRIMARY_BUFFERS | Features::all_experimental_mask();
    let device = adapter.request_device(&DeviceDescriptor {
        required_features: adapter.features().difference(left_out),
        required_limits: Limits {
            max_compute_invocations_per_workgroup: 32,
            ..adapter.limits()
        },
        ..DeviceDescriptor::default()
    });
    let (device, queue) = block_on(device).expect("a device");
    let setup = WgpuSetup {
        device,
        queue,
        ..found
    };
    CubeDevice::from(init_device(setup, RuntimeOptions::default()))
}

/// A small call in f32, on a device.
fn small<B: Backend>(device: &B::Device) -> (ScoreInputs<B>, FloatTensor<B>) {
    let ones = |shape: &[usize]| {
        let numbers = vec![1.0_f32; shape.iter().product()];
        B::float_from_data(TensorData::new(numbers, shape.to_vec()), device)
    };
    let inputs = ScoreInputs {
        query: ones(&[1, 2, 7, 5]),
        key: ones(&[1, 2, 11, 5]),
        bias: OptionalFloat::Absent,
        distance_bias: OptionalFloat::Absent,
        sinks: OptionalFloat::Absent,
        captured: OptionalFloat::Absent,
        score_function: None,
        mask: MaskInputs::default(),
        scalars: call().0.scalars,
    };
    (inputs, ones(&[1, 2, 11, 3]))
}

#[test]
fn what_the_device_refuses_is_an_error_and_no_panic() {
    if cfg!(any(feature = "vulkan", feature = "metal")) {
        println!("skipped: only WGSL is checked against the limits of its device");
        return;
    }
    let Some(found) = found() else {
        println!("skipped: no adapter");
        return;
    };
    let device = refusing(found);
    let says = |why: &str| {
        assert!(why.starts_with("attention of f32 with Problem {"), "{why}");
        assert!(why.contains("was not computed: "), "{why}");
    };
    let (inputs, value) = small::<CubeBackend>(&device);
    assert!(supports(&inputs, &value, false));
    let refusal = forward(&inputs, &value).expect_err("the device refuses cubes of 256 units");
    says(&refusal.to_string());

    // With fusion, a reader of the results gets the refusal. The other recorded operations are computed.
    let (inputs, value) = small::<Fusion<CubeBackend>>(&device);
    let (output, _) = <Fusion<CubeBackend> as AttentionOps>::fused_attention(inputs, value.clone());
    let error = read_sync(Fusion::<CubeBackend>::float_into_data(output));
    says(error.expect_err("nothing was computed").reason());
    let value = read_sync(Fusion::<CubeBackend>::float_into_data(value));
    assert_eq!(value.expect("it was there").iter::<f32>().next(), Some(1.0));
}

#[test]
fn memory_for_the_gradient_of_a_distance_bias_is_wanted_backward_alone() {
    if !finds_adapter() {
        println!("skipped: no adapter");
        return;
    }
    let keys = || {
        let one_item = counted(&[1, 1, 131_072, 1]);
        CubeBackend::float_expand(one_item, Shape::new([128, 1, 131_072, 1]))
    };
    let (inputs, _) = small::<CubeBackend>(&device());
    let inputs = ScoreInputs {
        query: floats(&[128, 64, 1, 1], FloatDType::F32),
        key: keys(),
        distance_bias: OptionalFloat::Present(floats(&[64, 131_072], FloatDType::F32)),
        ..inputs
    };
    assert!(supports(&inputs, &keys(), false));
    assert!(!supports(&inputs, &keys(), true));
}

/// As where only the forward pass has enough memory.
#[test]
fn the_blockwise_body_continues_from_results_of_the_kernels() {
    if !finds_adapter() {
        println!("skipped: no adapter");
        return;
    }
    let device = device();
    let waves = |shape: &[usize], step: f32| {
        let count: usize = shape.iter().product();
        let numbers: Vec<f32> = (0..count).map(|at| (step * at as f32).sin()).collect();
        CubeBackend::float_from_data(TensorData::new(numbers, shape.to_vec()), &device)
    };
    let (inputs, _) = small::<CubeBackend>(&device);
    let dropout = AttentionDropout {
        probability: 0.3,
        seed: 5,
    };
    let inputs = ScoreInputs {
        query: waves(&[1, 2, 7, 5], 0.7),
        key: waves(&[1, 2, 11, 5], 1.3),
        distance_bias: OptionalFloat::Present(waves(&[2, 17], 0.9)),
        sinks: OptionalFloat::Present(waves(&[2], 2.3)),
        scalars: AttentionScalars {
            dropout: Some(dropout),
            ..inputs.scalars
        },
        ..inputs
    };
    let value = waves(&[1, 2, 11, 3], 1.7);
    let (output, logsumexp) = forward(&inputs, &value).expect("a small call");
    let saved = SavedAndGrads {
        output,
        logsumexp,
        output_gradient: waves(&[1, 2, 7, 3], 0.3),
        logsumexp_gradient: waves(&[1, 2, 7], 0.4),
    };
    let required = [true, true, true, false, true, true, false];
    let expected = backward(&inputs, &value, saved.clone(), required).expect("a small call");
    let actual = blockwise::backward(inputs, value, saved, required);
    assert_eq!([actual.len(), expected.len()], [5; 2]);
    for (actual, expected) in actual.into_iter().zip(expected) {
        let (actual, expected) = (numbers(actual), numbers(expected));
        assert_eq!(actual.len(), expected.len());
        let pairs = actual.iter().zip(&expected);
        let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(apart < 1e-5, "{apart}: {actual:?} and {expected:?}");
    }
}

#[test]
fn masks_of_a_type_that_the_device_lacks_are_left_to_the_blockwise_body() {
    if !finds_adapter() {
        println!("skipped: no adapter");
        return;
    }
    let (mut inputs, value) = small::<CubeBackend>(&device());
    let mut with = |dtype| {
        let mut masked = bools(Shape::new([1, 1, 1, 11]));
        masked.dtype = DType::Bool(dtype);
        inputs.mask.masked = OptionalBool::Present(masked);
        supports(&inputs, &value, false)
    };
    assert!(with(BoolDType::U32));
    let elem = dtype_to_elem_type(DType::Bool(BoolDType::U8));
    let usage = device().client().properties().type_usage(elem);
    // WGSL has no type of 8 bits.
    assert!(usage.is_empty() || cfg!(any(feature = "vulkan", feature = "metal")));
    assert_eq!(with(BoolDType::U8), usage.contains(TypeUsage::Buffer));
}
