use core::cell::Cell;

thread_local! {
    /// How often a device was asked.
    pub(crate) static ASKED: Cell<usize> = const { Cell::new(0) };
}

#[test]
fn of_an_error_its_innermost_cause_is_said() {
    let launch = "Several failures at once\nCaused by:\n  A launch error happened\nCaused by:\n  Too much.\nMore.\n\nBacktrace\nnone";
    assert_eq!(super::innermost(launch), "Too much; More");
    let compiler = "A launch error happened\nCaused by:\n  no such type\n[Source]\n__global__ void kernel() {}\nBacktrace:\nnone";
    assert_eq!(super::innermost(compiler), "no such type");
    assert_eq!(super::innermost("no more memory"), "no more memory");
}
