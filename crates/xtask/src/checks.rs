//! What a change must pass.

use std::{fs, path::Path, process::Command, time::Instant};

/// A file over this many lines wants a second idea moved out.
const LONGEST_FILE: usize = 600;

/// Checks that are too long to be always run.
#[derive(Default)]
pub struct Options {
    /// Test on wgpu.
    pub wgpu: bool,
    /// Type-check cuda.
    pub cuda: bool,
    /// Type-check the CPU kernels for wasm32.
    pub wasm: bool,
}

/// Runs every check until one fails.
pub fn run(options: &Options) -> Result<(), String> {
    short_files()?;
    cargo(&["fmt", "--all", "--check"], &[])?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    cargo(&clippy, &[])?;
    let clippy_without_std = [
        "clippy",
        "-p",
        "burn-attn-kernels-cpu",
        "--no-default-features",
        "--",
        "-D",
        "warnings",
    ];
    cargo(&clippy_without_std, &[])?;
    cargo(
        &["doc", "--workspace", "--no-deps"],
        &[("RUSTDOCFLAGS", "-D warnings")],
    )?;
    translation_smoke()?;
    if options.cuda {
        // Without a CUDA toolchain the feature can only be type-checked; DOCS_RS skips the download of LLVM.
        let check = [
            "check",
            "-p",
            "translation",
            "--features",
            "cuda",
            "--target-dir",
            "target/cuda",
        ];
        cargo(&check, &[("DOCS_RS", "1")])?;
    }
    if options.wasm {
        wasm()?;
    }
    if options.wgpu {
        // A target directory of its own: another set of features would rebuild the default one.
        let test = [
            "test",
            "-p",
            "burn-attn-tests",
            "--features",
            "wgpu",
            "--target-dir",
            "target/wgpu",
        ];
        cargo(&test, &[])?;
    }
    cargo(&["test"], &[])
}

/// Type-checks the CPU kernels for wasm32, without `std` and with it.
fn wasm() -> Result<(), String> {
    const TARGET: &str = "wasm32-unknown-unknown";
    // Where Debian's packages put their compiler, which needs no server of rustup's.
    const DEBIAN: &str = "/usr/bin/rustc";
    let (flags, environment): (&[&str], &[(&str, &str)]) = if has_component("rustc", TARGET) {
        (&[], &[])
    } else if has_component(DEBIAN, "src/rust/library") {
        (
            &["-Z", "build-std=std,panic_abort"],
            &[("RUSTC", DEBIAN), ("RUSTC_BOOTSTRAP", "1")],
        )
    } else {
        return Err(format!(
            "--wasm needs `rustup target add {TARGET}`, or {DEBIAN} with its sources (Debian: rustc-web, rust-web-src)"
        ));
    };
    let check = [
        "check",
        "-p",
        "burn-attn-kernels-cpu",
        "--target",
        TARGET,
        "--target-dir",
        "target/wasm",
        "--no-default-features",
    ];
    for features in [&[][..], &["--features", "std"]] {
        cargo(&[&check, features, flags].concat(), environment)?;
    }
    Ok(())
}

/// Whether a compiler has a folder in its `lib/rustlib`: a target, or the sources of the standard library.
fn has_component(rustc: &str, folder: &str) -> bool {
    Command::new(rustc)
        .args(["--print", "sysroot"])
        .output()
        .is_ok_and(|output| {
            let sysroot = String::from_utf8_lossy(&output.stdout);
            let rustlib = Path::new(sysroot.trim()).join("lib/rustlib");
            output.status.success() && rustlib.join(folder).is_dir()
        })
}

/// Trains for a few steps, then uses every subcommand on what came out.
fn translation_smoke() -> Result<(), String> {
    let out = root().join("target/translation-smoke");
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    let out = out.display().to_string();
    let page = format!("{out}/attention.html");
    let report = format!("{out}/report.json");
    let translation = |arguments: &[&str]| {
        let start = ["run", "--release", "--quiet", "-p", "translation", "--"];
        cargo(&[&start, arguments, &["--out", &out]].concat(), &[])
    };
    translation(&[
        "train",
        "--epochs",
        "1",
        "--d-model",
        "32",
        "--report",
        &report,
    ])?;
    translation(&["translate", "The girl eats an apple."])?;
    translation(&["evaluate"])?;
    translation(&["explain", "The girl eats an apple.", "--html", &page])?;
    for file in [&page, &report] {
        let size = fs::metadata(file)
            .map_err(|error| format!("{file}: {error}"))?
            .len();
        if size == 0 {
            return Err(format!("{file} is empty"));
        }
    }
    Ok(())
}

/// Runs cargo in the workspace's root and shows the command.
fn cargo(arguments: &[&str], environment: &[(&str, &str)]) -> Result<(), String> {
    let mut shown = String::new();
    for (name, value) in environment {
        shown += &format!("{name}='{value}' ");
    }
    shown += &format!("cargo {}", arguments.join(" "));
    eprintln!("\n$ {shown}");
    let start = Instant::now();
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root())
        .status()
        .map_err(|error| format!("{shown}: {error}"))?;
    eprintln!("  took {:.0} s", start.elapsed().as_secs_f64());
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{shown}` failed with {status}"))
    }
}

/// Fails if a source file has grown over [`LONGEST_FILE`] lines.
fn short_files() -> Result<(), String> {
    let mut long = Vec::new();
    for folder in ["crates", "examples", "tests"] {
        visit(&root().join(folder), &mut |path| {
            let lines = fs::read_to_string(path).map_or(0, |text| text.lines().count());
            if lines > LONGEST_FILE {
                long.push(format!("{} has {lines} lines", path.display()));
            }
        });
    }
    if long.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "at most {LONGEST_FILE} lines a file: {}",
            long.join(", ")
        ))
    }
}

/// Calls `look` on every Rust file below `folder`.
fn visit(folder: &Path, look: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            visit(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&path);
        }
    }
}

/// The workspace's root.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate lies in crates/xtask")
}
