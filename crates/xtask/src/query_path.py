"""Counts our files between a call of attention and the innermost multiply-add.

Run by gdb, in a test that calls `SelfAttention::forward` on the CPU: `cargo run-checks --path`. It stops at the first fused
multiply-add of the GEMM and walks the stack, inlined functions included. It prints every file of ours on the way and
fails if there are more than `LIMITS` allow.
"""

import pathlib
import re

import gdb

# The file and the function it starts from, and the most files that may follow, the first one included.
LIMITS = [
    ("crates/nn/src/attention/self_attention.rs", "SelfAttention::forward", 16),
    ("crates/ops/src/attention.rs", "attention::attention", 12),
]
GEMM = "crates/kernels-cpu/src/tiled/kernel/gemm.rs"
# Instructions between the start of a GEMM and its first multiply-add.
PATIENCE = 10_000


def stop_in(root, file, function):
    """Goes on to a function, by the lines of its body: a compiler that inlines keeps some of them."""
    lines = (root / file).read_text().splitlines()
    declaration = re.compile(rf"fn {function}\b")
    first = next(i for i, line in enumerate(lines, 1) if declaration.search(line))
    for line in range(first + 1, first + 20):
        gdb.execute(f"break {file}:{line}", to_string=True)
    started = gdb.selected_inferior().pid != 0
    gdb.execute("continue" if started else "run", to_string=True)
    gdb.execute("delete")


def frames():
    """Functions and their files, the innermost first, inlined ones included."""
    frame = gdb.newest_frame()
    while frame is not None:
        sal = frame.find_sal()
        yield frame.name() or "", sal.symtab.filename if sal.symtab else ""
        frame = frame.older()


def run_to_multiply_add(root):
    gdb.execute("set pagination off")
    gdb.execute("set confirm off")
    gdb.execute("set print frame-arguments none")
    for file, function, _ in LIMITS:
        stop_in(root, file, function.rpartition("::")[2])
    stop_in(root, GEMM, "micro_panel")
    for _ in range(PATIENCE):
        name = gdb.newest_frame().name() or ""
        if "fmadd" in name or "fmla" in name:
            return
        gdb.execute("stepi", to_string=True)
    raise gdb.GdbError("no multiply-add was reached")


def main():
    root = pathlib.Path(__file__).resolve().parents[3]
    run_to_multiply_add(root)
    files = []
    failed = False
    unmet = list(LIMITS)
    for name, file in frames():
        ours = file.removeprefix(f"{root}/")
        if ours.startswith("crates/") and ours not in files:
            files.append(ours)
            print(f"{len(files):3} {ours}")
        for start, function, limit in list(unmet):
            if ours == start and re.search(rf"\b{function}\b(?!_)", name):
                print(f"    {function}: {len(files)} files, at most {limit}")
                failed |= len(files) > limit
                unmet.remove((start, function, limit))
    gdb.execute("kill")
    for file, function, _ in unmet:
        print(f"query_path: {function} of {file} is not on the stack")
    if failed or unmet:
        gdb.execute("quit 1")


try:
    main()
except (gdb.error, gdb.GdbError) as error:
    print(f"query_path: {error}")
    gdb.execute("quit 1")
