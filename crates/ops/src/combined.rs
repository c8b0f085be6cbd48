//! What masks need to become one tensor: one device, and shapes that broadcast.

use burn::tensor::Device;

/// Panics unless tensors of masks that become one tensor are on one device.
pub(crate) fn are_one(first: &Device, second: &Device) {
    assert!(
        first == second,
        "masks with tensors on {first:?} and {second:?} cannot be combined"
    );
}

/// The shape that two masks broadcast to.
pub(crate) fn broadcast_dims(first: [usize; 4], second: [usize; 4]) -> [usize; 4] {
    core::array::from_fn(|dim| {
        let (a, b) = (first[dim], second[dim]);
        assert!(
            a == b || a == 1 || b == 1,
            "masks of shapes {first:?} and {second:?} do not broadcast: dimension {dim} is {a} and {b}"
        );
        if a == 1 { b } else { a }
    })
}
