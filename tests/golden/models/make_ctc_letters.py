"""The texts that the tokenizer of wav2vec 2.0 makes of tokens, with each way to write its files.

Usage: python make_ctc_letters.py [OUT_DIR]
"""

import json
import sys
import tempfile
from pathlib import Path

from transformers import Wav2Vec2CTCTokenizer

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
BRACKETS = {"[PAD]": 0, "[UNK]": 1, "|": 2, "E": 3, "T": 4, "*": 5, "<s>": 6, "B": 7, "'": 8, ".": 9, "ß": 10}
ANGLES = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "|": 4, "E": 5, "T": 6, "'": 7, "ß": 8, "B": 9, "*": 10}
NAMED = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
ADDED = {"lstrip": False, "normalized": True, "rstrip": False, "single_word": False}
CASES = [
    {},
    {"tokenizer_config": NAMED},
    {"tokenizer_config": NAMED | {"tokenizer_class": "Wav2Vec2CTCTokenizer", "bos_token": None}},
    {"tokenizer_config": NAMED | {"do_lower_case": True, "replace_word_delimiter_char": "_-"}},
    {"tokenizer_config": NAMED | {"word_delimiter_token": "*"}},
    {"tokenizer_config": NAMED | {"word_delimiter_token": ADDED | {"__type": "AddedToken", "content": "*"}}},
    {"tokenizer_config": NAMED | {"clean_up_tokenization_spaces": True}},
    {"tokenizer_config": NAMED | {"additional_special_tokens": ["B"]}},
    {"tokenizer_config": NAMED | {"extra_special_tokens": {"b_token": "B"}}},
    {"tokenizer_config": NAMED | {"b_token": "B"}},
    {"tokenizer_config": {"pad_token": "E"}, "special_tokens_map": NAMED},
    {"tokenizer_config": {"added_tokens_decoder": {"99": ADDED | {"content": "yes", "special": True}, "3": ADDED | {"content": "no"}}}, "special_tokens_map": NAMED},
    {"special_tokens_map": {"unk_token": ADDED | {"content": "[UNK]"}}, "added_tokens": {"</s>": 11, "yes": 99}},
]


def text(files, tokens):
    with tempfile.TemporaryDirectory() as folder:
        for name, fields in files.items():
            (Path(folder) / f"{name}.json").write_text(json.dumps(fields))
        config = files.get("tokenizer_config", {})
        if isinstance(config.get("word_delimiter_token"), str):
            # `from_pretrained` of version 5.24 loses it.
            tokenizer = Wav2Vec2CTCTokenizer(f"{folder}/vocab.json", **config)
        else:
            tokenizer = Wav2Vec2CTCTokenizer.from_pretrained(folder)
        return tokenizer.decode(tokens, skip_special_tokens=True, group_tokens=False)


golden = []
for vocabulary in [BRACKETS, ANGLES]:
    for case in CASES:
        files = {"vocab": vocabulary} | case
        tokens = [2, 4, 7, 2, 9, 3, 1, 4, 4, 5, 0, 5, 2, 8, 2, 10, 6, 3, 11, 12, 13, 99, 4, 2]
        golden.append({"files": files, "tokens": tokens, "text": text(files, tokens)})
        print(golden[-1]["text"], case)
(OUT / "ctc_letters.json").write_text("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in golden) + "\n]\n")
