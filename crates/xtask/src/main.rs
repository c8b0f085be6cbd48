//! The project's own chores. `cargo run-checks` runs everything CI runs, cheapest first, and the tests last, so that the
//! last lines are the test runner's own summary.

mod checks;

use std::process::ExitCode;

const USAGE: &str = "usage: cargo run-checks [--wgpu] [--cuda] [--wasm]
  --wgpu  also test on wgpu (a long build of its own; without an adapter the tests say so and pass)
  --cuda  also type-check the cuda feature (a long check)
  --wasm  also type-check the CPU kernels for wasm32 (once a long check, if the standard library has to be built)";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("run-checks") {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    }
    let mut options = checks::Options::default();
    for argument in arguments {
        match argument.as_str() {
            "--wgpu" => options.wgpu = true,
            "--cuda" => options.cuda = true,
            "--wasm" => options.wasm = true,
            "--help" | "-h" => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            unknown => {
                eprintln!("unknown option {unknown}\n{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    match checks::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("run-checks: {failure}");
            ExitCode::FAILURE
        }
    }
}
