"""Compares `transcribe` with `transformers` on the same weights: texts, when each word begins, and time.

Usage: python3 compare/transcribe.py PROGRAM MODEL_FOLDER RECORDING.wav...      PROGRAM as in target/release/transcribe

Both cut a recording into windows of 30 seconds and choose greedily, without timestamps. Each reads the recording, transcribes it and prints it,
five times in turns, each time in a new process with two threads; what is compared is the median of the time in which samples become
text. Recordings have one channel of 16,000 samples a second, so that both read the same numbers.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import time
import wave

THREADS = "2"
RUNS = 5


def samples(path):
    import numpy

    with wave.open(path) as recording:
        shape = recording.getframerate(), recording.getnchannels(), recording.getsampwidth()
        if shape != (16_000, 1, 2):
            sys.exit(f"{path}: {shape} are no 16,000 samples a second in one channel of two bytes")
        return numpy.frombuffer(recording.readframes(recording.getnframes()), numpy.int16).astype(numpy.float32) / 32768


def reference(folder, path):
    """What `transformers` makes of it: the text of each window, and when each word begins."""
    import torch
    from tokenizers import Tokenizer
    from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

    torch.set_num_threads(int(THREADS))
    model = WhisperForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    extractor = WhisperFeatureExtractor(feature_size=model.config.num_mel_bins)
    numbers = samples(path)

    def generated(window, with_times):
        inputs = extractor(window, sampling_rate=16_000, return_tensors="pt", return_attention_mask=True)
        options = dict(return_token_timestamps=True, return_dict_in_generate=True) if with_times else {}
        with torch.no_grad():
            return model.generate(inputs.input_features, attention_mask=inputs.attention_mask, **options)

    windows = [numbers[first : first + 480_000] for first in range(0, len(numbers), 480_000)]
    began = time.perf_counter()
    texts = [tokenizer.decode(generated(window, False)[0].tolist()).strip() for window in windows]
    seconds = time.perf_counter() - began
    words = []
    special = model.generation_config.eos_token_id
    for index, window in enumerate(windows):
        output = generated(window, True)
        for token, start in zip(output["sequences"][0].tolist(), output["token_timestamps"][0].tolist()):
            text = tokenizer.decode([token]) if token < special else ""
            if text.startswith(" ") or (text and not words):
                words.append([30 * index + start, text.strip()])
            elif text:
                words[-1][1] += text
    return {"text": " ".join(text for text in texts if text), "seconds": seconds, "words": words}


def ours(program, folder, path):
    environment = {**os.environ, "RAYON_NUM_THREADS": THREADS, "BURN_DEVICE": "flex"}
    run = lambda *options: subprocess.run([program, path, "--model", folder, *options], capture_output=True, text=True, check=True, env=environment)
    timed = run("--time")
    seconds = float(re.search(r"([\d.]+) s", timed.stderr)[1])
    words = [line.split("\t") for line in run("--words").stdout.splitlines()]
    return {"text": " ".join(timed.stdout.split("\n")).strip(), "seconds": seconds, "words": [[float(start), text] for start, text in words]}


def main():
    if sys.argv[1] == "--reference":
        print(json.dumps(reference(*sys.argv[2:])))
        return
    program, folder, *recordings = sys.argv[1:]
    for path in recordings:
        found = {"ours": [], "transformers": []}
        for _ in range(RUNS):
            found["ours"].append(ours(program, folder, path))
            script = [sys.executable, __file__, "--reference", folder, path]
            run = subprocess.run(script, capture_output=True, text=True, check=True)
            found["transformers"].append(json.loads(run.stdout.splitlines()[-1]))
        mine, theirs = found["ours"][0], found["transformers"][0]
        same = [text for _, text in mine["words"]] == [text for _, text in theirs["words"]]
        apart = max((abs(a - b) for (a, _), (b, _) in zip(mine["words"], theirs["words"])), default=0.0)
        times = {name: statistics.median(run["seconds"] for run in runs) for name, runs in found.items()}
        print(
            f"{os.path.basename(path)}: {'the same text' if mine['text'] == theirs['text'] else 'ANOTHER TEXT'}, "
            f"{len(mine['words'])} words, {'the same' if same else 'OTHER ONES'}, whose starts differ by {apart:.3f} s at most; "
            f"time {times['ours'] / times['transformers']:.2f} of transformers'"
        )
        print(f"  ours          {mine['text']}\n  transformers  {theirs['text']}" if mine["text"] != theirs["text"] else f"  {mine['text']}")


main()
