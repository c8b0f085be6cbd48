"""Folders of small models as `transformers` saves them, and what they compute.

Usage: python make_models.py [OUT_DIR [FAMILY..]], without families all of them

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once, but for the
softmax and the angles of GPT-NeoX, which `transformers` computes in float32.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertConfig,
    BertForMaskedLM,
    BertModel,
    DeepseekV2Config,
    DeepseekV2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    GptOssConfig,
    GptOssForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
    Qwen3NextConfig,
    Qwen3NextForCausalLM,
)
from transformers.activations import ACT2FN

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def saved(name, model, spread=0.2, **inputs):
    """Saves `model` below `name`, and returns what it makes of `inputs`."""
    torch.manual_seed(17)
    with torch.no_grad():
        for parameter in model.parameters():
            # Initial weights are so small that every token has the same state; biases are at 0, norms at 1.
            parameter.add_(spread * torch.randn_like(parameter))
    folder = OUT / name
    model.save_pretrained(folder)
    for path in folder.iterdir():
        path.chmod(0o644)
    with torch.no_grad():
        return model.double().eval()(**inputs, output_hidden_states=True)


def encoded(name, model, hidden):
    """The states of `model` behind every layer, of two texts with padding and two segments; `hidden` are those of the layers."""
    tokens = torch.tensor([[2, 7, 11, 3, 5, 13, 3], [2, 19, 22, 3, 0, 0, 0]])
    segments = torch.tensor([[0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0]])
    lengths = torch.tensor([7, 4])
    mask = (torch.arange(7) < lengths[:, None]).long()
    output = saved(name, model, input_ids=tokens, token_type_ids=segments, attention_mask=mask)
    values = {"tokens": tokens, "segments": segments, "lengths": lengths}
    if getattr(output, "pooler_output", None) is not None:
        values["pooled"] = output.pooler_output
    for index, states in enumerate(output.hidden_states[hidden]):
        # What only padding sees does not matter.
        values[f"states.{index}"] = states * mask[:, :, None]
    return {f"{name}.{key}": value for key, value in values.items()}


def bert():
    torch.manual_seed(17)
    sizes = dict(
        vocab_size=23,
        hidden_size=12,
        num_attention_heads=3,
        intermediate_size=17,
        max_position_embeddings=11,
        type_vocab_size=2,
    )
    config = BertConfig(**sizes, num_hidden_layers=2, hidden_act="gelu", attn_implementation="eager")
    values = encoded("bert", BertModel(config), slice(1, None))
    # The same encoder below a head, without a pooler.
    values |= encoded("bert_masked_lm", BertForMaskedLM(config), slice(1, None))
    # Three layers, of which the first two are one.
    config = AlbertConfig(
        **sizes, num_hidden_layers=3, num_hidden_groups=2, embedding_size=7, hidden_act="gelu_new", attn_implementation="eager"
    )
    values |= encoded("albert", AlbertModel(config), slice(1, None))
    write(OUT / "values.safetensors", values)


def language_model(name, model, layers):
    """Logits, states behind every one of `layers`, and greedy tokens."""
    # An output is a tensor, or a tuple that starts with one.
    behind = []
    hooks = [
        layer.register_forward_hook(lambda _layer, _inputs, output: behind.append(output[0] if isinstance(output, tuple) else output))
        for layer in layers
    ]
    tokens = torch.tensor([[2, 7, 11, 3, 5, 13, 3], [17, 19, 22, 1, 0, 0, 0]])
    mask = (torch.arange(7) < torch.tensor([7, 4])[:, None]).long()
    # Far enough apart that greedy tokens are not the same one again and again.
    output = saved(name, model, spread=0.4, input_ids=tokens, attention_mask=mask)
    values = {"tokens": tokens, "logits": output.logits * mask[:, :, None]}
    assert len(behind) == len(layers)
    for index, states in enumerate(behind):
        values[f"states.{index}"] = states * mask[:, :, None]
    for hook in hooks:
        hook.remove()
    # Each prompt alone, without padding.
    for row, length in enumerate([7, 4]):
        output = model.generate(
            tokens[row : row + 1, :length],
            attention_mask=torch.ones(1, length).long(),
            max_new_tokens=10,
            do_sample=False,
            return_dict_in_generate=True,
            output_logits=True,
        )
        for logits in output.logits:
            first, second = logits[0].topk(2).values
            assert first - second > 1e-3, "a choice that rounding could change"
        values[f"greedy.{row}"] = output.sequences[0, length:]
    return values


# All that `transformers` has besides `gelu_new` and that we have too.
ACTIVATIONS = [
    "gelu",
    "gelu_python",
    "gelu_fast",
    "gelu_accurate",
    "gelu_pytorch_tanh",
    "gelu_python_tanh",
    "quick_gelu",
    "relu",
    "relu2",
    "silu",
    "swish",
]


def gpt2():
    config = GPT2Config(
        vocab_size=23,
        n_positions=19,
        n_embd=15,
        n_layer=2,
        n_head=3,
        n_inner=13,
        layer_norm_epsilon=1e-3,
        bos_token_id=None,
        eos_token_id=None,
    )
    config._attn_implementation = "eager"
    torch.manual_seed(17)
    model = GPT2LMHeadModel(config)
    values = language_model("gpt2", model, model.transformer.h)
    for name in ACTIVATIONS:
        for layer in model.transformer.h:
            layer.mlp.act = ACT2FN[name]
        with torch.no_grad():
            values[f"logits.{name}"] = model(values["tokens"][:1]).logits
    write(OUT / "gpt2" / "values.safetensors", values)


def gpt_neox(name, rope_parameters, **options):
    config = GPTNeoXConfig(
        vocab_size=23,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=13,
        max_position_embeddings=19,
        layer_norm_eps=1e-3,
        rope_parameters=rope_parameters,
        bos_token_id=None,
        eos_token_id=None,
        **options,
    )
    config._attn_implementation = "eager"
    torch.manual_seed(17)
    model = GPTNeoXForCausalLM(config)
    write(OUT / name / "values.safetensors", language_model(name, model, model.gpt_neox.layers))


def write(path, values):
    values = {name: value.float() if value.is_floating_point() else value for name, value in values.items()}
    save_file({name: value.contiguous() for name, value in values.items()}, path)
    path.chmod(0o644)


def gpt_neoxes():
    gpt_neox("gpt_neox", {"rope_type": "default", "rope_theta": 1000.0, "partial_rotary_factor": 0.5})
    # All that is chosen otherwise.
    gpt_neox(
        "gpt_neox_sequential",
        {"rope_type": "linear", "factor": 3.0, "rope_theta": 100.0, "partial_rotary_factor": 0.75},
        use_parallel_residual=False,
        hidden_act="gelu_new",
        attention_bias=False,
        tie_word_embeddings=True,
    )


def mixture_of_experts(name, config, kind, **options):
    """A model with experts, and whether its routers choose by more than rounding."""
    sizes = dict(
        vocab_size=23,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=6,
        num_experts_per_tok=2,
        max_position_embeddings=19,
        rms_norm_eps=1e-3,
        bos_token_id=None,
        eos_token_id=None,
    )
    config = config(**sizes | options)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.manual_seed(17)
    model = kind(config)
    routers = [module for path, module in model.named_modules() if path.endswith(("mlp.gate", "mlp.router"))]
    assert routers
    for router in routers:
        router.register_forward_hook(check_router)
    write(OUT / name / "values.safetensors", language_model(name, model, model.model.layers))


def check_router(router, _inputs, output):
    logits = output[0]
    if getattr(router, "topk_method", None) == "group_limited_greedy":
        groups = logits.unflatten(-1, (router.num_group, -1))
        best = groups.amax(-1)
        check_choice(best, router.topk_group)
        others = best < best.topk(router.topk_group, -1).values[:, -1:]
        logits = groups.masked_fill(others[:, :, None], -torch.inf).flatten(-2)
    check_choice(logits, router.top_k)


def check_choice(scores, top_k):
    scores = scores.topk(top_k + 1, -1).values
    assert (scores[:, -2] - scores[:, -1]).min() > 1e-3, "a choice that rounding could change"


def mixtures_of_experts():
    mixture_of_experts(
        "mixtral", MixtralConfig, MixtralForCausalLM, num_local_experts=5, intermediate_size=11, rope_parameters={"rope_theta": 100.0}
    )
    qwen3 = dict(num_experts=5, intermediate_size=11, moe_intermediate_size=7, attention_bias=True)
    mixture_of_experts("qwen3_moe", Qwen3MoeConfig, Qwen3MoeForCausalLM, **qwen3, norm_topk_prob=True)
    # The first layer without experts, the second with weights that do not add up to 1.
    mixture_of_experts("qwen3_moe_every_other", Qwen3MoeConfig, Qwen3MoeForCausalLM, **qwen3, decoder_sparse_step=2)
    mixture_of_experts(
        "gpt_oss",
        GptOssConfig,
        GptOssForCausalLM,
        num_local_experts=5,
        intermediate_size=11,
        sliding_window=4,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 100.0,
            "factor": 4.0,
            "beta_fast": 1.5,
            "beta_slow": 0.25,
            "truncate": False,
            "original_max_position_embeddings": 16,
        },
    )


def deepseek_v2():
    sizes = dict(
        num_key_value_heads=3,
        kv_lora_rank=7,
        qk_nope_head_dim=5,
        qk_rope_head_dim=4,
        v_head_dim=6,
        n_routed_experts=6,
        n_shared_experts=2,
        moe_intermediate_size=7,
        intermediate_size=11,
        max_position_embeddings=64,
        first_k_dense_replace=1,
    )
    yarn = {
        "rope_type": "yarn",
        "rope_theta": 100.0,
        "factor": 4.0,
        "beta_fast": 1.5,
        "beta_slow": 0.25,
        "mscale": 0.7,
        "mscale_all_dim": 0.9,
        "original_max_position_embeddings": 16,
    }
    mixture_of_experts(
        "deepseek_v2",
        DeepseekV2Config,
        DeepseekV2ForCausalLM,
        **sizes,
        num_hidden_layers=3,
        q_lora_rank=8,
        topk_method="group_limited_greedy",
        n_group=2,
        topk_group=1,
        routed_scaling_factor=1.5,
        rope_parameters=yarn,
    )
    # DeepSeek-V2-Lite: no latent vectors for queries, no groups.
    mixture_of_experts(
        "deepseek_v2_lite",
        DeepseekV2Config,
        DeepseekV2ForCausalLM,
        **sizes,
        q_lora_rank=None,
        attention_bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0},
    )


def qwen3_next():
    mixture_of_experts(
        "qwen3_next",
        Qwen3NextConfig,
        Qwen3NextForCausalLM,
        num_hidden_layers=4,
        head_dim=8,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=5,
        linear_value_head_dim=3,
        linear_conv_kernel_dim=4,
        num_experts=5,
        moe_intermediate_size=7,
        shared_expert_intermediate_size=6,
        intermediate_size=11,
        mlp_only_layers=[1],
        rope_parameters={"rope_type": "default", "rope_theta": 100.0, "partial_rotary_factor": 0.5},
    )


FAMILIES = {
    "bert": bert,
    "gpt2": gpt2,
    "gpt_neox": gpt_neoxes,
    "experts": mixtures_of_experts,
    "deepseek_v2": deepseek_v2,
    "qwen3_next": qwen3_next,
}
for family in sys.argv[2:] or FAMILIES:
    FAMILIES[family]()
