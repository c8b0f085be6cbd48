use super::*;
use rayon::{ThreadPool, ThreadPoolBuilder, Yield};
use std::{
    array,
    boxed::Box,
    panic::{self, AssertUnwindSafe},
    string::String,
    sync::{OnceLock, atomic::AtomicBool},
    thread::{self, ThreadId},
    vec::Vec,
};

/// Far more than anything takes here, even on a busy machine.
const LONG: Duration = Duration::from_secs(5);

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
}

/// Waits until `done`, or for [`LONG`]; whether it was done.
fn wait_until(done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        if start.elapsed() > LONG {
            return false;
        }
        thread::yield_now();
    }
    true
}

/// One short call with one helper: which thread helped, if one came within 100 µs.
fn short_call() -> Option<ThreadId> {
    let caller = thread::current().id();
    let helper = std::sync::Mutex::new(None);
    work_together(1, &|| {
        let this = thread::current().id();
        if this != caller {
            *helper.lock().unwrap() = Some(this);
        }
        let start = Instant::now();
        while helper.lock().unwrap().is_none() && start.elapsed() < Duration::from_micros(100) {
            thread::yield_now();
        }
    });
    helper.into_inner().unwrap()
}

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
fn not_more_help_than_are_wanted() {
    let pool = pool(4);
    for _ in 0..200 {
        let inside = AtomicUsize::new(0);
        pool.install(|| {
            work_together(2, &|| {
                inside.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_micros(50));
            });
        });
        // `inside` is never decremented, so it counts every thread that worked.
        assert!(inside.into_inner() <= 3);
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

#[test]
fn calls_may_be_nested() {
    /// Calls inside parallel jobs inside calls: each of four tasks is three more calls.
    fn count(levels: usize, sum: &AtomicUsize) {
        let tasks = AtomicUsize::new(0);
        work_together(2, &|| {
            while tasks.fetch_add(1, Ordering::Relaxed) < 4 {
                match levels {
                    0 => {
                        sum.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => {
                        rayon::join(|| count(levels - 1, sum), || count(levels - 1, sum));
                        rayon::scope(|scope| scope.spawn(|_| count(levels - 1, sum)));
                    }
                }
            }
        });
    }
    for threads in [1, 2, 5] {
        let pool = pool(threads);
        for _ in 0..5 {
            let sum = AtomicUsize::new(0);
            pool.install(|| count(3, &sum));
            assert_eq!(sum.into_inner(), 4 * 12 * 12 * 12);
        }
    }
}

#[test]
fn callers_do_not_meet() {
    let helped: [AtomicUsize; 3] = array::from_fn(|_| AtomicUsize::new(0));
    thread::scope(|scope| {
        for (caller, helped) in helped.iter().enumerate() {
            scope.spawn(move || {
                wait_until(|| {
                    let [mine, theirs] = [(); 2].map(|()| AtomicUsize::new(0));
                    let result = panic::catch_unwind(AssertUnwindSafe(|| {
                        helped.fetch_add(short_call().is_some().into(), Ordering::Relaxed);
                        let this = thread::current().id();
                        work_together(1, &|| {
                            if thread::current().id() == this {
                                mine.fetch_add(1, Ordering::Relaxed);
                            } else {
                                theirs.fetch_add(1, Ordering::Relaxed);
                                panic::resume_unwind(Box::new(caller));
                            }
                        });
                    }));
                    assert_eq!(mine.into_inner(), 1);
                    assert_eq!(theirs.into_inner(), result.is_err().into());
                    if let Err(payload) = result {
                        assert_eq!(payload.downcast_ref(), Some(&caller));
                    }
                    helped.load(Ordering::Relaxed) >= 50
                });
            });
        }
    });
    for helped in helped {
        assert!(helped.into_inner() >= 50, "nobody helps");
    }
}

#[test]
fn a_call_stays_in_its_pool() {
    let pools = [pool(2), pool(2)];
    let (helped, strangers) = ([0, 1].map(|_| AtomicUsize::new(0)), AtomicUsize::new(0));
    thread::scope(|scope| {
        for (pool, helped) in pools.iter().zip(&helped) {
            let strangers = &strangers;
            let call = move || {
                let caller = thread::current().id();
                let come = AtomicBool::new(false);
                work_together(1, &|| {
                    if pool.current_thread_index().is_none() {
                        strangers.fetch_add(1, Ordering::Relaxed);
                    }
                    if thread::current().id() != caller {
                        helped.fetch_add(1, Ordering::Relaxed);
                        come.store(true, Ordering::Relaxed);
                    }
                    let start = Instant::now();
                    while !come.load(Ordering::Relaxed)
                        && start.elapsed() < Duration::from_micros(100)
                    {
                        thread::yield_now();
                    }
                });
                helped.load(Ordering::Relaxed) >= 50
            };
            scope.spawn(move || pool.install(|| wait_until(call)));
        }
    });
    assert!(
        helped.into_iter().all(|helped| helped.into_inner() >= 50),
        "nobody helps"
    );
    assert_eq!(strangers.into_inner(), 0, "helpers of another pool");
}

#[test]
fn a_thread_that_joins_a_pool_leaves_its_helpers_behind() {
    thread::spawn(|| {
        assert!(
            wait_until(|| short_call().is_some()),
            "the global pool helps"
        );
        let pool = ThreadPoolBuilder::new()
            .num_threads(2)
            .use_current_thread()
            .build()
            .unwrap();
        let (helped, strangers) = (AtomicUsize::new(0), AtomicUsize::new(0));
        assert!(wait_until(|| {
            let caller = thread::current().id();
            work_together(1, &|| {
                if thread::current().id() != caller {
                    helped.fetch_add(1, Ordering::Relaxed);
                    let strange = pool.current_thread_index().is_none();
                    strangers.fetch_add(strange.into(), Ordering::Relaxed);
                }
                thread::yield_now();
            });
            helped.load(Ordering::Relaxed) >= 10
        }));
        assert_eq!(
            strangers.into_inner(),
            0,
            "of {} helpers",
            helped.into_inner()
        );
    })
    .join()
    .unwrap();
}

#[test]
fn a_join_ends_while_another_thread_wants_help() {
    const WORK: Duration = Duration::from_micros(100);
    // More than a helper that stays could fill within a second.
    const PLACES: usize = 40_000;
    // Four times what fits into a stay.
    const MOST: usize = 4 * (LONGEST_STAY.as_micros() / WORK.as_micros()) as usize;
    let [calling, go, stolen, ended, returned, joined] = [(); 6].map(|()| AtomicBool::new(false));
    let (helped, held) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let joins = OnceLock::new();
    let set = |flag: &AtomicBool| flag.store(true, Ordering::Relaxed);
    let get = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
    let pool = pool(3);
    thread::scope(|scope| {
        // One thread calls, once the others have begun a join; its call goes on until the join is over.
        scope.spawn(|| {
            pool.install(|| {
                set(&calling);
                assert!(wait_until(|| get(&go)));
                let caller = thread::current().id();
                work_together(PLACES, &|| {
                    if thread::current().id() == caller {
                        // Leaves the processors to the helpers: one whose work is interrupted for long does not stay.
                        wait_until(|| {
                            thread::sleep(Duration::from_millis(1));
                            get(&joined)
                        });
                    } else if !get(&joined) {
                        helped.fetch_add(1, Ordering::Relaxed);
                        let is_held = get(&ended) && !get(&returned);
                        if is_held && joins.get() == Some(&thread::current().id()) {
                            held.fetch_add(1, Ordering::Relaxed);
                        }
                        let start = Instant::now();
                        while start.elapsed() < WORK {
                            core::hint::spin_loop();
                        }
                    }
                });
            });
        });
        assert!(wait_until(|| get(&calling)));
        let took = pool.install(|| {
            joins.set(thread::current().id()).unwrap();
            let ((), end) = rayon::join(
                || assert!(wait_until(|| get(&stolen))),
                || {
                    set(&stolen);
                    set(&go);
                    // The only thread that can help is the one that waits for this.
                    assert!(wait_until(|| helped.load(Ordering::Relaxed) > 20));
                    set(&ended);
                    Instant::now()
                },
            );
            set(&returned);
            end.elapsed()
        });
        set(&joined);
        let held = held.load(Ordering::Relaxed);
        assert!(
            held <= MOST && took < LONG / 5,
            "the join was held for {took:?}, {held} times of helping"
        );
    });
}

#[test]
fn a_helper_that_does_something_else_is_replaced() {
    let pool = pool(3);
    let attempt = || {
        let [blocked, free, busy, end, helps] = [(); 5].map(|()| AtomicBool::new(false));
        let set = |flag: &AtomicBool| flag.store(true, Ordering::Relaxed);
        let get = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        pool.scope(|scope| {
            scope.spawn(|_| {
                set(&blocked);
                assert!(wait_until(|| get(&free)));
            });
            assert!(wait_until(|| get(&blocked)));
            // Two threads are left, this one and the helper, who takes the long job while it waits for the next call.
            assert!(wait_until(|| short_call().is_some()));
            scope.spawn(|_| {
                helps.store(HELPS.get(), Ordering::Relaxed);
                set(&busy);
                wait_until(|| get(&end));
            });
            assert!(wait_until(|| get(&busy)));
            set(&free);
            let start = Instant::now();
            let replaced = wait_until(|| short_call().is_some());
            let took = start.elapsed();
            set(&end);
            assert!(replaced && took < LONG / 5, "nobody helped for {took:?}");
        });
        helps.into_inner()
    };
    // On a busy machine, a helper may not wait any more when the job comes.
    assert!(wait_until(attempt), "no helper took the job");
}

#[test]
fn a_full_pool_collects_no_jobs() {
    let left = pool(1).install(|| {
        for _ in 0..100 {
            work_together(3, &|| ());
        }
        core::iter::from_fn(|| (rayon::yield_now() == Some(Yield::Executed)).then_some(())).count()
    });
    assert!(left <= 3, "{left} jobs");
}

#[test]
fn a_thread_may_call_while_it_ends() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    struct Calls;
    impl Drop for Calls {
        fn drop(&mut self) {
            work_together(1, &|| {
                CALLS.fetch_add(1, Ordering::Relaxed);
            });
        }
    }
    thread_local! {
        static LAST: Cell<Option<Calls>> = const { Cell::new(None) };
    }
    thread::spawn(|| {
        LAST.set(Some(Calls));
        short_call();
    })
    .join()
    .unwrap();
    assert!(wait_until(|| CALLS.load(Ordering::Relaxed) > 0));
}
