//! Rows of different lengths end at different times, and none knows of the others.

use burn_attn_models::generate::{
    Autoregressive, FinishReason, GenerateOptions, GeneratedToken, Generation, Sampling, stream,
};

use super::{Scripted, arbitrary, clock, prompts};

fn sampled(max_new_tokens: usize) -> GenerateOptions {
    GenerateOptions::new(max_new_tokens)
        .sampling(Sampling::temperature(1.3))
        .stop_tokens([4, 0])
        .repetition_penalty(1.1)
        .seed(9)
}

#[test]
fn greedy_follows_the_largest_logit() {
    let outputs = Scripted::new(clock).generate(&prompts(), &GenerateOptions::new(4));
    let tokens: Vec<_> = outputs.iter().map(|output| &output.tokens).collect();
    assert_eq!(
        tokens,
        [&[4, 5, 6, 0], &[3, 4, 5, 6], &[5, 6, 0, 1], &[4, 5, 6, 0]]
    );
    let expected = 5.0 - (5.0f64.exp() + 6.0).ln();
    for output in outputs {
        assert_eq!(output.finish_reason, FinishReason::Length);
        for log_probability in output.log_probabilities {
            assert!((log_probability - expected).abs() < 1e-12);
        }
    }
}

#[test]
fn several_stop_tokens_end_rows_one_by_one() {
    let model = Scripted::new(clock);
    let options = GenerateOptions::new(5).stop_tokens([6, 4]);
    let prompts = [vec![3], vec![0, 1], vec![4], vec![6]];
    let outputs = model.generate(&prompts, &options);
    let ended = |tokens: &[u32], finish| (tokens.to_vec(), finish);
    let actual: Vec<_> = outputs
        .iter()
        .map(|output| (output.tokens.clone(), output.finish_reason))
        .collect();
    assert_eq!(
        actual,
        [
            ended(&[], FinishReason::Stop(4)),
            ended(&[2, 3], FinishReason::Stop(4)),
            ended(&[5], FinishReason::Stop(6)),
            ended(&[0, 1, 2, 3], FinishReason::Stop(4)),
        ]
    );
    // The probability of the stop token counts.
    for output in &outputs {
        assert_eq!(output.log_probabilities.len(), output.tokens.len() + 1);
        let sum: f64 = output.log_probabilities.iter().sum();
        assert_eq!(output.log_probability(), sum);
    }
    // Rows that have ended cost nothing more.
    assert_eq!(*model.steps.borrow(), [4, 3, 2, 1, 1]);
}

#[test]
fn a_row_does_not_depend_on_its_batch() {
    let model = Scripted::new(arbitrary(1, 2.0));
    let options = sampled(23);
    let expected = model.generate(&prompts(), &options);
    let lengths: Vec<usize> = expected.iter().map(|output| output.tokens.len()).collect();
    println!("lengths {lengths:?}");
    assert!(lengths.iter().any(|&length| length != lengths[0]));
    for (index, prompt) in prompts().iter().enumerate() {
        // The same place in other company.
        let mut others = vec![vec![1, 5, 5]; index + 3];
        others[index].clone_from(prompt);
        assert_eq!(model.generate(&others, &options)[index], expected[index]);
    }
    assert_eq!(model.generate(&prompts()[..1], &options)[0], expected[0]);
}

#[test]
fn a_seed_repeats_and_another_does_not() {
    let model = Scripted::new(arbitrary(1, 1.0));
    let run = |seed| {
        let options = GenerateOptions::new(23)
            .sampling(Sampling::temperature(1.0))
            .seed(seed);
        model.generate(&[vec![3], vec![3]], &options)
    };
    let first = run(7);
    assert_eq!(run(7), first);
    assert_ne!(run(8), first);
    assert_ne!(run(7 + (1 << 40)), first);
    // Rows with the same prompt are different samples.
    assert_ne!(first[0].tokens, first[1].tokens);
}

#[test]
fn a_seed_means_the_same_for_ever() {
    let model = Scripted::new(|_: &[u32]| vec![0.0; 7]);
    let options = GenerateOptions::new(12)
        .sampling(Sampling::temperature(1.0))
        .seed(7);
    let outputs = model.generate(&[vec![3], vec![3]], &options);
    assert_eq!(outputs[0].tokens, [5, 3, 0, 2, 2, 2, 2, 1, 4, 6, 4, 4]);
    assert_eq!(outputs[1].tokens, [6, 1, 6, 5, 5, 3, 4, 2, 6, 0, 6, 0]);
}

#[test]
fn streaming_is_generating() {
    let model = Scripted::new(arbitrary(1, 2.0));
    for options in [sampled(23), GenerateOptions::new(5).stop_tokens([1, 2])] {
        let mut streamed = vec![Generation::default(); prompts().len()];
        let mut live: Vec<usize> = (0..prompts().len()).collect();
        for step in stream(&model, model.start(&prompts()), &prompts(), &options).unwrap() {
            let step = step.unwrap();
            // Every row that is live, in order.
            let rows: Vec<usize> = step.iter().map(|choice| choice.row).collect();
            assert_eq!(rows, live);
            for GeneratedToken {
                row,
                token,
                log_probability,
                finish_reason,
            } in step
            {
                let output = &mut streamed[row];
                output.log_probabilities.push(log_probability);
                if let Some(finish_reason) = finish_reason {
                    output.finish_reason = finish_reason;
                    live.retain(|&other| other != row);
                }
                match finish_reason {
                    Some(FinishReason::Stop(stop)) => assert_eq!(stop, token),
                    _ => output.tokens.push(token),
                }
            }
        }
        assert_eq!(live, [0; 0]);
        assert_eq!(streamed, model.generate(&prompts(), &options));
    }
}

#[test]
fn dropping_a_stream_stops_the_work() {
    let model = Scripted::new(clock);
    let options = GenerateOptions::new(9);
    let mut steps = stream(&model, model.start(&prompts()), &prompts(), &options).unwrap();
    assert_eq!(model.steps.borrow().len(), 0);
    steps.next().unwrap().unwrap();
    steps.next().unwrap().unwrap();
    drop(steps);
    assert_eq!(model.steps.borrow().len(), 2);
}

#[test]
fn a_stream_that_ended_stays_ended() {
    let model = Scripted::new(clock);
    let mut steps = stream(&model, vec![vec![]], &[vec![3]], &GenerateOptions::new(1)).unwrap();
    assert_eq!(steps.next().unwrap().unwrap().len(), 1);
    assert_eq!((steps.next(), steps.next()), (None, None));
}

#[test]
fn a_row_ends_where_the_model_does() {
    let model = Scripted::new(clock).with_max_len(6);
    let outputs = model.generate(&prompts(), &GenerateOptions::new(4));
    let lengths: Vec<usize> = outputs.iter().map(|output| output.tokens.len()).collect();
    // The last token is never read: a prompt of five leaves room for two.
    assert_eq!(lengths, [4, 4, 4, 2]);
    assert!(
        outputs
            .iter()
            .all(|output| output.finish_reason == FinishReason::Length)
    );
    // A prompt as long as the model holds still has one token after it, which may be the end.
    let full = [vec![1, 2, 3, 4, 5, 6]];
    let options = GenerateOptions::new(4).stop_tokens([0]);
    assert_eq!(
        model.generate(&full, &options)[0].finish_reason,
        FinishReason::Stop(0)
    );
}

#[test]
fn nothing_is_asked_for() {
    let model = Scripted::new(clock);
    let nothing = vec![Generation::default(); 4];
    assert_eq!(
        model.generate(&prompts(), &GenerateOptions::new(0)),
        nothing
    );
    assert_eq!(model.generate(&[], &GenerateOptions::new(9)), []);
    assert_eq!(model.steps.borrow().len(), 0);
}

#[test]
fn prompts_share_what_was_read_once() {
    let model = Scripted::new(arbitrary(2, 2.0)).with_max_len(11);
    let start = [5, 1, 2];
    let mut state = vec![Vec::new()];
    model.advance(&mut state, &[&start]);
    model.reorder(&mut state, &[0; 3]);
    let ends = [vec![4], vec![0, 1], vec![3]];
    let whole = ends.clone().map(|end| [start.as_slice(), &end].concat());
    let options = GenerateOptions::new(9);
    let expected = model.generate(&whole, &options);
    let actual = burn_attn_models::generate::generate(&model, state, &ends, &options).unwrap();
    assert_eq!(actual, expected);
    assert_eq!(actual[1].tokens.len(), 11 - 5 + 1);
}

#[test]
fn rows_that_join_have_the_tokens_of_rows_that_were_there_from_the_start() {
    let model = Scripted::new(arbitrary(1, 2.0));
    let (options, prompts) = (sampled(9), prompts());
    let expected = model.generate(&prompts, &options);
    // Early, in the middle, when some have ended, and after the end of all.
    for steps in [0, 1, 4, 100] {
        let mut tokens = vec![Vec::new(); prompts.len()];
        let mut keep = |choices: Vec<GeneratedToken>| {
            for choice in choices {
                if !matches!(choice.finish_reason, Some(FinishReason::Stop(_))) {
                    tokens[choice.row].push(choice.token);
                }
            }
        };
        let (first, second) = prompts.split_at(2);
        let mut running = stream(&model, model.start(first), first, &options).unwrap();
        let steps_before = running.by_ref().take(steps).map(Result::unwrap);
        steps_before.for_each(&mut keep);
        let choices = running.join(model.start(second), second).unwrap();
        let rows: Vec<usize> = choices.iter().map(|choice| choice.row).collect();
        assert_eq!(rows, [2, 3]);
        keep(choices);
        running.map(Result::unwrap).for_each(&mut keep);
        for (tokens, expected) in tokens.iter().zip(&expected) {
            assert_eq!(tokens, &expected.tokens, "joined after {steps} steps");
        }
    }
}

#[test]
fn joining_no_rows_changes_nothing() {
    let model = Scripted::new(clock);
    let mut running = stream(&model, vec![vec![]], &[vec![3]], &GenerateOptions::new(2)).unwrap();
    assert_eq!(running.join(Vec::new(), &[]), Ok(vec![]));
    assert_eq!(running.count(), 2);
    let mut nothing = stream(&model, Vec::new(), &[], &GenerateOptions::new(0)).unwrap();
    assert_eq!(nothing.join(vec![vec![]], &[vec![3]]), Ok(vec![]));
    assert_eq!(nothing.next(), None);
}
