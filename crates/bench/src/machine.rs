//! Where a run takes place, and with which versions.

use std::env::consts;
use std::fs;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Its processor, as it calls itself, with family and model where it has them.
    pub cpu: String,
    /// Processors that this program may use: cores, or threads of cores.
    pub processors: usize,
    /// The vector instructions that our kernels choose.
    pub instructions: String,
    /// Operating system and architecture.
    pub os: String,
    /// Whether it is a virtual machine, as far as the processor says so.
    pub virtual_machine: bool,
}

impl Machine {
    pub fn here(processors: usize, instructions: String) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let release = read("/proc/sys/kernel/osrelease");
        let cpuinfo = read("/proc/cpuinfo");
        Self {
            cpu: cpu(&cpuinfo),
            processors,
            instructions,
            os: [consts::OS, release.trim(), consts::ARCH]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" "),
            virtual_machine: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        }
    }

    /// "AMD Zen 4" where family and model say so, elsewhere what the processor calls itself.
    pub fn microarchitecture(&self) -> String {
        zen(&self.cpu).map_or_else(|| self.cpu.clone(), |zen| format!("AMD Zen {zen}"))
    }
}

/// The first value of a field of `/proc/cpuinfo`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim())
    })
}

fn cpu(cpuinfo: &str) -> String {
    let name = field(cpuinfo, "model name").unwrap_or("unknown processor");
    match field(cpuinfo, "cpu family").zip(field(cpuinfo, "model")) {
        Some((family, model)) => format!("{name} (family {family}, model {model})"),
        None => name.into(),
    }
}

/// The generation of a Zen, by family and model of [`cpu`], as Linux tells them apart (`arch/x86/kernel/cpu/amd.c`).
fn zen(cpu: &str) -> Option<u32> {
    let (_, numbers) = cpu.strip_prefix("AMD ")?.split_once(" (family ")?;
    let (family, model) = numbers.strip_suffix(')')?.split_once(", model ")?;
    match (family, model.parse::<u32>().ok()?) {
        ("25", 0x00..=0x0f | 0x20..=0x5f) => Some(3),
        ("25", 0x10..=0x1f | 0x60..=0xaf) => Some(4),
        ("26", 0x00..=0x2f | 0x40..=0x4f | 0x60..=0x7f) => Some(5),
        _ => None,
    }
}

/// What was measured, by version.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Versions {
    pub burn_attn: String,
    /// Burn and burn-nn.
    pub burn: String,
    pub candle: String,
    /// The compiler that built all of these.
    pub rustc: String,
    pub pytorch: Option<Pytorch>,
}

/// What a Python process says about itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pytorch {
    pub version: String,
    /// The vector instructions that it chooses.
    pub instructions: String,
    /// Whether its products are MKL's.
    pub mkl: bool,
    /// The version of transformers, if it is there.
    pub transformers: Option<String>,
    pub python: String,
    /// The name of its CUDA device, if it sees one.
    #[serde(default)]
    pub card: Option<String>,
}

impl Versions {
    pub fn new(pytorch: Option<Pytorch>) -> Self {
        let lock = include_str!("../../../Cargo.lock");
        let locked = |name| locked(lock, name).unwrap_or("unknown").to_string();
        Self {
            burn_attn: env!("CARGO_PKG_VERSION").into(),
            burn: locked("burn"),
            candle: locked("candle-nn"),
            rustc: env!("BENCH_RUSTC").into(),
            pytorch,
        }
    }
}

/// The version of a package in a lockfile.
fn locked<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, package) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    package.split('"').next()
}

/// Now, as `2026-11-22T14:03:55Z` (UTC).
pub fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

#[cfg(test)]
mod tests;
