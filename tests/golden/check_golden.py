"""Checks the golden files in plain Python, with nothing but its standard library: shapes, attention and its masks, the
layers, gradients by finite differences, and the state dicts to import. Usage: python check_golden.py [DIR]"""

import json
import math
import random
import sys
from operator import mul
from pathlib import Path

from tensors import read_pt, read_safetensors

DIR = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
TOLERANCE = 2e-6


# Numbers in nested lists. A `[batch, len, dim]` is a list of matrices, a matrix a list of rows.


def nested(shape, values):
    if len(shape) < 2:
        return list(values) if shape else values[0]
    size = len(values) // shape[0]
    return [nested(shape[1:], values[i * size : (i + 1) * size]) for i in range(shape[0])]


def flat(x):
    return [leaf for part in x for leaf in flat(part)] if isinstance(x, list) else [x]


def shape_of(x):
    return (len(x), *shape_of(x[0])) if isinstance(x, list) else ()


def each(function, *operands):
    """`function` of the numbers at every place of `operands` of one shape."""
    if isinstance(operands[0], list):
        return [each(function, *parts) for parts in zip(*operands, strict=True)]
    return function(*operands)


def add(*operands):
    return each(lambda *numbers: sum(numbers), *operands)


def dot(a, b):
    return sum(map(mul, a, b))


def product(x, weight, bias=None):
    """`x · weightᵀ + bias` over the last dimension."""
    if isinstance(x[0], list):
        return [product(rows, weight, bias) for rows in x]
    y = [dot(x, row) for row in weight]
    return add(y, bias) if bias else y


# The modules, with PyTorch's names of parameters.


def linear(t, name, x):
    return product(x, t[name + ".weight"], t.get(name + ".bias"))


def projections(t, prefix):
    """Weight and bias of query, key and value; packed or not."""
    if prefix + "in_proj_weight" in t:
        packed = t[prefix + "in_proj_weight"]
        third = len(packed) // 3
        weights = [packed[i * third : (i + 1) * third] for i in range(3)]
    else:
        weights = [t[f"{prefix}{name}_proj_weight"] for name in "qkv"]
    third = len(weights[0])
    bias = t.get(prefix + "in_proj_bias")
    return [(w, bias and bias[i * third : (i + 1) * third]) for i, w in enumerate(weights)]


def attention(t, prefix, q, k, v, lengths, causal, heads, zero_attn=False):
    """Multi-head attention, written out; with `zero_attn`, one more key and value of zeros that every query sees."""
    q, k, v = (product(x, *projection) for x, projection in zip((q, k, v), projections(t, prefix)))
    dim = len(q[0][0]) // heads
    outputs, weights = [], []
    for b in range(len(q)):
        length = len(k[b]) if lengths is None else lengths[b]
        outputs.append([[] for _ in q[b]])
        weights.append([])
        for h in range(heads):
            of_head = slice(h * dim, (h + 1) * dim)
            keys = [row[of_head] for row in k[b]]
            values = list(zip(*(row[of_head] for row in v[b])))
            weights[b].append([])
            for i, query in enumerate(q[b]):
                scores = [dot(query[of_head], key) / math.sqrt(dim) for key in keys]
                top = max(scores)
                visible = [j < length and not (causal and j > i) for j in range(len(keys))]
                e = [math.exp(s - top) if seen else 0.0 for s, seen in zip(scores, visible)]
                total = sum(e) + (math.exp(-top) if zero_attn else 0.0)
                row = [x / total for x in e]
                weights[b][h].append(row)
                outputs[b][i] += [dot(row, column) for column in values]
    return linear(t, prefix + "out_proj", outputs), weights


def norm(t, name, x, eps=1e-5, centred=True):
    if isinstance(x[0], list):
        return [norm(t, name, rows, eps, centred) for rows in x]
    mean = sum(x) / len(x) if centred else 0.0
    x = [value - mean for value in x]
    size = math.sqrt(dot(x, x) / len(x) + eps)
    y = [value / size * w for value, w in zip(x, t[name + ".weight"])]
    return add(y, t[name + ".bias"]) if name + ".bias" in t else y


def gelu(x):
    return 0.5 * x * (1 + math.erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + math.exp(-x))


def feed_forward(t, p, x, activation, kinks):
    h = linear(t, p + "linear1", x)
    if activation == "relu":
        kinks.append(min(map(abs, flat(h))))
        h = each(lambda value: max(value, 0.0), h)
    elif activation in ("swiglu", "geglu"):
        half, gate = len(h[0][0]) // 2, silu if activation == "swiglu" else gelu
        h = [[[gate(g) * up for g, up in zip(row[:half], row[half:])] for row in rows] for rows in h]
    else:
        h = each({"gelu": gelu, "gelu_tanh": gelu_tanh}[activation], h)
    return linear(t, p + "linear2", h)


def layer(t, p, c, x, sublayers, kinks):
    """Residual sublayers with norm before or after each."""
    sublayers = [*sublayers, lambda y: feed_forward(t, p, y, c["activation"], kinks)]
    for i, sublayer in enumerate(sublayers, 1):
        n = f"{p}norm{i}"
        x = add(x, sublayer(norm(t, n, x))) if c["norm_first"] else norm(t, n, add(x, sublayer(x)))
    return x


def encoder(t, p, c, x, lengths, kinks, causal=False):
    self_attn = lambda y: attention(t, p + "self_attn.", y, y, y, lengths, causal, c["nhead"])[0]
    return layer(t, p, c, x, [self_attn], kinks)


def decoder(t, p, c, x, memory, lengths, memory_lengths, kinks):
    m, h = memory, c["nhead"]
    self_attn = lambda y: attention(t, p + "self_attn.", y, y, y, lengths, True, h)[0]
    cross = lambda y: attention(t, p + "multihead_attn.", y, m, m, memory_lengths, False, h)[0]
    return layer(t, p, c, x, [self_attn, cross], kinks)


def transformer(t, c, source, target, lengths, kinks):
    x, y = source, target
    for i in range(c["num_encoder_layers"]):
        x = encoder(t, f"encoder.layers.{i}.", c, x, lengths, kinks)
    memory = norm(t, "encoder.norm", x)
    for i in range(c["num_decoder_layers"]):
        y = decoder(t, f"decoder.layers.{i}.", c, y, memory, None, lengths, kinks)
    return norm(t, "decoder.norm", y)


def block(t, c, x):
    """A layer of `Block`: c says which norm, where, and what is between the linear layers."""
    block_norm = lambda name, x: norm(t, name, x, c["eps"], c["norm"] == "layer")

    def residual(i, x, sublayer):
        if c["placement"] == "post":
            return block_norm(f"norm{i}", add(x, sublayer(x)))
        y = sublayer(block_norm(f"norm{i}", x))
        return add(x, block_norm(f"norm{i}_output", y) if c["placement"] == "sandwich" else y)

    ff = lambda x: feed_forward(t, "", x, c["activation"], [])
    attend = lambda y: attention(t, "self_attn.", y, y, y, t["lengths"], c["causal"], c["nhead"])[0]
    if c["parallel"]:
        return residual(1, x, lambda y: add(attend(y), ff(y)))
    return residual(2, residual(1, x, attend), ff)


def forward(name, t, c, kinks):
    if name.startswith("mha"):
        q = t["x"] if "x" in t else t["query"]
        k = next(t[n] for n in ("x", "memory", "key") if n in t)
        lengths = t.get("lengths", t.get("memory_lengths"))
        return attention(t, "", q, k, t.get("value", k), lengths, c["causal"], c["num_heads"])
    if name.startswith("block"):
        return block(t, c, t["x"]), None
    if name.startswith("encoder"):
        return encoder(t, "", c, t["x"], t["lengths"], kinks), None
    if name.startswith("decoder"):
        lengths, memory_lengths = t["target_lengths"], t["memory_lengths"]
        return decoder(t, "", c, t["target"], t["memory"], lengths, memory_lengths, kinks), None
    return transformer(t, c, t["source"], t["target"], t["source_lengths"], kinks), None


# The checks.


def close(what, a, b):
    assert shape_of(a) == shape_of(b), (what, shape_of(a), shape_of(b))
    a, b = flat(a), flat(b)
    difference = max(abs(x - y) for x, y in zip(a, b))
    assert difference < TOLERANCE * max(1.0, *map(abs, b)), (what, difference)
    return difference


def check_gradients(name, t, c):
    """Directional derivatives along a random direction, per tensor."""
    rng = random.Random(0)
    names = [k for k in t if "grad." + k in t]
    assert len(names) == sum(k.startswith("grad.") for k in t)
    worst = 0.0
    for k in names:
        d = each(lambda _: rng.gauss(0, 1), t[k])
        ends = []
        for step in (1e-6, -1e-6):
            moved = {**t, k: each(lambda x, along: x + step * along, t[k], d)}
            ends.append(dot(flat(forward(name, moved, c, [])[0]), flat(t["loss_weight"])))
        gradient = flat(t["grad." + k])
        error = abs((ends[0] - ends[1]) / 2e-6 - dot(gradient, flat(d))) / max(1.0, *map(abs, gradient))
        assert error < 1e-5, (name, k, error)
        worst = max(worst, error)
    print(f"  {len(names)} gradients, finite differences differ by {worst:.1e}")


def check_file(path):
    name, (stored, metadata) = path.stem, read_safetensors(path)
    c = json.loads(metadata["config"])
    t, kinks = {k: nested(v.shape, v.values) for k, v in stored.items()}, []
    print(f"{name} ({path.stat().st_size} bytes) {c}")
    print("  " + ", ".join(f"{k} {list(v.shape)}" for k, v in stored.items()))
    assert all(math.isfinite(x) for v in stored.values() for x in v.values)
    assert all(v.dtype == ("I64" if k.endswith("lengths") else "F32") for k, v in stored.items())
    output, weights = forward(name, t, c, kinks)
    if "losses" in t:
        squares = [(x - y) ** 2 for x, y in zip(flat(output), flat(t["goal"]), strict=True)]
        print(f"  first loss differs by {close(name, [sum(squares) / len(squares)], t['losses'][:1]):.1e}")
    else:
        print(f"  output differs by {close(name, output, t['output']):.1e}")
        check_gradients(name, t, c)
    if weights is not None:
        print(f"  weights differ by {close(name, weights, t['weights']):.1e}")
        hidden = lambda w: [x == 0 for x in flat(w)]
        assert hidden(weights) == hidden(t["weights"]), f"{name}: exactly the masked weights are 0"
    if kinks:
        print(f"  smallest |relu input| {min(kinks):.1e}")


def module_named(tensors, name):
    """The part of a state dict below `name`."""
    start = name + "."
    return {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}


def check_imports():
    """The state dicts give the stored outputs, and are the same in both formats."""
    files = {}
    for name in ("attention", "layers", "stacks", "bad"):
        path = DIR / "import" / f"{name}.safetensors"
        files[name], _ = read_safetensors(path)
        saved = read_pt(path.with_suffix(".pt"))
        if name == "bad":
            assert saved.pop("epoch") == 3
            saved = {f"{module}.{k}": v for module, part in saved.items() for k, v in part.items()}
        assert saved == files[name], f"{path.stem}: .pt and .safetensors differ"

    stored, _ = read_safetensors(DIR / "import" / "values.safetensors")
    values = {k: nested(v.shape, v.values) for k, v in stored.items()}
    x, memory, narrow = values["x"], values["memory"], values["narrow_memory"]
    modules = {**files["attention"], **files["layers"], **files["stacks"]}
    c = {"nhead": 3, "num_encoder_layers": 1, "num_decoder_layers": 1, "norm_first": False, "activation": "relu"}
    pre = {**c, "norm_first": True}
    pre_gelu = {**pre, "activation": "gelu"}

    def mha(q, k, v, causal=False, zero_attn=False):
        return lambda t: attention(t, "", q, k, v, None, causal, 3, zero_attn)[0]

    def encoder_stack(causal):
        first = lambda t: encoder(t, "layers.0.", c, x, None, [], causal)
        return lambda t: encoder(t, "layers.1.", c, first(t), None, [], causal)

    one_decoder = lambda p, c: lambda t: decoder(t, p, c, x, memory, None, None, [])
    one_encoder = lambda c: lambda t: encoder(t, "", c, x, None, [])
    outputs = {
        "packed.self_attention": mha(x, x, x),
        "packed.causal": mha(x, x, x, True),
        "packed.cross_attention": mha(x, memory, memory),
        "packed.zero_attn": mha(x, x, x, zero_attn=True),
        "packed.zero_attn_causal": mha(x, x, x, True, zero_attn=True),
        "separate.output": mha(x, values["key"], values["value"]),
        "one_memory.output": mha(x, narrow, narrow),
        "no_bias.output": mha(x, x, x),
        "separate_no_bias.output": mha(x, values["key"], values["value"]),
        "half.output": mha(x, x, x),
        "encoder_layer_post.output": one_encoder(c),
        "encoder_layer_pre.output": one_encoder(pre_gelu),
        "encoder_layer_no_bias.output": one_encoder(c),
        "decoder_layer_post.output": one_decoder("", c),
        "decoder_layer_pre.output": one_decoder("", pre_gelu),
        "encoder.output": encoder_stack(False),
        "encoder.causal": encoder_stack(True),
        "decoder.output": lambda t: norm(t, "norm", one_decoder("layers.0.", pre)(t)),
        "transformer.output": lambda t: transformer(t, c, memory, x, None, []),
    }
    inputs = {"x", "memory", "narrow_memory", "key", "value"}
    assert set(values) == inputs | set(outputs), set(values) ^ (inputs | set(outputs))
    checked = {"double"}
    for name, output in outputs.items():
        module = name.split(".")[0]
        checked.add(module)
        t = {k: nested(v.shape, v.values) for k, v in module_named(modules, module).items()}
        print(f"import {name} differs by {close(name, output(t), values[name]):.1e}")
    assert checked == {name.split(".")[0] for name in modules}, checked

    dtypes = lambda name: {v.dtype for v in module_named(modules, name).values()}
    numbers = lambda name: {k: v.values for k, v in module_named(modules, name).items()}
    assert dtypes("half") == {"F16"} and dtypes("double") == {"F64"} and numbers("double") == numbers("packed")
    check_bad(files["bad"], module_named(modules, "packed"))


def check_bad(tensors, packed):
    """Every state dict to refuse is `packed` with one mistake."""
    bad = lambda name: module_named(tensors, name)
    differ = lambda name: {k for k in packed.keys() | bad(name).keys() if packed.get(k) != bad(name).get(k)}
    assert differ("missing") == {"out_proj.bias"} and "out_proj.bias" not in bad("missing")
    assert differ("extra") == {"relative_bias"} and "relative_bias" in bad("extra")
    assert differ("shape") == {"in_proj_weight"} and bad("shape")["in_proj_weight"].shape == (35, 12)
    assert differ("dtype") == {"in_proj_bias"} and bad("dtype")["in_proj_bias"].dtype == "I64"
    assert bad("bias_kv").keys() - packed.keys() == {"bias_k", "bias_v"}
    print("import bad: every state dict has its one mistake")


paths = sorted(DIR.glob("*.safetensors"))
assert paths, f"no golden files in {DIR}"
for path in paths:
    check_file(path)
check_imports()
print(f"total {sum(path.stat().st_size for path in paths)} bytes")
