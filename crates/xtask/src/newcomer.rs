//! The first steps of a user who has only Rust and the README: a project beside a fresh clone, with the lines that the README shows.

use std::{
    env::{self, consts::EXE_SUFFIX},
    fs,
    path::Path,
    process::{self, Command},
};

use crate::command::{CARGO, at, is_1, read, root, run, write};
use crate::examples::falling;
use crate::times::Clock;

/// As for the tests: 1 lets a machine pass on which wgpu finds no adapter.
const ALLOW_NO_ADAPTER: &str = "BURN_ATTN_ALLOW_NO_ADAPTER";
/// What CubeCL 0.11.3 panics with there. Other panics of wgpu speak of adapters too.
const NO_ADAPTER: &str = "Unable to acquire wgpu device: AdapterUnavailable";

/// Where everything is built that is not of this workspace, so that Burn is built once in Cargo's own profile.
const TARGET: &str = "target/newcomer";

/// Makes `cargo` build in `TARGET`, in Cargo's default profile, but without debug information, which takes minutes and gigabytes.
pub fn outside(cargo: &mut Command) -> &mut Command {
    cargo.env("CARGO_TARGET_DIR", root().join(TARGET));
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0")
}

/// Makes the project in a temporary folder, builds it, and runs it on flex. Fails if the losses that it prints do not halve.
pub fn on_flex() -> Result<(), String> {
    follow_readme("flex", &["build"])
}

/// [`on_flex`] on wgpu, without Burn's `autotune`, with which all tests on wgpu run.
pub fn on_wgpu() -> Result<(), String> {
    follow_readme("wgpu", &["build", "--features", "burn-attn/wgpu"])
}

fn follow_readme(device: &str, build: &[&str]) -> Result<(), String> {
    // Outside of this workspace: a user does not have its manifest, profile and configuration.
    let folder = env::temp_dir().join(format!("burn-attn-newcomer-{}", process::id()));
    let followed = follow_in(&folder, device, build);
    let removed = fs::remove_dir_all(&folder);
    followed.and(removed.map_err(at(&folder)))
}

fn follow_in(folder: &Path, device: &str, build: &[&str]) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    // What a commit would hold, so that a file that was never added is missing here as it would be in a clone. The folder may be
    // another user's, as in a container, where git needs `safe.directory`.
    let files = format!("--prefix={}/burn-attn/", folder.display());
    let checkout = ["-c", "safe.directory=*", "checkout-index", "--all", &files];
    run(Command::new("git").current_dir(root()).args(checkout))?;
    let clone = folder.join("burn-attn");
    let readme = read(&clone.join("README.md"))?;

    let new = ["new", "--quiet", "--vcs", "none", "newcomer"];
    run(Command::new(CARGO).current_dir(folder).args(new))?;
    let project = folder.join("newcomer");
    let manifest = project.join("Cargo.toml");
    write(&manifest, &with_dependencies(&read(&manifest)?, &readme)?)?;
    write(&project.join("src/main.rs"), program(&readme)?)?;
    // The versions that everything else is tested with. Cargo takes out what the project does not need.
    let lock = read(&clone.join("Cargo.lock"))?;
    write(&project.join("Cargo.lock"), &lock)?;

    let mut cargo = Command::new(CARGO);
    run(outside(cargo.current_dir(&project).args(build)))?;
    let program = format!("debug/newcomer{EXE_SUFFIX}");
    run_on(device, &root().join(TARGET).join(program))
}

/// Runs the program, and shows what it says.
fn run_on(device: &str, program: &Path) -> Result<(), String> {
    let shown = format!("BURN_DEVICE={device} {}", program.display());
    eprintln!("\n$ {shown}");
    let clock = Clock::start();
    let output = Command::new(program)
        .env("BURN_DEVICE", device)
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    clock.stop(&shown);
    let printed = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    eprint!("{printed}{errors}");
    let succeeded = output.status.success();
    if device == "wgpu" && !succeeded && errors.contains(NO_ADAPTER) {
        if !is_1(ALLOW_NO_ADAPTER) {
            return Err(format!(
                "the README's example found no adapter for wgpu; {ALLOW_NO_ADAPTER}=1 passes without"
            ));
        }
        eprintln!("skipped: wgpu finds no adapter");
        return Ok(());
    }
    if !succeeded {
        return Err(format!("`{shown}` failed with {}", output.status));
    }
    falling(&printed).map_err(|losses| {
        format!("the losses of the README's first program do not halve: {losses:?}")
    })
}

/// The manifest that cargo made, with the dependencies of the README's first block of TOML.
fn with_dependencies(manifest: &str, readme: &str) -> Result<String, String> {
    const PATH: &str = "path = \"../burn-attn/crates/nn\"";
    let lines = blocks(readme, "toml").first().copied().unwrap_or_default();
    if !lines.contains(PATH) {
        return Err(format!(
            "the README's first block of TOML has to show burn-attn with {PATH}"
        ));
    }
    let header = "[dependencies]";
    let ours = lines.replacen(header, "", 1);
    Ok(format!(
        "{}\n\n{header}\n{}\n",
        manifest.replace(header, "").trim_end(),
        ours.trim()
    ))
}

/// The README's first whole program in Rust.
fn program(readme: &str) -> Result<&str, String> {
    let mut programs = blocks(readme, "rust").into_iter();
    programs
        .find(|block| block.contains("fn main()"))
        .ok_or_else(|| "the README has no program in Rust".into())
}

/// The blocks of `language` in `markdown`.
fn blocks<'a>(markdown: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("```{language}\n");
    let after = markdown.split(begin.as_str()).skip(1);
    after.filter_map(|rest| rest.split("```").next()).collect()
}

#[cfg(test)]
mod tests;
