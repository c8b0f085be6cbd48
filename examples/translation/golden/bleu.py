"""Writes bleu.json: corpora with the BLEU that sacreBLEU's default gives them, and segments with their 13a tokens.

Run it with sacreBLEU 2.6.0 installed: `python3 golden/bleu.py > golden/bleu.json`. The Rust tests of `src/bleu` read it.
"""

import json
import random

import sacrebleu
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

CORPORA = {
    "identical": (["The cat is on the mat."], [["The cat is on the mat."]]),
    "punctuation": (
        ["Hello, world! (This is \"fine\"); isn't it?", "One/two: a+b=c, 50% @home #1 $5 [x] {y} ~z ^w_v `u` |t|"],
        [["Hello , world! (This was \"fine\"); isn't it?"], ["One/two: a+b=c, 60% @home #1 $5 [x] {y} ~z ^w_v `u` |t|"]],
    ),
    "numbers": (
        ["It costs 1,000.5 euros, or 3.14 in 2024, not .5 or 7,", "Version 2.0.1, page 12."],
        [["It costs 1,000.5 euros , or 3.14 in 2024 , not .5 or 8,"], ["Version 2.0.1, page 12."]],
    ),
    "accents": (
        ["¿Dónde está la niña?", "El pájaro azul no canta, ¡qué lástima!", "Él come una manzana."],
        [["¿Dónde está el niño?"], ["El pájaro azul no canta, ¡qué pena!"], ["Ella come una manzana roja."]],
    ),
    "one empty hypothesis": (
        ["", "The dog sleeps in the red house."],
        [["The cat eats."], ["The dog sleeps in the blue house."]],
    ),
    "only an empty hypothesis": ([""], [["The cat eats the fish."]]),
    "empty reference": (["The cat eats the fish today."], [[""]]),
    "empty reference among others": (
        ["The cat eats the fish today.", "A dog runs to the park now."],
        [["", "The cat eats fish today."], ["A dog runs to the park now."]],
    ),
    "no 4-gram overlap": (["the red cat sat here on a mat"], [["the red cat slept there on a rug today"]]),
    "no 2-gram overlap": (["mat the on cat the"], [["the cat is on my mat"]]),
    "no overlap": (["alpha beta gamma delta epsilon"], [["one two three four five"]]),
    "fewer than four tokens": (["The cat."], [["The cat."]]),
    "short hypothesis": (["The girl reads the book"], [["The girl reads the book in the old library every day ."]]),
    "long hypothesis": (["The girl reads the book in the old library every day ."], [["The girl reads the book"]]),
    "case": (["the Cat eats The fish now"], [["The cat eats the fish now"]]),
    "repeated words are clipped": (["the the the the the the the"], [["The cat the mat the", "the the cat is on the mat"]]),
    "several references": (
        ["The gunman was shot dead by the police.", "A boy is running fast on the street."],
        [
            ["The gunman was shot to death by the police.", "The police shot the gunman dead.", "Police killed the gunman."],
            ["A boy runs fast.", "The boy is running fast on that street.", "A boy is running on the street very fast now."],
        ],
    ),
    "closest reference, tie": (
        ["one two three four five six"],
        [["one two three four five six seven eight", "one two three four"]],
    ),
    "one reference for some, two for others": (
        ["He eats an apple every day.", "We do not sing."],
        [["He eats one apple every day.", "Every day he eats an apple."], ["We never sing."]],
    ),
    "hyphens and digits": (
        ["A well-known 2024-25 season, 3-2 win, F-16 and -5 or 7-", "pages 10-12 of the twenty-one"],
        [["A well-known 2024 - 25 season, 3-2 win, F-16 and -5 or 8-"], ["pages 10-12 of the twenty two"]],
    ),
    "entities": (
        ["&quot;Bread &amp; cheese&quot; costs &lt;5 &gt;3 &amp;lt; now", "<skipped>the cat eats<skipped> the fish"],
        [["\"Bread & cheese\" costs <5 >3 &lt; now"], ["the cat eats the fish"]],
    ),
    "line breaks": (
        ["The big trans-\nlation of the\nold book is good  \n", "A\tb\u00a0c\u2003d \x1c e f"],
        [["The big translation of the old book is good"], ["A b c d e f"]],
    ),
    "stops next to each other": (
        ["Wait... what,,, no., 5. 6, .7 ,8 a.b,c 9.,9 end.", "..,,.. 1.. ..1 ,.,"],
        [["Wait ... what, no. 5. 6, .7 ,8 a.b,c 9.,9 end."], ["..,,.. 1.. ..2 ,.,"]],
    ),
}

ALPHABET = list("ab09 .,-'\"&/:?¿é\n\t[}") + ["&quot;", "&amp;", "&lt;", "&gt;", "<skipped>", "-\n", " the ", " cat "]


def random_text(rng, longest):
    return "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(longest)))


def random_corpus(rng):
    """Hypotheses that are references with a few changes, and one to three references each."""
    hypotheses, references = [], []
    for _ in range(rng.randrange(1, 6)):
        words = [rng.choice("the cat eats a red fish , . 3.5 el-niño ¿qué? now".split()) for _ in range(rng.randrange(1, 14))]
        references.append([" ".join(w for w in words if rng.random() < 0.85) for _ in range(rng.randrange(1, 4))])
        hypotheses.append(" ".join(w for w in words if rng.random() < 0.85))
    return hypotheses, references


def score(hypotheses, references):
    streams = max(len(r) for r in references)
    transposed = [[r[i] if i < len(r) else None for r in references] for i in range(streams)]
    return BLEU().corpus_score(hypotheses, transposed).score


def main():
    rng = random.Random(13)
    corpora = dict(CORPORA)
    for i in range(20):
        corpora[f"random {i}"] = random_corpus(rng)
    tokenizer = Tokenizer13a()
    segments = sorted({t for h, rs in CORPORA.values() for t in h + [r for x in rs for r in x]})
    segments += [random_text(rng, 40) for _ in range(60)]
    scored = [{"name": n, "hypotheses": h, "references": r, "bleu": score(h, r)} for n, (h, r) in corpora.items()]
    tokenized = [{"text": s, "tokens": tokenizer(s.rstrip()).split()} for s in segments]
    # One case per line, so that a change reads well in a diff.
    print('{"sacrebleu": %s,' % json.dumps(sacrebleu.__version__))
    print('"corpora": [\n%s\n],' % ",\n".join(map(json.dumps, scored)))
    print('"segments": [\n%s\n]}' % ",\n".join(map(json.dumps, tokenized)))


if __name__ == "__main__":
    main()
