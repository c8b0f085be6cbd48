//! Multi-head attention from three places, with a mask and a bias of the caller's.

use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_attn::{AttentionBias, AttentionMask, MultiHeadAttentionConfig, MultiHeadAttentionInput};
use burn_attn_tests::numbers::uniform;

use super::{
    D_MODEL, N_HEADS, Subject,
    by_hand::{Heads, whole},
    choices::choices,
    precisions,
};

const D_KEY_IN: usize = 5;
const D_VALUE_IN: usize = 17;
const LEN_Q: usize = 7;
const LEN_KV: usize = 11;
const LENGTHS: [usize; 2] = [11, 8];
/// The last query of each item stands at its last key.
const OFFSETS: [i64; 2] = [4, 1];

#[test]
fn multi_head_attention_is_what_its_heads_are_told() {
    for precision in precisions() {
        for (choice, heads) in choices() {
            let config = MultiHeadAttentionConfig::new(D_MODEL, N_HEADS)
                .with_heads(heads.clone())
                .with_d_key_in(D_KEY_IN)
                .with_d_value_in(D_VALUE_IN)
                .with_dropout(0.0);
            let module = config.init(&precision.device);
            let widths = [[LEN_Q, D_MODEL], [LEN_KV, D_KEY_IN], [LEN_KV, D_VALUE_IN]];
            let subject = Subject::new(choice, &precision, module, &widths);
            let shape = [1, N_HEADS, LEN_Q, LEN_KV];
            let bias = |device: &Device, dtype| {
                let numbers = uniform(7, N_HEADS * LEN_Q * LEN_KV);
                // Exact in every type.
                let numbers: Vec<f32> = numbers.iter().map(|x| (x * 64.0).round() / 64.0).collect();
                let bias = TensorData::new(numbers, shape).convert_dtype(dtype);
                Tensor::<4>::from_data(bias, (device, dtype))
            };
            let input = |x: &[Tensor<3>]| {
                MultiHeadAttentionInput::new(x[0].clone(), x[1].clone(), x[2].clone())
                    .mask(AttentionMask::window(3, 1))
                    .bias(AttentionBias::dense(bias(
                        &precision.device,
                        precision.dtype,
                    )))
            };
            let on_device = || {
                let lengths = LENGTHS.map(|length| length as i32);
                AttentionMask::key_lengths(Tensor::from_data(lengths, &precision.device))
            };
            subject.check(
                |module, x| module.forward(input(x).mask(on_device())),
                |module, x| module.forward_with_weights(input(x).lengths(&LENGTHS)),
                |weights, x| {
                    let by_hand = Heads {
                        config: &heads,
                        weights,
                        d_model: D_MODEL,
                        offsets: OFFSETS,
                        bias: Some(bias(weights.device(), DType::F64)),
                        visible: &|item, i, j| {
                            let position = i + OFFSETS[item] as usize;
                            j < LENGTHS[item] && j + 3 >= position && j <= position + 1
                        },
                    };
                    by_hand.attend(
                        whole(weights, "query", x[0].clone()),
                        whole(weights, "key", x[1].clone()),
                        whole(weights, "value", x[2].clone()),
                    )
                },
            );
        }
    }
}
