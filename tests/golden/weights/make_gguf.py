"""A GGUF file of quantised numbers, as ggml's own Python package writes it, and what that package reads them as.

Usage: python make_gguf.py [OUT_DIR] (made with `gguf` 0.19.0)
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFWriter
from gguf.quants import dequantize, quantize

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent


def write(name, tensors):
    writer = GGUFWriter(OUT / f"{name}.gguf", "llama")
    writer.add_array("tokenizer.ggml.tokens", ["<s>", "a", "b"])
    for tensor, numbers, kind in tensors:
        writer.add_tensor(tensor, numbers, raw_dtype=kind)
        if kind is not None:
            writer.add_tensor(f"expected.{tensor}", dequantize(numbers, kind))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


numbers = np.random.default_rng(17).standard_normal((3, 64)).astype(np.float32)
quantised = [(name, quantize(numbers, kind), kind) for name, kind in [("q8_0", Type.Q8_0), ("q4_0", Type.Q4_0)]]
write("quantised", [("f16", numbers.astype(np.float16), None), *quantised])
# The package reads this type and does not write it: any bits, with factors that are numbers.
packed = np.random.default_rng(19).integers(0, 256, (3, 2, 210), dtype=np.uint8)
packed[:, :, 208:] = np.array([0.5, -0.25, 0.001], np.float16).view(np.uint8).reshape(3, 1, 2)
write("quantised_k", [("q6_k", packed.reshape(3, 420), Type.Q6_K)])
