//! What every step took, of CPU and by the clock.

use std::{fs, sync::Mutex, time::Instant};

static STEPS: Mutex<Vec<Step>> = Mutex::new(Vec::new());

struct Step {
    command: String,
    wall_seconds: f64,
    /// The time of the command and of everything that it started; known on Linux.
    cpu_seconds: Option<f64>,
}

/// A running command.
pub struct Clock {
    start: Instant,
    cpu: Option<f64>,
}

impl Clock {
    pub fn start() -> Self {
        Self {
            start: Instant::now(),
            cpu: children_cpu(),
        }
    }

    /// Keeps what the command took, and says it.
    pub fn stop(self, command: &str) {
        let step = Step {
            command: command.into(),
            wall_seconds: self.start.elapsed().as_secs_f64(),
            cpu_seconds: children_cpu().zip(self.cpu).map(|(end, start)| end - start),
        };
        eprintln!("  took {}", step.seconds());
        STEPS.lock().expect("no thread panics with it").push(step);
    }
}

impl Step {
    fn seconds(&self) -> String {
        let cpu = self.cpu_seconds.map(|cpu| format!(", {cpu:.0} s of CPU"));
        format!("{:.0} s{}", self.wall_seconds, cpu.unwrap_or_default())
    }
}

/// Prints all steps, the longest first, and their sum.
pub fn print() {
    let mut steps = STEPS.lock().expect("no thread panics with it");
    steps.sort_by(|a, b| b.wall_seconds.total_cmp(&a.wall_seconds));
    let cpu: f64 = steps.iter().filter_map(|step| step.cpu_seconds).sum();
    let wall: f64 = steps.iter().map(|step| step.wall_seconds).sum();
    println!("\n  wall s    CPU s  step");
    for step in steps.iter() {
        let cpu = step.cpu_seconds.map(|cpu| format!("{cpu:.0}"));
        let (wall, cpu) = (step.wall_seconds, cpu.unwrap_or_default());
        println!("{wall:8.0} {cpu:>8}  {}", step.command);
    }
    println!("{wall:8.0} {cpu:8.0}  all");
}

/// User and system time of all processes that this one has waited for, and of theirs (seconds).
fn children_cpu() -> Option<f64> {
    /// The unit of `/proc` on every Linux, whatever its timer.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program may have spaces.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / TICKS_PER_SECOND)
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
