//! Every mistake has its sentence, with the values that were wrong.

/// Sees that a configuration is refused with this sentence by both of its methods.
macro_rules! refused {
    ($config:expr, $sentence:expr) => {
        let config = $config;
        let error: ConfigError = config.validate().expect_err("the configuration is bad");
        assert_eq!(error.to_string(), $sentence);
        assert_eq!(sentence(|| config.init(&devices::any())), $sentence);
    };
}

mod configs;
mod empty;
mod heads;
mod masks;
mod shapes;

use std::panic::{AssertUnwindSafe, catch_unwind};

/// The sentence that `call` panics with.
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
