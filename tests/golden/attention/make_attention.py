"""Golden values of attention for burn-attn. Usage: python make_attention.py [OUT_DIR]

Each case is computed in float64: the scores of the definition, changed by a `score_mod` and hidden by a `mask_mod` in the
form of PyTorch's FlexAttention, then autograd for the gradients. Every forward pass is compared with FlexAttention itself,
and every forward and backward pass with a second, published implementation.
"""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from safetensors.torch import save_file
from torch.nn import functional as F
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import (
    AuxRequest,
    and_masks,
    create_block_mask,
    flex_attention,
    noop_mask,
)
from transformers import T5Config
from transformers.masking_utils import (
    packed_sequence_mask_function,
    sliding_window_causal_mask_function,
)
from transformers.models.bloom.modeling_bloom import _get_alibi_slopes, build_alibi_tensor
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.t5.modeling_t5 import T5Attention

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.set_num_threads(1)


def numbers(seed, *shape):
    """`numbers` of tests/op/case.rs: in (-1, 1), exact in float32."""
    state = (seed * 0x9E3779B97F4A7C15) % 2**64 | 1
    result = []
    for _ in range(torch.Size(shape).numel()):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        result.append((state >> 44) / 2**19 - 1.0)
    return torch.tensor(result, dtype=torch.float64).reshape(shape)


def attention(t, scale, score_mod, mask_mod):
    """softmax(scores) value, and the logsumexp: of a row that sees nothing, 0 and -inf, without a gradient."""
    query, key, value = t["query"], t["key"], t["value"]
    batch, heads, len_q, _ = query.shape
    groups, len_kv = heads // key.shape[1], key.shape[2]
    key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    b, h, i, j = torch.meshgrid(*(torch.arange(n) for n in (batch, heads, len_q, len_kv)), indexing="ij")
    scores = torch.einsum("bhid,bhjd->bhij", query, key) * scale
    visible = mask_mod(b, h, i, j).expand(scores.shape)
    empty = ~visible.any(-1, keepdim=True)
    scores = score_mod(scores, b, h, i, j).masked_fill(~visible, -torch.inf).masked_fill(empty, 0.0)
    if "sinks" in t:
        sinks = t["sinks"][None, :, None, None].expand(batch, heads, len_q, 1)
        scores = torch.cat([scores, sinks], dim=-1)
    weights = scores.softmax(-1)[..., :len_kv].masked_fill(empty, 0.0)
    logsumexp = scores.logsumexp(-1).masked_fill(empty[..., 0], -torch.inf)
    return torch.einsum("bhij,bhjd->bhid", weights, value), logsumexp


def flex(t, scale, score_mod, mask_mod):
    """The same by FlexAttention, whose sinks are those of gpt-oss on Hugging Face: a factor behind it."""
    query, key, value = t["query"], t["key"], t["value"]
    batch, heads, len_q, _ = query.shape
    block_mask = create_block_mask(mask_mod, batch, heads, len_q, key.shape[2], device="cpu")
    output, aux = flex_attention(
        query, key, value, score_mod, block_mask, scale, enable_gqa=True, return_aux=AuxRequest(lse=True)
    )
    if "sinks" not in t:
        return output, aux.lse
    sinks = t["sinks"][None, :, None]
    return output * torch.sigmoid(aux.lse - sinks)[..., None], torch.logaddexp(aux.lse, sinks)


def gradients(t, output, logsumexp, of_output, of_logsumexp):
    loss = (output * of_output).sum()
    if logsumexp is not None:
        finite = logsumexp.isfinite()
        loss = loss + (logsumexp[finite] * of_logsumexp[finite]).sum()
    leaves = {name: x for name, x in t.items() if x.requires_grad}
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    return dict(zip(leaves, found))


def largest_difference(pairs):
    return max(torch.where(x == y, 0.0, (x - y).abs()).max().item() for x, y in pairs if x is not None)


def make(name, sizes, options=None, tensors=None, score=None, mask=noop_mask, second=None, tolerance=1e-12, source=""):
    """One file. `score` and `second` get the tensors; `second` returns the output of the other implementation."""
    options = options or {}
    batch, heads_q, heads_kv, len_q, len_kv, dim_qk, dim_v = sizes
    t = {
        "query": 4 * numbers(1, batch, heads_q, len_q, dim_qk),
        "key": numbers(2, batch, heads_kv, len_kv, dim_qk),
        "value": numbers(3, batch, heads_kv, len_kv, dim_v),
        **(tensors or {}),
    }
    t = {key: x.requires_grad_() if x.is_floating_point() else x for key, x in t.items()}
    scale = options.get("scale", dim_qk**-0.5)
    mod = score(t) if score else lambda s, b, h, i, j: s
    output, logsumexp = attention(t, scale, mod, mask)

    detached = {key: x.detach() for key, x in t.items()}
    mod = score(detached) if score else None
    by_flex = flex(detached, scale, mod, mask)
    from_flex = largest_difference(zip((output, logsumexp), by_flex))
    assert from_flex < 1e-12, (name, from_flex)

    # Those of `Case::loss_weights` in tests/op/case.rs.
    of_output, of_logsumexp = numbers(7, *output.shape), numbers(8, *logsumexp.shape)
    other = second(t)
    found = gradients(t, output, None, of_output, None)
    expected = gradients(t, other, None, of_output, None)
    from_second = largest_difference([(output, other), *((expected[key], found[key]) for key in found)])
    assert from_second < tolerance, (name, from_second)
    print(f"{name}: differs from FlexAttention by {from_flex:.0e}, from the second by {from_second:.0e}")

    output, logsumexp = attention(t, scale, score(t) if score else lambda s, b, h, i, j: s, mask)
    found = gradients(t, output, logsumexp, of_output, of_logsumexp)
    tensors = {
        **t,
        "output": output,
        "logsumexp": logsumexp,
        "loss.output": of_output,
        "loss.logsumexp": of_logsumexp,
        **{f"grad.{key}": x for key, x in found.items()},
    }
    stored = {key: x.detach().clone().contiguous() for key, x in tensors.items()}
    # One metadata entry only (a JSON object), so that the file does not depend on a map's order.
    config = json.dumps({"torch": torch.__version__.split("+")[0], "source": source, **options}, sort_keys=True)
    save_file(stored, OUT / f"{name}.safetensors", metadata={"config": config})


def dense(mask, len_q, len_kv, batch=1, heads=1):
    """A mask function as a tensor of bools, True = visible."""
    b, h, i, j = torch.meshgrid(*(torch.arange(n) for n in (batch, heads, len_q, len_kv)), indexing="ij")
    return mask(b, h, i, j)


def sdpa(t, visible=None, bias=None, scale=None):
    """PyTorch's own function."""
    bias = torch.zeros(()) if bias is None else bias
    mask = bias.double()
    if visible is not None:
        mask = torch.where(visible, mask, -torch.inf)
    shape = torch.broadcast_shapes(mask.shape, (1, 1, t["query"].shape[2], t["key"].shape[2]))
    return F.scaled_dot_product_attention(
        t["query"], t["key"], t["value"], attn_mask=mask.expand(shape), scale=scale, enable_gqa=True
    )


def hugging_face(model, t, visible, scaling, **options):
    """`eager_attention_forward` of a model; its result is `[batch, len, heads, dim]`."""
    groups = t["query"].shape[1] // t["key"].shape[1]
    module = SimpleNamespace(num_key_value_groups=groups, training=False, sinks=t.get("sinks"))
    mask = torch.where(visible, 0.0, -torch.inf).double()
    output, _ = model.eager_attention_forward(
        module, t["query"], t["key"], t["value"], mask, scaling=scaling, dropout=0.0, **options
    )
    return output.transpose(1, 2)


def causal(len_q, len_kv):
    """FlashAttention's since 2.1: the last query sees the last key."""
    return lambda b, h, i, j: j <= i + len_kv - len_q


def later(mask, by):
    """A mask of whole sequences for queries that are their end."""
    return lambda b, h, i, j: mask(b, h, i + by, j)


make(
    "grouped_heads",
    [2, 6, 2, 3, 5, 3, 2],
    second=sdpa,
    source="Ainslie et al., arXiv:2305.13245; second: scaled_dot_product_attention with enable_gqa",
)

make(
    "causal",
    [2, 2, 2, 3, 5, 3, 2],
    {"causal": True},
    mask=causal(3, 5),
    second=lambda t: sdpa(t, visible=causal_lower_right(3, 5)._materialize()),
    source="FlashAttention 2.1; second: torch.nn.attention.bias.causal_lower_right",
)



def last_three(t):
    """The first two of five queries see none of three keys; the others are those of a square."""
    zeros = torch.zeros(1, 2, 2, 2, dtype=torch.float64)
    square = {**t, "query": t["query"][:, :, 2:]}
    return torch.cat([zeros, sdpa(square, visible=torch.ones(3, 3).tril().bool())], dim=2)


make(
    "causal_more_queries",
    [1, 2, 2, 5, 3, 3, 2],
    {"causal": True},
    mask=causal(5, 3),
    second=last_three,
    source="FlashAttention 2.1: a row that sees nothing is 0; second: scaled_dot_product_attention of the other rows",
)

SLIDING = sliding_window_causal_mask_function(3)
make(
    "sliding_window",
    [1, 2, 2, 5, 7, 3, 2],
    {"causal": True, "sliding_window": 3},
    mask=lambda b, h, i, j: (j <= i + 2) & (i + 2 - j < 3),
    second=lambda t: sdpa(t, visible=dense(later(SLIDING, 2), 5, 7)),
    source="Mistral 7B, arXiv:2310.06825, a window of 3 tokens, the query's own among them; second: "
    "sliding_window_causal_mask_function of transformers",
)

make(
    "two_sided_window",
    [1, 2, 2, 5, 7, 3, 2],
    {"window_size": [2, 1]},
    mask=lambda b, h, i, j: (j >= i + 7 - 5 - 2) & (j <= i + 7 - 5 + 1),
    second=lambda t: sdpa(t, visible=torch.ones(5, 7).tril(2 + 1).triu(2 - 2).bool()),
    source="window_size of flash_attn_func in FlashAttention 2.3; second: bands of ones, scaled_dot_product_attention",
)


def softcap(cap):
    return lambda t: lambda s, b, h, i, j: cap * torch.tanh(s / cap)


make(
    "softcap",
    [2, 2, 2, 3, 5, 3, 2],
    {"softcap": 1.5},
    score=softcap(1.5),
    second=lambda t: hugging_face(modeling_gemma2, t, torch.tensor(True), 3**-0.5, softcap=1.5),
    # Its softmax is in float32.
    tolerance=1e-6,
    source="Gemma 2, arXiv:2408.00118; second: eager_attention_forward of Gemma 2 in transformers",
)

make(
    "gemma2",
    [2, 4, 2, 5, 7, 3, 2],
    {"causal": True, "sliding_window": 4, "softcap": 1.5, "scale": 0.375},
    score=softcap(1.5),
    mask=lambda b, h, i, j: (j <= i + 2) & (i + 2 - j < 4),
    second=lambda t: hugging_face(
        modeling_gemma2,
        t,
        dense(later(sliding_window_causal_mask_function(4), 2), 5, 7),
        0.375,
        softcap=1.5,
    ),
    tolerance=1e-6,
    source="a local layer of Gemma 2 as in transformers: grouped heads, softcap, scale and a window of 4 tokens",
)

make(
    "sinks",
    [2, 4, 2, 5, 7, 3, 2],
    {"causal": True, "sliding_window": 3},
    {"sinks": 4 * numbers(10, 4)},
    mask=lambda b, h, i, j: (j <= i + 2) & (i + 2 - j < 3),
    second=lambda t: hugging_face(modeling_gpt_oss, t, dense(later(SLIDING, 2), 5, 7), 3**-0.5),
    source="a sliding layer of gpt-oss, arXiv:2508.10925; second: its eager_attention_forward in transformers",
)


def alibi(len_q, len_kv):
    return lambda t: lambda s, b, h, i, j: s - t["slopes"][h] * (i + len_kv - len_q - j)


def bloom(t):
    """Bloom adds slope times position, which the softmax cannot tell from the paper's distance."""
    tensor = build_alibi_tensor(torch.ones(2, 5, dtype=torch.long), 6, torch.float64).reshape(2, 6, 1, 5)
    tensor = tensor / _get_alibi_slopes(6, torch.device("cpu"))[:, None, None] * t["slopes"][:, None, None]
    return sdpa(t, visible=dense(causal(3, 5), 3, 5), bias=tensor)


make(
    "alibi",
    [2, 6, 3, 3, 5, 3, 2],
    {"causal": True},
    {"slopes": _get_alibi_slopes(6, torch.device("cpu")).double()},
    score=alibi(3, 5),
    mask=causal(3, 5),
    second=bloom,
    source="Press et al., arXiv:2108.12409, slopes of Bloom in transformers; second: its build_alibi_tensor",
)


def relative(len_q, len_kv, options):
    def bias(t):
        def mod(s, b, h, i, j):
            position = j - (i + len_kv - len_q)
            bucket = T5Attention._relative_position_bucket(
                position, options["bidirectional"], options["buckets"], options["max_distance"]
            )
            return s + t["table"][bucket, h]

        return mod

    return bias


def t5(t, options, visible, len_q, len_kv):
    """The bias that a layer of T5 computes for whole sequences, and the rows of the last queries."""
    config = T5Config(
        d_model=4, d_kv=2, num_heads=2, is_decoder=not options["bidirectional"],
        relative_attention_num_buckets=options["buckets"],
        relative_attention_max_distance=options["max_distance"],
    )  # fmt: skip
    layer = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double()
    assert layer.relative_attention_bias.weight.shape == t["table"].shape
    bias = torch.func.functional_call(
        ComputeBias(layer), {"layer.relative_attention_bias.weight": t["table"]}, (len_kv, len_kv)
    )
    return sdpa(t, visible=visible, bias=bias[:, :, len_kv - len_q :], scale=1.0)


class ComputeBias(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, len_q, len_kv):
        return self.layer.compute_bias(len_q, len_kv)


ENCODER = {"buckets": 10, "max_distance": 7, "bidirectional": True}
make(
    "t5_encoder",
    [1, 2, 2, 11, 11, 2, 2],
    {**ENCODER, "scale": 1.0},
    {"table": numbers(9, 10, 2)},
    score=relative(11, 11, ENCODER),
    second=lambda t: t5(t, ENCODER, None, 11, 11),
    source="Raffel et al., arXiv:1910.10683, _relative_position_bucket of transformers; second: T5Attention.compute_bias",
)

DECODER = {"buckets": 8, "max_distance": 11, "bidirectional": False}
make(
    "t5_decoder",
    [1, 2, 2, 5, 13, 2, 2],
    {**DECODER, "scale": 1.0, "causal": True},
    {"table": numbers(9, 8, 2)},
    score=relative(5, 13, DECODER),
    mask=causal(5, 13),
    second=lambda t: t5(t, DECODER, dense(causal(5, 13), 5, 13), 5, 13),
    source="as t5_encoder, for the last 5 of 13 tokens",
)

DOCUMENTS = torch.tensor([[1, 1, 1, 2, 2, 3, 3], [4, 4, 5, 5, 5, 5, 5]])
make(
    "segments",
    [2, 2, 2, 7, 7, 3, 2],
    {"causal": True},
    {"query_segments": DOCUMENTS, "key_segments": DOCUMENTS.clone()},
    mask=and_masks(causal(7, 7), lambda b, h, i, j: DOCUMENTS[b, i] == DOCUMENTS[b, j]),
    second=lambda t: sdpa(
        t, visible=dense(packed_sequence_mask_function(DOCUMENTS), 7, 7, batch=2) & dense(causal(7, 7), 7, 7)
    ),
    source="documents of FlexAttention; second: packed_sequence_mask_function of transformers",
)

# Of 5 queries and 7 keys, in blocks of 2 queries and 3 keys: every query sees a key.
TABLE = torch.tensor(
    [
        [[1, 0, 1], [0, 1, 0], [1, 1, 0]],
        [[0, 0, 1], [1, 0, 0], [0, 1, 1]],
    ]
).bool()[None]


def blocks(t):
    block_mask = create_block_mask(
        lambda b, h, i, j: TABLE[0, h, i // 2, j // 3], None, 2, 5, 7, device="cpu", BLOCK_SIZE=(2, 3)
    )
    assert (block_mask.to_dense().bool() == TABLE).all()
    visible = block_mask.to_dense().bool().repeat_interleave(2, dim=2).repeat_interleave(3, dim=3)
    return sdpa(t, visible=visible[:, :, :5, :7])


make(
    "blocks",
    [2, 2, 2, 5, 7, 3, 2],
    {"block": [2, 3]},
    {"visible_blocks": TABLE},
    mask=lambda b, h, i, j: TABLE[0, h, i // 2, j // 3],
    second=blocks,
    source="BlockMask of FlexAttention; second: its to_dense, repeated, scaled_dot_product_attention",
)

for name, shape in {"bias": [2, 2, 3, 5], "bias_of_heads": [1, 2, 3, 5], "bias_of_keys": [2, 1, 1, 5]}.items():
    make(
        name,
        [2, 2, 2, 3, 5, 3, 2],
        tensors={"bias": numbers(6, *shape)},
        score=lambda t: lambda s, b, h, i, j: s + t["bias"].expand(2, 2, 3, 5)[b, h, i, j],
        second=lambda t: sdpa(t, bias=t["bias"]),
        source="attn_mask of scaled_dot_product_attention",
    )


def one_hot(t):
    """The bias inside the products: a width for each query, which holds 1 there, and the bias of that query in the keys."""
    query, key, bias = t["query"], t["key"], t["captured.bias"]
    (batch, heads, len_q, dim), len_kv = query.shape, key.shape[2]
    ones = torch.eye(len_q, dtype=torch.float64).expand(batch, heads, len_q, len_q) * dim**0.5
    biases = bias.transpose(2, 3).expand(batch, heads, len_kv, len_q)
    return {**t, "query": torch.cat([query, ones], dim=3), "key": torch.cat([key, biases], dim=3)}


make(
    "function_bias_before_softcap",
    [2, 2, 2, 3, 5, 3, 2],
    {"softcap": 1.5},
    {"captured.bias": numbers(6, 1, 2, 3, 5)},
    score=lambda t: lambda s, b, h, i, j: 1.5 * torch.tanh((s + t["captured.bias"][0, h, i, j]) / 1.5),
    second=lambda t: hugging_face(modeling_gemma2, one_hot(t), torch.tensor(True), 3**-0.5, softcap=1.5),
    tolerance=1e-6,
    source="score_mod of FlexAttention; second: eager_attention_forward of Gemma 2 of longer queries and keys",
)


def penalty(t):
    distance = dense(lambda b, h, i, j: (i - j).abs(), 7, 7).double()
    factors, slopes = (t[f"captured.{name}"][None, :, None, None] for name in ("factors", "slopes"))
    visible = dense(packed_sequence_mask_function(DOCUMENTS), 7, 7, batch=2) & dense(causal(7, 7), 7, 7)
    return sdpa({**t, "query": t["query"] * factors}, visible=visible, bias=-slopes * distance)


make(
    "function_documents",
    [2, 4, 2, 7, 7, 3, 2],
    tensors={"captured.factors": 1 + numbers(7, 4), "captured.slopes": numbers(8, 4), "documents": DOCUMENTS.clone()},
    score=lambda t: lambda s, b, h, i, j: t["captured.factors"][h] * s - t["captured.slopes"][h] * (i - j).abs(),
    mask=and_masks(causal(7, 7), lambda b, h, i, j: DOCUMENTS[b, i] == DOCUMENTS[b, j]),
    second=penalty,
    source="score_mod and mask_mod of FlexAttention; second: scaled_dot_product_attention of scaled queries",
)
