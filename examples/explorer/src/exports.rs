//! What the page calls: bytes in, JSON and numbers out, in this module's memory.
//!
//! `allocate(length)` gives the place for bytes; `load` and `run` take them as a model file and as a request, and return whether that
//! succeeded. Then `text` is the answer or one sentence about what is wrong, and `numbers` are the tensors. A panic ends the module; before that, it
//! leaves its sentence as `text`.
#![allow(
    unsafe_code,
    reason = "symbols without a mangled name are what a page can call"
)]

use std::{cell::RefCell, panic};

use burn::tensor::Device;

use explorer_model::{Answer, Explorer, ModelFile};

#[derive(Default)]
struct State {
    input: Vec<u8>,
    text: String,
    numbers: Vec<f32>,
    explorer: Option<Explorer>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// A place for the bytes of the next call.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; length];
        state.input.as_mut_ptr()
    })
}

/// Takes the bytes as a model.
#[unsafe(no_mangle)]
pub extern "C" fn load() -> bool {
    panic::set_hook(Box::new(|panic| {
        let message = panic
            .payload_as_str()
            .unwrap_or("unknown reason")
            .to_owned();
        // A panic while the state is borrowed leaves no sentence, but must not begin another.
        STATE.with(|state| {
            if let Ok(mut state) = state.try_borrow_mut() {
                state.text = message;
            }
        });
    }));
    answer(|input, explorer| {
        *explorer = Some(Explorer::new(ModelFile::from_bytes(
            input,
            &Device::default(),
        )?));
        Ok(Answer::default())
    })
}

/// Takes the bytes as a request.
#[unsafe(no_mangle)]
pub extern "C" fn run() -> bool {
    answer(|input, explorer| {
        let request = serde_json::from_slice(input).map_err(|error| error.to_string())?;
        let explorer = explorer.as_mut().ok_or("no model is loaded")?;
        explorer.answer(&request)
    })
}

fn answer(work: impl FnOnce(&[u8], &mut Option<Explorer>) -> Result<Answer, String>) -> bool {
    // Not borrowed while it works: the hook has to write.
    let (input, mut explorer) =
        STATE.with_borrow_mut(|state| (std::mem::take(&mut state.input), state.explorer.take()));
    let result = work(&input, &mut explorer);
    STATE.with_borrow_mut(|state| {
        state.explorer = explorer;
        let text = result.and_then(|answer| {
            let text = serde_json::to_string(&answer).map_err(|error| error.to_string())?;
            state.numbers = answer.numbers;
            Ok(text)
        });
        let is_answered = text.is_ok();
        state.text = text.unwrap_or_else(|error| error);
        is_answered
    })
}

/// Where the text begins.
#[unsafe(no_mangle)]
pub extern "C" fn text() -> *const u8 {
    STATE.with_borrow(|state| state.text.as_ptr())
}

/// The text's length (bytes).
#[unsafe(no_mangle)]
pub extern "C" fn text_length() -> usize {
    STATE.with_borrow(|state| state.text.len())
}

/// Where the numbers begin.
#[unsafe(no_mangle)]
pub extern "C" fn numbers() -> *const f32 {
    STATE.with_borrow(|state| state.numbers.as_ptr())
}

/// The count of the numbers.
#[unsafe(no_mangle)]
pub extern "C" fn numbers_length() -> usize {
    STATE.with_borrow(|state| state.numbers.len())
}
