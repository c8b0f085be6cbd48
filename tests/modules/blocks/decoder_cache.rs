//! A decoder that decodes is one that reads the whole target, also where its cache was cut or put in another order.

use burn::tensor::{Device, Tensor};
use burn_attn::{
    BlockConfig, CrossAttentionConfig, CrossAttentionInput, KvCacheConfig, LayerInput,
    LayerPattern, TransformerCache, TransformerStack, TransformerStackConfig,
    positions::{PositionEncoding, RotaryConfig},
};
use burn_attn_tests::{
    compare::assert_close,
    devices,
    numbers::{filled, tensor},
    sentence,
};

use super::{D_FF, D_MODEL, N_HEADS, N_LAYERS, PLACEMENTS};

const TOLERANCE: f64 = 5e-6;
const LEN: usize = 11;

struct Decoding {
    decoder: TransformerStack,
    target: Tensor<3>,
    /// The states of the whole target, read at once.
    whole: Tensor<3>,
    cache: TransformerCache,
}

fn decodings(device: &Device) -> [Decoding; 4] {
    PLACEMENTS.map(|placement| {
        let block = BlockConfig::new()
            .with_dropout(0.0)
            .with_norm_placement(placement)
            .with_d_head(6)
            .with_position(PositionEncoding::Rotary(
                RotaryConfig::new().with_max_len(LEN),
            ));
        let config = TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, N_LAYERS);
        let config = config.with_block(block).with_causal(true);
        let decoder = filled(config.init(device), 1);
        let (target, memory) = (
            tensor([2, LEN, D_MODEL], 2, device),
            tensor([2, 7, D_MODEL], 3, device),
        );
        let lengths = [7, 4];
        let input = LayerInput::new(target.clone())
            .memory(memory.clone())
            .memory_lengths(&lengths);
        let config = KvCacheConfig::new(LEN).with_initial_capacity(2);
        let mut cache = decoder.cache(2, &config);
        decoder.cache_memory(memory, &lengths, &mut cache);
        Decoding {
            whole: decoder.forward(input),
            cache,
            decoder,
            target,
        }
    })
}

impl Decoding {
    /// Reads the tokens `from .. from + len` of the sequences `rows`, and compares with the whole.
    fn read(&mut self, rows: &[usize], from: usize, len: usize) {
        let of_rows = |x: &Tensor<3>| {
            let rows = rows.iter().map(|&row| x.clone().narrow(0, row, 1));
            Tensor::cat(rows.collect(), 0).narrow(1, from, len)
        };
        let target = of_rows(&self.target);
        let states = self.decoder.forward_cached(target, &mut self.cache);
        let expected = of_rows(&self.whole);
        let what = format!("{rows:?} from {from}");
        assert_close(&what, &states.into_data(), &expected.into_data(), TOLERANCE);
    }
}

#[test]
fn pieces_are_the_whole() {
    for (_, device) in devices::cpu() {
        for mut decoding in decodings(&device) {
            for (from, len) in [(0, 5), (5, 1), (6, 1), (7, 4)] {
                decoding.read(&[0, 1], from, len);
            }
            assert_eq!(decoding.cache.lengths(), [LEN, LEN]);
        }
    }
}

#[test]
fn truncated_targets_go_on_where_they_were_cut() {
    for mut decoding in decodings(&devices::any()) {
        decoding.read(&[0, 1], 0, 5);
        let guess = tensor::<3>([2, 3, D_MODEL], 9, &devices::any());
        let cache = &mut decoding.cache;
        decoding.decoder.forward_cached(guess, cache);
        decoding.cache.truncate(&[4, 4]);
        assert_eq!(decoding.cache.lengths(), [4, 4]);
        decoding.read(&[0, 1], 4, 7);
    }
}

#[test]
fn no_sequence_may_go_on() {
    for mut decoding in decodings(&devices::any()) {
        decoding.read(&[0, 1], 0, 5);
        decoding.cache.reorder(&[]);
        assert!(decoding.cache.lengths().is_empty());
    }
}

#[test]
fn a_reordered_target_keeps_its_memory() {
    for mut decoding in decodings(&devices::any()) {
        decoding.read(&[0, 1], 0, 5);
        decoding.cache.reorder(&[1, 0, 1]);
        decoding.read(&[1, 0, 1], 5, 1);
    }
}

#[test]
fn memories_that_join_keep_their_padding() {
    for mut decoding in decodings(&devices::any()) {
        decoding.read(&[0, 1], 0, 5);
        // Two memories of 4 tokens, both with 3 of padding.
        decoding.cache.reorder(&[1]);
        let other = decoding.cache.clone();
        decoding.cache.join(other.clone());
        decoding.read(&[1, 1], 5, 1);

        // Into a cache that all sequences have left, and one that never had any.
        decoding.cache.reorder(&[]);
        decoding.cache.join(other.clone());
        decoding.read(&[1], 5, 1);
        let config = KvCacheConfig::new(LEN).with_initial_capacity(2);
        let mut empty = other.clone();
        empty.reorder(&[]);
        let mut without_memory = decoding.decoder.cache(2, &config);
        without_memory.join(empty);
        without_memory.reorder(&[1]);
        assert!(without_memory.layers()[0].memory.is_none());
        decoding.cache = decoding.decoder.cache(0, &config);
        decoding.cache.join(other);
        decoding.read(&[1], 5, 1);
    }
}

/// The first layer would take the others' tokens and memory; the second has no window.
#[test]
fn a_cache_that_refuses_to_join_stays_as_it_was() {
    let device = devices::any();
    let block = BlockConfig::new().with_d_head(6);
    let blocks = vec![block.clone(), block.with_window(2)];
    let config = TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, 2)
        .with_pattern(LayerPattern::Cycle(blocks))
        .with_causal(true);
    let windowed = config.init(&device);
    let config = KvCacheConfig::new(LEN).with_initial_capacity(2);
    for mut decoding in decodings(&device) {
        decoding.read(&[0, 1], 0, 5);
        let mut other = windowed.cache(1, &config);
        assert_eq!(
            sentence(|| decoding.cache.join(other.clone())),
            "LayerCache: only one of the two caches to join has a memory"
        );
        decoding.read(&[0, 1], 5, 1);

        windowed.cache_memory(tensor([1, 7, D_MODEL], 3, &device), &[7], &mut other);
        let refused = sentence(|| decoding.cache.join(other.clone()));
        assert!(refused.contains("different layers"), "{refused}");
        decoding.read(&[0, 1], 6, 1);

        let mut layer = decoding.cache.layers()[1].clone();
        let others = other.layers()[1].clone();
        let refused = sentence(|| layer.join(others.clone()));
        assert!(refused.contains("different layers"), "{refused}");
        let memory = layer.memory.expect("the memory stays");
        // It still has two sequences, as the tokens do.
        let attention = decoding.decoder.layers[1].cross_attention.as_ref();
        let x = tensor([2, 1, D_MODEL], 2, &device);
        let input = CrossAttentionInput::new(x, memory.clone());
        let states = attention.expect("one").forward(input);
        assert_eq!((states.dims(), layer.tokens.batch()), ([2, 1, D_MODEL], 2));

        let grouped = CrossAttentionConfig::new(D_MODEL, N_HEADS).with_n_kv_heads(1);
        let grouped = grouped.init(&device);
        let of_one_head = grouped.project_memory(tensor([1, 7, D_MODEL], 3, &device));
        assert_eq!(
            sentence(|| memory.join(of_one_head)),
            "ProjectedMemory: a memory of 1 heads of width 5 in F32 cannot join one of 3 heads of width 6 in F32"
        );
    }
}

#[test]
fn a_projected_memory_belongs_to_one_layer() {
    let device = devices::any();
    let config = TransformerStackConfig::decoder(D_MODEL, D_FF, N_HEADS, 2);
    let decoder = filled(config.init(&device), 1);
    let attention = decoder.layers[0].cross_attention.as_ref().unwrap();
    let memory = attention.project_memory(tensor([2, 7, D_MODEL], 3, &device));
    let target = LayerInput::new(tensor([2, 5, D_MODEL], 2, &device));
    assert_eq!(
        sentence(|| decoder.forward(target.memory(memory))),
        "TransformerStack: a projected memory belongs to one of the 2 layers; cache_memory takes that of a stack"
    );
}
