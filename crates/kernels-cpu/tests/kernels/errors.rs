//! Every input that is refused; the messages are pinned, because people read them.

use burn_attn_kernels_cpu::{
    BlockSize, Blocks, Broadcast, Options, Problem,
    tiled::{Execution, Gradients, Inputs, Rows, RowsMut, Upstream, backward, forward},
};

const PROBLEM: Problem = Problem {
    batch: 2,
    heads_q: 6,
    heads_kv: 3,
    len_q: 5,
    len_kv: 7,
    dim_qk: 11,
    dim_v: 13,
};

/// How a message quotes [`PROBLEM`].
const SIZES: &str =
    "Problem { batch: 2, heads_q: 6, heads_kv: 3, len_q: 5, len_kv: 7, dim_qk: 11, dim_v: 13 }";

/// Enough zeros for every buffer.
const ZEROS: [f32; 1000] = [0.0; 1000];

const EXECUTION: Execution = Execution {
    threads: 1,
    instructions: burn_attn_kernels_cpu::tiled::Instructions::Widest,
};

/// Plain inputs with changed options.
fn with(change: impl FnOnce(&mut Options<'static, f32>)) -> Inputs<'static, f32> {
    let mut inputs = inputs();
    change(&mut inputs.options);
    inputs
}

fn inputs() -> Inputs<'static, f32> {
    let query = &ZEROS[..PROBLEM.query_elements()];
    let key = &ZEROS[..PROBLEM.key_elements()];
    let value = &ZEROS[..PROBLEM.value_elements()];
    Inputs::new(PROBLEM, query, key, value)
}

/// Both passes refuse the inputs, before they look at anything else.
#[track_caller]
fn refused(inputs: &Inputs<'_, f32>, message: &str) {
    let output = RowsMut::contiguous(&mut [], 1, 0, 1);
    let error = forward(inputs, output, &mut [], EXECUTION).unwrap_err();
    assert_eq!(error.to_string(), message);
    let nothing = Rows::contiguous(&[], 1, 0, 1);
    let upstream = Upstream {
        output: nothing,
        logsumexp: &[],
        output_gradient: nothing,
        logsumexp_gradient: None,
    };
    let error = backward(inputs, &upstream, Gradients::default(), EXECUTION).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn impossible_sizes() {
    let problem = Problem {
        heads_kv: 4,
        ..PROBLEM
    };
    refused(
        &Inputs {
            problem,
            ..inputs()
        },
        "heads_kv must divide heads_q, but heads_q is 6 and heads_kv is 4",
    );
}

#[test]
fn tensors_that_are_too_short() {
    let short = &ZEROS[..100];
    let q = Rows::contiguous(short, 6, 5, 11);
    refused(
        &Inputs { q, ..inputs() },
        &format!("q needs 660 elements for {SIZES}, but has 100"),
    );
    let k = Rows::contiguous(short, 3, 7, 11);
    refused(
        &Inputs { k, ..inputs() },
        &format!("k needs 462 elements for {SIZES}, but has 100"),
    );
    // Only the last element that the strides reach counts: 99 + 2 · 13 + 6 · 2 + 13.
    let v = Rows::new(short, [99, 13, 2]);
    refused(
        &Inputs { v, ..inputs() },
        &format!("v needs 150 elements for {SIZES}, but has 100"),
    );
    let sinks = Some(&ZEROS[..7]);
    refused(
        &with(|options| options.sinks = sinks),
        &format!("sinks needs 6 elements for {SIZES}, but has 7"),
    );
    let distance_bias = Some(&ZEROS[..65]);
    refused(
        &Inputs {
            distance_bias,
            ..inputs()
        },
        &format!("distance_bias needs 66 elements for {SIZES}, but has 65"),
    );
}

/// Lengths that are small only if they wrap around; `usize::MAX` stands for larger ones.
#[cfg(target_pointer_width = "64")]
#[test]
fn strides_and_sizes_that_wrap_around() {
    let problem = |len_q, len_kv| Problem {
        batch: 1,
        heads_q: 1,
        heads_kv: 1,
        len_q,
        len_kv,
        dim_qk: 1,
        dim_v: 16,
    };
    // The last of nine rows of `v` would begin at 2^64.
    let v = Rows::new(&ZEROS[..16], [0, 0, 1 << 61]);
    let decode = Inputs::new(problem(1, 9), &ZEROS[..1], &ZEROS[..9], &ZEROS[..16]);
    refused(
        &Inputs { v, ..decode },
        "v needs 18446744073709551615 elements for Problem { batch: 1, heads_q: 1, heads_kv: 1, len_q: 1, len_kv: 9, \
         dim_qk: 1, dim_v: 16 }, but has 16",
    );
    // Rows that repeat, because no buffer is that long.
    let repeated = |len_q, len_kv| {
        let row = Rows::new(&ZEROS[..16], [0; 3]);
        Inputs {
            q: row,
            k: row,
            v: row,
            ..Inputs::new(problem(len_q, len_kv), &[], &[], &[])
        }
    };
    refused(
        &repeated(1, 1 << 60),
        "the value of Problem { batch: 1, heads_q: 1, heads_kv: 1, len_q: 1, len_kv: 1152921504606846976, dim_qk: 1, \
         dim_v: 16 } has more elements than memory can hold",
    );
    let bias = Broadcast::new(&[] as &[f32], [1, 1, 1 << 32, 1 << 32]);
    assert_eq!(
        bias.unwrap_err().to_string(),
        "a broadcast operand of shape [1, 1, 4294967296, 4294967296] needs 18446744073709551615 elements, but has 0"
    );
    let bias = Broadcast::strided(&ZEROS[..1], [2, 1, 1, 1], [usize::MAX, 0, 0, 0]);
    assert_eq!(
        bias.unwrap_err().to_string(),
        "a broadcast operand of shape [2, 1, 1, 1] with strides [18446744073709551615, 0, 0, 0] needs 18446744073709551615 \
         elements, but has 1"
    );
}

#[test]
fn masks_and_biases_that_do_not_fit() {
    // With query offsets, the axis of distances has 2 · (5 + 7) − 1 entries for each head.
    let distance_bias = Some(&ZEROS[..66]);
    refused(
        &Inputs {
            distance_bias,
            ..with(|options| options.mask.query_offsets = Some(&[0, 0]))
        },
        &format!("distance_bias needs 138 elements for {SIZES}, but has 66"),
    );
    let blocks = |shape: [usize; 4], size| {
        const TABLE: &[bool] = &[true; 12];
        let visible = Broadcast::new(&TABLE[..shape.iter().product()], shape).unwrap();
        with(|options| options.mask.blocks = Some(Blocks { visible, size }))
    };
    refused(
        &blocks([1; 4], BlockSize::from([3, 0])),
        "a block needs at least 1 query and 1 key, but has 3 and 0",
    );
    refused(
        &blocks([1, 1, 4, 3], BlockSize::from([2, 3])),
        "a table of shape [1, 1, 4, 3] does not broadcast to [2, 6, 3, 3], the [batch, heads_q, rows, columns] of blocks of \
         2 queries and 3 keys",
    );
    let swapped = Broadcast::new(&ZEROS[..35], [1, 1, 7, 5]).unwrap();
    refused(
        &with(|options| options.bias = Some(swapped)),
        "the bias does not fit: shape [1, 1, 7, 5] does not broadcast to [batch, heads_q, len_q, len_kv] = [2, 6, 5, 7]",
    );
}

#[test]
fn results_that_do_not_fit() {
    let inputs = inputs();
    for ([output, logsumexp], message) in [
        (
            [779, 60],
            format!("output needs 780 elements for {SIZES}, but has 779"),
        ),
        (
            [780, 61],
            format!("logsumexp needs 60 elements for {SIZES}, but has 61"),
        ),
    ] {
        let mut buffers = [vec![0.0; output], vec![0.0; logsumexp]];
        let [output, logsumexp] = &mut buffers;
        let output = RowsMut::contiguous(output, 6, 5, 13);
        let error = forward(&inputs, output, logsumexp, EXECUTION).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn rows_that_overlap_are_not_written() {
    let (mut output, mut logsumexp) = (vec![0.0; 2000], vec![0.0; 60]);
    let mut run = |strides| {
        let output = RowsMut::new(&mut output, strides);
        forward(&inputs(), output, &mut logsumexp, EXECUTION)
    };
    for fits in [[390, 65, 13], [13, 130, 26], [390, 13, 78], [999, 66, 13]] {
        assert_eq!(run(fits), Ok(()), "{fits:?}");
    }
    let too_far = usize::MAX / 2 + 1;
    for overlaps in [
        [0, 65, 13],
        [390, 65, 12],
        [390, 64, 13],
        [390, 13, 65],
        [389, 65, 13],
    ] {
        let message =
            format!("the rows of the output overlap with strides {overlaps:?} for {SIZES}");
        assert_eq!(run(overlaps).unwrap_err().to_string(), message);
    }
    for leaves in [[too_far, 65, 13], [390, 65, too_far], [1611, 65, 13]] {
        assert!(run(leaves).is_err(), "{leaves:?}");
    }
}

#[test]
fn upstream_that_does_not_fit() {
    let inputs = inputs();
    let rows = |len: usize| Rows::contiguous(&ZEROS[..len], 6, 5, 13);
    let upstream = |output, output_gradient, logsumexp, of_logsumexp: Option<usize>| Upstream {
        output: rows(output),
        output_gradient: rows(output_gradient),
        logsumexp: &ZEROS[..logsumexp],
        logsumexp_gradient: of_logsumexp.map(|len| &ZEROS[..len]),
    };
    for (upstream, message) in [
        (
            upstream(779, 780, 60, None),
            "output needs 780 elements for {SIZES}, but has 779",
        ),
        (
            upstream(780, 779, 60, None),
            "gradient of the output needs 780 elements for {SIZES}, but has 779",
        ),
        (
            upstream(780, 780, 59, None),
            "logsumexp needs 60 elements for {SIZES}, but has 59",
        ),
        (
            upstream(780, 780, 60, Some(61)),
            "gradient of the logsumexp needs 60 elements for {SIZES}, but has 61",
        ),
    ] {
        let error = backward(&inputs, &upstream, Gradients::default(), EXECUTION);
        assert_eq!(
            error.unwrap_err().to_string(),
            message.replace("{SIZES}", SIZES)
        );
    }
}

#[test]
fn gradients_that_do_not_fit() {
    let plain = inputs();
    let biased = Inputs {
        distance_bias: Some(&ZEROS[..66]),
        ..with(|options| {
            options.bias = Some(Broadcast::new(&ZEROS[..7], [1, 1, 1, 7]).unwrap());
            options.sinks = Some(&ZEROS[..6]);
        })
    };
    let upstream = Upstream {
        output: Rows::contiguous(&ZEROS[..780], 6, 5, 13),
        output_gradient: Rows::contiguous(&ZEROS[..780], 6, 5, 13),
        logsumexp: &ZEROS[..60],
        logsumexp_gradient: None,
    };
    let refused = |inputs: &Inputs<'_, f32>, gradients: Gradients<'_, f32>, name: &str, needed| {
        let message = format!("gradient of {name} needs {needed} elements for {SIZES}, but has 5");
        let error = backward(inputs, &upstream, gradients, EXECUTION).unwrap_err();
        assert_eq!(error.to_string(), message);
    };
    let (none, mut few) = (Gradients::default, [0.0; 5]);
    let q = Some(RowsMut::contiguous(&mut few, 6, 5, 11));
    refused(&biased, Gradients { q, ..none() }, "q", 660);
    let k = Some(RowsMut::contiguous(&mut few, 3, 7, 11));
    refused(&biased, Gradients { k, ..none() }, "k", 462);
    let v = Some(RowsMut::contiguous(&mut few, 3, 7, 13));
    refused(&biased, Gradients { v, ..none() }, "v", 546);
    let bias = Some(few.as_mut_slice());
    refused(&biased, Gradients { bias, ..none() }, "the bias", 7);
    let of_distances = Gradients {
        distance_bias: Some(&mut few),
        ..none()
    };
    refused(&biased, of_distances, "the distance bias", 66);
    // The gradient of an absent option needs no elements.
    for (inputs, needed) in [(&biased, 6), (&plain, 0)] {
        let sinks = Some(few.as_mut_slice());
        refused(inputs, Gradients { sinks, ..none() }, "the sinks", needed);
    }

    // An empty gradient of an absent option is legal, and nothing is written.
    let nothing = Gradients {
        distance_bias: Some(&mut []),
        sinks: Some(&mut []),
        ..none()
    };
    let done = backward(&plain, &upstream, nothing, EXECUTION);
    assert_eq!(done, Ok(()));
}
