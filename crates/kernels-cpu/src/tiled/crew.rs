//! Threads of rayon's pool that help the calling thread, as far as they come in time.
//!
//! A scope of rayon ends when every thread it has called has come, found something to do or not, and gone; and a thread without
//! work goes to sleep at once. Waking it takes longer than a short call: on the machine of the notebook, a product of 50 µs
//! ended after 500 µs. Here a call ends when its work is done, and who comes later finds a closed door; and who has helped
//! with a short one stays awake for a moment, because the next call of a model that decodes is some ten microseconds away.

#![allow(
    unsafe_code,
    reason = "threads of the pool outlive the work they are given; this file shows that they do not touch it then"
)]

use core::{
    any::Any,
    cell::Cell,
    hint, mem,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use std::{
    boxed::Box,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, Thread},
    thread_local,
    time::Instant,
    vec::Vec,
};

/// How long a helper waits for the next call: longer than what lies between two parallel calls of a decoded token, and so short
/// that nobody sees it.
const PATIENCE: Duration = Duration::from_micros(200);

/// A helper waits for the next call only after work this short: one of the calls of a decoded token, not of training.
const SHORT: Duration = Duration::from_millis(1);

/// How often a helper looks before it asks the clock, and the rest of rayon's pool for work.
const LOOKS: usize = 32;

/// How often the caller looks for the last helper before it goes to sleep: some ten microseconds, less than it takes to wake
/// up again.
const LAST_LOOKS: usize = 2000;

/// Runs `work` on the calling thread and on up to `helpers` threads of rayon's pools at once, and returns when all that have
/// begun it are done. Helpers that are awake come first; others are called from the current pool.
///
/// A panic of a helper goes on in the caller.
pub(super) fn work_together(helpers: usize, work: &(dyn Fn() + Sync)) {
    let door = Arc::new(Door {
        state: AtomicUsize::new(0),
        caller: thread::current(),
        panic: Mutex::new(None),
    });
    {
        let _closes = Closes(&door);
        CREW.invite(&door, work, helpers);
        for _ in CREW.waiting.load(Ordering::Relaxed)..helpers {
            rayon::spawn(|| CREW.help());
        }
        work();
    }
    let panic = lock(&door.panic).take();
    if let Some(payload) = panic {
        panic::resume_unwind(payload);
    }
}

/// Who waits for whom, in the whole process.
static CREW: Crew = Crew {
    invitations: Mutex::new(Vec::new()),
    invited: AtomicUsize::new(0),
    waiting: AtomicUsize::new(0),
};

thread_local! {
    /// Whether this thread is a helper already: rayon may give a waiting one another helper's place.
    static HELPS: Cell<bool> = const { Cell::new(false) };
}

struct Crew {
    invitations: Mutex<Vec<Invitation>>,
    /// How many invitations there are, to be looked at without the lock.
    invited: AtomicUsize,
    /// Helpers without work that are awake.
    waiting: AtomicUsize,
}

/// One place at somebody's work.
struct Invitation {
    door: Arc<Door>,
    work: Work,
}

/// What to do, without its lifetime.
#[derive(Clone, Copy)]
struct Work(*const (dyn Fn() + Sync));

// SAFETY: what is behind the pointer is `Sync`, so any thread may call it; when, is the door's business.
unsafe impl Send for Work {}

impl Crew {
    fn invite(&self, door: &Arc<Door>, work: &(dyn Fn() + Sync), helpers: usize) {
        // SAFETY: the types differ in a lifetime alone, and a pointer may dangle.
        let work = Work(unsafe {
            mem::transmute::<*const (dyn Fn() + Sync + '_), *const (dyn Fn() + Sync)>(work)
        });
        let mut invitations = lock(&self.invitations);
        for _ in 0..helpers {
            let door = door.clone();
            invitations.push(Invitation { door, work });
        }
        self.invited.store(invitations.len(), Ordering::Relaxed);
    }

    /// Takes back what nobody has followed.
    fn withdraw(&self, door: &Door) {
        let mut invitations = lock(&self.invitations);
        invitations.retain(|invitation| !core::ptr::eq(&*invitation.door, door));
        self.invited.store(invitations.len(), Ordering::Relaxed);
    }

    fn next(&self) -> Option<Invitation> {
        if self.invited.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut invitations = lock(&self.invitations);
        let next = invitations.pop();
        self.invited.store(invitations.len(), Ordering::Relaxed);
        next
    }

    /// Follows one invitation after the other, until there has been none for a while. Returns at once if there is none.
    fn help(&self) {
        let mut next = self.next();
        let nested = HELPS.replace(true);
        while let Some(invitation) = next {
            let start = Instant::now();
            invitation.follow();
            let may_wait = !nested && start.elapsed() < SHORT;
            next = match may_wait {
                true => self.wait(),
                false => self.next(),
            };
        }
        HELPS.set(nested);
    }

    /// The next invitation that comes soon enough.
    fn wait(&self) -> Option<Invitation> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let start = Instant::now();
        let next = loop {
            let next = (0..LOOKS).find_map(|_| {
                hint::spin_loop();
                self.next()
            });
            if next.is_some() || start.elapsed() > PATIENCE {
                break next;
            }
            // Others may have work for this thread.
            rayon::yield_now();
        };
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        next
    }
}

impl Invitation {
    fn follow(self) {
        self.door.enter(|| {
            // SAFETY: `enter` calls this only if the door is not closed, and the caller, whose borrow the work is, does not go
            // on before `close` has seen everybody leave, not even when it unwinds.
            unsafe { (*self.work.0)() }
        });
    }
}

/// No code panics while it holds one of the locks here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bit of [`Door::state`] that is set when nobody may enter any more; the other bits count who is inside.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// Where helpers come in.
struct Door {
    state: AtomicUsize,
    caller: Thread,
    /// The first panic of a helper.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Door {
    /// Calls `work` if the door is open, and keeps [`close`](Self::close) waiting meanwhile.
    fn enter(&self, work: impl FnOnce()) {
        // Acquire: `work` sees what the caller wrote before.
        let found = self.state.fetch_add(1, Ordering::Acquire);
        if found & CLOSED == 0
            && let Err(payload) = panic::catch_unwind(AssertUnwindSafe(work))
        {
            lock(&self.panic).get_or_insert(payload);
        }
        // Release: the caller sees what `work` wrote.
        if self.state.fetch_sub(1, Ordering::Release) == CLOSED + 1 {
            self.caller.unpark();
        }
    }

    /// Lets nobody in any more, and waits until all have left.
    fn close(&self) {
        let mut state = self.state.fetch_or(CLOSED, Ordering::Acquire) | CLOSED;
        let mut looks = 0;
        while state != CLOSED {
            if looks < LAST_LOOKS {
                looks += 1;
                hint::spin_loop();
            } else {
                thread::park();
            }
            state = self.state.load(Ordering::Acquire);
        }
    }
}

/// Closes the door, also when the caller's own work panics.
struct Closes<'a>(&'a Door);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        CREW.withdraw(self.0);
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{string::String, time::Duration, vec::Vec};

    #[test]
    fn everybody_who_begins_is_waited_for() {
        for round in 0..2000 {
            let tasks = AtomicUsize::new(0);
            let done: Vec<AtomicUsize> = (0..97).map(|_| AtomicUsize::new(0)).collect();
            work_together(3, &|| {
                while let Some(task) = done.get(tasks.fetch_add(1, Ordering::Relaxed)) {
                    if round % 100 == 0 {
                        thread::sleep(Duration::from_micros(20));
                    }
                    task.fetch_add(round, Ordering::Relaxed);
                }
            });
            assert!(done.into_iter().all(|task| task.into_inner() == round));
        }
    }

    #[test]
    fn a_panic_of_a_helper_reaches_the_caller_and_the_pool_goes_on() {
        let caller = thread::current().id();
        let come = AtomicUsize::new(0);
        let result = panic::catch_unwind(AssertUnwindSafe(|| {
            work_together(1, &|| {
                if thread::current().id() != caller {
                    come.fetch_add(1, Ordering::Relaxed);
                    panic!("a helper's");
                }
                while come.load(Ordering::Relaxed) == 0 {
                    thread::yield_now();
                }
            });
        }));
        let payload = result.expect_err("the helper has panicked");
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"a helper's"));
        everybody_who_begins_is_waited_for();
    }

    #[test]
    fn a_panic_of_the_caller_waits_for_helpers() {
        let caller = thread::current().id();
        let (come, gone) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let result = panic::catch_unwind(AssertUnwindSafe(|| {
            work_together(1, &|| {
                if thread::current().id() == caller {
                    while come.load(Ordering::Relaxed) == 0 {
                        thread::yield_now();
                    }
                    panic!("{}", String::from("the caller's"));
                }
                come.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(50));
                gone.fetch_add(1, Ordering::Relaxed);
            });
        }));
        assert!(result.is_err());
        assert_eq!(gone.into_inner(), 1);
    }
}
