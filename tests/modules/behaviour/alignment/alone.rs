//! A sequence in a batch is what it is alone, with its gradients.

use burn::{module::Module, tensor::Tensor};
use burn_attn::{
    AttentionOutput, CrossAttentionInput, KvCacheConfig, MultiHeadAttentionInput, SelfAttention,
    SelfAttentionConfig, SelfAttentionInput,
};
use burn_attn_tests::{
    compare::{assert_close_to_largest, numbers},
    devices,
    numbers::filled,
    parameters,
};

use super::{
    LEN, LENGTHS, TOLERANCE, WIDTH, batch, cases, close, cross, encodings, key_lengths, multi_head,
    one,
};

/// The output of the first `len` queries of sequence `b` is that of `alone`, and so are the weights of its keys.
fn same(what: &str, output: &AttentionOutput, b: usize, alone: AttentionOutput) {
    let [_, heads, len_q, len_kv] = alone.weights.dims();
    let what = format!("{what}, sequence {b}");
    close(&what, one(&output.states, b, len_q), alone.states);
    let weights = output.weights.clone();
    let [_, _, _, all] = weights.dims();
    let of_keys = weights.slice([b..b + 1, 0..heads, 0..len_q, 0..all]);
    if all > len_kv {
        let padding = of_keys.clone().narrow(3, len_kv, all - len_kv);
        assert!(numbers(&padding).iter().all(|&weight| weight == 0.0));
    }
    close(&what, of_keys.narrow(3, 0, len_kv), alone.weights);
}

#[test]
fn multi_head_attention_reads_a_sequence_as_it_is_alone() {
    for (name, encoding, mask, device) in cases() {
        let module = multi_head(encoding, &device);
        let keys = batch(LEN, 2, &device);
        // Fewer queries than keys, as many, and more.
        for len_q in [3, LEN, 11] {
            let queries = batch(len_q, 1, &device);
            let input = || {
                MultiHeadAttentionInput::cross_attention(queries.clone(), keys.clone()).mask(mask())
            };
            let of_host = module.forward_with_weights(input().lengths(&LENGTHS));
            let of_device = module.forward_with_weights(input().mask(key_lengths(&device)));
            let both = input().lengths(&LENGTHS).mask(key_lengths(&device));
            let both = module.forward_with_weights(both);
            let forward = module.forward(input().lengths(&LENGTHS));
            close(&name, forward, of_host.states.clone());
            for (b, length) in LENGTHS.into_iter().enumerate() {
                // As many queries as keys are padded as the keys are.
                let own = if len_q == LEN { length } else { len_q };
                let (queries, keys) = (one(&queries, b, own), one(&keys, b, length));
                let input = MultiHeadAttentionInput::cross_attention(queries, keys).mask(mask());
                let alone = module.forward_with_weights(input);
                let what = format!("{name}, {len_q} queries");
                for output in [&of_host, &of_device, &both] {
                    same(&what, output, b, alone.clone());
                }
            }
        }
    }
}

#[test]
fn cross_attention_reads_a_sequence_as_it_is_alone() {
    for (name, encoding, mask, device) in cases() {
        let module = cross(encoding, &device);
        let (queries, memory) = (batch(5, 1, &device), batch(LEN, 2, &device));
        let projected = |b: usize| module.project_memory(one(&memory, b, LENGTHS[b]));
        let input = CrossAttentionInput::new(queries.clone(), memory.clone());
        let input = input.mask(mask()).mask(key_lengths(&device));
        let states = module.forward(input.clone());
        let output = module.forward_with_weights(input);
        close(&name, states, output.states.clone());
        // What was projected for each alone, padded with zeros.
        let joined = (0..LENGTHS.len()).map(projected).reduce(|a, b| a.join(b));
        let joined = CrossAttentionInput::new(queries.clone(), joined.expect("sequences"));
        let joined = joined.mask(mask()).mask(key_lengths(&device));
        let joined = module.forward_with_weights(joined);
        for b in 0..LENGTHS.len() {
            let alone = CrossAttentionInput::new(one(&queries, b, 5), projected(b)).mask(mask());
            let alone = module.forward_with_weights(alone);
            same(&name, &output, b, alone.clone());
            same(&name, &joined, b, alone);
        }
    }
}

#[test]
fn cross_attention_token_by_token_is_that_of_the_whole_target() {
    for (name, encoding, mask, device) in cases() {
        if name.contains("bottom-right") {
            // How long the target will be decides where its first token stands.
            continue;
        }
        let module = cross(encoding, &device);
        // Longer than the memory.
        let (target, memory) = (batch(11, 1, &device), batch(LEN, 2, &device));
        let projected = module.project_memory(memory);
        let input = |target| {
            CrossAttentionInput::new(target, projected.clone())
                .mask(mask())
                .mask(key_lengths(&device))
        };
        let whole = module.forward(input(target.clone()));
        for at in 0..11 {
            let token = module.forward(input(target.clone().narrow(1, at, 1)).offset(at));
            let expected = whole.clone().narrow(1, at, 1);
            close(&format!("{name}, token {at}"), token, expected);
        }
        // Each sequence goes on where it stopped: before, in and behind its memory.
        let starts = [1, 8, 6];
        let tokens = |b: usize| target.clone().narrow(0, b, 1).narrow(1, starts[b], 3);
        let three = Tensor::cat((0..3).map(tokens).collect(), 0);
        let three = module.forward_with_weights(input(three).offset(starts));
        for (b, start) in starts.into_iter().enumerate() {
            let expected = whole.clone().narrow(0, b, 1).narrow(1, start, 3);
            let what = format!("{name}, from {start} on");
            close(&what, one(&three.states, b, 3), expected);
        }
    }
}

#[test]
fn with_a_cache_a_sequence_is_what_it_is_alone() {
    for (backend, device) in devices::cpu() {
        for (encoding_name, encoding) in encodings() {
            let mut module = multi_head(encoding.clone(), &device);
            module.causal = true;
            let x = batch(LEN, 3, &device);
            let input = |x| MultiHeadAttentionInput::self_attention(x);
            let mut cache = module.cache(LENGTHS.len(), &KvCacheConfig::new(LEN + 3));
            let prompt = module.forward_cached(input(x.clone()).lengths(&LENGTHS), &mut cache);
            let next = batch(3, 4, &device);
            let tokens = (0..3).map(|at| {
                let token = next.clone().narrow(1, at, 1);
                module.forward_cached(input(token), &mut cache)
            });
            let tokens = Tensor::cat(tokens.collect(), 1);
            for (b, length) in LENGTHS.into_iter().enumerate() {
                let whole = Tensor::cat(vec![one(&x, b, length), one(&next, b, 3)], 1);
                let whole = module.forward(input(whole));
                let what = format!("{encoding_name}, {backend}, sequence {b}");
                let start = whole.clone().narrow(1, 0, length);
                close(&what, one(&prompt, b, length), start);
                close(&what, one(&tokens, b, 3), whole.narrow(1, length, 3));
            }
        }
    }
}

#[test]
fn self_attention_reads_a_sequence_as_it_is_alone() {
    for (name, encoding, mask, device) in cases() {
        let config = SelfAttentionConfig::new(WIDTH, 3).with_d_head(6);
        let config = config.with_position(encoding);
        let module: SelfAttention = filled(config.init(&device), 1);
        let x = batch(LEN, 3, &device);
        let input = |x| SelfAttentionInput::new(x).mask(mask());
        let outputs = [
            module.forward_with_weights(input(x.clone()).lengths(&LENGTHS)),
            module.forward_with_weights(input(x.clone()).mask(key_lengths(&device))),
        ];
        for (b, length) in LENGTHS.into_iter().enumerate() {
            let alone = module.forward_with_weights(input(one(&x, b, length)));
            for output in &outputs {
                same(&name, output, b, alone.clone());
            }
        }
    }
}

/// Both contexts of `module` give its parameters the same gradients.
fn same_gradients<M: Module>(what: &str, module: &M, [together, alone]: [Tensor<3>; 2]) {
    let upstream = batch(together.dims()[1], 5, &together.device());
    let of = |states: Tensor<3>| {
        let loss = (states * upstream.clone()).sum();
        parameters::gradients(module, &loss.backward())
    };
    let (actual, expected) = (of(together), of(alone));
    assert!(!expected.is_empty());
    assert!(actual.keys().eq(expected.keys()), "{what}");
    for (name, expected) in &expected {
        let what = format!("{what}: {name}");
        assert_close_to_largest(&what, &actual[name], expected, TOLERANCE, 1.0);
    }
}

#[test]
fn gradients_of_a_batch_are_the_sums_of_its_sequences() {
    for (name, encoding, mask, device) in cases() {
        let device = device.autodiff();
        let module = multi_head(encoding.clone(), &device);
        let (queries, keys) = (batch(3, 1, &device), batch(LEN, 2, &device));
        let input = |q: Tensor<3>, k| MultiHeadAttentionInput::cross_attention(q, k).mask(mask());
        let together = module.forward(input(queries.clone(), keys.clone()).lengths(&LENGTHS));
        let alone = LENGTHS
            .into_iter()
            .enumerate()
            .map(|(b, length)| module.forward(input(one(&queries, b, 3), one(&keys, b, length))));
        let alone = Tensor::cat(alone.collect(), 0);
        same_gradients(&name, &module, [together, alone]);

        let module = cross(encoding, &device);
        let input = |q: Tensor<3>| CrossAttentionInput::new(q, keys.clone()).mask(mask());
        // Near the keys and far from them.
        let offsets = [2, -1, 9];
        let together = module.forward(input(queries.clone()).offset(offsets));
        let alone = offsets.into_iter().enumerate().map(|(b, offset)| {
            let input = CrossAttentionInput::new(one(&queries, b, 3), one(&keys, b, LEN));
            module.forward(input.mask(mask()).offset(offset))
        });
        let alone = Tensor::cat(alone.collect(), 0);
        same_gradients(&name, &module, [together, alone]);
    }
}
