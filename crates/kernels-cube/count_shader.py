"""What one cube reads and writes (bytes) and how often it multiplies and adds, counted in the shaders that CubeCL has generated.

    CUBECL_DEBUG_LOG=FILE cargo test -p burn-attn-kernels-cube --features wgpu backward
    python3 crates/kernels-cube/count_shader.py FILE

The feature `wgpu` prints WGSL, `vulkan` SPIR-V, with matrix units if the device has any. Both have the same counts.

For every kernel, a line for its body and one for every loop in it whose bounds the shader does not say, with the counts of one
iteration; loops with constant bounds are multiplied out. A branch that only some units take counts for these, any other one for all.
Arguments, of which sizes and strides are some, are not counted. A plane reads and writes each number of a matrix once. A chunk or tile that
is read ahead counts in every iteration and before the first, although the last iteration reads none.
"""

import re
import sys

COUNTS = ("memory read", "memory written", "shared read", "shared written", "multiply-adds")


def width(kind):
    """How many numbers a type of WGSL has."""
    vector = re.match(r"vec(\d)<", kind or "")
    return int(vector[1]) if vector else 1


def size(kind):
    """Bytes of a type of WGSL."""
    return width(kind) * (2 if "f16" in kind else 4)


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


def count_wgsl(lines, units):
    place, kind, number, unit, below = {}, {}, {}, set(), {}
    blocks = [Block()]
    for line in lines:
        line = line.strip()
        counts = blocks[-1].counts
        if match := re.search(r"var<(workgroup|storage)[^>]*> (\w+): array<(vec\d<\w+>|\w+)", line):
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
                counts[f"{place[match[2]]} read"] += size(kind[match[2]])
        elif match := re.match(r"\*(\w+) = ", line):
            if place.get(match[1]):
                counts[f"{place[match[1]]} written"] += size(kind[match[1]])
        elif match := re.match(r"let (\w+) = (vec\d<\w+>)\(", line):
            kind[match[1]] = match[2]
        elif match := re.match(r"let (\w+) = fma\((\w+),", line):
            kind[match[1]] = kind.get(match[2])
            counts["multiply-adds"] += width(kind.get(match[2]))
    while len(blocks) > 1:
        inner = blocks.pop()
        blocks[-1].add(inner)
    return blocks[0]


class Module:
    """The constants, types and pointers of a SPIR-V module, and the blocks of its function."""

    def __init__(self, lines):
        self.of, self.blocks, self.values, member = {}, {}, {}, {}
        for line in lines:
            words = line.split()
            if words[:1] == ["OpMemberDecorate"] and words[-1] == "LocalInvocationIndex":
                member = {words[1]: int(words[2])}
            if words[1:2] == ["="]:
                self.of[words[0]] = words[2:]
                if words[2] == "OpLabel":
                    block = self.blocks[words[0]] = []
                if words[2] == "OpConstant" and words[4].isdigit():
                    self.values[words[0]] = int(words[4])
            if self.blocks:
                block.append(words)
        self.unit_member = member

    def bytes(self, kind):
        """Bytes of a number, vector or matrix."""
        name, *arguments = self.of[kind]
        if name == "OpTypeVector":
            return int(arguments[1]) * self.bytes(arguments[0])
        if name == "OpTypeCooperativeMatrixKHR":
            return self.bytes(arguments[0]) * self.values[arguments[2]] * self.values[arguments[3]]
        return int(arguments[0]) // 8

    def sizes(self, kind):
        """Numbers of a type: [] of a scalar, rows and columns of a matrix."""
        name, *arguments = self.of[kind]
        if name == "OpTypeVector":
            return [int(arguments[1])]
        return [self.values[arguments[i]] for i in (2, 3)] if name == "OpTypeCooperativeMatrixKHR" else []

    def place(self, pointer):
        """`shared`, `memory`, `unit` for the index of the unit, or `None` for arguments."""
        name, kind, *arguments = self.of[pointer]
        if name == "OpInBoundsAccessChain":
            base = self.of[self.of[arguments[0]][1]] if len(self.of[arguments[0]]) > 1 else []
            struct = base[2] if base[:1] == ["OpTypePointer"] else None
            if struct in self.unit_member:
                return "unit" if self.values[arguments[1]] == self.unit_member[struct] else None
            is_struct = struct and self.of[struct][0] == "OpTypeStruct"
            if is_struct and base[1] == "PhysicalStorageBuffer":
                # Tensors have one member. Sizes and strides are in a structure of several.
                return "memory" if len(self.of[struct]) == 2 else None
            return self.place(arguments[0])
        return "shared" if name == "OpVariable" and self.of[kind][1] == "Workgroup" else None

    def times(self, label):
        """Iterations of the loop whose header is `label`, `None` if they are not constant."""
        block = self.blocks[label]
        compared = [words for words in block if words[2:3] == ["OpULessThan"]]
        phis = [words for words in block if words[2:3] == ["OpPhi"]]
        for _, _, _, _, counter, end in compared[-1:]:
            for phi in (words for words in phis if words[0] == counter):
                start = next((self.values[it] for it in phi[4::2] if it in self.values), None)
                steps = [self.of[it] for it in phi[4::2] if self.of[it][0] == "OpIAdd" and counter in self.of[it]]
                step = next((self.values.get(it) for it in steps[0][2:] if it != counter), None) if steps else None
                if None not in (start, step, self.values.get(end)):
                    return max(0, -((start - self.values[end]) // step))
        return None


def count_spirv(lines, units, plane):
    module, unit = Module(lines), set()

    def instruction(words, counts):
        if words[0] == "OpStore" and module.place(words[1]) in ("shared", "memory"):
            counts[f"{module.place(words[1])} written"] += module.bytes(module.of[words[2]][1])
        if words[0] == "OpCooperativeMatrixStoreKHR":
            counts["shared written"] += module.bytes(module.of[words[2]][1]) / plane
        if words[1:2] != ["="]:
            return
        name, kind = words[2], words[3] if len(words) > 3 else None
        if name == "OpLoad" and module.place(words[4]) == "unit":
            unit.add(words[0])
        elif name == "OpLoad" and module.place(words[4]):
            counts[f"{module.place(words[4])} read"] += module.bytes(kind)
        elif name == "OpCooperativeMatrixLoadKHR":
            counts["shared read"] += module.bytes(kind) / plane
        elif name == "OpExtInst" and words[5] == "Fma":
            counts["multiply-adds"] += (module.sizes(kind) or [1])[0]
        elif name == "OpCooperativeMatrixMulAddKHR":
            rows, columns = module.sizes(kind)
            counts["multiply-adds"] += rows * columns * module.sizes(module.of[words[4]][1])[1] / plane

    def share(condition):
        name, *arguments = module.of[condition]
        if name == "OpULessThan" and arguments[1] in unit and arguments[2] in module.values:
            return min(1.0, module.values[arguments[2]] / units)
        return 1.0

    def walk(label, ends, into):
        """Counts the blocks from `label` on, up to one of `ends`."""
        while label not in ends:
            block, merge, is_loop, here = module.blocks[label], None, False, into
            if any(words[0] == "OpLoopMerge" for words in block):
                is_loop, here = True, Block(module.times(label), loop=label)
            for words in block:
                instruction(words, here.counts)
                if words[0] in ("OpLoopMerge", "OpSelectionMerge"):
                    merge = words[1]
            last = next(words for words in block if words[0] in ("OpBranch", "OpBranchConditional", "OpReturn"))
            if last[0] == "OpReturn":
                return
            if last[0] == "OpBranch":
                label = last[1]
                continue
            inside = {*ends, merge, *([label] if is_loop else [])}
            first = share(last[1])
            for target, part in zip(last[2:4], (first, 1.0 if first == 1.0 else 1.0 - first)):
                if target not in inside:
                    branch = Block(share=part)
                    walk(target, inside, branch)
                    here.add(branch)
            if is_loop:
                into.add(here)
            label = merge

    whole = Block()
    walk(next(iter(module.blocks)), set(), whole)
    return whole


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
        head, language, source = re.split(r"```(wgsl|spirv)\n", kernel, maxsplit=1)
        if head in seen:
            continue
        seen.add(head)
        name = re.search(r"name: .*::(\w+)", head)[1]
        shape = dict(re.findall(r"(rows|columns|n): (\d+)", head))
        units = int(re.search(r"(?:workgroup_size\(|LocalSize %1 |LocalSize )(\d+)", source)[1])
        plane = int((re.findall(r" plane: (\d+)", head) or [1])[0])
        lines = source.partition("```")[0].splitlines()
        counted = count_wgsl(lines, units) if language == "wgsl" else count_spirv(lines, units, plane)
        text = name + "".join(f", {key} {value}" for key, value in shape.items())
        show(counted, units, text)


main()
