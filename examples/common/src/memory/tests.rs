//! Memory that is used again.

use super::*;

/// Pages of this thread that the system had to provide so far.
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let (_, numbers) = stat.rsplit_once(')').unwrap();
    numbers.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[test]
fn freed_memory_is_used_again() {
    const BYTES: usize = 32 << 20;
    let fill = || {
        let before = faults();
        std::hint::black_box(vec![1u8; BYTES]);
        faults() - before
    };
    keep_freed();
    let pages = fill();
    assert!(fill() < pages / 10);
}
