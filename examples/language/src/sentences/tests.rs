//! Angles between vectors.

use super::*;

#[test]
fn lengths_do_not_matter() {
    assert_eq!(cosine(&[3.0, 4.0], &[6.0, 8.0]), 1.0);
    assert_eq!(cosine(&[3.0, 4.0], &[-4.0, 3.0]), 0.0);
    assert_eq!(cosine(&[3.0, 4.0], &[0.0, 0.0]), 0.0);
}
