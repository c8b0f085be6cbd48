//! A conversation goes on from the state that the last turn gave back.

use std::cell::RefCell;

use burn_attn_models::generate::{GenerateError, GenerateOptions, Unfinished, generate, stream};

use super::{Scripted, arbitrary, clock, prompts};

#[test]
fn a_second_turn_reads_nothing_again() {
    let model = Scripted::new(arbitrary(7, 3.0));
    let options = GenerateOptions::new(5);
    let mut turn = stream(&model, model.start(&prompts()), &prompts(), &options).unwrap();
    let mut histories = prompts();
    for choice in turn.by_ref().flat_map(Result::unwrap) {
        histories[choice.row].push(choice.token);
    }
    let (state, rest) = turn.into_state();
    // All rows ended in the last step, so all are there, and each has its last token to read.
    assert_eq!(state.len(), 4);
    let mut second = Vec::new();
    for (row, (history, rest)) in histories.iter_mut().zip(rest).enumerate() {
        assert_eq!(rest.row, row);
        assert_eq!(rest.unread, history[history.len() - 1..]);
        let said = [1, row as u32];
        history.extend(said);
        second.push([&rest.unread[..], &said].concat());
    }
    let went_on = generate(&model, state, &second, &options).unwrap();
    assert_eq!(went_on, model.generate(&histories, &options));
}

#[test]
fn a_row_that_ended_before_another_is_gone() {
    let model = Scripted::new(clock);
    // Row 0 stops after 5, 6; row 1 has two steps more.
    let options = GenerateOptions::new(4).stop_tokens([6]);
    let mut turn = stream(&model, vec![vec![]; 2], &[vec![4], vec![6]], &options).unwrap();
    assert_eq!(turn.by_ref().count(), 4);
    let (state, rest) = turn.into_state();
    assert_eq!(state, [[6, 0, 1, 2]]);
    let unread = vec![3];
    assert_eq!(rest, [Unfinished { row: 1, unread }]);
}

#[test]
fn a_turn_that_has_not_begun_gives_its_prompts_back() {
    let model = Scripted::new(clock);
    let state = model.start(&prompts());
    let (state, rest) = stream(&model, state, &prompts(), &GenerateOptions::new(5))
        .unwrap()
        .into_state();
    assert_eq!(state, vec![Vec::<u32>::new(); 4]);
    let unread: Vec<Vec<u32>> = rest.into_iter().map(|row| row.unread).collect();
    assert_eq!(unread, prompts());
}

#[test]
fn rows_that_cannot_join_disturb_nobody() {
    let model = Scripted::new(clock);
    let mut running = stream(&model, vec![vec![]], &[vec![2]], &GenerateOptions::new(3)).unwrap();
    running.next().unwrap().unwrap();
    let refused = running.join(vec![vec![]], &[vec![9]]).unwrap_err();
    let token = GenerateError::Token {
        token: 9,
        row: 0,
        vocab_size: 7,
    };
    assert_eq!(refused, token);
    // Rows that can are numbered as if it had not asked.
    let joined = running.join(vec![vec![]], &[vec![5]]).unwrap();
    assert_eq!((joined[0].row, joined[0].token), (1, 6));
    let tokens: Vec<(usize, u32)> = running
        .flat_map(Result::unwrap)
        .map(|choice| (choice.row, choice.token))
        .collect();
    assert_eq!(tokens, [(0, 4), (1, 0), (0, 5), (1, 1)]);
}

#[test]
fn a_stream_whose_rows_have_all_ended_takes_others() {
    let model = Scripted::new(clock);
    let options = GenerateOptions::new(2);
    let mut running = stream(&model, vec![vec![]], &[vec![2]], &options).unwrap();
    assert_eq!(running.by_ref().count(), 2);
    assert_eq!(running.next(), None);
    let first = running.join(vec![vec![]], &[vec![5]]).unwrap();
    assert_eq!(first[0].token, 6);
    let steps = running.flat_map(Result::unwrap);
    let tokens: Vec<u32> = steps.map(|choice| choice.token).collect();
    assert_eq!(tokens, [0]);
}

/// The state may have read what the failed step would have continued.
#[test]
fn a_stream_that_failed_takes_only_others() {
    let broken = RefCell::new(false);
    let model = Scripted::new(|tokens: &[u32]| match *broken.borrow() {
        true => vec![f32::NAN; 7],
        false => clock(tokens),
    });
    let options = GenerateOptions::new(3);
    let mut running = stream(&model, vec![vec![]], &[vec![2]], &options).unwrap();
    running.next().unwrap().unwrap();
    *broken.borrow_mut() = true;
    assert!(running.next().unwrap().is_err());
    *broken.borrow_mut() = false;
    assert_eq!(running.next(), None);
    let first = running.join(vec![vec![]], &[vec![5]]).unwrap();
    assert_eq!((first[0].row, first[0].token), (1, 6));
    let steps = running.flat_map(Result::unwrap);
    let tokens: Vec<(usize, u32)> = steps.map(|chosen| (chosen.row, chosen.token)).collect();
    assert_eq!(tokens, [(1, 0), (1, 1)]);
}
