//! Windows of a text.

use super::*;

#[test]
fn windows_overlap_in_the_token_that_one_predicts_and_the_next_reads() {
    let windows = Windows::new((0..11).collect(), 3);
    assert_eq!(windows.len(), 3);
    assert_eq!(windows.window(1), [3, 4, 5, 6]);
    assert_eq!(windows.window(2), [6, 7, 8, 9]);
    assert_eq!(windows.clone().whole(2).len(), 2);
    assert_eq!(Windows::new(vec![1, 2, 3], 3).len(), 0);
}
