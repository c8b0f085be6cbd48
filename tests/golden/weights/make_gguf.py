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
numbers = np.random.default_rng(17).standard_normal((3, 64)).astype(np.float32)

writer = GGUFWriter(OUT / "quantised.gguf", "llama")
writer.add_array("tokenizer.ggml.tokens", ["<s>", "a", "b"])
writer.add_tensor("f16", numbers.astype(np.float16))
for name, kind in [("q8_0", Type.Q8_0), ("q4_0", Type.Q4_0)]:
    packed = quantize(numbers, kind)
    writer.add_tensor(name, packed, raw_dtype=kind)
    writer.add_tensor(f"expected.{name}", dequantize(packed, kind))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
