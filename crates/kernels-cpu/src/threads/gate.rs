//! The completion gate (like Seastar's `gate`): threads may join a call while it runs, and the call ends when all that joined have
//! left.
//!
//! One word of memory holds both counts, so that "no place is left" and "no helper is inside" are seen together:
//!
//! ```text
//! open    caller   places = n                      helpers may take a place
//! enter   helper   places − 1, inside + 1          only if a place is left
//! leave   helper   inside − 1                      the last one wakes the caller
//! close   caller   places = 0, until inside = 0    then the work may go out of scope
//! ```
//!
//! Its model runs every interleaving of a caller and its helpers under `loom`:
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p burn-attn-kernels-cpu --release --target-dir target/loom --lib gate::tests
//! ```

#![allow(
    unsafe_code,
    reason = "helpers hold a pointer to work on the caller's stack; this file shows that they do not use it too late"
)]

use core::{any::Any, marker::PhantomData, mem, time::Duration};
use std::{
    boxed::Box,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sync::{AtomicUsize, Ordering, Thread, UnsafeCell, current, park};

/// How long the caller polls for the last helper before it goes to sleep: about as long as it takes to wake up again.
const POLL_BEFORE_SLEEP: Duration = Duration::from_micros(50);

/// One place in [`Shared::state`]; the bits below count the helpers inside.
const PLACE: usize = 1 << (usize::BITS / 2);

/// The gate of a thread's calls, one after the other. It stays with its thread, because helpers wake that thread.
pub(super) struct Gate {
    shared: Arc<Shared>,
    _of_this_thread: PhantomData<*const ()>,
}

/// Where helpers enter a call.
#[derive(Clone)]
pub(super) struct Entrance(Arc<Shared>);

/// A place in a call, which does not end before this is dropped.
pub(super) struct Inside<'a>(&'a Shared);

struct Shared {
    /// The number of places left, times [`PLACE`], plus the number of helpers inside.
    state: AtomicUsize,
    /// The work of the call. The caller writes it while the state is 0, helpers read it while they are inside.
    work: UnsafeCell<Work>,
    caller: Thread,
    /// The first panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

/// The work of a call, without its lifetime.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: what is behind the pointer is `Sync`, so any thread may call it; `Gate::open` says when.
unsafe impl Send for Work {}

// SAFETY: `work` is the only part that is not `Sync`. It is written while the state is 0, when no helper is inside and none can
// enter, and read inside; the state orders the two.
unsafe impl Sync for Shared {}

impl Gate {
    /// The gate of the current thread.
    pub(super) fn new() -> Self {
        let shared = Arc::new(Shared {
            state: AtomicUsize::new(0),
            work: UnsafeCell::new(Work(&|| ())),
            caller: current(),
            panic: Mutex::new(None),
        });
        Self {
            shared,
            _of_this_thread: PhantomData,
        }
    }

    pub(super) fn entrance(&self) -> Entrance {
        Entrance(self.shared.clone())
    }

    /// Lets up to `places` helpers work on `work` while `own` runs, then waits for those that have entered.
    ///
    /// A panic continues here when all have left: the caller's panic, or else the first panic of a helper.
    pub(super) fn open(&mut self, places: usize, work: &(dyn Fn() + Sync), own: impl FnOnce()) {
        // SAFETY: the types differ only in a lifetime, and a pointer may dangle.
        let work = Work(unsafe {
            mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync)>(work)
        });
        let shared = &*self.shared;
        // SAFETY: the state is 0, because only `&mut self` opens the gate, and every call closes it again.
        shared.work.with_mut(|place| unsafe { *place = work });
        // Release: a helper that enters sees the work, and what the caller wrote before.
        shared
            .state
            .store(places.min(PLACE - 1) * PLACE, Ordering::Release);
        let own = panic::catch_unwind(AssertUnwindSafe(own)).err();
        shared.close();
        let helpers = lock(&shared.panic).take();
        if let Some(payload) = own.or(helpers) {
            panic::resume_unwind(payload);
        }
    }
}

impl Entrance {
    /// A place in the call that is running, if one is left.
    pub(super) fn enter(&self) -> Option<Inside<'_>> {
        let enter = |state| (state >= PLACE).then(|| state - PLACE + 1);
        let Self(shared) = self;
        // Acquire: sees what the caller has released.
        let entered = shared
            .state
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, enter);
        entered.ok().map(|_| Inside(shared))
    }
}

impl Inside<'_> {
    /// Does the work. A panic goes to the caller.
    pub(super) fn work(&self) {
        // SAFETY: the caller does not write before this helper has left.
        let Work(work) = self.0.work.with(|place| unsafe { *place });
        // SAFETY: the caller, who holds the borrow, does not continue before `close` has seen this helper leave, not even when it
        // unwinds.
        let work = || unsafe { (*work)() };
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(work)) {
            lock(&self.0.panic).get_or_insert(payload);
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        // Release: the caller sees what the work wrote. From here on the work may be gone, but not the gate.
        if self.0.state.fetch_sub(1, Ordering::Release) == 1 {
            self.0.caller.unpark();
        }
    }
}

impl Shared {
    /// Admits no more helpers, and waits until all have left.
    fn close(&self) {
        let inside = self.state.fetch_and(PLACE - 1, Ordering::Acquire) & (PLACE - 1);
        let all_left = || (self.state.load(Ordering::Acquire) == 0).then_some(());
        if inside == 0 || poll_for(POLL_BEFORE_SLEEP, all_left).is_some() {
            return;
        }
        // `park` may return early, because of a token left over from an earlier call.
        while all_left().is_none() {
            park();
        }
    }
}

/// Locks, poisoned or not: no code panics while it holds this lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The result of `poll`, if there is one within `time`, without going to sleep.
#[cfg(not(loom))]
pub(super) fn poll_for<T>(time: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    /// Polls per reading of the clock: a pause takes 40 to 140 cycles, and so does the clock.
    const POLLS: usize = 16;

    let start = std::time::Instant::now();
    loop {
        for _ in 0..POLLS {
            if let Some(found) = poll() {
                return Some(found);
            }
            core::hint::spin_loop();
        }
        if start.elapsed() >= time {
            return None;
        }
    }
}

/// A model has no clock: polls once.
#[cfg(loom)]
pub(super) fn poll_for<T>(_: Duration, mut poll: impl FnMut() -> Option<T>) -> Option<T> {
    poll()
}

/// The primitives of the gate, which `loom` replaces by its own.
mod sync {
    #[cfg(loom)]
    pub(super) use loom::{
        cell::UnsafeCell,
        sync::atomic::{AtomicUsize, Ordering},
        thread::{Thread, current, park},
    };
    #[cfg(not(loom))]
    pub(super) use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread::{Thread, current, park},
    };

    /// `core`'s with the interface of `loom`'s.
    #[cfg(not(loom))]
    pub(super) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

    #[cfg(not(loom))]
    impl<T> UnsafeCell<T> {
        pub(super) fn new(value: T) -> Self {
            Self(core::cell::UnsafeCell::new(value))
        }

        pub(super) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }

        pub(super) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}

#[cfg(all(test, loom))]
mod tests;
