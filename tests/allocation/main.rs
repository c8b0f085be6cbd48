//! What decoding a token, a forward and loading weights allocate: a suite of its own, because it counts every allocation of the process.
//!
//! Every test holds `numbers::alone()` of the tests' library, so that nothing else allocates meanwhile.

mod forward;
mod functions;
mod mutated;
mod weights;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    fmt,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use burn::tensor::{Distribution, Tensor};
use burn_attn::{
    BlockConfig, CacheStorage, KvCacheConfig, LayerInput, SelfAttentionConfig, SelfAttentionInput,
    TransformerStackConfig,
    positions::{AlibiConfig, PositionEncoding, RelativeBiasConfig, RotaryConfig},
};
use burn_attn_tests::{devices, numbers::alone};

/// The system's allocator, and what it was asked for.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "the trait of allocators is unsafe")]
// SAFETY: every call is passed on to the system's allocator as it comes.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        ALLOCATIONS.fetch_add(1, Relaxed);
        let live = LIVE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(live, Relaxed);
        // SAFETY: the caller keeps the contract of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How many bytes were in use at once during `work`, besides those from before.
fn peak(work: impl FnOnce()) -> usize {
    let before = LIVE.load(Relaxed);
    PEAK.store(before, Relaxed);
    work();
    PEAK.load(Relaxed) - before
}

/// What one token has allocated, freed or not.
#[derive(Clone, Copy)]
struct Cost {
    bytes: usize,
    allocations: usize,
}

impl Cost {
    fn of(work: impl FnOnce()) -> Self {
        let (bytes, allocations) = (BYTES.load(Relaxed), ALLOCATIONS.load(Relaxed));
        work();
        Self {
            bytes: BYTES.load(Relaxed) - bytes,
            allocations: ALLOCATIONS.load(Relaxed) - allocations,
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in {}", self.bytes, self.allocations)
    }
}

/// Tokens of the longest sequence, where a token is measured.
const LENGTHS: [usize; 2] = [1000, 4000];
const MAX_LEN: usize = 4010;
/// Many heads, so that a number per head and key would be seen.
const HEADS: usize = 16;
const D_MODEL: usize = 64;

/// The cost of a token after prompts of these lengths.
fn of_a_token(
    prompts: &[usize],
    d_model: usize,
    mut forward: impl FnMut(Tensor<3>, &[usize]),
) -> Cost {
    let device = devices::any();
    let batch = prompts.len();
    let tokens = |len| Tensor::random([batch, len, d_model], Distribution::Default, &device);
    let longest = prompts.iter().copied().max().expect("there is a sequence");
    forward(tokens(longest), prompts);
    let one = vec![1; batch];
    // The first one makes what the others find in the cache.
    forward(tokens(1), &one);
    let token = tokens(1);
    Cost::of(|| forward(token, &one))
}

/// Prompts of `batch` sequences, of one length or of a few lengths below it.
fn prompts(batch: usize, len: usize, uneven: bool) -> Vec<usize> {
    let shorter = |b| if uneven { 37 * b } else { 0 };
    (0..batch).map(|b| len - shorter(b)).collect()
}

fn room() -> KvCacheConfig {
    KvCacheConfig::new(MAX_LEN).with_initial_capacity(MAX_LEN)
}

/// Panics if a token costs more where more came before; `calls` is how often it calls the attention.
fn compare(name: &str, batch: usize, calls: usize, costs: [Cost; 2]) {
    // Scratch of one more thread, of which a longer context is shared out among more.
    const PER_THREAD: usize = 20_000;
    let threads = std::thread::available_parallelism().map_or(8, |threads| threads.get().min(8));
    let [short, long] = costs;
    println!("{name}, batch {batch}: {short}, then {long}");
    // A copy of the new keys alone would be 0.8 MB per sequence, a number per head and key 0.2 MB.
    assert!(
        long.bytes <= short.bytes + PER_THREAD * threads * calls,
        "{name}, batch {batch}: {short} at {} tokens, {long} at {}",
        LENGTHS[0],
        LENGTHS[1]
    );
}

#[test]
fn a_token_allocates_the_same_however_long_the_context_is() {
    let _alone = alone();
    let device = devices::any();
    let config = || SelfAttentionConfig::new(D_MODEL, HEADS).with_causal(true);
    let positions = |position| config().with_position(position);
    let rotary = || PositionEncoding::Rotary(RotaryConfig::new().with_max_len(MAX_LEN));
    let learned = PositionEncoding::Alibi(AlibiConfig::new().with_learnable(true));
    let causal = RelativeBiasConfig::new().with_bidirectional(false);
    for (name, config) in [
        ("plain", config()),
        ("grouped", config().with_n_kv_heads(2)),
        ("window", config().with_window(700)),
        ("rotary", positions(rotary())),
        ("rotary, window", positions(rotary()).with_window(700)),
        ("alibi", positions(PositionEncoding::alibi())),
        (
            "alibi, window",
            positions(PositionEncoding::alibi()).with_window(700),
        ),
        (
            "learned alibi, grouped",
            positions(learned).with_n_kv_heads(2),
        ),
        ("relative", positions(PositionEncoding::relative())),
        (
            "causal relative, window, grouped",
            positions(PositionEncoding::Relative(causal))
                .with_window(700)
                .with_n_kv_heads(2),
        ),
    ] {
        let module = config.init(&device);
        for (batch, uneven) in [(1, false), (3, true)] {
            let costs = LENGTHS.map(|len| {
                let mut cache = module.cache(batch, &room());
                of_a_token(&prompts(batch, len, uneven), D_MODEL, |x, counts| {
                    let input = SelfAttentionInput::new(x).lengths(counts);
                    module.forward_cached(input, &mut cache);
                })
            });
            let (of_lengths, calls) = if uneven { (", uneven", batch) } else { ("", 1) };
            compare(&format!("{name}{of_lengths}"), batch, calls, costs);
        }
    }

    let model = TransformerStackConfig::causal(D_MODEL, 256, HEADS, 2)
        .with_block(BlockConfig::new().with_position(rotary()))
        .init(&device);
    for batch in [1, 3] {
        let costs = LENGTHS.map(|len| {
            let mut cache = model.cache(batch, &room());
            of_a_token(&prompts(batch, len, false), D_MODEL, |x, counts| {
                model.forward_cached(LayerInput::new(x).lengths(counts), &mut cache);
            })
        });
        compare("two layers, rotary", batch, 2, costs);
    }

    let module = config().init(&device);
    let costs = LENGTHS.map(|len| {
        let mut cache = module.cache(1, &room().with_storage(CacheStorage::Int8));
        of_a_token(&[len], D_MODEL, |x, _| {
            module.forward_cached(SelfAttentionInput::new(x), &mut cache);
        })
    });
    let [short, long] = costs;
    println!("8 bits, batch 1: {short}, then {long}");
    // The one choice that costs memory: floats of all codes, and the codes once more.
    let floats = (LENGTHS[1] - LENGTHS[0]) * 2 * D_MODEL * size_of::<f32>();
    let more = long.bytes - short.bytes;
    assert!(
        (floats..floats * 3 / 2).contains(&more),
        "8 bits: {more} bytes more for {floats} bytes of floats"
    );
}
