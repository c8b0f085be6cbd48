//! Repeatable dropout: the source of dropout seeds, in attention and in every sublayer.

use core::{
    cell::Cell,
    sync::atomic::{AtomicU64, Ordering},
};

use burn::tensor::Device;

/// State of the process-wide stream of dropout seeds (SplitMix64). Burn's generators are process-wide, too.
static STREAM: AtomicU64 = AtomicU64::new(0);

/// The increment of SplitMix64: odd, so that the stream visits every 64-bit value once.
const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

thread_local! {
    /// State of the thread-local stream inside [`with_dropout_seed`].
    static OF_THREAD: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Makes a run repeatable: seeds Burn's generator on `device` and the process-wide stream of dropout seeds.
///
/// Unseeded, parameters are initialised from entropy, and the dropout stream starts from a fixed number. Both generators
/// belong to the process: threads that draw at the same time share them, unless [`with_dropout_seed`] gives each a stream.
///
/// PyTorch equivalent: `torch.manual_seed`.
///
/// ```
/// # use burn::tensor::Device;
/// let device = Device::default();
/// burn_attn_ops::seed(&device, 42);
/// ```
pub fn seed(device: &Device, seed: u64) {
    device.seed(seed);
    STREAM.store(seed, Ordering::Relaxed);
}

/// The next seed for one call with dropout, of [`AttentionOptions::dropout`](crate::AttentionOptions::dropout) or [`dropout`](crate::dropout).
///
/// Every call of this function gives another number. A constant in its place drops the same weights in every step and in every layer of equal
/// sizes: the model trains without them. The numbers are those of the process-wide stream that [`seed`] starts anew, and inside
/// [`with_dropout_seed`] of the thread's own. The modules of `burn-attn` draw theirs from it.
///
/// # Cost
///
/// One atomic addition. The seed is a number on the host, not a random tensor on the device, so drawing it never waits for a GPU.
///
/// # Source
///
/// SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014). PyTorch draws from its global generator
/// inside `scaled_dot_product_attention` and `dropout`.
///
/// ```
/// use burn::tensor::{Device, Distribution, Tensor};
/// use burn_attn_ops::{AttentionOptions, attention, next_dropout_seed};
///
/// // The operation drops in every call: whether this is training, the caller decides.
/// let layer = |x: Tensor<4>| {
///     let options = match x.device().is_autodiff() {
///         true => AttentionOptions::default().dropout(0.1, next_dropout_seed()),
///         false => AttentionOptions::default(),
///     };
///     attention(x.clone(), x.clone(), x, options)
/// };
/// let x = Tensor::<4>::random([1, 2, 5, 8], Distribution::Default, &Device::default().autodiff());
/// assert_eq!(layer(layer(x)).dims(), [1, 2, 5, 8]); // two layers, two seeds
/// ```
pub fn next_dropout_seed() -> u64 {
    if let Some(state) = OF_THREAD.get() {
        let state = state.wrapping_add(GOLDEN_GAMMA);
        OF_THREAD.set(Some(state));
        return mix(state);
    }
    let state = STREAM
        .fetch_add(GOLDEN_GAMMA, Ordering::Relaxed)
        .wrapping_add(GOLDEN_GAMMA);
    mix(state)
}

fn mix(state: u64) -> u64 {
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Runs `work` with a thread-local stream of dropout seeds.
///
/// On flex and ndarray, where both kinds of dropout use these seeds, replicas of a model that train on threads side by side drop
/// the same numbers in every run. Elsewhere, [`dropout`](crate::dropout) draws from Burn's generators, which belong to the process.
/// Parameters are initialised from those on every backend. Neither [`seed`] nor a thread that `work` starts touches this stream.
///
/// ```
/// use burn_attn_ops::{next_dropout_seed, with_dropout_seed};
///
/// let draw = || with_dropout_seed(42, || [next_dropout_seed(), next_dropout_seed()]);
/// assert_eq!(draw(), std::thread::spawn(draw).join().unwrap());
/// ```
pub fn with_dropout_seed<T>(seed: u64, work: impl FnOnce() -> T) -> T {
    /// Restores the stream even after a panic, which a thread of a pool may outlive.
    struct Restore(Option<u64>);
    impl Drop for Restore {
        fn drop(&mut self) {
            OF_THREAD.set(self.0);
        }
    }
    let _restore = Restore(OF_THREAD.replace(Some(seed)));
    work()
}
