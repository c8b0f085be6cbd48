use super::*;

#[test]
fn two_types_are_compared_in_one() {
    use DType::{I8, I16, I32, I64, U8, U16, U32};

    for (first, second, expected) in [
        (I8, I8, I8),
        (I8, I64, I64),
        (U16, U8, U16),
        (I8, U8, I32),
        (I8, U16, I32),
        (I16, U8, I32),
        (U32, I32, I32),
        (U8, I64, I64),
    ] {
        assert_eq!(common_type(first, second), expected);
        assert_eq!(common_type(second, first), expected);
    }
}
