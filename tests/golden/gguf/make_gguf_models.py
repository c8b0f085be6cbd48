"""GGUF files of the small models in ../models, by llama.cpp's own converter.

Usage: python make_gguf_models.py LLAMA_CPP      LLAMA_CPP has convert_hf_to_gguf.py and gguf-py (as in the source package llama-cpp-python 0.3.9)

Needs torch, transformers, sentencepiece and numpy. The tokenizer is left out: the models have none. The converter reads the rotary base where
transformers wrote it before version 5.
"""

import importlib.util
import json
import shutil
import sys
import tempfile
from pathlib import Path

LLAMA_CPP = Path(sys.argv[1]).resolve()
OUT = Path(__file__).resolve().parent
sys.path.insert(0, str(LLAMA_CPP / "gguf-py"))
spec = importlib.util.spec_from_file_location("converter", LLAMA_CPP / "convert_hf_to_gguf.py")
converter = importlib.util.module_from_spec(spec)
sys.modules["converter"] = converter
spec.loader.exec_module(converter)

for kind in list(vars(converter).values()):
    if isinstance(kind, type) and "set_vocab" in vars(kind):
        kind.set_vocab = lambda self: self.gguf_writer.add_tokenizer_model("none")

# As the file says: newer versions of transformers would bring it into a form that this converter does not know.
converter.ModelBase.load_hparams = staticmethod(lambda folder, *_: json.loads((folder / "config.json").read_text()))

# The llama's rotary positions are scaled only where the name says so.
for name in ["llama", "llama3", "qwen2", "qwen3", "bert"]:
    family = "llama" if name == "llama3" else name
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        source = OUT.parent / "models" / family
        shutil.copy(source / "model.safetensors", folder)
        config = json.loads((source / "config.json").read_text())
        rope = config.pop("rope_parameters", None)
        if rope:
            config["rope_theta"] = 500.0
        if name == "llama3":
            config["rope_scaling"] = rope
            # Where the converter looks for it.
            config["original_max_position_embeddings"] = rope["original_max_position_embeddings"]
        (folder / "config.json").write_text(json.dumps(config))
        path = OUT / f"{name}.gguf"
        sys.argv = ["convert", str(folder), "--outfile", str(path), "--outtype", "f32", "--model-name", family]
        converter.main()
        path.chmod(0o644)
