"""Folders of two small T5 as `transformers` saves them, and what they compute.

Usage: python make_t5.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once, but for the
mean squares of the norms, which `transformers` computes in float32.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import T5Config, T5ForConditionalGeneration
from transformers.activations import ACT2FN

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)

SOURCE = torch.tensor([[3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 1], [2, 7, 18, 2, 8, 1, 0, 0, 0, 0, 0]])
TARGET = torch.tensor([[0, 16, 18, 3, 9, 8, 7], [0, 5, 7, 21, 0, 0, 0]])
LENGTHS = {"source_lengths": torch.tensor([11, 6]), "target_lengths": torch.tensor([7, 4])}
NEW_TOKENS = 9
BEAM = 3


def mask(tokens, lengths):
    return (torch.arange(tokens.shape[1]) < LENGTHS[lengths][:, None]).long()


SOURCE_MASK, TARGET_MASK = mask(SOURCE, "source_lengths"), mask(TARGET, "target_lengths")


def randomised(config, spread):
    """A model that writes different tokens: initial weights are too small for that, and norms are at 1."""
    config._attn_implementation = "eager"
    torch.manual_seed(17)
    model = T5ForConditionalGeneration(config)
    if not config.scale_decoder_outputs:
        # `transformers` ties a new head whatever the configuration says, and keeps one of its own that a checkpoint has.
        model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
        del model.all_tied_weights_keys["lm_head.weight"]
    torch.manual_seed(17)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(spread * torch.randn_like(parameter))
    return model


def searched(model, **options):
    """What `generate` writes for both sources at once."""
    return model.generate(
        SOURCE,
        attention_mask=SOURCE_MASK,
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        # A cache of `transformers` has no room for a decoder with more layers than the encoder.
        use_cache=False,
        return_dict_in_generate=True,
        **options,
    )


def written(sequence, end):
    """The tokens of a sequence between the first and the one that ends it."""
    tokens = sequence[1:].tolist()
    return torch.tensor(tokens[: tokens.index(end)] if end in tokens else tokens)


def t5(name, functions, end, spread, **options):
    config = T5Config(
        vocab_size=23,
        d_model=12,
        d_kv=5,
        d_ff=17,
        num_heads=3,
        layer_norm_epsilon=1e-3,
        decoder_start_token_id=0,
        eos_token_id=end,
        **options,
    )
    model = randomised(config, spread)
    folder = OUT / name
    model.save_pretrained(folder)
    model = model.double().eval()
    values = {"source": SOURCE, "target": TARGET, **LENGTHS, "end": torch.tensor([end])}

    behind = {}
    blocks = {f"{stack}.{index}": block for stack in ("encoder", "decoder") for index, block in enumerate(getattr(model, stack).block)}
    hooks = [
        block.register_forward_hook(lambda _block, _inputs, output, key=key: behind.update({key: output[0]})) for key, block in blocks.items()
    ]
    inputs = dict(input_ids=SOURCE, attention_mask=SOURCE_MASK, decoder_input_ids=TARGET)
    with torch.no_grad():
        output = model(**inputs, decoder_attention_mask=TARGET_MASK)
    for hook in hooks:
        hook.remove()
    assert behind.keys() == blocks.keys()
    behind["memory"] = output.encoder_last_hidden_state
    behind["logits"] = output.logits
    for key, states in behind.items():
        # What only padding sees does not matter.
        seen = SOURCE_MASK if key.startswith(("encoder", "memory")) else TARGET_MASK
        values[key] = states * seen[:, :, None]

    output = searched(model, num_beams=1, output_logits=True)
    for logits in output.logits:
        first, second = logits.topk(2).values.T
        assert (first - second).min() > 1e-3, "a choice that rounding could change"
    for row, sequence in enumerate(output.sequences):
        values[f"greedy.{row}"] = written(sequence, end)
    output = searched(model, num_beams=BEAM, num_return_sequences=BEAM, length_penalty=0.0, output_scores=True)
    for index, sequence in enumerate(output.sequences):
        values[f"beam.{index // BEAM}.{index % BEAM}"] = written(sequence, end)
    values["beam_scores"] = output.sequences_scores.reshape(2, BEAM)
    print(name, [values[key].tolist() for key in values if key.startswith(("greedy", "beam"))])

    for function in functions:
        for stack in (model.encoder, model.decoder):
            for block in stack.block:
                block.layer[-1].DenseReluDense.act = ACT2FN[function]
        with torch.no_grad():
            values[f"logits.{function}"] = model(**inputs).logits[:1]
    values = {key: value.float() if value.is_floating_point() else value for key, value in values.items()}
    save_file({key: value.contiguous() for key, value in values.items()}, folder / "values.safetensors")
    for path in folder.iterdir():
        path.chmod(0o644)


# The first T5, and one as T5 1.1 and Flan-T5 with distances that share their bias.
t5("t5", ["gelu", "gelu_new", "silu"], end=1, spread=0.8, num_layers=3, num_decoder_layers=2)
t5(
    "t5_gated",
    ["relu", "silu"],
    end=12,
    spread=0.5,
    num_layers=2,
    num_decoder_layers=3,
    relative_attention_num_buckets=8,
    relative_attention_max_distance=7,
    feed_forward_proj="gated-gelu",
    tie_word_embeddings=False,
)
