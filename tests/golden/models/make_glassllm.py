"""What glassllm's English model computes, by its own code, for the test that runs where its weights are.

Usage: python make_glassllm.py PACKAGE_DIR [OUT_DIR]      PACKAGE_DIR is where glassllm 0.1.0 was unpacked or installed

The steps that its tracer records, computed in float64 and rounded to float32 once; of states the first dimensions, of logits the first tokens.
"""

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

sys.path.insert(0, sys.argv[1])
from glassllm import GlassLM, Tokenizer, Tracer  # noqa: E402

OUT = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parent
WEIGHTS = Path(sys.argv[1]) / "glassllm" / "weights"
DIMENSIONS, TOKENS, NEW_TOKENS = 16, 32, 12

model = GlassLM.load(WEIGHTS / "en.npz", dtype=np.float64)
tokens = Tokenizer.load(WEIGHTS / "en.tokenizer.json").encode("Alice was beginning to get very tired")
trace = Tracer()
model.forward(tokens, trace=trace)
values = {
    "embed": trace.get("embed").value[:, :DIMENSIONS],
    "norm.final": trace.get("norm.final").value[:, :DIMENSIONS],
    "logits": trace.get("logits").value[:, :TOKENS],
}
for layer in range(model.cfg.n_layers):
    values[f"resid.ffn.{layer}"] = trace.get("resid.ffn", layer).value[:, :DIMENSIONS]
    values[f"attn.softmax.{layer}"] = trace.get("attn.softmax", layer).value
assert all(value.dtype == np.float64 for value in values.values())
values = {name: np.ascontiguousarray(value[None], np.float32) for name, value in values.items()}
values["tokens"] = np.array([tokens])
greedy = list(model.generate(tokens, NEW_TOKENS, greedy=True))
for step in greedy:
    first, second = np.sort(step.probs)[[-1, -2]]
    assert first / second > 1.001, "a choice that rounding could change"
values["greedy"] = np.array([[step.token for step in greedy]])
path = OUT / "glassllm.safetensors"
save_file(values, path)
path.chmod(0o644)
