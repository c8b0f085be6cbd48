"""Golden values from PyTorch for burn-attn. Usage: python make_golden.py [OUT_DIR]

Inputs and parameters are float32 values (stored exactly); everything computed from them
(outputs, weights, gradients, losses) is computed in float64 and rounded to float32 once.
"""

import copy
import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def data(*shape):
    """A random leaf: float64, but exactly representable in float32."""
    return torch.randn(*shape).double().requires_grad_()


def padding_mask(lengths, size):
    """PyTorch polarity: True = this key is padding, ignore it."""
    return torch.arange(size)[None, :] >= torch.tensor(lengths)[:, None]


def causal_mask(size):
    """PyTorch polarity: True = this query must not see this key."""
    return torch.ones(size, size, dtype=torch.bool).triu(1)


def prepare(module):
    """Moves biases off 0 and norm weights off 1, then switches to float64 and training mode."""
    with torch.no_grad():
        for p in module.parameters():
            if p.dim() == 1:
                p.add_(0.2 * torch.randn_like(p))
    return module.double().train()  # training mode: the inference fast path is off


def save(name, tensors, config):
    stored = {}
    for key, t in tensors.items():
        t = t.detach()
        stored[key] = (t.float() if t.is_floating_point() else t).clone().contiguous()
    # One metadata entry only (a JSON object), so that the file does not depend on a map's order.
    config = json.dumps({"torch": torch.__version__.split("+")[0], **config}, sort_keys=True)
    save_file(stored, OUT / f"{name}.safetensors", metadata={"config": config})


def with_gradients(module, inputs, output):
    """Parameters, inputs, loss_weight, output, and gradients of (output * loss_weight).sum()."""
    leaves = {**inputs, **dict(module.named_parameters())}
    loss_weight = data(*output.shape)
    (output * loss_weight).sum().backward()
    grads = {f"grad.{k}": p.grad for k, p in leaves.items()}
    return {**leaves, "loss_weight": loss_weight, "output": output, **grads}


def mha(name, seed, kind):
    torch.manual_seed(seed)
    module = prepare(nn.MultiheadAttention(15, 3, bias=True, batch_first=True))
    masks, lengths = {}, {}
    if kind == "self":
        inputs = {"x": data(2, 7, 15)}
        q = k = v = inputs["x"]
        lengths = {"lengths": torch.tensor([7, 5])}
        masks = {"key_padding_mask": padding_mask([7, 5], 7), "attn_mask": causal_mask(7)}
    elif kind == "cross":
        inputs = {"query": data(2, 5, 15), "memory": data(2, 11, 15)}
        q, k, v = inputs["query"], inputs["memory"], inputs["memory"]
        lengths = {"memory_lengths": torch.tensor([11, 8])}
        masks = {"key_padding_mask": padding_mask([11, 8], 11)}
    else:
        inputs = {"query": data(2, 5, 15), "key": data(2, 11, 15), "value": data(2, 11, 15)}
        q, k, v = inputs.values()
    output, weights = module(q, k, v, need_weights=True, average_attn_weights=False, **masks)
    tensors = {**with_gradients(module, inputs, output), **lengths, "weights": weights}
    save(name, tensors, {"embed_dim": 15, "num_heads": 3, "causal": kind == "self"})


LAYER = dict(d_model=15, nhead=3, dim_feedforward=29, dropout=0.0)


def encoder_layer(name, seed, norm_first, activation):
    torch.manual_seed(seed)
    options = dict(**LAYER, norm_first=norm_first, activation=activation)
    module = prepare(nn.TransformerEncoderLayer(**options, batch_first=True))
    x = data(2, 7, 15)
    output = module(x, src_key_padding_mask=padding_mask([7, 5], 7))
    tensors = {**with_gradients(module, {"x": x}, output), "lengths": torch.tensor([7, 5])}
    save(name, tensors, {**options, "layer_norm_eps": 1e-5, "causal": False})


def decoder_layer(name, seed, norm_first, activation):
    torch.manual_seed(seed)
    options = dict(**LAYER, norm_first=norm_first, activation=activation)
    module = prepare(nn.TransformerDecoderLayer(**options, batch_first=True))
    target, memory = data(2, 5, 15), data(2, 7, 15)
    output = module(
        target,
        memory,
        tgt_mask=causal_mask(5),
        tgt_key_padding_mask=padding_mask([5, 4], 5),
        memory_key_padding_mask=padding_mask([7, 5], 7),
    )
    tensors = {
        **with_gradients(module, {"target": target, "memory": memory}, output),
        "target_lengths": torch.tensor([5, 4]),
        "memory_lengths": torch.tensor([7, 5]),
    }
    save(name, tensors, {**options, "layer_norm_eps": 1e-5, "causal": True})


def train(module, source, target, goal, lengths, steps):
    """The loss before each step, and after the last."""
    adam = torch.optim.Adam(module.parameters(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8)
    padding = padding_mask(lengths, source.shape[1])
    losses = []
    for step in range(steps + 1):
        output = module(
            source,
            target,
            tgt_mask=causal_mask(target.shape[1]),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        loss = ((output - goal) ** 2).mean()
        losses.append(loss.detach())
        if step < steps:
            adam.zero_grad()
            loss.backward()
            adam.step()
    return torch.stack(losses)


def transformer_training(name, seed, norm_first):
    torch.manual_seed(seed)
    options = dict(
        d_model=16, nhead=2, num_encoder_layers=2, num_decoder_layers=2,
        dim_feedforward=32, dropout=0.0, activation="relu", norm_first=norm_first,
    )  # fmt: skip
    module = prepare(nn.Transformer(**options, batch_first=True))
    initial = {k: v.clone() for k, v in module.state_dict().items()}
    source, target, goal = (data(3, n, 16).detach() for n in (7, 5, 5))
    lengths = [7, 5, 6]
    single = copy.deepcopy(module).float()
    losses = train(module, source, target, goal, lengths, 10)
    losses32 = train(single, source.float(), target.float(), goal.float(), lengths, 10)
    difference = (losses - losses32).abs().max().item()
    print(f"{name}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, float32 run differs by {difference:.1e}")
    assert difference < 1e-5
    tensors = {
        **initial,
        "source": source,
        "source_lengths": torch.tensor(lengths),
        "target": target,
        "goal": goal,
        "losses": losses,
    }
    optimizer = {"optimizer": "Adam", "lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "steps": 10}
    save(name, tensors, {**options, **optimizer, "layer_norm_eps": 1e-5, "causal": True})


ACTIVATIONS = {
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "swiglu": F.silu,
    "geglu": F.gelu,
}


class Block(nn.Module):
    """A layer that nn.TransformerEncoderLayer cannot be, from PyTorch's own parts, with its names.

    `norm1_output` and `norm2_output` are the norms behind a sublayer; a gated `linear1` has the gate's rows first."""

    def __init__(self, norm, placement, activation, parallel, bias, eps):
        super().__init__()
        d_model, d_ff = LAYER["d_model"], LAYER["dim_feedforward"]
        self.placement, self.parallel = placement, parallel
        self.activation, self.gated = ACTIVATIONS[activation], activation.endswith("glu")
        if norm == "rms":
            make_norm = lambda: nn.RMSNorm(d_model, eps=eps)  # noqa: E731
        else:
            make_norm = lambda: nn.LayerNorm(d_model, eps=eps, bias=bias)  # noqa: E731
        self.self_attn = nn.MultiheadAttention(d_model, LAYER["nhead"], bias=bias, batch_first=True)
        self.linear1 = nn.Linear(d_model, (2 if self.gated else 1) * d_ff, bias=bias)
        self.linear2 = nn.Linear(d_ff, d_model, bias=bias)
        for i in (1,) if parallel else (1, 2):
            setattr(self, f"norm{i}", make_norm())
            if placement == "sandwich":
                setattr(self, f"norm{i}_output", make_norm())

    def residual(self, i, x, sublayer):
        norm = getattr(self, f"norm{i}")
        if self.placement == "post":
            return norm(x + sublayer(x))
        y = sublayer(norm(x))
        return x + (getattr(self, f"norm{i}_output")(y) if self.placement == "sandwich" else y)

    def feed_forward(self, x):
        h = self.linear1(x)
        if self.gated:
            gate, up = h.chunk(2, -1)
            return self.linear2(self.activation(gate) * up)
        return self.linear2(self.activation(h))

    def forward(self, x, **masks):
        attention = lambda x: self.self_attn(x, x, x, need_weights=False, **masks)[0]  # noqa: E731
        if self.parallel:
            return self.residual(1, x, lambda x: attention(x) + self.feed_forward(x))
        return self.residual(2, self.residual(1, x, attention), self.feed_forward)


def block(name, seed, causal, **options):
    torch.manual_seed(seed)
    module = prepare(Block(**options))
    x = data(2, 7, 15)
    masks = {"key_padding_mask": padding_mask([7, 5], 7)}
    if causal:
        masks["attn_mask"] = causal_mask(7)
    output = module(x, **masks)
    tensors = {**with_gradients(module, {"x": x}, output), "lengths": torch.tensor([7, 5])}
    save(name, tensors, {**LAYER, **options, "causal": causal})


mha("mha_self", 1, "self")
mha("mha_cross", 2, "cross")
mha("mha_general", 3, "general")
encoder_layer("encoder_layer_post", 4, False, "relu")
encoder_layer("encoder_layer_pre", 5, True, "gelu")
decoder_layer("decoder_layer_post", 6, False, "relu")
decoder_layer("decoder_layer_pre", 7, True, "gelu")
transformer_training("transformer_training", 8, False)
transformer_training("transformer_training_pre", 9, True)
block(
    "block_sandwich", 10, True,
    norm="rms", placement="sandwich", activation="swiglu", parallel=False, bias=False, eps=1e-6,
)  # fmt: skip
block(
    "block_parallel", 11, True,
    norm="layer", placement="pre", activation="geglu", parallel=True, bias=False, eps=1e-5,
)  # fmt: skip
block(
    "block_post_rms", 12, False,
    norm="rms", placement="post", activation="gelu_tanh", parallel=False, bias=True, eps=1e-5,
)  # fmt: skip
