"""A folder of a small Whisper of two languages as `transformers` saves it, and what the model hears.

Usage: python make_whisper.py [OUT_DIR]

Parameters are float32 values (stored exactly); values are computed in float64 and rounded to float32 once, spectrograms as `transformers` computes
them with NumPy. The recordings are formulas, which `tests/modules/models/whisper` has too.
"""

import json
import sys
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders
from tokenizers.models import WordLevel
from transformers import WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
RATE = 16_000
WORDS = 28
SPECIAL = ["endoftext", "startoftranscript", "en", "es", "translate", "transcribe", "notimestamps"]
END, START, EN, ES, TRANSLATE, TRANSCRIBE, PLAIN = range(WORDS, WORDS + len(SPECIAL))
LENGTHS = [RATE, 9_111]
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def recording(length, first):
    """Two tones that rise, over noise of all frequencies."""
    t = numpy.arange(length, dtype=numpy.float64) / RATE
    noise = numpy.arange(1, length + 1, dtype=numpy.uint64) * numpy.uint64(2_654_435_761) % numpy.uint64(1 << 32)
    noise = noise.astype(numpy.float64) / 2**32 - 0.5
    tones = numpy.sin(2 * numpy.pi * (first + 900 * t) * t) + 0.3 * numpy.sin(2 * numpy.pi * (3 * first + 2000 * t) * t)
    return (0.4 * tones + 0.05 * noise).astype(numpy.float32)


def spectrogram(samples, bands):
    extractor = WhisperFeatureExtractor(feature_size=bands, chunk_length=1)
    padded = numpy.zeros(RATE, numpy.float32)
    padded[: len(samples)] = samples
    return torch.from_numpy(extractor._np_extract_fbank_features(padded[None], "cpu")).double()


def model(seed):
    config = WhisperConfig(
        vocab_size=WORDS + len(SPECIAL),
        num_mel_bins=8,
        d_model=12,
        encoder_layers=2,
        decoder_layers=3,
        encoder_attention_heads=3,
        decoder_attention_heads=3,
        encoder_ffn_dim=17,
        decoder_ffn_dim=17,
        max_source_positions=50,
        max_target_positions=20,
        decoder_start_token_id=START,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=END,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    config._attn_implementation = "eager"
    torch.manual_seed(seed)
    model = WhisperForConditionalGeneration(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            # Texts of different tokens need a decoder that does not just repeat what it reads.
            is_bias = name.endswith("bias")
            spread = 2.0 if "decoder.embed_positions" in name else 0.1 if is_bias else 0.8
            parameter.add_(spread * torch.randn_like(parameter))
        # The end is more probable than another token, so that texts have one.
        end = model.model.decoder.embed_tokens.weight[END]
        model.model.decoder.layer_norm.bias.add_(0.4 * end)
    settings = model.generation_config
    settings.alignment_heads = [[1, 0], [2, 2], [2, 1]]
    settings.suppress_tokens = [3, 7, START, EN, ES, TRANSLATE, TRANSCRIBE, PLAIN]
    settings.begin_suppress_tokens = [5, END]
    settings.no_timestamps_token_id = PLAIN
    settings.is_multilingual = True
    settings.lang_to_id = {"<|en|>": EN, "<|es|>": ES}
    settings.task_to_id = {"transcribe": TRANSCRIBE, "translate": TRANSLATE}
    settings.max_length = config.max_target_positions
    return model


def tokenizer(path):
    # A word of one token begins with a space; every fourth token goes on with the word before.
    vocabulary = {f"{'' if token % 4 == 3 else ' '}w{token}": token for token in range(WORDS)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token=" w0"))
    tokenizer.decoder = decoders.Fuse()
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", special=True, normalized=False) for name in SPECIAL])
    tokenizer.save(str(path))


def heard(model, spectrogram, length, language):
    """The text of a recording, with the special tokens before it, and when each token was said; without the end."""
    frames = torch.zeros(1, 100, dtype=torch.long)
    frames[:, : -(-length // 160)] = 1
    output = model.generate(
        spectrogram,
        attention_mask=frames,
        language=language,
        task="transcribe",
        return_token_timestamps=True,
        return_dict_in_generate=True,
    )
    sequence, times = output["sequences"][0].tolist(), output["token_timestamps"][0].tolist()
    if END not in sequence:
        return None
    # A choice that rounding could change would be no test.
    with torch.no_grad():
        logits = model(spectrogram, decoder_input_ids=torch.tensor([sequence[:-1]])).logits[0, 3:]
    logits[:, model.generation_config.suppress_tokens] = -torch.inf
    logits[0, model.generation_config.begin_suppress_tokens] = -torch.inf
    first, second = logits.topk(2).values.T
    end = sequence.index(END)
    return (sequence[:end], times[:end]) if (first - second).min() > 1e-3 else None


def texts(model, spectrograms):
    found = {}
    for row, length in enumerate(LENGTHS):
        for language in ("en", "es", None) if row == 0 else (None,):
            text = heard(model, spectrograms[row], length, language)
            if text is None or len(set(text[0])) < 9:
                return None
            found[f"{language or 'heard'}.{row}"] = text
    return found if found["heard.0"][0][1] != found["heard.1"][0][1] else None


def generated(model, spectrogram):
    """What `generate()` without arguments makes of a recording. Unlike with times, the prompt is left out."""
    sequence = model.generate(spectrogram)[0].tolist()
    return sequence[: sequence.index(END)] if END in sequence else sequence


def forced(model, spectrogram, ids, of_config=False):
    """The same after these tokens of `generation_config.json`, or of `config.json`."""
    owner = model.config if of_config else model.generation_config
    owner.forced_decoder_ids = ids
    text = generated(model, spectrogram)
    owner.forced_decoder_ids = None
    return text


def memory(model, spectrogram):
    """What the encoder, which takes whole windows alone, would make of any number of frames."""
    encoder = model.model.encoder
    with torch.no_grad():
        x = torch.nn.functional.gelu(encoder.conv1(spectrogram))
        x = torch.nn.functional.gelu(encoder.conv2(x)).transpose(1, 2)
        x = x + encoder.embed_positions.weight[: x.shape[1]]
        for layer in encoder.layers:
            x = layer(x, None)
        return encoder.layer_norm(x)


def plain(model, spectrogram):
    """The text of the first recording where the model knows one language: the prompt is the start and no timestamps."""
    settings = model.generation_config
    settings.is_multilingual = False
    del settings.lang_to_id, settings.task_to_id
    return [START, PLAIN, *generated(model, spectrogram)]


recordings = [recording(length, 200 + 300 * row) for row, length in enumerate(LENGTHS)]
spectrograms = [spectrogram(samples, 8) for samples in recordings]
# The first model that writes texts of several tokens, ends them, and hears a language in each recording that it does not hear in the other.
for seed in range(300):
    single = model(seed)
    double = model(seed).double().eval()
    found = texts(double, spectrograms)
    if found:
        break
else:
    sys.exit("no model writes such texts")
print("seed", seed)
folder = OUT / "whisper"
single.save_pretrained(folder)
(folder / "model.safetensors").chmod(0o644)
tokenizer(folder / "tokenizer.json")
values = {}
target = torch.tensor([[START, EN, TRANSCRIBE, PLAIN, 9, 2, 14, 4]])
for row, samples in enumerate(recordings):
    values[f"fine.{row}"] = spectrogram(samples, 80)[:, :, ::7]
    values[f"spectrogram.{row}"] = spectrograms[row]
    with torch.no_grad():
        output = double(spectrograms[row], decoder_input_ids=target)
    values[f"memory.{row}"] = output.encoder_last_hidden_state
    values[f"logits.{row}"] = output.logits
    assert torch.allclose(memory(double, spectrograms[row]), output.encoder_last_hidden_state)
    values |= {f"memory.{row}.{n_frames}": memory(double, spectrograms[row][:, :, :n_frames]) for n_frames in [1, 7]}
for name, (sequence, times) in found.items():
    print(name, sequence, [round(time, 2) for time in times])
    values[f"tokens.{name}"] = torch.tensor(sequence)
    values[f"times.{name}"] = torch.tensor(times)
for name, ids in {"es": [[1, ES], [2, TRANSCRIBE]], "heard": [[1, None], [2, TRANSCRIBE], [3, PLAIN]]}.items():
    values[f"forced.{name}.0"] = torch.tensor(forced(double, spectrograms[0], ids))
values["forced.of_config.0"] = torch.tensor(forced(double, spectrograms[0], [[1, ES], [2, TRANSCRIBE], [3, PLAIN]], of_config=True))
values["tokens.plain.0"] = torch.tensor(plain(double, spectrograms[0]))
values["forced.plain.0"] = torch.tensor(forced(double, spectrograms[0], [[1, EN], [2, TRANSCRIBE]]))
values = {name: value.float() if value.is_floating_point() else value for name, value in values.items()}
save_file({name: value.contiguous() for name, value in values.items()}, folder / "values.safetensors")
(folder / "values.safetensors").chmod(0o644)
