"""Folders of small wav2vec 2.0 models as `transformers` saves them, what they hear, and what their feature extractor makes of recordings.

Usage: python make_wav2vec2.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once. Recordings are bytes, of which a model hears
`byte / 64 - 2`. What is computed of padding is 0 in the values.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file
from transformers import Wav2Vec2Config, Wav2Vec2CTCTokenizer, Wav2Vec2FeatureExtractor, Wav2Vec2ForCTC, Wav2Vec2Model
from transformers.models.wav2vec2.modeling_wav2vec2 import Wav2Vec2Attention, Wav2Vec2EncoderLayer, Wav2Vec2EncoderLayerStableLayerNorm

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
LENGTHS = [173, 101]
LETTERS = "abcdefghijk"
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def decoded(tokens, blank):
    """The tokens that are left of those of all frames, by the tokenizer of `transformers`: the vocabulary is letters, and a blank."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vocab.json"
        vocabulary = {letter: token for token, letter in enumerate(LETTERS)}
        del vocabulary[LETTERS[blank]]
        path.write_text(json.dumps(vocabulary | {"<pad>": blank, "|": 11, "<s>": 12, "</s>": 13, "<unk>": 14}))
        text = Wav2Vec2CTCTokenizer(str(path)).decode(tokens)
    return torch.tensor([vocabulary[letter] for letter in text])


def heard(model, samples, mask, frames):
    """States, attention weights and logits, with and without an attention mask, and the tokens with it."""
    states, weights = [], []
    for module in model.modules():
        if isinstance(module, (Wav2Vec2EncoderLayer, Wav2Vec2EncoderLayerStableLayerNorm)):
            module.register_forward_hook(lambda _module, _input, output: states.append(output))
        if isinstance(module, Wav2Vec2Attention):
            module.register_forward_hook(lambda _module, _input, output: weights.append(output[1]))
    values = {}
    for name, mask in [("masked", mask), ("whole", None)]:
        states.clear()
        weights.clear()
        with torch.no_grad():
            output = model(samples, attention_mask=mask)
            last = output[0] if isinstance(model, Wav2Vec2Model) else model.wav2vec2(samples, attention_mask=mask)[0]
        n_layers = model.config.num_hidden_layers
        # The tensors are changed in place.
        found = {"states": last.clone()} | {f"states.{layer}": states[layer] for layer in range(n_layers)}
        found |= {f"weights.{layer}": weights[layer] for layer in range(n_layers)} if name == "masked" else {}
        if isinstance(model, Wav2Vec2ForCTC):
            found["logits"] = output.logits
        for key, value in found.items():
            value = value.clone()
            if name == "masked":
                for row, count in enumerate(frames):
                    (value[row].transpose(0, 1) if key.startswith("weights") else value[row])[count:] = 0
            values[f"{name}.{key}"] = value
        if isinstance(model, Wav2Vec2ForCTC):
            counts = frames if name == "masked" else [max(frames)] * len(frames)
            for row, count in enumerate(counts):
                best = output.logits[row, :count].argmax(-1).tolist()
                first, second = output.logits[row, :count].topk(2).values.T
                assert (first - second).min() > 1e-3, "rounding may decide between two tokens"
                tokens = decoded(best, model.config.pad_token_id)
                print(name, row, best, tokens.tolist())
                values[f"{name}.tokens.{row}"] = tokens
    return values


def made(name, kind, seed, config):
    config._attn_implementation = "eager"
    torch.manual_seed(seed)
    model = kind(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
        if kind is Wav2Vec2ForCTC:
            # Frames shall say different things, and some of them nothing.
            model.lm_head.weight.mul_(2)
            model.lm_head.bias[config.pad_token_id] += 0.5
    folder = OUT / name
    model.save_pretrained(folder)
    model = model.double().eval()
    generator = torch.Generator().manual_seed(7)
    recordings = torch.randint(0, 256, [len(LENGTHS), max(LENGTHS)], generator=generator)
    mask = torch.arange(max(LENGTHS))[None] < torch.tensor(LENGTHS)[:, None]
    frames = model._get_feat_extract_output_lengths(torch.tensor(LENGTHS)).tolist()
    print(name, "frames", frames)
    values = heard(model, recordings.double() / 64 - 2, mask.long(), frames)
    values["samples"] = recordings.to(torch.uint8)
    values = {key: value.float() if value.is_floating_point() else value for key, value in values.items()}
    save_file({key: value.contiguous() for key, value in values.items()}, folder / "values.safetensors")
    for file in folder.glob("*.safetensors"):
        file.chmod(0o644)
    print({key: tuple(value.shape) for key, value in values.items()})


def extracted():
    """What the feature extractors of the two kinds of models make of a batch of recordings, and one that does not normalise."""
    generator = numpy.random.default_rng(11)
    bytes_ = [generator.integers(0, 256, length).astype(numpy.uint8) for length in LENGTHS]
    recordings = [recording.astype(numpy.float32) / 64 - 1 for recording in bytes_]
    values = {f"samples.{row}": torch.from_numpy(recording) for row, recording in enumerate(bytes_)}
    for name, options in {
        "wav2vec2": {},
        "wav2vec2_large": {"return_attention_mask": True, "padding_value": 0.5},
        "wav2vec2_bare": {"do_normalize": False, "padding_value": -0.25, "sampling_rate": 8000},
    }.items():
        extractor = Wav2Vec2FeatureExtractor(**options)
        extractor.save_pretrained(OUT / name)
        rate = extractor.sampling_rate
        batch = extractor(recordings, padding=True, sampling_rate=rate, return_tensors="pt")
        values[name] = batch["input_values"]
        assert ("attention_mask" in batch) == extractor.return_attention_mask
        values[f"{name}.alone"] = extractor(recordings[1], sampling_rate=rate, return_tensors="pt")["input_values"]
    save_file({key: value.float().contiguous() if value.is_floating_point() else value for key, value in values.items()}, OUT / "wav2vec2" / "extracted.safetensors")
    (OUT / "wav2vec2" / "extracted.safetensors").chmod(0o644)


made(
    "wav2vec2",
    Wav2Vec2ForCTC,
    14,
    Wav2Vec2Config(
        vocab_size=len(LETTERS),
        pad_token_id=3,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=17,
        conv_dim=[5, 7, 11],
        conv_kernel=[5, 3, 3],
        conv_stride=[3, 2, 2],
        num_conv_pos_embeddings=6,
        num_conv_pos_embedding_groups=4,
        mask_time_prob=0.0,
    ),
)
made(
    "wav2vec2_large",
    Wav2Vec2ForCTC,
    5,
    Wav2Vec2Config(
        vocab_size=len(LETTERS),
        pad_token_id=0,
        hidden_size=10,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=13,
        hidden_act="gelu_new",
        layer_norm_eps=1e-3,
        feat_extract_norm="layer",
        conv_dim=[7, 5],
        conv_kernel=[11, 3],
        conv_stride=[5, 3],
        conv_bias=True,
        num_conv_pos_embeddings=5,
        num_conv_pos_embedding_groups=2,
        do_stable_layer_norm=True,
        mask_time_prob=0.0,
    ),
)
made(
    "wav2vec2_bare",
    Wav2Vec2Model,
    7,
    Wav2Vec2Config(
        hidden_size=6,
        num_hidden_layers=1,
        num_attention_heads=3,
        intermediate_size=7,
        feat_extract_activation="relu",
        conv_dim=[5, 3],
        conv_kernel=[7, 5],
        conv_stride=[5, 3],
        conv_bias=True,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=3,
        mask_time_prob=0.0,
    ),
)
extracted()
