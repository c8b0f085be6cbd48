"""Checks the golden files in plain numpy (no PyTorch): shapes, attention and its masks, the
encoder layers, and gradients by finite differences. Usage: python check_golden.py [DIR]"""

import json
import math
import sys
from pathlib import Path

import numpy as np
from safetensors import safe_open

DIR = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
TOLERANCE = 2e-6
erf = np.vectorize(math.erf)


def load(path):
    with safe_open(path, "np") as f:
        tensors = {k: f.get_tensor(k) for k in f.keys()}
        return tensors, json.loads(f.metadata()["config"])


def wide(t):
    return {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in t.items()}


def attention(t, prefix, q, k, v, lengths, causal, heads):
    """Multi-head attention, written out. `visible` has the meaning True = may be seen."""
    w = np.split(t[prefix + "in_proj_weight"], 3)
    b = np.split(t.get(prefix + "in_proj_bias", np.zeros(3 * len(w[0]))), 3)
    q, k, v = (x @ w[i].T + b[i] for i, x in enumerate((q, k, v)))
    q, k, v = (x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3) for x in (q, k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
    visible = np.ones_like(scores, dtype=bool)
    if lengths is not None:
        visible &= (np.arange(k.shape[2]) < lengths[:, None])[:, None, None, :]
    if causal:
        visible &= np.tril(np.ones(scores.shape[-2:], dtype=bool))
    e = np.where(visible, np.exp(scores - scores.max(-1, keepdims=True)), 0.0)
    weights = e / e.sum(-1, keepdims=True)
    out = (weights @ v).transpose(0, 2, 1, 3).reshape(q.shape[0], q.shape[2], -1)
    return linear(t, prefix + "out_proj", out), weights


def linear(t, name, x):
    return x @ t[name + ".weight"].T + t.get(name + ".bias", 0.0)


def norm(t, name, x):
    centred = x - x.mean(-1, keepdims=True)
    return (centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
            * t[name + ".weight"] + t[name + ".bias"])  # fmt: skip


def feed_forward(t, p, x, activation, kinks):
    h = x @ t[p + "linear1.weight"].T + t[p + "linear1.bias"]
    if activation == "relu":
        kinks.append(np.abs(h).min())
        h = np.maximum(h, 0)
    else:
        h = 0.5 * h * (1 + erf(h / np.sqrt(2)))
    return h @ t[p + "linear2.weight"].T + t[p + "linear2.bias"]


def layer(t, p, c, x, blocks, kinks):
    """Residual blocks with norm before or after each."""
    blocks = [*blocks, lambda y: feed_forward(t, p, y, c["activation"], kinks)]
    for i, block in enumerate(blocks, 1):
        n = f"{p}norm{i}"
        x = x + block(norm(t, n, x)) if c["norm_first"] else norm(t, n, x + block(x))
    return x


def encoder(t, p, c, x, lengths, kinks):
    self_attn = lambda y: attention(t, p + "self_attn.", y, y, y, lengths, False, c["nhead"])[0]
    return layer(t, p, c, x, [self_attn], kinks)


def decoder(t, p, c, x, memory, lengths, memory_lengths, kinks):
    m, h = memory, c["nhead"]
    self_attn = lambda y: attention(t, p + "self_attn.", y, y, y, lengths, True, h)[0]
    cross = lambda y: attention(t, p + "multihead_attn.", y, m, m, memory_lengths, False, h)[0]
    return layer(t, p, c, x, [self_attn, cross], kinks)


def block(t, c, x):
    """A layer of `Block`: c says which norm, where, and what is between the linear layers."""

    def block_norm(name, x):
        if c["norm"] == "layer":
            x = x - x.mean(-1, keepdims=True)
        size = np.sqrt((x**2).mean(-1, keepdims=True) + c["eps"])
        return x / size * t[name + ".weight"] + t.get(name + ".bias", 0.0)

    def residual(i, x, sublayer):
        if c["placement"] == "post":
            return block_norm(f"norm{i}", x + sublayer(x))
        y = sublayer(block_norm(f"norm{i}", x))
        return x + (block_norm(f"norm{i}_output", y) if c["placement"] == "sandwich" else y)

    def ff(x):
        h = linear(t, "linear1", x)
        if c["activation"] == "gelu_tanh":
            h = h / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        else:
            gate, up = np.split(h, 2, -1)
            phi = 1 / (1 + np.exp(-gate)) if c["activation"] == "swiglu" else (1 + erf(gate / np.sqrt(2))) / 2
            h = gate * phi * up
        return linear(t, "linear2", h)

    attend = lambda y: attention(t, "self_attn.", y, y, y, t["lengths"], c["causal"], c["nhead"])[0]
    if c["parallel"]:
        return residual(1, x, lambda y: attend(y) + ff(y))
    return residual(2, residual(1, x, attend), ff)


def forward(name, t, c, kinks):
    if name.startswith("mha"):
        q = t["x"] if "x" in t else t["query"]
        k = next(t[n] for n in ("x", "memory", "key") if n in t)
        v = t.get("value", k)
        lengths = t.get("lengths", t.get("memory_lengths"))
        return attention(t, "", q, k, v, lengths, c["causal"], c["num_heads"])
    if name.startswith("block"):
        return block(t, c, t["x"]), None
    if name.startswith("encoder"):
        return encoder(t, "", c, t["x"], t["lengths"], kinks), None
    if name.startswith("decoder"):
        lengths, memory_lengths = t["target_lengths"], t["memory_lengths"]
        return decoder(t, "", c, t["target"], t["memory"], lengths, memory_lengths, kinks), None
    x, lengths = t["source"], t["source_lengths"]
    for i in range(c["num_encoder_layers"]):
        x = encoder(t, f"encoder.layers.{i}.", c, x, lengths, kinks)
    memory, y = norm(t, "encoder.norm", x), t["target"]
    for i in range(c["num_decoder_layers"]):
        y = decoder(t, f"decoder.layers.{i}.", c, y, memory, None, lengths, kinks)
    return norm(t, "decoder.norm", y), None


def close(what, a, b):
    difference = np.abs(a - b).max()
    assert a.shape == b.shape and difference < TOLERANCE * max(1.0, np.abs(b).max()), (what, difference)
    return difference


total = 0
for path in sorted(DIR.glob("*.safetensors")):
    name, (stored, c) = path.stem, load(path)
    t, kinks = wide(stored), []
    total += path.stat().st_size
    print(f"{name} ({path.stat().st_size} bytes) {c}")
    print("  " + ", ".join(f"{k} {list(v.shape)}" for k, v in stored.items()))
    assert all(np.isfinite(v).all() for v in t.values())
    assert all(v.dtype == (np.int64 if k.endswith("lengths") else np.float32) for k, v in stored.items())
    output, weights = forward(name, t, c, kinks)
    if "losses" in t:
        print(f"  first loss differs by {close(name, ((output - t['goal']) ** 2).mean(), t['losses'][0]):.1e}")
    else:
        print(f"  output differs by {close(name, output, t['output']):.1e}")
        rng = np.random.default_rng(0)
        names = [k for k in t if "grad." + k in t]
        assert len(names) == sum(k.startswith("grad.") for k in t)
        worst = 0.0
        for k in names:  # directional derivative along a random direction, per tensor
            d = rng.standard_normal(t[k].shape)
            ends = [(forward(name, {**t, k: t[k] + s * d}, c, [])[0] * t["loss_weight"]).sum() for s in (1e-6, -1e-6)]
            error = abs((ends[0] - ends[1]) / 2e-6 - (t["grad." + k] * d).sum())
            worst = max(worst, error / max(1.0, np.abs(t["grad." + k]).max()))
        assert worst < 1e-5, worst
        print(f"  {len(names)} gradients, finite differences differ by {worst:.1e}")
    if weights is not None:
        print(f"  weights differ by {close(name, weights, t['weights']):.1e}")
        assert ((weights == 0) == (stored["weights"] == 0)).all()  # exactly the masked ones are 0
    if kinks:
        print(f"  smallest |relu input| {min(kinks):.1e}")
print(f"total {total} bytes")
