"""What one cube reads and writes (bytes) and how often it multiplies and adds, counted in the shaders that CubeCL has generated.

    CUBECL_DEBUG_LOG=FILE cargo test -p burn-attn-kernels-cube --features wgpu backward
    python3 crates/kernels-cube/count_shader.py FILE

For every kernel, a line for its body and one for every loop in it whose bounds the shader does not say, with the counts of one
iteration; loops with constant bounds are multiplied out. A branch that only some units take counts for these, any other one for all.
Arguments, of which sizes and strides are some, are not counted.
"""

import re
import sys

BYTES = {"vec4<f32>": 16, "f32": 4, "u32": 4, "i32": 4}
COUNTS = ("memory read", "memory written", "shared read", "shared written", "multiply-adds")


class Block:
    """What happens between two braces, `times` times for a share of the units."""

    def __init__(self, times=1, share=1.0, loop=None):
        self.times, self.share, self.loop = times, share, loop
        self.counts = dict.fromkeys(COUNTS, 0.0)
        self.loops = []

    def add(self, inner):
        """Takes in a block that has ended."""
        if inner.times is None:
            self.loops.append((inner, inner.share))
            return
        weight = inner.times * inner.share
        for name, count in inner.counts.items():
            self.counts[name] += weight * count
        self.loops += [(loop, weight * share) for loop, share in inner.loops]


def count(lines, units):
    place, kind, number, unit, below = {}, {}, {}, set(), {}
    blocks = [Block()]
    for line in lines:
        line = line.strip()
        counts = blocks[-1].counts
        if match := re.search(r"var<(workgroup|storage)[^>]*> (\w+): array<(vec4<f32>|\w+)", line):
            place[match[2]] = {"workgroup": "shared", "storage": "memory"}[match[1]]
            kind[match[2]] = match[3]
        elif line.startswith("fn "):
            index = re.search(r"local_invocation_index\) (\w+)", line)
            unit.update([index[1]] if index else [])
            blocks.append(Block())
        elif match := re.match(r"for\(var (\w+): u32 = (\w+); \w+ < (\w+); \w+ \+= (\w+)\)", line):
            start, end, step = (number.get(match[group]) for group in (2, 3, 4))
            known = None not in (start, end, step)
            times = max(0, -((start - end) // step)) if known else None
            blocks.append(Block(times, loop=match[1]))
        elif match := re.match(r"if (\w+) ?{", line):
            blocks.append(Block(share=min(1.0, below.get(match[1], units) / units)))
        elif line.startswith("} else"):
            share = 1.0 - blocks[-1].share or 1.0
            inner = blocks.pop()
            blocks[-1].add(inner)
            blocks.append(Block(share=share))
        elif line == "}":
            inner = blocks.pop()
            blocks[-1].add(inner)
        elif line.endswith("{"):
            blocks.append(Block())
        elif match := re.match(r"let (\w+) = &\(?\*?(\w+)", line):
            place[match[1]], kind[match[1]] = place.get(match[2]), kind.get(match[2])
        elif match := re.match(r"let (\w+) = u32\((\d+)\);", line):
            number[match[1]] = int(match[2])
        elif match := re.match(r"let (\w+) = (?:u32\()?(\w+)\)?;", line):
            if match[2] in unit:
                unit.add(match[1])
            kind[match[1]] = kind.get(match[2])
        elif match := re.match(r"let (\w+) = (\w+) < (\w+);", line):
            if match[2] in unit and match[3] in number:
                below[match[1]] = number[match[3]]
        elif match := re.match(r"let (\w+) = \*(\w+);", line):
            kind[match[1]] = kind.get(match[2])
            if place.get(match[2]):
                counts[f"{place[match[2]]} read"] += BYTES[kind[match[2]]]
        elif match := re.match(r"\*(\w+) = ", line):
            if place.get(match[1]):
                counts[f"{place[match[1]]} written"] += BYTES[kind[match[1]]]
        elif match := re.match(r"let (\w+) = vec4<f32>\(", line):
            kind[match[1]] = "vec4<f32>"
        elif match := re.match(r"let (\w+) = fma\((\w+),", line):
            kind[match[1]] = kind.get(match[2])
            counts["multiply-adds"] += 4 if kind.get(match[2]) == "vec4<f32>" else 1
    while len(blocks) > 1:
        inner = blocks.pop()
        blocks[-1].add(inner)
    return blocks[0]


def show(block, units, name, depth=0):
    counts = (f"{units * block.counts[name]:14,.0f}" for name in COUNTS)
    print(f"{'  ' * depth + name:44}", *counts)
    for loop, share in block.loops:
        often = "" if share == 1.0 else f", {share:g} times"
        show(loop, units, f"an iteration of {loop.loop}{often}", depth + 1)


def main():
    with open(sys.argv[1]) as file:
        kernels = file.read().split("[START_KERNEL_COMPILATION]")[1:]
    print(f"{'':44}", *(f"{name:>14}" for name in COUNTS))
    seen = set()
    for kernel in kernels:
        head, _, source = kernel.partition("```wgsl\n")
        if head in seen:
            continue
        seen.add(head)
        name = re.search(r"name: .*::(\w+)", head)[1]
        shape = dict(re.findall(r"(rows|columns|n): (\d+)", head))
        units = int(re.search(r"workgroup_size\((\d+)", source)[1])
        text = name + "".join(f", {key} {value}" for key, value in shape.items())
        show(count(source.splitlines(), units), units, text)


main()
