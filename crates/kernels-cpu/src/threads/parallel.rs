//! Divides tasks among threads.

use pulp::{Scalar, Simd, WithSimd, bytemuck::Pod};

#[cfg(feature = "rayon")]
use crate::threads::helper_threads::work_together;
use crate::{simd::real::Real, threads::scratch::with_scratch};

/// Numbers that one task of a pass over memory writes: enough to be worth a task, few enough to divide the work evenly.
pub(crate) const TASK: usize = 1 << 14;

/// How many threads a call uses, and which vector instructions.
///
/// The number of threads does not change the result by a single bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// The most threads that work at the same time, including the calling one. They belong to rayon's current pool: that of the calling
    /// thread, or else the global one. Without the feature `rayon` there is only the calling thread.
    pub threads: usize,
    /// Which vector instructions are used, except by score functions and visible functions, which take the widest.
    pub instructions: Instructions,
}

/// Which vector instructions are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Instructions {
    /// The widest that the machine has: AVX-512, AVX2 with FMA, NEON, or none.
    ///
    /// With the feature `std` the instructions are detected at run time. Without it, NEON if the target has it, and none on x86, whose wide registers
    /// work only if the operating system saves them. On wasm32, 128 bits with `-C target-feature=+simd128`, otherwise none.
    Widest,
    /// None: runs everywhere. f16 is still converted by the instructions that the machine has for it.
    Portable,
    /// Vectors of 64 bytes, emulated number by number: computes slowly, on any machine, what AVX-512 computes. For tests: without debug
    /// assertions this crate does not contain such code, and runs [`Portable`](Self::Portable).
    Emulated512,
}

impl Execution {
    /// All threads of rayon's current pool (without the feature `rayon`, the calling one), and the widest vectors.
    #[must_use]
    pub fn available() -> Self {
        #[cfg(feature = "rayon")]
        let threads = rayon::current_num_threads();
        #[cfg(not(feature = "rayon"))]
        let threads = 1;
        Self {
            threads,
            instructions: Instructions::Widest,
        }
    }

    /// The calling thread only, and the widest vectors.
    #[must_use]
    pub fn sequential() -> Self {
        Self {
            threads: 1,
            instructions: Instructions::Widest,
        }
    }

    /// How many threads may work on `tasks` tasks that cost `operations` floating-point operations altogether.
    pub(crate) fn workers(self, tasks: usize, operations: f64) -> usize {
        // Waking a thread costs some ten microseconds, in which one core does about a million operations.
        const OPERATIONS_PER_THREAD: f64 = 1e6;
        let worthwhile = (operations / OPERATIONS_PER_THREAD) as usize;
        // In a browser there is no clock, by which threads know when to stop waiting for each other.
        let has_clock = !cfg!(all(target_family = "wasm", target_os = "unknown"));
        let threads = if cfg!(feature = "rayon") && has_clock {
            self.threads
        } else {
            1
        };
        threads.min(tasks).min(worthwhile).max(1)
    }

    /// Runs code that is generic in the vectors with those of this execution.
    pub(crate) fn dispatch<Op: WithSimd>(self, op: Op) -> Op::Output {
        match self.instructions {
            Instructions::Widest => widest(op),
            #[cfg(debug_assertions)]
            Instructions::Emulated512 => pulp::Scalar512b.vectorize(op),
            _ => Scalar.vectorize(op),
        }
    }
}

/// Runs code that is generic in the vectors with the [`Widest`](Instructions::Widest).
pub(crate) fn widest<Op: WithSimd>(op: Op) -> Op::Output {
    // Without `std`, pulp knows what an x86 processor has, but not whether the operating system saves its registers.
    #[cfg(any(feature = "std", not(any(target_arch = "x86", target_arch = "x86_64"))))]
    return pulp::Arch::new().dispatch(op);
    #[cfg(not(any(feature = "std", not(any(target_arch = "x86", target_arch = "x86_64")))))]
    Scalar.vectorize(op)
}

/// Calls `work` once for every task, with `per_worker` numbers of scratch that belong to the thread that runs it.
///
/// `workers` is the result of [`Execution::workers`].
pub(crate) fn for_each<Task: Send, R: Pod>(
    workers: usize,
    per_worker: usize,
    tasks: impl Iterator<Item = Task> + Send,
    work: impl Fn(Task, &mut [R]) + Sync,
) {
    #[cfg(feature = "rayon")]
    if workers > 1 {
        return share_out(workers, per_worker, tasks, work);
    }
    debug_assert_eq!(workers, 1);
    with_scratch(per_worker, |scratch| {
        tasks.for_each(|task| work(task, scratch));
    });
}

/// On several threads, each of which takes the next task when it has finished one.
#[cfg(feature = "rayon")]
fn share_out<Task: Send, R: Pod>(
    workers: usize,
    per_worker: usize,
    tasks: impl Iterator<Item = Task> + Send,
    work: impl Fn(Task, &mut [R]) + Sync,
) {
    let tasks = std::sync::Mutex::new(tasks);
    // The lock is held only while the next task is taken, so a panic in `work` cannot poison it.
    let next = || tasks.lock().ok().and_then(|mut tasks| tasks.next());
    work_together(workers - 1, &|| {
        let Some(first) = next() else { return };
        with_scratch(per_worker, |scratch| {
            core::iter::once(first)
                .chain(core::iter::from_fn(next))
                .for_each(|task| work(task, scratch));
        });
    });
}

/// Adds up the sums of several tasks, in the order of the tasks.
pub(crate) fn add_up<'a, R: Real>(total: &mut [R], mut parts: impl Iterator<Item = &'a [R]>) {
    if let Some(first) = parts.next() {
        total.copy_from_slice(first);
    }
    parts.for_each(|part| add(total, part));
}

pub(crate) fn add<R: Real>(total: &mut [R], part: &[R]) {
    for (sum, &more) in total.iter_mut().zip(part) {
        *sum = *sum + more;
    }
}
