//! Empty projections split into heads, and a refusal; values and gradients are tested beside the code.

use burn::tensor::{DType, Tensor};
use burn_attn::ops::split_heads;
use burn_attn_tests::{
    devices::{any, cpu},
    sentence,
};

#[test]
fn a_projection_of_nothing_has_heads_to_compute_with() {
    // Burn 0.22.1 cannot read an empty tensor that wgpu has computed.
    for (_, device) in cpu() {
        for device in [device.clone(), device.autodiff()] {
            for [batch, len, width] in [[0, 7, 5], [2, 0, 5], [0, 0, 5], [2, 7, 0]] {
                let x = Tensor::<3>::zeros([batch, len, 6 * width], (&device, DType::F32));
                let parts = split_heads(x.clone(), [2, 1, 3]);
                let [all] = split_heads(x, [6]);
                for (part, heads) in parts.into_iter().chain([all]).zip([2, 1, 3, 6]) {
                    assert_eq!(part.dims(), [batch, heads, len, width]);
                    // Views divide by zero here, on ndarray.
                    let more = part + 1.0;
                    assert_eq!(more.into_data().num_elements(), 0);
                }
            }
        }
    }
}

#[test]
fn an_operand_without_heads_is_refused() {
    let x = Tensor::<3>::zeros([2, 7, 20], &any());
    assert_eq!(
        sentence(|| split_heads(x, [4, 0])),
        "split_heads: every operand needs at least 1 head, but they have [4, 0]"
    );
}
