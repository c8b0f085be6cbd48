#!/usr/bin/env python3
"""Registers, bytes on the stack (spilled registers and arrays) and instructions of the kernels, as NVIDIA's compiler makes them.
Needs no GPU, but `pip install nvidia-cuda-nvrtc nvidia-cuda-cuobjdump nvidia-cuda-nvdisasm nvidia-cuda-runtime nvidia-cuda-crt`.

    BURN_ATTN_SOURCES=/tmp/cuda cargo test -p burn-attn-kernels-cube --features wgpu generated
    count_registers.py /tmp/cuda [sm_90]

The sources are those of CubeCL's C++ compiler. What a user of `cuda` runs is LLVM's, and of `vulkan` the driver's.
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


def main(folder, arch="sm_90"):
    print("| kernel | registers | stack | HMMA | LDSM | FFMA | all |\n| --- | --- | --- | --- | --- | --- | --- |")
    for path in sorted(pathlib.Path(folder).glob("*.cu")):
        cubin = compiled(path, arch)
        usage = re.search(r"REG:(\d+) STACK:(\d+)", said("cuobjdump", "-res-usage", cubin))
        code = re.findall(r"\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9]+)", said("nvdisasm", "-c", cubin))
        counts = [sum(name == wanted for name in code) for wanted in ("HMMA", "LDSM", "FFMA")]
        print("|", " | ".join(map(str, [path.stem, *usage.groups(), *counts, len(code)])), "|")


main(*sys.argv[1:])
