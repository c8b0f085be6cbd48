"""Trains the translator and the same model in PyTorch side by side, in turns of a minute, and compares speed and BLEU.

    python3 compare.py pairs.tsv --out folder

Needs `torch`, `tokenizers` and `sacrebleu`, and `cargo build --release -p translation`. The sides:

    pytorch   pytorch.py
    same      the translator, with the same recipe
    best      the translator, with the recipe of BEST, which ends after --best-minutes

Whoever has no turn is stopped, so both sides have seen the same machine, however noisy. Only the time of its turns counts for a side: not
that of loading, of checkpoints and of translating. Ctrl-C stops the comparison, and the same command resumes it.
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BINARY = HERE.parents[2] / "target/release/translation"
# Sources that no side trains on.
HELD_OUT = 1000
# What the translator sets aside of the rest for its own figures.
OWN_HELD_OUT = 100
RECIPE = ["--schedule", "noam", "--learning-rate", "0.001", "--warmup", "1000"]
BEST = []
READY = ("training on", "going on from")


class Side:
    """A process that trains, is stopped when it has no turn, and writes a checkpoint when it is interrupted."""

    def __init__(self, name, out, milestones):
        self.name = name
        self.folder = out / name
        self.folder.mkdir(exist_ok=True)
        self.log = out / f"{name}.log"
        self.milestones = milestones
        self.process = None
        self.progress = self.folder / "progress.json"
        self.seconds = json.loads(self.progress.read_text()) if self.progress.exists() else 0.0

    def start(self):
        """Starts the process, or resumes it, and stops it as soon as it trains."""
        log = self.log.open("a")
        seen = self.log.stat().st_size
        command = self.command()
        self.process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        while not any(ready in self.log.read_text()[seen:] for ready in READY):
            if self.process.poll() is not None:
                sys.exit(f"{' '.join(command)} ended; see {self.log}")
            time.sleep(0.05)
        self.process.send_signal(signal.SIGSTOP)

    def turn(self, seconds):
        """Trains for so long; returns whether the process is still there."""
        if self.process is None:
            self.start()
        started = time.monotonic()
        self.process.send_signal(signal.SIGCONT)
        while self.process.poll() is None and time.monotonic() - started < seconds:
            time.sleep(0.02)
        self.seconds += time.monotonic() - started
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGSTOP)
            return True
        if self.process.returncode != 0:
            sys.exit(f"{self.name} failed; see {self.log}")
        return False

    def checkpoint(self):
        """Ends the process, with a checkpoint."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.send_signal(signal.SIGCONT)
            self.process.wait()
        self.process = None
        self.progress.write_text(json.dumps(self.seconds))


class PyTorch(Side):
    def __init__(self, out, milestones):
        super().__init__("pytorch", out, milestones)
        self.out = out

    def script(self, command):
        run = next((self.out / "vocabulary").glob("epoch-*"))
        script = [sys.executable, str(HERE / "pytorch.py"), command]
        return script + ["--run", str(run), "--out", str(self.folder)]

    def command(self):
        return self.script("train") + ["--data", str(self.out / "train.tsv")]

    def state(self):
        return json.loads((self.folder / "state.json").read_text())

    def translate(self, test):
        sources = "\n".join(test)
        done = subprocess.run(
            self.script("translate"), input=sources, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.split("\n")[: len(test)]


class Ours(Side):
    def __init__(self, name, out, milestones, binary, options):
        super().__init__(name, out, milestones)
        self.out = out
        self.binary = binary
        self.options = options

    def newest(self):
        checkpoints = [path for path in self.folder.glob("epoch-*") if (path / "state.json").exists()]
        return max(checkpoints, key=lambda path: (path / "state.json").stat().st_mtime, default=None)

    def command(self):
        train = [self.binary, "train", "--device", "flex", "--out", str(self.folder)]
        if self.newest():
            return train + ["--resume"]
        return train + corpus(self.out) + self.options

    def state(self):
        return json.loads((self.newest() / "state.json").read_text())["state"]

    def translate(self, test):
        # The newest checkpoint alone: the translator would take the one with the lowest validation loss.
        newest = self.newest()
        alone = self.out / f"{self.name}-newest"
        alone.mkdir(exist_ok=True)
        for link in alone.iterdir():
            link.unlink()
        (alone / newest.name).symlink_to(newest.resolve())
        found = self.out / f"{self.name}.tsv"
        evaluate = [self.binary, "evaluate", "--device", "flex", "--out", str(alone)]
        evaluate += ["--test", str(self.out / "test.tsv"), "--translations", str(found)]
        subprocess.run(evaluate, stdout=subprocess.DEVNULL, check=True)
        lines = [line.split("\t") for line in found.read_text().splitlines()]
        translations = {line[0]: line[1] for line in lines}
        return [translations[source] for source in test]


def corpus(out):
    return ["--data", str(out / "train.tsv"), "--held-out", str(OWN_HELD_OUT)]


def divide(pairs, out, binary):
    """Writes `train.tsv` and `test.tsv`, which have no source in common, and learns the vocabulary of the first."""
    if not (out / "test.tsv").exists():
        lines = [line.split("\t")[:2] for line in Path(pairs).read_text().splitlines()]
        sources = sorted({source for source, _ in lines})
        held_out = set(random.Random(1).sample(sources, HELD_OUT))
        for name, is_in in [("train", False), ("test", True)]:
            chosen = ("\t".join(line) + "\n" for line in lines if (line[0] in held_out) == is_in)
            (out / f"{name}.tsv").write_text("".join(chosen))
    if not (out / "vocabulary").exists():
        # After one step, for the vocabulary and the configuration.
        train = [binary, "train", "--device", "flex", "--out", str(out / "vocabulary"), "--steps", "1"]
        subprocess.run(train + corpus(out) + RECIPE, stdout=subprocess.DEVNULL, check=True)
    references = {}
    for line in (out / "test.tsv").read_text().splitlines():
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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", help="the corpus: source, tab, target")
    parser.add_argument("--out", required=True, help="the folder of the comparison")
    parser.add_argument("--sides", default="pytorch,same,best", help="[default: %(default)s]")
    parser.add_argument("--minutes", default="10,20,40", help="when to translate [default: %(default)s]")
    parser.add_argument("--best-minutes", type=float, default=34, help="[default: %(default)s]")
    parser.add_argument("--turn", type=float, default=60, help="seconds of a turn [default: %(default)s]")
    parser.add_argument("--binary", default=str(BINARY), help="the translator [default: %(default)s]")
    arguments = parser.parse_args()
    out = Path(arguments.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    test = divide(arguments.pairs, out, arguments.binary)
    milestones = [60 * float(minutes) for minutes in arguments.minutes.split(",")]
    # It ends by itself; how fast it is decides after how many steps.
    limit = ["--minutes", str(arguments.best_minutes)]
    sides = {
        "pytorch": lambda: PyTorch(out, milestones),
        "same": lambda: Ours("same", out, milestones, arguments.binary, RECIPE + ["--steps", "1000000000"]),
        "best": lambda: Ours("best", out, [], arguments.binary, BEST + limit),
    }
    sides = [sides[name]() for name in arguments.sides.split(",")]
    results = out / "results.jsonl"
    # Between turns only, so that every turn is whole.
    stop = []
    signal.signal(signal.SIGINT, lambda *_: stop.append(True))
    running = [side for side in sides if not side.milestones or side.seconds < side.milestones[-1] - 1]
    while running and not stop:
        for side in list(running):
            ahead = [point for point in side.milestones if point > side.seconds + 1]
            goal = min([side.seconds + arguments.turn, *ahead[:1]])
            goes_on = side.turn(goal - side.seconds)
            reached = ahead and side.seconds >= ahead[0] - 1
            if reached or not goes_on:
                side.checkpoint()
                measure(side, test, results)
            if not goes_on or (reached and len(ahead) == 1):
                running.remove(side)
    for side in running:
        side.checkpoint()


if __name__ == "__main__":
    main()
