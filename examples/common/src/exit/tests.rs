//! What a closed pipe is.

use std::io::{Error, ErrorKind};

use super::*;

#[test]
fn a_closed_pipe_is_known_by_its_number() {
    for &code in CLOSED_PIPE {
        let error = Error::from_raw_os_error(code);
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        assert!(is_closed_pipe(&format!("{PRINTING}{error}")), "{error}");
        assert!(!is_closed_pipe(&error.to_string()));
    }
    for words in ["No space left on device (os error 28)", "(os error 320)"] {
        assert!(!is_closed_pipe(&format!("{PRINTING}{words}")), "{words}");
    }
}
