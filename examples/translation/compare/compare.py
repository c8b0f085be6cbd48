"""Trains the translator and the same model in PyTorch in turns of a minute, and compares their speed and BLEU.

    python3 compare.py pairs.tsv --out folder

Needs `torch`, `tokenizers` and `sacrebleu`, and `cargo build --release -p translation`. The sides:

    pytorch   pytorch.py
    same      the translator with the same recipe
    best      the translator with the recipe of BEST, for --best-minutes: does it get as far in fewer minutes?

A side is stopped while another one has its turn, so all of them see the same machine, however noisy it is. A side's time is that of its turns:
loading, checkpoints at the end of a turn, and the translations that are measured do not count. What the translator does at the end of an
epoch (validation, a sample, a checkpoint) does count; pytorch.py does none of this. Nor does it write checkpoints in between, as the
translator does every five minutes: by a clock that runs on while it is stopped, so that with three sides it writes one in about every 100
seconds of its own time, which counts against it.
Order, dropout and initial weights are each side's own, and the translator sets 200 sentences of the training part aside, which
pytorch.py trains on.

Ctrl-C ends the comparison after the turn under way; the same command resumes it. A comparison that was killed begins anew, in another folder:
its sides may have trained for longer than is known.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINARY = HERE.parents[2] / "target/release/translation"
# Sources that no side trains on.
HELD_OUT = 1000
# What the translator sets aside of the rest, for its own figures and for validation.
OWN_HELD_OUT = 100
RECIPE = ["--schedule", "noam", "--learning-rate", "0.001", "--warmup", "1000"]
# No decay to an end: on a shared machine the number of steps per hour varies by a factor of two.
BEST = RECIPE + ["--batch-tokens", "1400", "--average", "400"]
SIDES = ["pytorch", "same", "best"]
# What prints nothing: what Unicode calls default-ignorable, and control characters other than white space.
INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# The file from which the translator resumes.
NEWEST = "newest.checkpoint"
READY = [b"training on", b"going on from"]
# How a side ends that was interrupted, and had written a checkpoint.
INTERRUPTED = {0, 130}


def read_lines(path):
    """The lines as the translator divides a file, unlike str.splitlines and universal newlines."""
    text = Path(path).read_bytes().decode("utf-8-sig")
    return text.removesuffix("\n").split("\n")


def composed(text):
    """The text as the translator reads it."""
    return unicodedata.normalize("NFC", text.replace("\ufeff", "").strip())


def key(text):
    """What sentences have in common that look the same, as the translator compares them."""
    return " ".join(unicodedata.normalize("NFC", INVISIBLE.sub("", text)).split())


def write(path, text):
    """The whole file or none."""
    aside = path.with_suffix(".part")
    aside.write_text(text, newline="")
    aside.replace(path)


def run(command, **options):
    """Runs a command that Ctrl-C does not reach, and returns what it printed."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, start_new_session=True, text=True, **options
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {done.returncode}")
    return done.stdout


class Side:
    """A process that trains, is stopped while it has no turn, and writes a checkpoint when it is interrupted."""

    def __init__(self, name, out, milestones):
        self.name = name
        self.out = out
        self.folder = out / name
        self.folder.mkdir(exist_ok=True)
        self.log = out / f"{name}.log"
        self.milestones = milestones
        self.process = None
        self.progress = out / f"{name}.json"
        saved = json.loads(self.progress.read_text()) if self.progress.exists() else {}
        self.seconds = saved.get("seconds", 0.0)
        # How many milestones are measured.
        self.measured = saved.get("measured", 0)
        planned = saved.get("milestones", milestones)
        if planned != milestones:
            sys.exit(
                f"{self.progress} is of a comparison that translates after {planned} seconds, not {milestones}: choose another --out"
            )

    def save(self):
        saved = {"seconds": self.seconds, "measured": self.measured, "milestones": self.milestones}
        write(self.progress, json.dumps(saved))

    def is_over(self):
        return self.measured == len(self.milestones)

    def goal(self, turn):
        """When the coming turn ends, in seconds of this side."""
        return min(self.seconds + turn, self.milestones[self.measured])

    def is_due(self):
        """Whether there is something to measure."""
        return self.seconds >= self.milestones[self.measured] - 0.5

    def printed(self, since):
        with self.log.open("rb") as log:
            log.seek(since)
            return log.read()

    def start(self):
        """Starts or resumes the process, and stops it as soon as it trains."""
        command = self.command()
        with self.log.open("ab") as log:
            since = log.tell()
            self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        while not any(ready in self.printed(since) for ready in READY):
            if self.process.poll() is not None:
                sys.exit(f"{' '.join(command)} ended; see {self.log}")
            time.sleep(0.05)
        self.process.send_signal(signal.SIGSTOP)

    def turn(self, seconds):
        """Trains for so long."""
        if self.process is None:
            self.start()
        started = time.monotonic()
        self.process.send_signal(signal.SIGCONT)
        while self.process.poll() is None:
            if time.monotonic() - started >= seconds:
                break
            time.sleep(0.02)
        self.seconds += time.monotonic() - started
        if self.process.poll() is not None:
            sys.exit(f"{self.name} ended with {self.process.returncode}; see {self.log}")
        self.process.send_signal(signal.SIGSTOP)

    def checkpoint(self):
        """Ends the process, with a checkpoint."""
        process, self.process = self.process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGCONT)
            if process.wait() not in INTERRUPTED:
                sys.exit(f"{self.name} wrote no checkpoint; see {self.log}")
            self.save()


class PyTorch(Side):
    def script(self, command):
        script = [sys.executable, str(HERE / "pytorch.py"), command]
        return script + ["--run", str(self.out / "vocabulary"), "--out", str(self.folder)]

    def command(self):
        return self.script("train") + ["--data", str(self.out / "train.tsv")]

    def state(self):
        return json.loads((self.folder / "state.json").read_text())

    def translate(self, test):
        return json.loads(run(self.script("translate"), input=json.dumps(test)))


class Ours(Side):
    def __init__(self, name, out, milestones, binary, options):
        super().__init__(name, out, milestones)
        self.binary = binary
        self.options = options

    def command(self):
        train = [self.binary, "train", "--device", "flex", "--out", str(self.folder)]
        if (self.folder / NEWEST).exists():
            return train + ["--resume"]
        return train + corpus(self.out) + self.options

    def state(self):
        return first_line(self.folder)["state"]

    def translate(self, test):
        # The newest checkpoint alone: the translator would take the one with the lowest validation loss.
        alone = self.out / f"{self.name}-newest"
        alone.mkdir(exist_ok=True)
        link = alone / NEWEST
        link.unlink(missing_ok=True)
        link.symlink_to((self.folder / NEWEST).resolve())
        found = self.out / f"{self.name}.tsv"
        evaluate = [self.binary, "evaluate", "--device", "flex", "--out", str(alone)]
        run(evaluate + ["--test", str(self.out / "test.tsv"), "--translations", str(found)])
        lines = (line.split("\t") for line in read_lines(found))
        translations = {line[0]: line[1] for line in lines}
        return [translations[source] for source in test]


def read_minutes(listed):
    try:
        seconds = [60 * float(minutes) for minutes in listed.split(",")]
    except ValueError:
        seconds = []
    if not seconds or seconds != sorted(set(seconds)) or seconds[0] <= 0:
        raise argparse.ArgumentTypeError(f"{listed!r} are not minutes above 0, increasing, with commas between them")
    return seconds


def read_sides(listed):
    names = listed.split(",")
    if len(set(names)) < len(names) or not set(names) <= set(SIDES):
        raise argparse.ArgumentTypeError(f"{listed!r} are not some of {','.join(SIDES)}, once each")
    return names


def first_line(run):
    """What the newest checkpoint of the translator says of its run."""
    with (run / NEWEST).open("rb") as file:
        return json.loads(file.readline())


def corpus(out):
    return ["--data", str(out / "train.tsv"), "--held-out", str(OWN_HELD_OUT)]


def divide(pairs, out, binary):
    """Writes `train.tsv` and `test.tsv`, which have no source in common, and learns the vocabulary of the first."""
    if not (out / "test.tsv").exists():
        lines = [[composed(column) for column in line.split("\t")[:2]] for line in read_lines(pairs)]
        bad = [number for number, line in enumerate(lines, 1) if len(line) < 2 or not all(line)]
        if bad:
            sys.exit(f"{pairs}: {len(bad)} lines are not sentence pairs, the first is line {bad[0]}")
        first = {key(source): source for source, _ in reversed(lines)}
        lines = [[first[key(source)], target] for source, target in lines]
        sources = sorted(first.values())
        if len(sources) < 4 * HELD_OUT:
            sys.exit(f"{pairs}: at least {4 * HELD_OUT} distinct sources are needed, got {len(sources)}")
        held_out = set(random.Random(1).sample(sources, HELD_OUT))
        for name, is_in in [("train", False), ("test", True)]:
            chosen = ("\t".join(line) + "\n" for line in lines if (line[0] in held_out) == is_in)
            write(out / f"{name}.tsv", "".join(chosen))
    vocabulary = out / "vocabulary"
    if not (vocabulary / NEWEST).exists():
        # After one step, for the vocabulary and the configuration.
        train = [binary, "train", "--device", "flex", "--out", str(vocabulary), "--steps", "1"]
        run(train + corpus(out) + RECIPE)
    references = {}
    for line in read_lines(out / "test.tsv"):
        source, target = line.split("\t")
        references.setdefault(source, []).append(target)
    return references


def bleu(translations, references):
    import sacrebleu

    most = max(map(len, references))
    streams = [[row[i] if i < len(row) else None for row in references] for i in range(most)]
    return sacrebleu.corpus_bleu(translations, streams).score


def measure(side, test, results):
    state = side.state()
    translations = side.translate(list(test))
    assert len(translations) == len(test), f"{side.name} translated {len(translations)} of {len(test)}"
    result = {
        "side": side.name,
        "minutes": side.seconds / 60,
        "steps": state["step"],
        "tokens_per_second": state["tokens"] / side.seconds,
        "bleu": bleu(translations, list(test.values())),
    }
    with results.open("a") as file:
        file.write(json.dumps(result) + "\n")
    print(
        f"{side.name:8} {result['minutes']:5.1f} min {result['steps']:6} steps "
        f"{result['tokens_per_second']:6.0f} tokens/s   BLEU {result['bleu']:.1f}",
        flush=True,
    )
    side.measured += 1
    side.save()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="the corpus: source, tab, target")
    parser.add_argument("--out", required=True, help="the folder of the comparison")
    parser.add_argument("--sides", type=read_sides, default=",".join(SIDES), help="[default: %(default)s]")
    minutes = {"type": read_minutes, "metavar": "MINUTES"}
    parser.add_argument("--minutes", default="10,20,40", help="when to translate, increasing [default: %(default)s]", **minutes)
    parser.add_argument("--best-minutes", default="10,20,34", help="when to translate with BEST [default: %(default)s]", **minutes)
    parser.add_argument("--turn", type=float, default=60, help="seconds of a turn [default: %(default)s]")
    parser.add_argument("--binary", default=str(BINARY), help="the translator [default: %(default)s]")
    arguments = parser.parse_args()
    if not os.access(arguments.binary, os.X_OK):
        sys.exit(f"{arguments.binary} is not there or not a program: cargo build --release -p translation")
    if not os.access(arguments.pairs, os.R_OK):
        sys.exit(f"{arguments.pairs} cannot be read")
    out = Path(arguments.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    test = divide(arguments.pairs, out, arguments.binary)
    milestones = arguments.minutes
    best_milestones = arguments.best_minutes
    endless = ["--steps", "1000000000"]
    sides = {
        "pytorch": lambda: PyTorch("pytorch", out, milestones),
        "same": lambda: Ours("same", out, milestones, arguments.binary, RECIPE + endless),
        "best": lambda: Ours("best", out, best_milestones, arguments.binary, BEST + endless),
    }
    sides = [sides[name]() for name in arguments.sides]
    results = out / "results.jsonl"
    stop = []

    def interrupt(*_):
        print("stopping after this turn", flush=True)
        stop.append(True)

    for number in [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]:
        signal.signal(number, interrupt)
    try:
        while not stop and not all(side.is_over() for side in sides):
            for side in sides:
                if stop or side.is_over():
                    continue
                if not side.is_due():
                    side.turn(side.goal(arguments.turn) - side.seconds)
                if side.is_due():
                    side.checkpoint()
                    measure(side, test, results)
    finally:
        # No process stays stopped.
        failed = []
        for side in sides:
            try:
                side.checkpoint()
            except SystemExit as error:
                failed.append(str(error))
        if failed:
            sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
