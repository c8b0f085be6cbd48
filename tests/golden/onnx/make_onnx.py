"""Writes golden values of ONNX's operator Attention, computed by the reference evaluator of the package onnx; see README.md."""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from safetensors.numpy import save_file

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
RNG = np.random.default_rng(7)


def data(*shape):
    """Numbers that are exact in float32."""
    return RNG.standard_normal(shape).astype(np.float32).astype(np.float64)


def attention(inputs, **attributes):
    """The output of one node of opset 24; inputs by their names in the order of the operator, absent ones left out."""
    order = ["q", "k", "v", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"]
    last = max(order.index(name) for name in inputs)
    names = [name if name in inputs else "" for name in order[: last + 1]]
    outputs = ["y", "present_key", "present_value"] if "past_key" in inputs else ["y"]
    node = helper.make_node("Attention", names, outputs, **attributes)
    types = {np.dtype(np.float64): TensorProto.DOUBLE, np.dtype(bool): TensorProto.BOOL, np.dtype(np.int64): TensorProto.INT64}
    given = [helper.make_tensor_value_info(name, types[x.dtype], x.shape) for name, x in inputs.items()]
    output = helper.make_tensor_value_info("y", TensorProto.DOUBLE, None)
    graph = helper.make_graph([node], "attention", given, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)])
    return ReferenceEvaluator(model).run(["y"], inputs)[0]


def save(name, inputs, **attributes):
    y = attention(inputs, **attributes)
    tensors = {name: x.astype(np.float64) for name, x in inputs.items()} | {"y": y}
    save_file({name: np.ascontiguousarray(x) for name, x in tensors.items()}, OUT / f"{name}.safetensors")
    print(name, onnx.__version__, {name: x.shape for name, x in tensors.items()})


def operands(len_q, len_kv):
    return {"q": data(2, 6, len_q, 4), "k": data(2, 2, len_kv, 4), "v": data(2, 2, len_kv, 5)}


save("past", operands(3, 3) | {"past_key": data(2, 2, 4, 4), "past_value": data(2, 2, 4, 5)}, is_causal=1)
save("no_past", operands(3, 7), is_causal=1)
save("external_cache", operands(3, 7) | {"nonpad_kv_seqlen": np.array([5, 2])}, is_causal=1, scale=0.25)
save("bools", operands(3, 7) | {"attn_mask": RNG.random((2, 1, 3, 7)) > 0.4}, softcap=0.75)
save("floats", operands(3, 7) | {"attn_mask": data(1, 6, 3, 7)}, softcap=0.75)
packed = {"q": data(2, 3, 24), "k": data(2, 7, 8), "v": data(2, 7, 10)}
save("three_axes", packed, q_num_heads=6, kv_num_heads=2)
