"""A folder as `transformers` saves a T5, from the int8 ONNX files of the package traceforge-title-model (flan-t5-small, fine-tuned to write
titles). `fetch.py` calls `convert`.

A weight is `(quantized - zero_point) * scale` in float32; its name is that of the parameter, or the path of the product that it is in.
"""

import json
import re
import shutil
import sys

try:
    import numpy
    import onnx
    from safetensors.numpy import save_file
except ModuleNotFoundError as error:
    sys.exit(f"fetch: {error.name} is missing, which reads ONNX files: pip install numpy onnx safetensors")


def parameter(path):
    """The name in `transformers` of what the exported modules call `enc.…` and `m.…`."""
    return re.sub(r"^m\.", "", re.sub(r"^enc\.", "encoder.", path))


def tensors(path):
    """The parameters of one of the files."""
    graph = onnx.load(path).graph
    stored = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in graph.initializer}

    def number(name):
        """What an initializer stands for, quantized or not."""
        base = name.removesuffix("_quantized")
        if base == name:
            return stored[name]
        zero_point, scale = stored[base + "_zero_point"], stored[base + "_scale"]
        return (stored[name].astype(numpy.float32) - zero_point.astype(numpy.float32)) * scale

    found = {}
    for name in stored:
        base = name.removesuffix("_quantized")
        if base.endswith(".weight"):
            found[parameter(base)] = number(name)
    for node in graph.node:
        if node.op_type in ("MatMul", "MatMulInteger") and node.input[1].startswith("onnx::MatMul"):
            module = re.sub(r"/MatMul(_quant)?$", "", node.name).strip("/").replace("/", ".")
            # Linear layers of PyTorch have the outputs first.
            found[parameter(module) + ".weight"] = number(node.input[1]).T
    return found


def convert(package, folder):
    source = package / "traceforge_title_model/data/span"
    found = {**tensors(source / "encoder.onnx"), **tensors(source / "decoder.onnx")}
    # Both stacks read the table of the tokens.
    if not numpy.array_equal(found.pop("encoder.embed_tokens.weight"), found["shared.weight"]):
        sys.exit("fetch: encoder and decoder embed tokens in different ways")

    vocab_size, d_model = found["shared.weight"].shape
    buckets, heads = found["encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"].shape
    width, _ = found["encoder.block.0.layer.0.SelfAttention.q.weight"].shape
    d_ff, _ = found["encoder.block.0.layer.1.DenseReluDense.wi_0.weight"].shape

    def layers(stack):
        return len([name for name in found if re.fullmatch(rf"{stack}\.block\.\d+\.layer\.0\.layer_norm\.weight", name)])

    config = {
        "architectures": ["T5ForConditionalGeneration"],
        "d_ff": d_ff,
        "d_kv": width // heads,
        "d_model": d_model,
        "decoder_start_token_id": 0,
        "eos_token_id": 1,
        "feed_forward_proj": "gated-gelu",
        "layer_norm_epsilon": 1e-6,
        "model_type": "t5",
        "num_decoder_layers": layers("decoder"),
        "num_heads": heads,
        "num_layers": layers("encoder"),
        "pad_token_id": 0,
        "relative_attention_max_distance": 128,
        "relative_attention_num_buckets": buckets,
        "tie_word_embeddings": False,
        "vocab_size": vocab_size,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    found = {name: numpy.ascontiguousarray(tensor, dtype=numpy.float32) for name, tensor in found.items()}
    weights = folder / "model.safetensors"
    save_file(found, weights, metadata={"format": "pt"})
    weights.chmod(0o644)
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")
