"""GGUF files for the example small_weights, by llama.cpp's own converter: NAME-f16.gguf, -bf16, -q8_0 and -q4_0.

Usage: python small_weights.py LLAMA_CPP FOLDER NAME     LLAMA_CPP has convert_hf_to_gguf.py and gguf-py (as in the source package llama-cpp-python 0.3.9)

FOLDER is what transformers saved of a model. Needs torch, transformers, sentencepiece and numpy. The tokenizer is left out: the example
takes that of the folder. The converter does not write Q4_0: it is told so for every matrix that llama.cpp quantizes. Where rows are no
whole blocks of 32 numbers, it writes f16.
"""

import importlib.util
import json
import sys
from pathlib import Path

LLAMA_CPP, FOLDER, NAME = Path(sys.argv[1]).resolve(), *sys.argv[2:]
sys.path.insert(0, str(LLAMA_CPP / "gguf-py"))
spec = importlib.util.spec_from_file_location("converter", LLAMA_CPP / "convert_hf_to_gguf.py")
converter = importlib.util.module_from_spec(spec)
sys.modules["converter"] = converter
spec.loader.exec_module(converter)
Q4_0 = converter.gguf.GGMLQuantizationType.Q4_0
# What llama.cpp keeps in f32.
WHOLE = ["position_embeddings", "token_type_embeddings"]

for kind in list(vars(converter).values()):
    if isinstance(kind, type) and "set_vocab" in vars(kind):
        kind.set_vocab = lambda self: self.gguf_writer.add_tokenizer_model("none")

# As the file says: newer versions of transformers would bring it into a form that this converter does not know.
converter.ModelBase.load_hparams = staticmethod(lambda folder, *_: json.loads((folder / "config.json").read_text()))


def in_four_bits(_, name, new_name, bid, n_dims):
    is_matrix = n_dims == 2 and new_name.endswith(".weight")
    return Q4_0 if is_matrix and not any(part in name for part in WHOLE) else False


for kind in ["f16", "bf16", "q8_0", "q4_0"]:
    if kind == "q4_0":
        converter.ModelBase.tensor_force_quant = in_four_bits
    outtype = "q8_0" if kind == "q4_0" else kind
    path = f"{NAME}-{kind}.gguf"
    sys.argv = ["convert", FOLDER, "--outfile", path, "--outtype", outtype, "--model-name", NAME]
    converter.main()
    Path(path).chmod(0o644)
