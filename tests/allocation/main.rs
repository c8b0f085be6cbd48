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
    KvCacheConfig, SelfAttentionConfig, SelfAttentionInput,
    positions::{PositionEncoding, RotaryConfig},
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
    const MAX_LEN: usize = 8000;
    // Scratch of one more thread, of at most eight that share a long context.
    const PER_THREAD: usize = 40_000;
    let threads = std::thread::available_parallelism().map_or(8, |threads| threads.get().min(8));
    let device = devices::any();
    let config = || SelfAttentionConfig::new(64, 4).with_causal(true);
    for (name, config) in [
        ("plain", config()),
        ("grouped", config().with_n_kv_heads(2)),
        (
            "rotary",
            config().with_position(PositionEncoding::Rotary(
                RotaryConfig::new().with_max_len(MAX_LEN),
            )),
        ),
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
            for len in [2000, 7900] {
                let missing = len - cache.lengths()[0];
                module.forward_cached(tokens(missing), &mut cache);
                let token = tokens(1);
                let before = BYTES.load(Relaxed);
                module.forward_cached(token, &mut cache);
                at_lengths.push(BYTES.load(Relaxed) - before);
            }
            println!("{name}, batch {batch}: {at_lengths:?} bytes at 2000 and 7900 tokens");
            // A copy of the new keys alone would be 1.5 MB per sequence.
            let [short, long] = at_lengths[..] else {
                unreachable!("two lengths were measured")
            };
            assert!(
                long <= short + PER_THREAD * threads,
                "{name}, batch {batch}: {short} bytes at 2000 tokens, {long} at 7900"
            );
        }
    }
}
