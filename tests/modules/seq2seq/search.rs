//! Greedy and beam search, against the model's own probabilities.

use burn::tensor::{Device, Int, Tensor, TensorData, activation::log_softmax};
use burn_attn_models::{
    generate::{
        Autoregressive, BeamOptions, FinishReason, GenerateOptions, Generation, Sampling, generate,
        stream,
    },
    seq2seq::Seq2Seq,
};
use burn_attn_tests::{
    compare::{assert_close, numbers},
    devices,
};

use super::{BOS, EOS, LIMIT, VOCABULARY, batch, model, options, search, sources};

fn best(
    model: &Seq2Seq,
    sources: &[Vec<i32>],
    options: &BeamOptions,
    device: &Device,
) -> Vec<Generation> {
    let (tokens, lengths) = batch(sources, 0, 5, device);
    search(model, tokens, &lengths, options)
}

/// Log-probabilities of the next token after each prefix of `target`, row after row, for one source.
fn log_probabilities(
    model: &Seq2Seq,
    source: &[i32],
    target: &[i32],
    device: &Device,
) -> Vec<Vec<f32>> {
    let (tokens, lengths) = batch(&[source.to_vec()], 0, source.len(), device);
    let memory = model.encode(tokens, &lengths);
    let target = TensorData::new(target.to_vec(), [1, target.len()]);
    let logits = model.decode(Tensor::<2, Int>::from_data(target, device), &memory);
    let rows = numbers(&log_softmax(logits, 2));
    rows.chunks(VOCABULARY).map(<[f32]>::to_vec).collect()
}

/// The log-probability of `generation` from one run of the decoder over all of it.
fn log_probability(model: &Seq2Seq, source: &[i32], generation: &Generation) -> f64 {
    let device = devices::any();
    let mut target = vec![BOS as i32];
    target.extend(generation.tokens.iter().map(|&token| token as i32));
    let rows = log_probabilities(model, source, &target, &device);
    let mut next = target[1..].to_vec();
    // An output cut off at the limit has no end whose probability counts.
    if let FinishReason::Stop(token) = generation.finish_reason {
        next.push(token as i32);
    }
    let of_tokens = next.iter().zip(&rows);
    of_tokens
        .map(|(&token, row)| f64::from(row[token as usize]))
        .sum()
}

/// The most probable token, one after the other.
fn greedy_by_hand(model: &Seq2Seq, source: &[i32], eos: u32, device: &Device) -> Vec<u32> {
    let mut target = vec![BOS as i32];
    while target.len() <= LIMIT {
        let rows = log_probabilities(model, source, &target, device);
        let last = rows.last().expect("a row for the last token");
        let best = (0..VOCABULARY).reduce(|best, token| {
            if last[token] > last[best] {
                token
            } else {
                best
            }
        });
        let best = best.expect("a vocabulary") as i32;
        if best == eos as i32 {
            break;
        }
        target.push(best);
    }
    target[1..].iter().map(|&token| token as u32).collect()
}

/// Runs `check` with every token as the end: some outputs stop at once, some late and some never.
fn with_every_end(check: impl Fn(&Seq2Seq, u32)) {
    let device = devices::any();
    for seed in 1..4 {
        let model = model(seed, &device);
        for eos in 1..VOCABULARY as u32 {
            check(&model, eos);
        }
    }
}

#[test]
fn a_beam_of_one_is_greedy() {
    let device = devices::any();
    with_every_end(|model, eos| {
        let narrow = best(model, &sources(), &options(1).stop_tokens([eos]), &device);
        let (tokens, lengths) = batch(&sources(), 0, 5, &device);
        let prompts = vec![vec![BOS]; sources().len()];
        let greedy = GenerateOptions::new(LIMIT).stop_tokens([eos]);
        let greedy = generate(model, model.start(tokens, &lengths), &prompts, &greedy).unwrap();
        for (narrow, greedy) in narrow.iter().zip(&greedy) {
            assert_eq!(
                (&narrow.tokens, narrow.finish_reason),
                (&greedy.tokens, greedy.finish_reason)
            );
            assert!((narrow.log_probability() - greedy.log_probability()).abs() < 1e-5);
        }
        for (source, greedy) in sources().iter().zip(greedy) {
            assert_eq!(greedy.tokens, greedy_by_hand(model, source, eos, &device));
        }
    });
}

#[test]
fn the_log_probability_is_the_models() {
    let device = devices::any();
    for beam in [1, 2, 4, VOCABULARY] {
        with_every_end(|model, eos| {
            let options = options(beam).stop_tokens([eos]);
            let generations = best(model, &sources(), &options, &device);
            for (source, generation) in sources().iter().zip(generations) {
                let expected = log_probability(model, source, &generation);
                assert!(
                    (generation.log_probability() - expected).abs() < 1e-4,
                    "{options:?}: {generation:?} against {expected}"
                );
            }
        });
    }
}

#[test]
fn padding_changes_nothing() {
    for (_, device) in devices::cpu() {
        let model = model(1, &device);
        for beam in [1, 4] {
            let run = |padding, len| {
                let (tokens, lengths) = batch(&sources(), padding, len, &device);
                search(&model, tokens, &lengths, &options(beam))
            };
            let expected = run(0, 5);
            // The same shape with other padding gives the same bits.
            assert_eq!(run(12, 5), expected);
            for (longer, expected) in run(3, 9).iter().zip(&expected) {
                assert_eq!(longer.tokens, expected.tokens);
                assert!((longer.log_probability() - expected.log_probability()).abs() < 1e-5);
            }
        }
    }
}

/// Targets of different lengths that start as they like.
fn prompts() -> Vec<Vec<u32>> {
    vec![vec![BOS, 6, 2], vec![BOS], vec![BOS, 11, 3, 9, 9]]
}

#[test]
fn prompts_of_different_lengths_do_not_see_each_other() {
    for (_, device) in devices::cpu() {
        let model = model(2, &device);
        let sampled = GenerateOptions::new(LIMIT)
            .stop_tokens([EOS, 2])
            .sampling(Sampling::temperature(1.5).top_p(0.9))
            .seed(5);
        for options in [GenerateOptions::new(LIMIT).stop_tokens([EOS, 2]), sampled] {
            let (tokens, lengths) = batch(&sources(), 0, 5, &device);
            let expected =
                generate(&model, model.start(tokens, &lengths), &prompts(), &options).unwrap();
            for index in 0..3 {
                // The same row, next to copies of itself: rows before it keep their streams.
                let source = sources()[index].clone();
                let (tokens, lengths) = batch(&vec![source; index + 1], 0, 5, &device);
                let alone = vec![prompts()[index].clone(); index + 1];
                let alone =
                    generate(&model, model.start(tokens, &lengths), &alone, &options).unwrap();
                assert_eq!(alone[index].tokens, expected[index].tokens);
                let error = alone[index].log_probability() - expected[index].log_probability();
                assert!(error.abs() < 1e-5);
            }
        }
    }
}

#[test]
fn a_step_gives_the_logits_of_the_whole_decoder() {
    for (name, device) in devices::cpu() {
        let model = model(3, &device);
        let (tokens, lengths) = batch(&sources(), 0, 5, &device);
        let mut state = model.start(tokens, &lengths);
        let prompts = prompts();
        let rows: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        model.advance(&mut state, &rows);
        // Row 0 comes twice, row 1 is gone.
        model.reorder(&mut state, &[2, 0, 0]);
        let logits = model.advance(&mut state, &[&[7], &[4, 8], &[5]]);
        assert_eq!(model.lengths(&state), [6, 5, 4]);
        let targets: [&[i32]; 3] = [&[0, 11, 3, 9, 9, 7], &[0, 6, 2, 4, 8], &[0, 6, 2, 5]];
        for (row, (target, source)) in targets.into_iter().zip([2, 0, 0]).enumerate() {
            let (tokens, lengths) = batch(&[sources()[source].clone()], 0, 5, &device);
            let memory = model.encode(tokens, &lengths);
            let data = TensorData::new(target.to_vec(), [1, target.len()]);
            let expected = model.decode(Tensor::from_data(data, &device), &memory);
            let expected = expected.slice([0..1, target.len() - 1..target.len()]);
            let expected = expected.reshape([1, VOCABULARY]).into_data();
            let actual = logits.clone().narrow(0, row, 1).into_data();
            assert_close(name, &actual, &expected, 1e-5);
        }
    }
}

#[test]
fn padding_needs_no_positions() {
    for (name, device) in devices::cpu() {
        let model = model(3, &device);
        let (tokens, lengths) = batch(&sources(), 0, 5, &device);
        let targets: [&[u32]; 3] = [
            &[0, 6, 2, 9, 4, 7, 11, 3, 5, 8, 12],
            &[0, 7, 3, 11, 5],
            &[0, 4, 9, 2, 6, 10, 8],
        ];
        let mut state = model.start(tokens.clone(), &lengths);
        model.advance(
            &mut state,
            &[&targets[0][..10], &targets[1][..1], &targets[2][..5]],
        );
        // The padding behind the first row would stand on positions up to 13, and the model has 11.
        let new = [&targets[0][10..], &targets[1][1..], &targets[2][5..]];
        let logits = model.advance(&mut state, &new);
        let memory = model.encode(tokens, &lengths);
        for (row, target) in targets.into_iter().enumerate() {
            let data: Vec<i32> = target.iter().map(|&token| token as i32).collect();
            let data = TensorData::new(data, [1, target.len()]);
            let expected = model.decode(Tensor::from_data(data, &device), &memory.select(&[row]));
            let expected = expected.narrow(1, target.len() - 1, 1);
            let expected = expected.reshape([1, VOCABULARY]).into_data();
            let actual = logits.clone().narrow(0, row, 1).into_data();
            assert_close(&format!("{name}, row {row}"), &actual, &expected, 1e-5);
        }
    }
}

#[test]
fn rows_that_join_read_their_own_source() {
    for (_, device) in devices::cpu() {
        let model = model(1, &device);
        let options = GenerateOptions::new(LIMIT).stop_tokens([EOS]);
        let start = |sources: &[Vec<i32>]| {
            let longest = sources.iter().map(Vec::len).max().expect("a source");
            let (tokens, lengths) = batch(sources, 0, longest, &device);
            model.start(tokens, &lengths)
        };
        let expected = generate(&model, start(&sources()), &prompts(), &options).unwrap();
        for split in [1, 2] {
            let (mut running_sources, mut running_prompts) = (sources(), prompts());
            let sources = running_sources.split_off(split);
            let prompts = running_prompts.split_off(split);
            let mut running =
                stream(&model, start(&running_sources), &running_prompts, &options).unwrap();
            let mut choices = running.next().expect("a step").unwrap();
            choices.extend(running.join(start(&sources), &prompts).unwrap());
            choices.extend(running.flat_map(Result::unwrap));
            for (row, expected) in expected.iter().enumerate() {
                let own = choices.iter().filter(|choice| choice.row == row);
                let own = own
                    .filter(|choice| !matches!(choice.finish_reason, Some(FinishReason::Stop(_))));
                let tokens: Vec<u32> = own.map(|choice| choice.token).collect();
                assert_eq!(tokens, expected.tokens, "row {row}, {split} before");
            }
        }
    }
}
