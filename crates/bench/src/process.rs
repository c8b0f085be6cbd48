//! Contestants as child processes: this program again, or Python.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;

use crate::case::{Goal, Library, Task};
use crate::machine::Pytorch;
use crate::protocol::{
    END, FAILED, GO, GPU_SAMPLE_SECONDS, LONG_SECONDS, READY, Ready, SAMPLE_SECONDS,
    WARM_UP_SECONDS,
};
use crate::suites;
use crate::work::Work;

/// The hidden option that makes this program a contestant.
pub const CONTESTANT: &str = "--contestant";

/// Names the Python interpreter.
pub const PYTHON: &str = "BURN_ATTN_PYTHON";

/// A child that answers lines.
struct Process {
    /// What it measures.
    goal: Goal,
    /// Whether it runs Python, and so waits for the next task when one is done.
    is_python: bool,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start(goal: Goal, is_python: bool, command: &mut Command) -> Result<Self, String> {
        let shown = command.get_program().to_string_lossy().into_owned();
        if goal == Goal::Memory {
            // By default glibc keeps more and more freed memory for itself, and a peak inside that memory is not seen. Thresholds that are
            // named, at their documented starting values, stay there.
            command.env("MALLOC_MMAP_THRESHOLD_", "131072");
            command.env("MALLOC_TRIM_THRESHOLD_", "131072");
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{shown}: {error}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        Ok(Self {
            goal,
            is_python,
            child,
            stdin: stdin.expect("it was asked to be piped"),
            stdout: BufReader::new(stdout.expect("it was asked to be piped")),
        })
    }

    fn tell(&mut self, line: &str) -> Result<(), String> {
        writeln!(self.stdin, "{line}")
            .and_then(|()| self.stdin.flush())
            .map_err(|error| format!("cannot reach the process: {error}"))
    }

    /// Gives it a work, and waits until it is ready.
    fn give<T: DeserializeOwned>(&mut self, library: Library, work: &Work) -> Result<T, String> {
        let (work, goal) = (work.clone(), self.goal);
        let task = serde_json::to_string(&Task {
            library,
            work,
            goal,
        });
        self.tell(&task.expect("a task is plain data"))?;
        let line = self.hear()?;
        let ready = line.strip_prefix(READY).unwrap_or(&line);
        serde_json::from_str(ready).map_err(|error| format!("{error} in: {line}"))
    }

    /// The next line, or why there is none.
    fn hear(&mut self) -> Result<String, String> {
        let said = |error: io::Error| error.to_string();
        let mut line = String::new();
        if self.stdout.read_line(&mut line).map_err(said)? == 0 {
            let status = self.child.wait().map_err(said)?;
            return Err(format!("the process ended ({status})"));
        }
        let line = line.trim_end();
        match line.strip_prefix(FAILED) {
            Some(why) => Err(why.into()),
            None => Ok(line.into()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended long ago.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A contestant that is ready to be timed.
pub struct Contestant {
    process: Process,
    /// What it said before the first sample.
    pub ready: Ready,
}

impl Contestant {
    /// One sample: seconds per iteration.
    pub fn sample(&mut self) -> Result<f64, String> {
        self.process.tell(GO)?;
        let line = self.process.hear()?;
        line.parse().map_err(|error| format!("{error}: {line}"))
    }
}

/// Starts contestants, and keeps Python processes, whose start takes seconds, for the next case.
pub struct Stage {
    threads: usize,
    /// What PyTorch says about itself, or why it is not there.
    pub pytorch: Result<Pytorch, String>,
    /// Idle Python processes.
    idle: Vec<Process>,
}

impl Stage {
    pub fn new(threads: usize) -> Self {
        let (idle, pytorch) = match start_python(threads, Goal::Time) {
            Ok((process, pytorch)) => (vec![process], Ok(pytorch)),
            Err(why) => (Vec::new(), Err(why)),
        };
        Self {
            threads,
            pytorch,
            idle,
        }
    }

    /// Writes the checkpoints of the suite `models` to `folder`, those that are not there.
    pub fn write_checkpoints(&self, folder: &str) -> Result<(), String> {
        let status = Command::new(interpreter())
            .args(["-c", suites::models::SCRIPT, folder])
            .status()
            .map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!(
                "the checkpoints of the suite `models` cannot be written: {status}"
            )),
        }
    }

    /// Why there are no checkpoints of transformers, where there are none.
    pub fn lacks_transformers(&self) -> Option<&'static str> {
        match &self.pytorch {
            Ok(pytorch) if pytorch.transformers.is_none() => Some("transformers is not there"),
            _ => self.lacks(Library::Pytorch),
        }
    }

    /// Why contestants of `library` cannot be started, where they cannot.
    pub fn lacks(&self, library: Library) -> Option<&'static str> {
        match &self.pytorch {
            Err(_) if library.is_python() => Some("PyTorch is not there"),
            Ok(pytorch) if library.needs_card() && pytorch.card.is_none() => {
                Some("PyTorch sees no CUDA device")
            }
            _ => None,
        }
    }

    /// Extra peak memory of one iteration (bytes), where it can be measured.
    pub fn peak(&mut self, library: Library, work: &Work) -> Result<Option<u64>, String> {
        let (process, peak) = self.start(library, work, Goal::Memory)?;
        self.leave(process);
        Ok(peak)
    }

    /// Starts a contestant and waits until it can be timed.
    pub fn timed(&mut self, library: Library, work: &Work) -> Result<Contestant, String> {
        let (process, ready) = self.start(library, work, Goal::Time)?;
        Ok(Contestant { process, ready })
    }

    /// Ends a contestant, and returns what it said before the first sample.
    pub fn end(&mut self, contestant: Contestant) -> Ready {
        self.leave(contestant.process);
        contestant.ready
    }

    fn start<T: DeserializeOwned>(
        &mut self,
        library: Library,
        work: &Work,
        goal: Goal,
    ) -> Result<(Process, T), String> {
        let idle = self.idle.iter().position(|idle| idle.goal == goal);
        let mut process = match (library.is_python(), idle) {
            (true, Some(index)) => self.idle.swap_remove(index),
            (true, None) => start_python(self.threads, goal)?.0,
            (false, _) => start_rust(self.threads, goal)?,
        };
        match process.give(library, work) {
            Ok(answer) => Ok((process, answer)),
            Err(why) => {
                self.leave(process);
                Err(why)
            }
        }
    }

    fn leave(&mut self, mut process: Process) {
        if process.tell(END).is_ok() && process.is_python {
            self.idle.push(process);
        }
    }
}

fn start_rust(threads: usize, goal: Goal) -> Result<Process, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg(CONTESTANT);
    command.env("RAYON_NUM_THREADS", threads.to_string());
    Process::start(goal, false, &mut command)
}

fn start_python(threads: usize, goal: Goal) -> Result<(Process, Pytorch), String> {
    const PROGRAM: &str = concat!(include_str!("peers.py"), include_str!("contestant.py"));
    let seconds = [
        SAMPLE_SECONDS,
        LONG_SECONDS,
        WARM_UP_SECONDS,
        GPU_SAMPLE_SECONDS,
    ];
    let mut command = Command::new(interpreter());
    command
        .args(["-c", PROGRAM])
        .args(seconds.map(|seconds| seconds.to_string()))
        .env("OMP_NUM_THREADS", threads.to_string());
    let mut process = Process::start(goal, true, &mut command)?;
    let line = process.hear()?;
    let pytorch = serde_json::from_str(&line).map_err(|error| format!("{error} in: {line}"))?;
    Ok((process, pytorch))
}

fn interpreter() -> String {
    env::var(PYTHON).unwrap_or_else(|_| "python3".into())
}
