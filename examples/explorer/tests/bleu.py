#!/usr/bin/env python3
"""Prints BLEU of the best model of a run, and of what it became in the page, on the sentences that the run held out.

python3 examples/explorer/tests/bleu.py RUN NAME      # needs tokenizers and sacrebleu, and `cargo build --release -p translation -p explorer`
"""

import itertools
import json
import subprocess
import sys

import sacrebleu
from make_sentences import PAGE, TRANSLATION, held_out, tokenizer_of

EOS = 2


def in_page(name, sources):
    """The translations of the page's model."""
    tokenizer = tokenizer_of(name)
    ids = [tokenizer.encode(source, add_special_tokens=False).ids + [EOS] for source in sources]
    requests = "".join(json.dumps({"task": "translate", "source": source}) + "\n" for source in ids)
    command = [TRANSLATION.with_name("explorer"), "answer", "--name", name, "--page", PAGE]
    answers = subprocess.run(command, input=requests, check=True, text=True, capture_output=True).stdout
    return [tokenizer.decode(json.loads(line)["target"]).strip() for line in answers.splitlines()]


def main(run, name):
    rows = held_out(run)
    references = list(itertools.zip_longest(*(row[2:] for row in rows)))
    native = [row[1] for row in rows]
    page = in_page(name, [row[0] for row in rows])
    for of, found in [(run, native), (f"{name}.model.gz", page)]:
        print(f"{of}: BLEU {sacrebleu.corpus_bleu(found, references).score:.1f} on {len(rows)} sentences")
    print(f"{sum(a == b for a, b in zip(native, page, strict=True))} of {len(rows)} translations are the same")


if __name__ == "__main__":
    main(*sys.argv[1:])
