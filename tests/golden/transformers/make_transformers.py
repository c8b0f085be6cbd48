"""Golden values of Hugging Face's transformers for burn-attn. Usage: python make_transformers.py [OUT_DIR]

The modules of the library itself run in float64, which some of them would leave for float32 on their way: in this process
float32 is float64. Inputs and parameters are exact in float32.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)
SINGLE = torch.float32
torch.float = torch.float32 = torch.float64
torch.FloatTensor = torch.DoubleTensor
torch.Tensor.float = torch.Tensor.double

from transformers import (  # noqa: E402
    DeepseekV3Config, Dinov2Config, GptOssConfig, HunYuanDenseV1Config, LlamaConfig, LlamaModel, MixtralConfig, ModernBertConfig,
    ModernBertModel, Olmo2Config, PhiConfig, Qwen2MoeConfig, Qwen2VLTextConfig, Qwen3MoeConfig, Qwen3NextConfig,
)  # fmt: skip
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS  # noqa: E402
from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE  # noqa: E402
from transformers.models.dinov2.modeling_dinov2 import Dinov2Layer  # noqa: E402
from transformers.models.gemma2.modeling_gemma2 import Gemma2RMSNorm  # noqa: E402
from transformers.models.gpt_oss.modeling_gpt_oss import GptOssMLP  # noqa: E402
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1Attention  # noqa: E402
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding  # noqa: E402
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock, load_balancing_loss_func  # noqa: E402
from transformers.models.nemotron.modeling_nemotron import NemotronLayerNorm1P  # noqa: E402
from transformers.models.olmo2.modeling_olmo2 import Olmo2Attention  # noqa: E402
from transformers.models.phi.modeling_phi import PhiAttention  # noqa: E402
from transformers.models.qwen2_moe.modeling_qwen2_moe import Qwen2MoeSparseMoeBlock  # noqa: E402
from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLAttention, Qwen2VLRotaryEmbedding  # noqa: E402
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock  # noqa: E402
from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextAttention  # noqa: E402
from transformers.models.whisper.modeling_whisper import sinusoids  # noqa: E402

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent


def data(*shape, scale=1.0):
    """Random numbers that are exact in float32."""
    return (scale * torch.randn(*shape)).to(SINGLE).double()


def leaf(*shape, scale=1.0):
    return data(*shape, scale=scale).requires_grad_()


def fill(module, scale=0.5):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(data(*parameter.shape, scale=scale))
    return module


def save(name, tensors, **options):
    stored = {key: tensor.detach().clone().contiguous() for key, tensor in tensors.items()}
    assert all(tensor.dtype == torch.float64 for tensor in stored.values())
    config = json.dumps(options, sort_keys=True)
    save_file(stored, OUT / f"{name}.safetensors", metadata={"config": config})
    print(name, {key: list(tensor.shape) for key, tensor in stored.items()})


def rotary():
    """Angles per token of 22 numbers, and what cosine and sine are multiplied by."""
    yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 509}
    llama3 = {"rope_type": "llama3", "original_max_position_embeddings": 8192, "low_freq_factor": 1.0}
    longrope = {"rope_type": "longrope", "original_max_position_embeddings": 4096, "factor": 32.0}
    short = [1.0 + 0.25 * pair for pair in range(11)]
    long = [1.0 + 1.5 * pair for pair in range(11)]
    cases = {
        "llama3": (500_000.0, {**llama3, "factor": 8.0, "high_freq_factor": 4.0}),
        "llama3_of_others": (10_000.0, {**llama3, "factor": 32.0, "high_freq_factor": 64.0, "low_freq_factor": 2.0}),
        "yarn_attention_factor": (10_000.0, {**yarn, "attention_factor": 1.5}),
        "yarn_mscale": (10_000.0, {**yarn, "mscale": 0.707, "mscale_all_dim": 1.0}),
        "yarn_not_truncated": (150_000.0, {**yarn, "factor": 32.0, "truncate": False}),
        "longrope": (10_000.0, {**longrope, "short_factor": short, "long_factor": long}),
    }
    tensors = {}
    for name, (base, parameters) in cases.items():
        config = LlamaConfig(
            hidden_size=22, num_attention_heads=1, head_dim=22, max_position_embeddings=131_072,
            rope_parameters={"rope_theta": base, **parameters},
        )  # fmt: skip
        # Of longrope the factors for long texts.
        angles, factor = ROPE_INIT_FUNCTIONS[parameters["rope_type"]](config, seq_len=8192)
        tensors[f"{name}.frequencies"] = angles
        tensors[f"{name}.attention_factor"] = torch.tensor([factor])
    save("rotary", tensors, cases=cases)


def sinusoidal():
    """The tables of 13 positions: Marian's of an even and an odd width, Whisper's."""
    marian = lambda width: MarianSinusoidalPositionalEmbedding(13, width).create_weight()  # noqa: E731
    save("sinusoidal", {"marian": marian(14), "marian_odd": marian(15), "whisper": sinusoids(13, 14)})


def with_gradients(inputs, output):
    loss_weight = data(*output.shape)
    (output * loss_weight).sum().backward()
    gradients = {f"grad.{name}": tensor.grad for name, tensor in inputs.items()}
    return {**inputs, "loss_weight": loss_weight, "output": output, **gradients}


def norms():
    torch.manual_seed(21)
    for name, norm in {
        "gemma2_norm": Gemma2RMSNorm(15, eps=0.03),
        "nemotron_norm": NemotronLayerNorm1P(15, eps=0.07),
    }.items():
        fill(norm)
        x = leaf(2, 7, 15)
        parameters = {"gamma": norm.weight} | ({"beta": norm.bias} if hasattr(norm, "bias") else {})
        save(name, with_gradients({"x": x, **parameters}, norm(x)), epsilon=norm.eps)


def olmo2():
    """Attention of 6 heads over 2, without positions: its norms are as wide as the projections."""
    torch.manual_seed(22)
    config = Olmo2Config(
        hidden_size=15, num_attention_heads=6, num_key_value_heads=2, rms_norm_eps=0.03, attn_implementation="eager",
    )  # fmt: skip
    config.head_dim = 5
    attention = fill(Olmo2Attention(config, 0).eval())
    x = leaf(2, 7, 15)
    no_rotation = (torch.ones(2, 7, 5), torch.zeros(2, 7, 5))
    output, _ = attention(x, position_embeddings=no_rotation, attention_mask=None)
    names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "o_proj"}
    inputs = {"x": x, "norm.query": attention.q_norm.weight, "norm.key": attention.k_norm.weight}
    inputs |= {f"projection.{ours}": getattr(attention, theirs).weight for ours, theirs in names.items()}
    save("olmo2_attention", with_gradients(inputs, output), epsilon=config.rms_norm_eps)


def attentions():
    """Causal attention of 4 heads of width 6 over 2, at positions with gaps: norms after the rotation, norms with a mean, a gate."""
    sizes = dict(
        hidden_size=24, num_attention_heads=4, num_key_value_heads=2, attention_bias=False, attn_implementation="eager",
    )  # fmt: skip
    for seed, name, config, module, norms in [
        (31, "hunyuan_attention", HunYuanDenseV1Config(**sizes, head_dim=6, rms_norm_eps=0.03), HunYuanDenseV1Attention,
         {"query": "query_layernorm", "key": "key_layernorm"}),
        (32, "phi_attention", PhiConfig(**sizes, qk_layernorm=True, layer_norm_eps=0.07), PhiAttention,
         {"query": "q_layernorm", "key": "k_layernorm"}),
        (33, "qwen3_next_attention", Qwen3NextConfig(**sizes, head_dim=6, rms_norm_eps=0.03), Qwen3NextAttention,
         {"query": "q_norm", "key": "k_norm"}),
    ]:  # fmt: skip
        torch.manual_seed(seed)
        attention = fill(module(config, 0).eval())
        x = leaf(2, 7, 24)
        positions = torch.tensor([[0, 2, 3, 7, 8, 11, 12], [5, 6, 7, 8, 20, 21, 30]])
        rotary_dim = 6 if name == "hunyuan_attention" else 4
        frequencies = 100.0 ** -(torch.arange(0, rotary_dim, 2) / rotary_dim)
        angles = positions[..., None] * frequencies
        angles = torch.cat([angles, angles], -1)
        later = torch.full((7, 7), -torch.inf).triu(1).expand(2, 1, 7, 7)
        if name == "phi_attention":
            attention.rotary_ndims = rotary_dim
        output, _ = attention(x, position_embeddings=(angles.cos(), angles.sin()), attention_mask=later)
        projections = {"query": "q_proj", "key": "k_proj", "value": "v_proj"}
        projections["output"] = "dense" if name == "phi_attention" else "o_proj"
        loss_weight = data(*output.shape)
        (output * loss_weight).sum().backward()
        tensors = {"x": x, "grad.x": x.grad, "loss_weight": loss_weight, "output": output, "positions": positions.double()}
        for prefix, of in [("", lambda parameter: parameter), ("grad.", lambda parameter: parameter.grad)]:
            for ours, theirs in projections.items():
                linear = getattr(attention, theirs)
                weight = of(linear.weight)
                if ours == "query" and name == "qwen3_next_attention":
                    query, gate = weight.reshape(4, 2, 6, 24).transpose(0, 1).reshape(2, 24, 24)
                    tensors[f"{prefix}gate.weight"], weight = gate.T, query
                tensors[f"{prefix}{ours}.weight"] = weight.T
                if linear.bias is not None:
                    tensors[f"{prefix}{ours}.bias"] = of(linear.bias)
            for ours, theirs in norms.items():
                norm = getattr(attention, theirs)
                tensors[f"{prefix}heads.qk_norm.{ours}.gamma"] = of(norm.weight)
                if getattr(norm, "bias", None) is not None:
                    tensors[f"{prefix}heads.qk_norm.{ours}.beta"] = of(norm.bias)
        save(name, tensors)


def experts(name, seed, block, top_k, interleaved=False):
    """A block of experts. Its parameters are stored as burn-attn has them: `[in, out]`, expert by expert, the gate before the rest."""
    torch.manual_seed(seed)
    fill(block)
    expert_bias = getattr(block.gate, "e_score_correction_bias", None) if hasattr(block, "gate") else None
    if expert_bias is not None:
        expert_bias.copy_(data(*expert_bias.shape, scale=0.2))
    x = leaf(2, 7, 6)
    output = block(x)
    output = output[0] if isinstance(output, tuple) else output
    router = block.router if hasattr(block, "router") else block.gate
    logits = router(x.reshape(14, 6))[0]
    n_experts = logits.shape[1]
    balance = load_balancing_loss_func((logits,), n_experts, top_k)
    mask = torch.tensor([[1.0] * 7, [1.0] * 4 + [0.0] * 3])
    other = data(14, n_experts)
    with_mask = load_balancing_loss_func((logits.detach(), other), n_experts, top_k, mask)
    loss_weight = data(*output.shape)
    ((output * loss_weight).sum() + 3.0 * balance).backward()

    def inner(tensor):
        """`[n_experts, .., 2 · d_ff]`, the gate's columns first."""
        return torch.cat([tensor[..., ::2], tensor[..., 1::2]], -1) if interleaved else tensor

    def stored(prefix, of):
        named = {f"{prefix}router.weight": of(router.weight).T}
        if hasattr(router, "bias") and router.bias is not None:
            named[f"{prefix}router.bias"] = of(router.bias)
        parts = {"linear_inner": block.experts.gate_up_proj, "linear_outer": block.experts.down_proj}
        for part, parameter in parts.items():
            numbers = of(parameter) if interleaved else of(parameter).mT
            numbers = inner(numbers) if part == "linear_inner" else numbers
            for expert in range(n_experts):
                named[f"{prefix}experts.{expert}.{part}.weight"] = numbers[expert]
        shared = getattr(block, "shared_expert", None) or getattr(block, "shared_experts", None)
        if shared is not None:
            gate_up = torch.cat([of(shared.gate_proj.weight), of(shared.up_proj.weight)])
            named[f"{prefix}shared.linear_inner.weight"] = gate_up.T
            named[f"{prefix}shared.linear_outer.weight"] = of(shared.down_proj.weight).T
        if hasattr(block, "shared_expert_gate"):
            named[f"{prefix}shared_gate.weight"] = of(block.shared_expert_gate.weight).T
        if interleaved:
            biases = {"linear_inner": inner(of(block.experts.gate_up_proj_bias))}
            biases["linear_outer"] = of(block.experts.down_proj_bias)
            for part, numbers in biases.items():
                for expert in range(n_experts):
                    named[f"{prefix}experts.{expert}.{part}.bias"] = numbers[expert]
        return named

    chosen = router(x.reshape(14, 6))[2] if expert_bias is not None else logits.topk(top_k, -1).indices
    counts = torch.bincount(chosen.flatten(), minlength=n_experts)
    print(f"{name}: tokens per expert {counts.tolist()}")
    tensors = {
        **stored("", lambda parameter: parameter),
        **stored("grad.", lambda parameter: parameter.grad),
        "x": x,
        "grad.x": x.grad,
        "loss_weight": loss_weight,
        "output": output,
        "logits": logits,
        "balance": balance.reshape(1),
        "other_logits": other,
        "mask": mask,
        "balance_of_both_with_mask": with_mask.reshape(1),
    }
    if expert_bias is not None:
        tensors["expert_bias"] = expert_bias
    save(name, tensors, n_experts=n_experts, top_k=top_k, balance_weight=3.0)


def mixtures():
    mixtral = MixtralConfig(hidden_size=6, intermediate_size=5, num_local_experts=5, num_experts_per_tok=2)
    experts("mixtral", 23, MixtralSparseMoeBlock(mixtral), 2)
    qwen = Qwen3MoeConfig(
        hidden_size=6, moe_intermediate_size=5, num_experts=7, num_experts_per_tok=3, norm_topk_prob=False,
    )  # fmt: skip
    experts("qwen3_moe", 24, Qwen3MoeSparseMoeBlock(qwen), 3)
    gpt_oss = GptOssConfig(hidden_size=6, intermediate_size=5, num_local_experts=5, num_experts_per_tok=2)
    experts("gpt_oss_moe", 25, GptOssMLP(gpt_oss), 2, interleaved=True)
    qwen2 = Qwen2MoeConfig(
        hidden_size=6, moe_intermediate_size=5, shared_expert_intermediate_size=8, num_experts=5, num_experts_per_tok=2,
    )  # fmt: skip
    experts("qwen2_moe", 26, Qwen2MoeSparseMoeBlock(qwen2), 2)
    deepseek = DeepseekV3Config(
        hidden_size=6, moe_intermediate_size=5, n_shared_experts=2, n_routed_experts=7, num_experts_per_tok=3, n_group=1,
        topk_group=1,
    )  # fmt: skip
    experts("deepseek_v3_moe", 37, DeepseekV3MoE(deepseek), 3)


def save_layers(name, x, output, layers, final, extra=None):
    """Input, output, parameters and gradients of layers and a final norm, named and laid out as burn-attn has them.

    `layers` has one list per layer of `(path, parameter, change)`, where `change` makes the stored form of parameter and gradient.
    """
    loss_weight = data(*output.shape)
    (output * loss_weight).sum().backward()
    tensors = {"x": x, "grad.x": x.grad, "loss_weight": loss_weight, "output": output, **(extra or {})}
    named = [(f"layers.{index}.{path}", *rest) for index, layer in enumerate(layers) for path, *rest in layer]
    for path, parameter, change in named + final:
        several = isinstance(parameter, list)
        gradient = [one.grad for one in parameter] if several else parameter.grad
        tensors[path], tensors[f"grad.{path}"] = change(parameter), change(gradient)
    save(name, tensors)


def same(tensor):
    return tensor


def transposed(tensor):
    return tensor.T


def joined(tensors):
    return torch.cat(tensors).T


def linear(path, module):
    bias = [] if module.bias is None else [(f"{path}.bias", module.bias, same)]
    return [(f"{path}.weight", module.weight, transposed)] + bias


def norm(path, module):
    bias = [] if getattr(module, "bias", None) is None else [(f"{path}.beta", module.bias, same)]
    return [(f"{path}.gamma", module.weight, same)] + bias


def attention(module):
    """Self-attention, whose first three projections are one."""
    projections = [module.q_proj, module.k_proj, module.v_proj]
    named = [("self_attention.query_key_value.weight", [linear.weight for linear in projections], joined)]
    if module.q_proj.bias is not None:
        named.append(("self_attention.query_key_value.bias", [linear.bias for linear in projections], torch.cat))
    return named + linear("self_attention.output", module.o_proj)


def modern_bert():
    """Four layers: the first and the last see everything, the others two tokens on each side; the first has no norm before attention."""
    torch.manual_seed(41)
    config = ModernBertConfig(
        vocab_size=3, pad_token_id=0, bos_token_id=1, eos_token_id=2, cls_token_id=1, sep_token_id=2, hidden_size=12, intermediate_size=10,
        num_hidden_layers=4, num_attention_heads=2, local_attention=4, norm_eps=0.03, attn_implementation="eager",
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": 1000.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 50.0},
        },
    )  # fmt: skip
    model = fill(ModernBertModel(config).eval())
    model.embeddings.forward = lambda inputs_embeds, **_: inputs_embeds
    x = leaf(2, 9, 12)
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, 6:] = 0
    output = model(inputs_embeds=x, attention_mask=mask).last_hidden_state
    layers = []
    for layer in model.layers:
        named = linear("self_attention.query_key_value", layer.attn.Wqkv) + linear("self_attention.output", layer.attn.Wo)
        if hasattr(layer.attn_norm, "weight"):
            named += norm("self_attention_residual.norm", layer.attn_norm)
        named += linear("feed_forward.linear_inner", layer.mlp.Wi) + linear("feed_forward.linear_outer", layer.mlp.Wo)
        layers.append(named + norm("feed_forward_residual.norm", layer.mlp_norm))
    real = mask.double()[..., None]
    save_layers("modern_bert", x, output * real, layers, norm("norm", model.final_norm), {"mask": mask.double()})


def dinov2():
    """Two layers whose sublayers are scaled channel by channel, without a final norm."""
    torch.manual_seed(42)
    config = Dinov2Config(
        hidden_size=12, num_attention_heads=2, mlp_ratio=2, layer_norm_eps=0.03, attn_implementation="eager",
    )  # fmt: skip
    layers = [fill(Dinov2Layer(config).eval()) for _ in range(2)]
    x = output = leaf(2, 7, 12)
    for layer in layers:
        output = layer(output)
        output = output[0] if isinstance(output, tuple) else output
    named = []
    for layer in layers:
        parts = attention(layer.attention) + norm("self_attention_residual.norm", layer.norm1)
        parts += norm("feed_forward_residual.norm", layer.norm2)
        parts += linear("feed_forward.linear_inner", layer.mlp.fc1) + linear("feed_forward.linear_outer", layer.mlp.fc2)
        parts.append(("self_attention_residual.scale", layer.layer_scale1.lambda1, same))
        parts.append(("feed_forward_residual.scale", layer.layer_scale2.lambda1, same))
        named.append(parts)
    save_layers("dinov2", x, output, named, [])


def padded_llama():
    """Two layers that read a row with padding on the left, whose tokens count from 0."""
    torch.manual_seed(43)
    config = LlamaConfig(
        vocab_size=3, hidden_size=12, intermediate_size=10, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
        rms_norm_eps=0.03, rope_parameters={"rope_type": "default", "rope_theta": 100.0}, attn_implementation="eager",
    )  # fmt: skip
    model = fill(LlamaModel(config).eval())
    x = leaf(2, 7, 12)
    mask = torch.ones(2, 7, dtype=torch.long)
    mask[1, :3] = 0
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    output = model(inputs_embeds=x, attention_mask=mask, position_ids=positions, use_cache=False).last_hidden_state
    layers = []
    for layer in model.layers:
        feed_forward = layer.mlp
        named = attention(layer.self_attn) + norm("self_attention_residual.norm", layer.input_layernorm)
        named += norm("feed_forward_residual.norm", layer.post_attention_layernorm)
        named += linear("feed_forward.linear_outer", feed_forward.down_proj)
        weights = [feed_forward.gate_proj.weight, feed_forward.up_proj.weight]
        named.append(("feed_forward.linear_inner.weight", weights, joined))
        layers.append(named)
    real = mask.double()[..., None]
    extra = {"mask": mask.double(), "positions": positions.double()}
    save_layers("padded_llama", x, output * real, layers, norm("norm", model.norm), extra)


def qwen2_vl():
    """Causal attention of 2 heads of width 12 over 1, at positions of time, height and width."""
    torch.manual_seed(44)
    config = Qwen2VLTextConfig(
        hidden_size=24, num_attention_heads=2, num_key_value_heads=1, attn_implementation="eager",
        rope_parameters={"rope_type": "default", "rope_theta": 100.0, "mrope_section": [1, 2, 3]},
    )  # fmt: skip
    module = fill(Qwen2VLAttention(config, 0).eval())
    x = leaf(2, 7, 24)
    positions = torch.tensor([
        [[0, 1, 2, 2, 2, 2, 4], [0, 0, 0, 0, 0, 0, 3]],
        [[0, 1, 2, 2, 3, 3, 4], [0, 0, 0, 1, 1, 1, 3]],
        [[0, 1, 2, 3, 2, 3, 4], [0, 1, 2, 0, 1, 2, 3]],
    ])  # fmt: skip
    embeddings = Qwen2VLRotaryEmbedding(config)(x, positions)
    later = torch.full((7, 7), -torch.inf).triu(1).expand(2, 1, 7, 7)
    output, _ = module(x, position_embeddings=embeddings, attention_mask=later)
    named = linear("query", module.q_proj) + linear("key", module.k_proj)
    named += linear("value", module.v_proj) + linear("output", module.o_proj)
    save_layers("qwen2_vl_attention", x, output, [], named, {"positions": positions.double()})


rotary()
sinusoidal()
norms()
olmo2()
attentions()
mixtures()
modern_bert()
dinov2()
padded_llama()
qwen2_vl()
