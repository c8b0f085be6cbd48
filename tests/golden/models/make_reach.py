"""What models compute of a text that is longer than `max_position_embeddings`, as their linear scaling allows: `reach.safetensors`.

Usage: python make_reach.py [OUT_DIR]

The weights are those of the folders beside this script. The metadata have the fields that differ from their `config.json`, in the form from before
version 5. Values are computed in float64 and rounded to float32 once.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

HERE = Path(__file__).resolve().parent
OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
TOKENS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8]])
SCALING = {"max_position_embeddings": 5, "rope_scaling": {"type": "linear", "factor": 4.0}}
FIELDS = {
    "llama": SCALING | {"rope_theta": 500.0},
    "gpt_neox": SCALING | {"rotary_emb_base": 1000.0, "rotary_pct": 0.5},
}
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)

values = {"tokens": TOKENS}
for model, fields in FIELDS.items():
    config = json.loads((HERE / model / "config.json").read_text()) | fields
    del config["rope_parameters"]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        (Path(folder) / "model.safetensors").symlink_to(HERE / model / "model.safetensors")
        loaded = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).double().eval()
    with torch.no_grad():
        values[f"{model}.logits"] = loaded(TOKENS).logits.float()
path = OUT / "reach.safetensors"
save_file(values, path, metadata={"config": json.dumps(FIELDS)})
path.chmod(0o644)
