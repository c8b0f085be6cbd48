//! The panics of calls that are refused.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The sentence that `call` panics with.
///
/// Panics if the call succeeds, and if what it panics with is no text.
#[track_caller]
pub fn sentence<T>(call: impl FnOnce() -> T) -> String {
    let Err(panic) = catch_unwind(AssertUnwindSafe(call)) else {
        panic!("the call succeeded");
    };
    match panic.downcast::<String>() {
        Ok(sentence) => *sentence,
        Err(panic) => match panic.downcast::<&str>() {
            Ok(sentence) => (*sentence).to_owned(),
            Err(_) => panic!("the panic has no sentence"),
        },
    }
}
