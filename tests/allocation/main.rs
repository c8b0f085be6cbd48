//! What decoding a token allocates: a suite of its own, because it counts every allocation of the process.

#[path = "../devices.rs"]
#[allow(dead_code, reason = "the other suites use the rest")]
mod devices;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use burn::tensor::{Distribution, Tensor};
use burn_attn::{
    KvCacheConfig, SelfAttentionConfig, SelfAttentionInput, positions::PositionEncoding,
};

/// The system's allocator, and the bytes it was asked for.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "the trait of allocators is unsafe")]
// SAFETY: every call is passed on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test, so that nothing else allocates meanwhile.
#[test]
fn a_token_allocates_the_same_however_long_the_context_is() {
    const MAX_LEN: usize = 3000;
    let device = devices::any();
    let config = || SelfAttentionConfig::new(64, 4).with_causal(true);
    for (name, config) in [
        ("plain", config()),
        ("grouped", config().with_n_kv_heads(2)),
        ("rotary", config().with_position(PositionEncoding::rotary())),
        ("window", config().with_window(Some(700))),
    ] {
        let module = config.init(&device);
        let cache_config = KvCacheConfig::new(MAX_LEN).with_initial_len(MAX_LEN);
        for batch in [1, 8] {
            let mut cache = module.cache(batch, &cache_config);
            let tokens = |len| {
                let shape = [batch, len, 64];
                SelfAttentionInput::new(Tensor::random(shape, Distribution::Default, &device))
            };
            let mut at_lengths = Vec::new();
            for len in [1100, 2900] {
                let missing = len - cache.lengths()[0];
                module.forward_cached(tokens(missing), &mut cache);
                let token = tokens(1);
                let before = BYTES.load(Relaxed);
                module.forward_cached(token, &mut cache);
                at_lengths.push(BYTES.load(Relaxed) - before);
            }
            println!("{name}, batch {batch}: {at_lengths:?} bytes at 1100 and 2900 tokens");
            // Partial results of a long context that is shared out among tasks are all that may be added; a copy of the
            // keys would be more than 150,000 bytes per sequence.
            let [short, long] = at_lengths[..] else {
                unreachable!("two lengths were measured")
            };
            assert!(
                long <= short + 4096,
                "{name}, batch {batch}: {short} bytes at 1100 tokens, {long} at 2900"
            );
        }
    }
}
