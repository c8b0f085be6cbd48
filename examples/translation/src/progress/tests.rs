//! How times are written.

use super::*;

#[test]
fn durations_read_well() {
    assert_eq!(duration(59.9), "59 s");
    assert_eq!(duration(200.0), "3 min 20 s");
    assert_eq!(duration(7500.0), "2 h 5 min");
}
