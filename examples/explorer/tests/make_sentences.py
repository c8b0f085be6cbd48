#!/usr/bin/env python3
"""Writes page/story.sentences.json, which the page suggests from, and what its tests compare with: tests/sentences.tsv, translations of the
native program, and tests/hostile.json, ids of the tokenizers library.

python3 examples/explorer/tests/make_sentences.py RUN      # needs tokenizers, and `cargo build --release -p translation`
"""

import csv
import gzip
import json
import random
import re
import subprocess
import sys
import tempfile
import unicodedata
from pathlib import Path

import tokenizers

HERE = Path(__file__).parent
PAGE = HERE.parent / "page"
CORPUS = HERE.parents[1] / "toy-corpus/data"
TRANSLATION = HERE.parents[2] / "target/release/translation"
# Trimmed by the translator: Unicode's white space.
SPACE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
FIRST = [
    "The dog sleeps.",
    "Her grandmother closed the yellow window.",
    "Who returns to your house?",
    "The good goat ran at the beach.",
    "We are going to sleep at the lake tomorrow.",
    "I do not visit those big schools on Sundays.",
    "Does the goat eat this melon every day?",
]
HOSTILE = [
    "  The dog  sleeps.  ",
    "the DOG sleeps",
    "don't I'll we've it's",
    "a\u00a0b\u2028c",
    "\u0085The dog\u0085sleeps.\u0085",
    "<pad> <eos> <bos>",
    "e\u0301te\u0301 cafe\u0301",
    "🙂🙂🏽 👩‍👩‍👧",
    "مرحبا بك في البيت",
    "שלום עולם",
    " The\tdog\n\nsleeps .",
    "\ufeffThe dog\ufeff sleeps.",
    "__a_b 123abc ٣²½",
    "İstanbul ŒUVRE ß",
    "日本語 テキスト",
    "..!!?? --- '' 's 't",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "\u200bzero\u200bwidth",
    "x" * 40 + " " * 7 + "y",
    "a",
    "'",
    "\u0301 alone",
    "¿Qué? ¡Sí!",
    "\u0000\u0001nul",
    "The dog sleeps.\u3000",
    "\U0001d54f math 𝟙",
]


def tokenizer_of(name):
    """The tokenizer of a model of the page. It takes no text for a special token."""
    tokenizer = tokenizers.Tokenizer.from_buffer(gzip.decompress((PAGE / f"{name}.tokenizer.json.gz").read_bytes()))
    tokenizer.encode_special_tokens = True
    return tokenizer


def translation(*arguments, **options):
    return subprocess.run([TRANSLATION, *arguments], check=True, text=True, capture_output=True, **options).stdout


def held_out(run):
    """Source, translation and references of every sentence that the training did not see."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "translations.tsv"
        translation("evaluate", "--out", run, "--translations", path)
        return [line.split("\t") for line in path.read_text().splitlines()]


def label(tokenizer, token):
    if token < 4:
        return tokenizer.id_to_token(token)
    text = tokenizer.decode([token], skip_special_tokens=False)
    if text == " ":
        return "␠"
    return text[1:] if text.startswith(" ") else "·" + text


def words(rows):
    """The words of the grammar's tables and of its sentences."""
    found = {row[0] for row in rows}
    for path in CORPUS.glob("*.tsv"):
        with path.open() as file:
            for row in csv.DictReader(file, delimiter="\t"):
                found |= {text for name, text in row.items() if name.startswith("english")}
    return sorted({word for text in found for word in re.findall(r"[^\W_]+(?:['’][^\W_]+)*", text.lower())})


def main(run):
    tokenizer = tokenizer_of("story")
    rows = held_out(run)
    random.seed(7)
    picked = [row[0] for row in random.sample(rows, 50)]
    found = translation("translate", "--out", run, "--beam", "1", input="\n".join(picked) + "\n").splitlines()
    with (HERE / "sentences.tsv").open("w") as file:
        file.write("source\tids\ttarget\n")
        for source, target in zip(picked, found, strict=True):
            ids = tokenizer.encode(source, add_special_tokens=False).ids
            file.write(f"{source}\t{' '.join(map(str, ids))}\t{target}\n")

    hostile = []
    for text in HOSTILE:
        composed = unicodedata.normalize("NFC", text.replace("\ufeff", "").strip(SPACE))
        ids = tokenizer.encode(composed, add_special_tokens=False).ids
        labels = [label(tokenizer, token) for token in ids]
        hostile.append({"text": text, "ids": ids, "labels": labels, "decoded": tokenizer.decode(ids)})
    lines = ",\n".join(json.dumps(row) for row in hostile)
    (HERE / "hostile.json").write_text(f"[\n{lines}\n]\n")

    right = [row[0] for row in rows if row[1] == row[2]]
    random.seed(3)
    sentences = list(dict.fromkeys(FIRST + random.sample(right, 110)))
    known = {"sentences": sentences, "words": words(rows)}
    (PAGE / "story.sentences.json").write_text(json.dumps(known, ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
