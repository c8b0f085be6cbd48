#!/usr/bin/env python3
"""Registers, bytes on the stack (spilled registers and arrays) and of shared memory, and instructions of the kernels, as NVIDIA's compiler
makes them. Fails if a kernel has bytes on the stack with heads of 64 or 128 numbers, or more than 32 with an option, or for the gradient of a bias.
In bf16 this compiler reads operands number by number and transposes them in registers (LD and MOVM in place of LDSM): for the gradient of a key of 128
numbers, 8 bytes are allowed.
Needs no GPU, but `pip install nvidia-cuda-nvrtc nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm nvidia-cuda-runtime nvidia-cuda-crt`.

    BURN_ATTN_SOURCES=/tmp/cuda cargo test -p burn-attn-kernels-cube --features wgpu generated
    count_registers.py /tmp/cuda [sm_80 sm_90]

The sources are those of CubeCL's C++ compiler. What a user of `cuda` runs is LLVM's, which cannot be linked without CUDA's own libraries, and of
`vulkan` the driver's; `cargo run-checks --drivers` asks two of Mesa's.
"""
import ctypes
import pathlib
import re
import subprocess
import sys

import nvidia

ROOT = pathlib.Path(list(nvidia.__path__)[0]) / "cu13"
NVRTC = ctypes.CDLL(next((ROOT / "lib").glob("libnvrtc.so.*")))


def compiled(path, arch):
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    NVRTC.nvrtcCreateProgram(ctypes.byref(program), path.read_bytes(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={arch}", f"-I{ROOT}/include", "--std=c++17"]
    options = (ctypes.c_char_p * len(options))(*map(str.encode, options))
    if NVRTC.nvrtcCompileProgram(program, len(options), options):
        NVRTC.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        NVRTC.nvrtcGetProgramLog(program, log)
        sys.exit(log.value.decode())
    NVRTC.nvrtcGetCUBINSize(program, ctypes.byref(size))
    cubin = ctypes.create_string_buffer(size.value)
    NVRTC.nvrtcGetCUBIN(program, cubin)
    to = path.with_suffix(".cubin")
    to.write_bytes(cubin.raw)
    return to


def said(program, *arguments):
    command = [ROOT / "bin" / program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def most_on_stack(kernel):
    """The most bytes on the stack; None where nothing is required: wide heads, and a number in two pieces."""
    parts = re.fullmatch(r"([A-Za-z]+)_(f16|bf16|f32)(_pieces)?_(\d+)(_\w+)?", kernel)
    if not parts:
        sys.exit(f"what may {kernel} spill?")
    kind, elem, pieces, dim, option = parts.groups()
    if pieces or int(dim) > 128:
        return None
    if elem == "bf16" and dim == "128" and kind == "KeyAndValue":
        return 8
    # A gradient of a bias is that of an option.
    return 32 if option or kind == "Bias" else 0


def main(folder, *archs):
    print("| kernel | for | registers | stack | shared | HMMA | LDSM | FFMA | all |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    missed = []
    paths = sorted(pathlib.Path(folder).glob("*.cu"))
    for path, arch in ((path, arch) for path in paths for arch in archs or ["sm_90"]):
        cubin = compiled(path, arch)
        usage = re.search(r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", said("cuobjdump", "-res-usage", cubin))
        code = re.findall(r"\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]+)", said("nvdisasm", "-c", cubin))
        counts = [sum(name == wanted for name in code) for wanted in ("HMMA", "LDSM", "FFMA")]
        print("|", " | ".join(map(str, [path.stem, arch, *usage.groups(), *counts, len(code)])), "|", flush=True)
        most = most_on_stack(path.stem)
        if most is not None and int(usage[2]) > most:
            missed.append(f"{path.stem} for {arch} has {usage[2]} bytes on the stack, more than {most}")
    if not paths or missed:
        sys.exit("\n".join(missed) or f"no sources in {folder}")


main(*sys.argv[1:])
