"""The translator's recipe in PyTorch: the same model, vocabulary, schedule and way to make batches, for `compare.py`.

Like the translator, it trains until Ctrl-C, writes a checkpoint, and resumes from it.
"""

import argparse
import json
import math
import random
import signal
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

PAD, BOS, EOS = 0, 1, 2
BATCH = 64


class Translator(torch.nn.Module):
    """`torch.nn.Transformer`, pre-norm, between sinusoidal positions and an embedding tied to the output."""

    def __init__(self, model):
        super().__init__()
        d_model = model["d_model"]
        self.embedding = torch.nn.Embedding(model["vocab_size"], d_model)
        position = torch.arange(model["max_len"])[:, None]
        rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        angles = torch.stack([torch.sin(position * rate), torch.cos(position * rate)], dim=2)
        self.register_buffer("positions", angles.flatten(1), persistent=False)
        self.dropout = torch.nn.Dropout(model["dropout"])
        self.transformer = torch.nn.Transformer(
            d_model,
            model["n_heads"],
            model["n_encoder_layers"],
            model["n_decoder_layers"],
            model["d_ff"],
            model["dropout"],
            batch_first=True,
            norm_first=True,
        )
        with torch.no_grad():
            self.embedding.weight.normal_(std=d_model**-0.5)
            for name, parameter in self.transformer.named_parameters():
                if name.endswith("in_proj_weight"):
                    for part in parameter.chunk(3):
                        torch.nn.init.xavier_uniform_(part)
                elif parameter.dim() > 1:
                    torch.nn.init.xavier_uniform_(parameter)

    def embed(self, tokens):
        scaled = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(scaled + self.positions[: tokens.shape[1]])

    def encode(self, source):
        padding = source == PAD
        # Without a mask, attention is faster.
        padding = padding if padding.any() else None
        return self.transformer.encoder(self.embed(source), src_key_padding_mask=padding), padding

    def decode(self, states, padding, target):
        length = target.shape[1]
        causal = torch.nn.Transformer.generate_square_subsequent_mask(length)
        return self.transformer.decoder(
            self.embed(target),
            states,
            tgt_mask=causal,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )

    def logits(self, decoded):
        return decoded @ self.embedding.weight.T


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def read_pairs(corpus, tokenizer, limit):
    text = Path(corpus).read_bytes().decode()
    lines = [line.split("\t")[:2] for line in text.removesuffix("\n").split("\n")]
    sources, targets = (
        [encoding.ids for encoding in tokenizer.encode_batch(texts, add_special_tokens=False)]
        for texts in zip(*lines)
    )
    pairs = zip(sources, targets)
    return [pair for pair in pairs if max(map(len, pair)) < limit]


def plan(pairs, batch, epoch):
    """Shuffled, sorted by length, cut into batches, and those shuffled."""
    rng = random.Random(epoch)
    order = list(range(len(pairs)))
    rng.shuffle(order)
    order.sort(key=lambda index: (len(pairs[index][1]), len(pairs[index][0])))
    batches = [order[start : start + batch] for start in range(0, len(order), batch)]
    rng.shuffle(batches)
    return batches


def train(arguments, config, tokenizer):
    out = Path(arguments.out)
    torch.manual_seed(config["seed"])
    pairs = read_pairs(arguments.data, tokenizer, config["model"]["max_len"])
    model = Translator(config["model"]).train()
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    state = {"step": 0, "tokens": 0, "epoch": 0, "step_in_epoch": 0}
    checkpoint = out / "checkpoint.pt"
    if checkpoint.exists():
        saved = torch.load(checkpoint)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
        state = saved["state"]
    stop = []
    signal.signal(signal.SIGINT, lambda *_: stop.append(True))
    parameters = sum(parameter.numel() for parameter in model.parameters())
    print(f"training on {len(pairs)} pairs, {parameters} parameters", flush=True)
    peak, warmup = config["learning_rate"], config["warmup"]
    while not stop:
        batches = plan(pairs, config["batch"], state["epoch"])
        for batch in batches[state["step_in_epoch"] :]:
            state["step"] += 1
            rate = peak * min(state["step"] / warmup, math.sqrt(warmup / state["step"]))
            for group in optimizer.param_groups:
                group["lr"] = rate
            sources = padded([pairs[index][0] + [EOS] for index in batch])
            targets = padded([[BOS] + pairs[index][1] + [EOS] for index in batch])
            decoded = model.decode(*model.encode(sources), targets[:, :-1])
            loss = F.cross_entropy(
                model.logits(decoded).flatten(0, 1),
                targets[:, 1:].flatten(),
                ignore_index=PAD,
                label_smoothing=config["smoothing"],
            )
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config["clip"])
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            state["tokens"] += sum(len(pairs[index][0]) + len(pairs[index][1]) + 2 for index in batch)
            state["step_in_epoch"] += 1
            if state["step"] % 100 == 0:
                print(f"step {state['step']}: loss {loss.item():.3f}", flush=True)
            if stop:
                break
        else:
            state["epoch"] += 1
            state["step_in_epoch"] = 0
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "state": state}
    torch.save(saved | {"random": torch.get_rng_state()}, checkpoint)
    (out / "state.json").write_text(json.dumps(state))


def translate(arguments, config, tokenizer):
    """Greedily, the sentences of a JSON array on standard input, to one on standard output."""
    model = Translator(config["model"]).eval()
    model.load_state_dict(torch.load(Path(arguments.out) / "checkpoint.pt")["model"])
    sentences = json.load(sys.stdin)
    longest = config["model"]["max_len"]
    encodings = tokenizer.encode_batch(sentences, add_special_tokens=False)
    sources = [encoding.ids for encoding in encodings]
    found = [""] * len(sources)
    # One that is too long counts as not translated.
    order = [index for index in range(len(sources)) if len(sources[index]) < longest]
    order.sort(key=lambda index: len(sources[index]))
    with torch.inference_mode():
        for start in range(0, len(order), BATCH):
            chunk = order[start : start + BATCH]
            states, padding = model.encode(padded([sources[index] + [EOS] for index in chunk]))
            limit = min(2 * len(sources[chunk[-1]]) + 20, longest)
            target = torch.full((len(chunk), 1), BOS)
            ended = torch.zeros(len(chunk), dtype=torch.bool)
            while target.shape[1] < limit and not ended.all():
                last = model.decode(states, padding, target)[:, -1]
                token = model.logits(last).argmax(-1).masked_fill(ended, PAD)
                ended |= token == EOS
                target = torch.cat([target, token[:, None]], dim=1)
            for index, row in zip(chunk, target.tolist()):
                found[index] = tokenizer.decode(row, skip_special_tokens=True).strip()
    json.dump(found, sys.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["train", "translate"])
    parser.add_argument("--run", required=True, help="a run of the translator, for its configuration and vocabulary")
    parser.add_argument("--out", required=True, help="the folder of this run")
    parser.add_argument("--data", help="the pairs to train on")
    arguments = parser.parse_args()
    with (Path(arguments.run) / "newest.checkpoint").open("rb") as file:
        header = json.loads(file.readline())
        # The first part behind the line.
        _, size = header["parts"][0]
        tokenizer = Tokenizer.from_str(file.read(size).decode())
    {"train": train, "translate": translate}[arguments.command](arguments, header["config"], tokenizer)


if __name__ == "__main__":
    main()
