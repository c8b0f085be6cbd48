//! Every malformed part of a mask is refused in one sentence that names the offending values.

use super::problem;
use crate::{Broadcast, FirstKeys, Mask, Segments};

#[test]
fn errors_name_the_offending_values() {
    let message = |mask: Mask<'_>| mask.validate(&problem(2, 3, 5, 7)).unwrap_err().to_string();
    let key_lengths = |lengths| {
        message(Mask {
            key_lengths: Some(lengths),
            ..Mask::default()
        })
    };
    assert_eq!(
        key_lengths(&[1, 2, 3]),
        "key_lengths needs 2 elements, but has 3"
    );
    assert_eq!(
        key_lengths(&[7, 8]),
        "key_lengths of batch item 1 is 8, but len_kv is 7"
    );
    let first_keys = |counts| {
        let causal = false;
        message(Mask {
            first_keys: Some(FirstKeys { counts, causal }),
            ..Mask::default()
        })
    };
    assert_eq!(first_keys(&[1]), "first_keys needs 2 elements, but has 1");
    assert_eq!(
        first_keys(&[9, 7]),
        "first_keys of batch item 0 is 9, but len_kv is 7"
    );
    let offsets = |offsets| {
        message(Mask {
            query_offsets: Some(offsets),
            ..Mask::default()
        })
    };
    assert_eq!(offsets(&[1]), "query_offsets needs 2 elements, but has 1");
    assert_eq!(
        offsets(&[8, 0]),
        "the query offset of batch item 0 is 8, but must lie between -len_q = -5 and len_kv = 7"
    );
    assert_eq!(
        offsets(&[7, -6]),
        "the query offset of batch item 1 is -6, but must lie between -len_q = -5 and len_kv = 7"
    );
    assert_eq!(
        offsets(&[-5, i64::MIN]),
        "the query offset of batch item 1 is -9223372036854775808, but must lie between -len_q = -5 and len_kv = 7"
    );
    let segments = |queries, keys| Mask {
        segments: Some(Segments { queries, keys }),
        ..Mask::default()
    };
    assert_eq!(
        message(segments(&[0; 9], &[0; 14])),
        "segments.queries needs 10 elements, but has 9"
    );
    assert_eq!(
        message(segments(&[0; 10], &[0; 7])),
        "segments.keys needs 14 elements, but has 7"
    );
    let masked = Broadcast::new(&[true; 35], [1, 1, 7, 5]).unwrap();
    assert_eq!(
        message(Mask {
            masked: Some(masked),
            ..Mask::default()
        }),
        "the bool mask does not fit: shape [1, 1, 7, 5] does not broadcast to \
         [batch, heads_q, len_q, len_kv] = [2, 3, 5, 7]"
    );
}
