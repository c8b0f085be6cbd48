"""Small models with heads as Hugging Face's transformers saves them, and what they compute.

Usage: python3 make_heads.py

Needs torch and transformers.
"""

import json
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForQuestionAnswering, BertForSequenceClassification

OUT = Path(__file__).resolve().parent / "heads"
# The tokenizer of `small.rs` has as many tokens.
CONFIG = {
    "vocab_size": 17,
    "hidden_size": 24,
    "num_attention_heads": 3,
    "num_hidden_layers": 2,
    "intermediate_size": 31,
    "max_position_embeddings": 13,
}
TOKENS = [[3, 5, 6, 1, 13, 7, 8, 9, 12, 1], [3, 16, 1, 4, 10, 1, 0, 0, 0, 0]]
SEGMENTS = [[0, 0, 0, 0, 1, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 0, 0, 0, 0]]
MASK = [[int(token != 0) for token in row] for row in TOKENS]


def save(model, name):
    model.save_pretrained(OUT / name)
    # As large numbers as those of a trained model, in few bytes.
    path = OUT / name / "model.safetensors"
    tensors = {key: (10 * value).half().float() for key, value in load_file(path).items()}
    save_file({key: value.half() for key, value in tensors.items()}, path, {"format": "pt"})
    model.load_state_dict(tensors)


def main():
    torch.manual_seed(1)
    inputs = {
        "input_ids": torch.tensor(TOKENS),
        "token_type_ids": torch.tensor(SEGMENTS),
        "attention_mask": torch.tensor(MASK),
    }
    reader = BertForQuestionAnswering(BertConfig(**CONFIG)).eval()
    save(reader, "reader")
    scorer = BertForSequenceClassification(BertConfig(**CONFIG, num_labels=1)).eval()
    save(scorer, "scorer")
    with torch.no_grad():
        answers = reader.double()(**inputs)
        scores = scorer.double()(**inputs).logits[:, 0]
    made = {
        "tokens": TOKENS,
        "segments": SEGMENTS,
        "starts": answers.start_logits.tolist(),
        "ends": answers.end_logits.tolist(),
        "scores": scores.tolist(),
    }
    (OUT / "computed.json").write_text(json.dumps(made) + "\n")


if __name__ == "__main__":
    main()
