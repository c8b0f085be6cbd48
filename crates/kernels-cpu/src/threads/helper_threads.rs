//! Threads of rayon's current pool that help the calling thread if they arrive in time.
//!
//! A rayon scope ends only when every thread that it called has arrived, with or without work to do, and left. A thread without
//! work goes to sleep at once. Waking it takes longer than a short call: on the notebook's machine, a product of 50 µs
//! ended after 500 µs. Here a call ends when its work is done, and a helper that arrives later finds the gate closed. A helper that
//! has worked on a short call stays awake for a moment, because the next call of a model that decodes is some ten
//! microseconds away.
//!
//! Calling threads do not share helpers. `rayon::spawn` takes them from the pool that the thread belongs to, so
//! a call never leaves its pool, and two callers share nothing.

use core::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::{sync::Arc, thread_local, time::Instant};

use crate::threads::gate::{Entrance, Gate, Inside, poll_for};

/// How long a helper waits for the next call: longer than the time between two parallel calls of a decoded token, and too
/// short to be noticed.
const IDLE_TIMEOUT: Duration = Duration::from_micros(200);

/// A helper waits for the next call only after work this short: one of the calls of a decoded token, not of training.
const SHORT: Duration = Duration::from_millis(1);

/// How long a waiting helper polls before it asks the rest of the pool for work: as long as a sleeping thread takes to wake up.
const BETWEEN_YIELDS: Duration = Duration::from_micros(10);

/// A helper stays at most this long, and to the end of a call that it has begun; then the next call has to call it again. The limit bounds how long a job
/// that is suspended on the helper's stack, such as a `rayon::join`, waits for the calls of another thread.
const LONGEST_STAY: Duration = Duration::from_millis(5);

/// Runs `work` on the calling thread and on up to `helpers` other threads of rayon's current pool at the same time, and returns when
/// all that have begun it are done. Helpers that are awake come first, then others are called.
///
/// A panic of a helper continues in the caller.
pub(crate) fn work_together(helpers: usize, work: &(dyn Fn() + Sync)) {
    let in_pool = rayon::current_thread_index().is_some();
    // Taken out during the call, so that a nested call gets other helpers.
    let caller = CALLER.try_with(Cell::take).ok().flatten();
    let mut caller = caller
        .filter(|caller| caller.in_pool == in_pool)
        .unwrap_or_else(|| Caller::new(in_pool));
    caller.gate.open(helpers, work, || {
        for _ in caller.helpers.expected.load(Ordering::Relaxed)..helpers {
            caller.helpers.call();
        }
        work();
    });
    // A thread that is ending has no thread-local storage left, and drops the caller.
    let _ = CALLER.try_with(|place| place.set(Some(caller)));
}

thread_local! {
    /// The state that this thread needs for its calls.
    static CALLER: Cell<Option<Caller>> = const { Cell::new(None) };

    /// Whether this thread is a helper already: a waiting helper that takes other work may become a helper there too.
    static HELPS: Cell<bool> = const { Cell::new(false) };
}

/// The state of a calling thread.
struct Caller {
    gate: Gate,
    helpers: Arc<Helpers>,
    /// Whether the thread belongs to a pool; a thread that joins a pool later gets other helpers than those of the global pool.
    in_pool: bool,
}

impl Caller {
    fn new(in_pool: bool) -> Self {
        let gate = Gate::new();
        let helpers = Arc::new(Helpers {
            entrance: gate.entrance(),
            expected: AtomicUsize::new(0),
        });
        Self {
            gate,
            helpers,
            in_pool,
        }
    }
}

/// The helpers of one calling thread.
struct Helpers {
    entrance: Entrance,
    /// Helpers that will look for a call without being called: they are waiting for one, or have been called and not arrived yet.
    /// Neither is called again, so the pool's queues never hold more jobs than one call wants, however busy the pool is.
    expected: AtomicUsize,
}

impl Helpers {
    /// Calls one more helper.
    fn call(self: &Arc<Self>) {
        self.expected.fetch_add(1, Ordering::Relaxed);
        let helpers = self.clone();
        rayon::spawn(move || helpers.help());
    }

    /// Helps with the running call, if it is not over, and with those that follow soon.
    fn help(&self) {
        let nested = HELPS.replace(true);
        let arrival = Instant::now();
        let mut call = self.entrance.enter();
        self.expected.fetch_sub(1, Ordering::Relaxed);
        while let Some(inside) = call {
            let start = Instant::now();
            inside.work();
            if nested || start.elapsed() > SHORT || arrival.elapsed() > LONGEST_STAY {
                break;
            }
            // Before leaving the gate, because the caller's next call reads `expected`.
            self.expected.fetch_add(1, Ordering::Relaxed);
            drop(inside);
            call = self.wait();
            self.expected.fetch_sub(1, Ordering::Relaxed);
        }
        HELPS.set(nested);
    }

    /// The next call, if it comes soon enough.
    fn wait(&self) -> Option<Inside<'_>> {
        let start = Instant::now();
        loop {
            let call = poll_for(BETWEEN_YIELDS, || self.entrance.enter());
            if call.is_some() || start.elapsed() > IDLE_TIMEOUT {
                return call;
            }
            // The pool may have other work for this thread, which may take any time.
            self.expected.fetch_sub(1, Ordering::Relaxed);
            rayon::yield_now();
            self.expected.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
