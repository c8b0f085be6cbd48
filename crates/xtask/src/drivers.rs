//! What the compilers of Mesa's drivers for GPUs of AMD and NVIDIA make of the GPU kernels in SPIR-V, without a GPU.
//!
//! Mesa's libraries `*_noop_drm_shim.so` are kernel drivers that compute nothing: programs are compiled, and results are whatever memory held.

use std::{
    collections::VecDeque,
    env,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::Stdio,
};

use crate::command::{cargo, execute};

/// The program with which cargo runs what it builds, by `.ci/lavapipe`; its folder has the drivers.
const RUNNER: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";

/// Lines of what a run said that are shown if it fails.
const SHOWN: usize = 30;

/// A GPU, and how its driver says what it compiles.
struct Gpu {
    name: &'static str,
    driver: &'static str,
    shim: &'static str,
    environment: [(&'static str, &'static str); 2],
    tests: &'static str,
    /// The line before what it says of a kernel.
    begin: &'static str,
    registers: &'static str,
    spilled: [&'static str; 2],
    /// The widest heads whose kernels spill nothing.
    widest: usize,
}

const GPUS: [Gpu; 2] = [
    Gpu {
        name: "AMD RX 7900 (RDNA 3), by RADV",
        driver: "radeon_icd.json",
        shim: "libamdgpu_noop_drm_shim.so",
        environment: [("AMDGPU_GPU_ID", "navi31"), ("RADV_DEBUG", "shaderstats")],
        tests: "drivers::",
        begin: "*** SHADER STATS ***",
        registers: "VGPRs",
        spilled: ["Spilled VGPRs", "Scratch size"],
        widest: 256,
    },
    // Every unit of text that this compiler prints is a write of its own: minutes, so f16 alone, which is on matrix units.
    Gpu {
        name: "NVIDIA RTX 3090 (Ampere), by NVK",
        driver: "nouveau_icd.json",
        shim: "libnouveau_noop_drm_shim.so",
        environment: [("NOUVEAU_CHIPSET", "0x172"), ("NAK_DEBUG", "print")],
        tests: "drivers::in_f16",
        begin: "Stage: compute",
        registers: "Num GPRs",
        spilled: ["Spills to mem", "SLM size"],
        widest: 128,
    },
];

/// One kernel by its driver.
#[derive(Debug, Default, PartialEq)]
struct Kernel {
    registers: usize,
    spilled: usize,
    instructions: usize,
}

/// Compiles every option, prints the registers of each kernel, and fails if one spills.
pub fn compile() -> Result<(), String> {
    let libraries = libraries()?;
    let mut missed = Vec::new();
    for gpu in &GPUS {
        println!(
            "\n{}, of each kernel in turn: registers / instructions",
            gpu.name
        );
        for (case, kernels) in compiled_for(gpu, &libraries)? {
            let shown = kernels
                .iter()
                .map(|it| format!("{} / {}", it.registers, it.instructions));
            match kernels.is_empty() {
                true => println!("{case}: as before"),
                false => println!("{case}: {}", shown.collect::<Vec<_>>().join(", ")),
            }
            let spills = kernels.iter().any(|it| it.spilled > 0);
            if spills && width(&case)? <= gpu.widest {
                missed.push(format!("a kernel of {case} spills on {}", gpu.name));
            }
        }
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(missed.join("\n")),
    }
}

/// The numbers of a head of a case, which is named `.., heads of 64, ..`.
fn width(case: &str) -> Result<usize, String> {
    let width = case
        .split(", ")
        .find_map(|part| part.strip_prefix("heads of ")?.parse().ok());
    width.ok_or_else(|| format!("how wide are the heads of {case:?}?"))
}

/// The folder of the drivers' libraries.
fn libraries() -> Result<PathBuf, String> {
    let runner = env::var_os(RUNNER).unwrap_or_default();
    let folder = Path::new(&runner).with_file_name("root/usr/lib/x86_64-linux-gnu");
    match GPUS.iter().all(|gpu| folder.join(gpu.shim).exists()) {
        true => Ok(folder),
        false => Err(
            "--drivers needs Mesa's drivers and its package mesa-drm-shim: `eval \"$(.ci/lavapipe target/lavapipe)\"`, in a new folder if that one has no shim"
                .into(),
        ),
    }
}

fn compiled_for(gpu: &Gpu, libraries: &Path) -> Result<Vec<(String, Vec<Kernel>)>, String> {
    let line = format!(
        "test -p burn-attn-kernels-cube --features vulkan --lib -- --ignored --nocapture --test-threads 1 {}",
        gpu.tests
    );
    let mut command = cargo(&line);
    let drivers = libraries.join("../../share/vulkan/icd.d");
    command
        .env("VK_DRIVER_FILES", drivers.join(gpu.driver))
        .env("BURN_ATTN_PRELOAD", libraries.join(gpu.shim))
        // What it has, it does not compile.
        .env("MESA_SHADER_CACHE_DISABLE", "true")
        .envs(gpu.environment);
    let cases = execute(&mut command, |command| {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let said = BufReader::new(child.stderr.take().expect("it is piped"));
        let mut last = VecDeque::new();
        // Mesa prints millions of lines, of which some are not UTF-8.
        let lines = said.split(b'\n').map_while(Result::ok).map(|line| {
            let line = String::from_utf8_lossy(&line).into_owned();
            last.truncate(SHOWN - 1);
            last.push_front(line.clone());
            line
        });
        let cases = read(gpu, lines);
        let status = child.wait()?;
        if !status.success() {
            last.iter().rev().for_each(|line| eprintln!("{line}"));
        }
        Ok((status, cases))
    })?;
    match cases.iter().any(|(_, kernels)| !kernels.is_empty()) {
        true => Ok(cases),
        false => Err(format!("{} said of no kernel how it is compiled", gpu.name)),
    }
}

/// The kernels of each case, in the order in which they were compiled.
fn read(gpu: &Gpu, lines: impl Iterator<Item = String>) -> Vec<(String, Vec<Kernel>)> {
    let mut cases: Vec<(String, Vec<Kernel>)> = Vec::new();
    for line in lines {
        if let Some(case) = line.strip_prefix("case ") {
            cases.push((case.into(), Vec::new()));
        }
        // Before the first case, the runtime compiles kernels of its own.
        let Some((_, kernels)) = cases.last_mut() else {
            continue;
        };
        if line == gpu.begin {
            kernels.push(Kernel::default());
        }
        let number = line
            .split_once(": ")
            .and_then(|(name, number)| Some((name, number.parse::<usize>().ok()?)));
        let Some(((name, number), kernel)) = number.zip(kernels.last_mut()) else {
            continue;
        };
        match name {
            name if name == gpu.registers => kernel.registers = number,
            name if gpu.spilled.contains(&name) => kernel.spilled += number,
            "Instructions" | "Instruction count" => kernel.instructions = number,
            _ => {}
        }
    }
    cases
}

#[cfg(test)]
mod tests;
