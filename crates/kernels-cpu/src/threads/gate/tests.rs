use super::*;
use loom::{cell::UnsafeCell, thread};
use std::{array, boxed::Box};

/// Every interleaving with at most this many threads interrupted; without a bound the models would take hours.
fn model(interrupted: usize, run: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(interrupted);
    model.check(run);
}

/// Memory of a call: what the caller writes before it, and what each worker writes. `loom` panics where two accesses are not
/// ordered.
struct Memory {
    given: UnsafeCell<usize>,
    workers: AtomicUsize,
    results: [UnsafeCell<usize>; 3],
}

// SAFETY: this is what the model checks.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(given: usize) -> Self {
        Self {
            given: UnsafeCell::new(given),
            workers: AtomicUsize::new(0),
            results: array::from_fn(|_| UnsafeCell::new(0)),
        }
    }

    fn work(&self) {
        let worker = self.workers.fetch_add(1, Ordering::Relaxed);
        // SAFETY: `loom` sees an access that is not ordered.
        let given = self.given.with(|given| unsafe { *given });
        // SAFETY: as above.
        self.results[worker].with_mut(|result| unsafe { *result = given });
    }

    /// Checks what the caller finds after the call, from up to `most` workers.
    fn check(&self, given: usize, most: usize) {
        let workers = self.workers.load(Ordering::Relaxed);
        assert!((1..=most).contains(&workers), "{workers} workers");
        for (worker, result) in self.results.iter().enumerate() {
            // SAFETY: `loom` sees an access that is not ordered.
            let result = result.with(|result| unsafe { *result });
            assert_eq!(result, if worker < workers { given } else { 0 });
        }
    }
}

/// Helpers that try to enter once.
fn helpers<const N: usize>(gate: &Gate) -> [thread::JoinHandle<()>; N] {
    array::from_fn(|_| {
        let entrance = gate.entrance();
        thread::spawn(move || {
            if let Some(inside) = entrance.enter() {
                inside.work();
            }
        })
    })
}

fn join<const N: usize>(helpers: [thread::JoinHandle<()>; N]) {
    for helper in helpers {
        helper.join().unwrap();
    }
}

/// Calls in a row, whose memory is dropped after each call.
fn calls(gate: &mut Gate, calls: usize, places: usize) {
    for call in 1..=calls {
        let memory = Memory::new(call);
        gate.open(places, &|| memory.work(), || memory.work());
        memory.check(call, 1 + places);
    }
}

#[test]
fn one_helper_and_two_calls() {
    model(4, || {
        let mut gate = Gate::new();
        let helpers: [_; 1] = helpers(&gate);
        calls(&mut gate, 2, 1);
        join(helpers);
    });
}

#[test]
fn two_helpers_and_two_places() {
    model(3, || {
        let mut gate = Gate::new();
        let helpers: [_; 2] = helpers(&gate);
        calls(&mut gate, 1, 2);
        join(helpers);
    });
}

#[test]
fn two_helpers_one_place_and_two_calls() {
    model(3, || {
        let mut gate = Gate::new();
        let helpers: [_; 2] = helpers(&gate);
        calls(&mut gate, 2, 1);
        join(helpers);
    });
}

#[test]
fn a_panic_waits_too() {
    model(3, || {
        let mut gate = Gate::new();
        let helpers: [_; 1] = helpers(&gate);
        let memory = Memory::new(1);
        let own = || {
            memory.work();
            panic::resume_unwind(Box::new("the caller's"));
        };
        let call = AssertUnwindSafe(|| gate.open(1, &|| memory.work(), own));
        assert!(panic::catch_unwind(call).is_err());
        memory.check(1, 2);
        join(helpers);
    });
}
