//! The child's side: one task, as often as the parent asks.

use std::error::Error;
use std::io::{self, BufRead, Lines, StdinLock, Write};
use std::panic;
use std::time::Instant;

use burn::tensor::Device;
use serde::Serialize;

use crate::case::{Goal, Task};
use crate::digest::Digest;
use crate::memory;
use crate::protocol::{
    FAILED, GO, GPU_SAMPLE_SECONDS, LONG_SECONDS, READY, Ready, SAMPLE_SECONDS, WARM_UP_SECONDS,
};
use crate::subjects::{self, Subject};

/// Serves the parent on standard input and output.
pub fn serve() -> io::Result<()> {
    // A panic of any library becomes the line that the parent waits for.
    panic::set_hook(Box::new(|info| say_failed(&info.to_string())));
    memory::volunteer_for_oom();
    let mut lines = io::stdin().lock().lines();
    if let Some(task) = lines.next().transpose()?
        && let Err(why) = work(&serde_json::from_str(&task)?, lines)
    {
        say_failed(&why.to_string());
    }
    Ok(())
}

/// Does a task, as often as the parent asks.
fn work(task: &Task, lines: Lines<StdinLock<'_>>) -> Result<(), Box<dyn Error>> {
    if task.goal == Goal::Memory {
        return Ok(say_ready(&peak(task)?)?);
    }
    let (mut subject, ready) = prepare(task)?;
    say_ready(&ready)?;
    for line in lines {
        if line? != GO {
            break;
        }
        let total = subject.time(ready.iterations);
        let seconds = total.as_secs_f64() / ready.iterations as f64;
        say(&format!("{seconds:e}"))?;
    }
    Ok(())
}

/// Makes the inputs and runs one iteration for its peak memory.
fn peak(task: &Task) -> Result<Option<u64>, String> {
    subjects::build(&task.work.tiny(), task.library)?.time(1);
    let mut subject = subjects::build(&task.work, task.library)?;
    let device = Device::default();
    let before = device.memory_pool_usage();
    let of_process = memory::extra_peak(|| {
        subject.time(1);
    });
    // On a GPU, the pages of its pools, to which the scratch of tuning belongs: the process grows by the compiled shaders too, most
    // of all where they run in software.
    Ok(match before.zip(device.memory_pool_report()) {
        Some((before, pools)) => {
            let peaks = pools.iter().map(|pool| pool.page_size * pool.pages_peak);
            Some(peaks.sum::<u64>().saturating_sub(before.bytes_reserved))
        }
        None => of_process,
    })
}

/// Makes the inputs, checks the results and warms up.
fn prepare(task: &Task) -> Result<(Box<dyn Subject>, Ready), String> {
    let mut subject = subjects::build(&task.work, task.library)?;
    let start = Instant::now();
    let results = subject.results();
    let mut seconds = start.elapsed().as_secs_f64();
    subjects::check(&task.work, task.library, &results)?;
    let results = Digest::all(&results)?;
    let on_gpu = subjects::on_gpu();
    // The first call on a GPU is mostly compilation.
    if seconds < LONG_SECONDS || on_gpu {
        let start = Instant::now();
        seconds = subject.time(1).as_secs_f64();
        while start.elapsed().as_secs_f64() < WARM_UP_SECONDS {
            seconds = seconds.min(subject.time(1).as_secs_f64());
        }
    }
    let sample = match on_gpu {
        true => GPU_SAMPLE_SECONDS,
        false => SAMPLE_SECONDS,
    };
    let iterations = |seconds: f64| (sample / seconds).ceil().max(1.0) as usize;
    if on_gpu && iterations(seconds) > 1 {
        // Without waiting for each iteration.
        let count = iterations(seconds);
        seconds = subject.time(count).as_secs_f64() / count as f64;
    }
    let ready = Ready {
        iterations: iterations(seconds),
        seconds,
        results,
        note: None,
    };
    Ok((subject, ready))
}

fn say_ready(ready: &impl Serialize) -> io::Result<()> {
    say(&format!("{READY}{}", serde_json::to_string(ready)?))
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

fn say_failed(why: &str) {
    // Nobody is left to tell when the parent has gone.
    let _ = say(&format!("{FAILED}{}", why.replace('\n', " ")));
}
