#!/usr/bin/env python3
"""Runs the CUDA kernels FOLDER/*.cu on the CPU, checks their accesses to memory, and compares their results with a
reference in double precision. Needs g++ 12 on an x86-64 with AVX2, and no GPU. Builds in BUILD_FOLDER.

    BURN_ATTN_SOURCES=/tmp/cuda cargo test -p burn-attn-kernels-cube --features wgpu generated
    run.py /tmp/cuda BUILD_FOLDER [NAME...]

Prints the largest error of every result, relative to its largest magnitude (of logsumexp as it is). Fails if it is too
large; if results are unwritten, written twice, or of other bits in another order of threads; if lanes race for
shared memory, read it unwritten, leave a tensor or an array, or wait at different operations.
It cannot see speed, which instructions there are, or what the GPU's compiler makes of the source; whether lanes wait
at the same place, if it is the same kind of operation; or unaligned vectors in memory.
"""
import pathlib
import platform
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OWN = ["memory", "runtime", "inputs", "reference", "main"]
# Contraction of a * b + c would hide that a kernel depends on it, as another compiler need not contract.
GXX = ["g++", "-std=c++20", "-march=haswell", "-ffp-contract=off", "-fno-strict-aliasing", "-g1", f"-I{HERE}"]
BYTES = {"float": 4, "uint32_t": 4, "__half": 2, "__nv_bfloat16": 2}
# A kernel takes some 10 seconds; one that takes this long does not end.
MOST_SECONDS = 900


def compiled(source, target, options):
    """Whether g++ compiles it."""
    return subprocess.run([*GXX, *options, "-c", source, "-o", target]).returncode == 0


def shared_bytes(code):
    """The end of the last array in shared memory."""
    arrays = re.findall(r"reinterpret_cast<array<(\w+?)(?:_(\d))?, (\d+)> \*>\(&v\d+\[(\d+)\]\)", code)
    sizes = [(int(begin), int(count), int(width or 1) * BYTES[elem]) for elem, width, count, begin in arrays]
    if any(begin % size for begin, _, size in sizes):
        sys.exit("an array in shared memory is not aligned to its vectors")
    return max(begin + count * size for begin, count, size in sizes)


def for_cpu(code, name):
    """The source with the shim in place of CUDA's headers, and what the emulator has to know of it."""
    threads, function = re.search(r"__launch_bounds__\((\d+)\)\s+(\w+)\(", code).groups()
    shared = shared_bytes(code)
    code = re.sub(r"^#include <.*>$", "", code, flags=re.M)
    code = re.sub(r"^typedef (un)?signed [a-z ]+ u?int\d+_t;$", "", code, flags=re.M)
    code = code.replace("return data[i];", "emulator::check_index(i, N); return data[i];")
    array = r"extern __shared__ __align__\(\d+\) char (v\d+)\[\];"
    code = re.sub(array, r"char *const \1 = emulator::shared_memory();", code)
    return f"""#include "cuda.h"
{code}
static_assert(sizeof(info_st::scalars_f32) == 16);
static_assert(sizeof(info_st::scalars_i32) == 16);
static_assert(sizeof(info_st::scalars_u32) == 24);
const emulator::Kernel emulator::kernel = {{
    "{name}", {threads}, {shared}, emulator::count_tensors({function}),
    sizeof(info_st::scalars_usize) / 4, sizeof(info_st::static_meta) / 4,
    [](void **arguments) {{ emulator::call({function}, arguments); }},
}};
"""


def lanes_apart(code):
    """Lines that ask which lanes are together where they may not be: where they may part since the last barrier."""
    lines, together = [], False
    for token in re.finditer(r"__sync\w+\(\)|__activemask|[{}?]|\b(?:if|else|for|while|switch)\b", code):
        if token[0] == "__activemask" and not together:
            lines.append(code.count("\n", 0, token.start()) + 1)
        elif token[0] != "__activemask":
            together = token[0].startswith("__sync")
    return lines


def run(path, build):
    """Builds and runs one kernel, and says whether it is right."""
    name, code = path.stem, path.read_text()
    parts = re.fullmatch(r"(Forward|Query|KeyAndValue|Bias)_(b?f16|f32)(?:_pieces)?_(\d+)_?(\w*)", name)
    if not parts:
        print(f"{name}: not a name that the emulator knows", flush=True)
        return False
    source, program = build / f"{name}.cpp", build / name
    source.write_text(for_cpu(code, name))
    # Warnings are about CubeCL's code, not ours. The option has g++ call the emulator before every access.
    options = ["-O1", "-fsanitize=thread", "-ftrivial-auto-var-init=pattern", "-fno-exceptions", "-w"]
    if not compiled(source, f"{program}.o", options):
        print(f"{name}: g++ does not compile it", flush=True)
        return False
    subprocess.run(["g++", f"{program}.o", *(build / f"{part}.o" for part in OWN), "-o", program], check=True)
    try:
        status = subprocess.run([program, *parts.groups()], timeout=MOST_SECONDS).returncode
    except subprocess.TimeoutExpired:
        print(f"{name}: does not end within {MOST_SECONDS} seconds", flush=True)
        return False
    if status < 0:
        print(f"{name}: ended by signal {-status}, as by an access far outside of tensors", flush=True)
    apart = lanes_apart(code)
    if apart:
        print(f"{name}: __activemask() without __syncwarp() directly before it in lines {apart}", flush=True)
    return status == 0 and not apart


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    folder, build = map(pathlib.Path, sys.argv[1:3])
    if platform.machine() != "x86_64" or not shutil.which("g++"):
        sys.exit("the emulator of CUDA kernels needs g++ (12 or later) on x86-64")
    names = sys.argv[3:] or sorted(path.stem for path in folder.glob("*.cu"))
    paths = [folder / f"{name}.cu" for name in names]
    missing = [str(path) for path in paths if not path.exists()]
    if missing or not paths:
        sys.exit(f"no kernels {', '.join(missing)} in {folder}")
    build.mkdir(parents=True, exist_ok=True)
    for part in OWN:
        if not compiled(HERE / f"{part}.cpp", build / f"{part}.o", ["-O2", "-Wall", "-Wextra"]):
            sys.exit("the emulator itself does not compile: is it g++ 12 or later?")
    without_units = [path for path in paths if re.search(r"_f32_\d", path.stem)]
    if without_units:
        names = ", ".join(path.stem for path in without_units)
        print(f"left out, as every GPU driver in software runs what is without matrix units: {names}", flush=True)
    right = [run(path, build) for path in paths if path not in without_units]
    print(f"{sum(right)} of {len(right)} kernels agree with the reference")
    sys.exit(not (right and all(right)))


main()
