"""Models of `sentence-transformers`, and the vectors that it makes of texts.

Usage: python make_sentences.py [OUT_DIR]

The models have one transformer, that of ../models/bert, and one `tokenizer.json`, of words. What else a model has is in `models.json`: for each model
its files in JSON, the `vectors` of the texts, and which tensors in `dense.safetensors` the `model.safetensors` of a `dense` folder has.
Old schemas are those of version 5.1, written here; new ones are what the installed version (6.2) saves.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

OUT = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
BERT = Path(__file__).resolve().parent.parent / "models" / "bert"
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"a the cat dog bird mat sits runs on red far query text : Cat".split()]
TEXTS = ["a cat sits on the mat", "the Dog runs far", "red", "a dog on the red mat runs far on the mat"]
torch.manual_seed(17)
torch.set_num_threads(1)

tokenizer = Tokenizer(models.WordLevel({word: token for token, word in enumerate(WORDS)}, unk_token="[UNK]"))
tokenizer.add_special_tokens(WORDS[:4])
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)
tokenizer.save(str(OUT / "tokenizer.json"), pretty=False)
TOKENIZER_CONFIG = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}

OLD_FLAGS = {
    "cls": "pooling_mode_cls_token",
    "mean": "pooling_mode_mean_tokens",
    "max": "pooling_mode_max_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}


def old_pooling(*modes):
    flags = {flag: mode in modes for mode, flag in OLD_FLAGS.items()}
    return {"word_embedding_dimension": 12, **flags, "include_prompt": True}


def old_modules(*modules):
    """`modules.json` of (class, folder)."""
    return [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
        for i, (name, path) in enumerate([("Transformer", ""), *modules])
    ]


PLAIN = {"max_seq_length": None, "do_lower_case": False}
dense = {}


def dense_layer(name, inputs, outputs, bias=True):
    dense[f"{name}.linear.weight"] = torch.randn(outputs, inputs)
    if bias:
        dense[f"{name}.linear.bias"] = torch.randn(outputs)


def old_dense(inputs, outputs, activation, bias=True):
    return {"in_features": inputs, "out_features": outputs, "bias": bias, "activation_function": activation}


dense_layer("labse", 12, 12)
dense_layer("first", 24, 17, bias=False)
dense_layer("second", 17, 5)

# The files of each model beside its transformer; `dense` says which weights a folder has.
MODELS = {
    "mean": {
        "modules.json": old_modules(("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")),
        "1_Pooling/config.json": old_pooling("mean"),
        "sentence_bert_config.json": PLAIN,
    },
    "cls_not_normalized": {
        "modules.json": old_modules(("Pooling", "1_Pooling")),
        "1_Pooling/config.json": old_pooling("cls"),
        "sentence_bert_config.json": PLAIN,
    },
    "odd_folder": {
        "modules.json": old_modules(("Pooling", "head/Pool 7"), ("Normalize", "2_Normalize")),
        "head/Pool 7/config.json": old_pooling("max"),
        "sentence_bert_config.json": PLAIN,
    },
    "side_by_side": {
        "modules.json": old_modules(("Pooling", "1_Pooling")),
        "1_Pooling/config.json": old_pooling("lasttoken", "mean_sqrt_len_tokens", "cls"),
        "sentence_bert_config.json": PLAIN,
    },
    # Another order than that of the older schema.
    "list": {
        "modules.json": old_modules(("Pooling", "1_Pooling")),
        "1_Pooling/config.json": {"embedding_dimension": 12, "pooling_mode": ["weightedmean", "max"], "include_prompt": True},
        "sentence_bert_config.json": PLAIN,
    },
    "labse": {
        "modules.json": old_modules(("Pooling", "1_Pooling"), ("Dense", "2_Dense"), ("Normalize", "3_Normalize")),
        "1_Pooling/config.json": old_pooling("cls"),
        "2_Dense/config.json": old_dense(12, 12, "torch.nn.modules.activation.Tanh"),
        "dense": {"2_Dense": "labse"},
        "sentence_bert_config.json": PLAIN,
    },
    "two_dense": {
        "modules.json": old_modules(("Pooling", "1_Pooling"), ("Dense", "2_Dense"), ("Normalize", "3_Normalize"), ("Dense", "4_Dense")),
        "1_Pooling/config.json": old_pooling("cls", "mean"),
        "2_Dense/config.json": old_dense(24, 17, "torch.nn.modules.linear.Identity", bias=False),
        "4_Dense/config.json": old_dense(17, 5, "torch.nn.modules.activation.GELU"),
        "dense": {"2_Dense": "first", "4_Dense": "second"},
        "sentence_bert_config.json": PLAIN,
    },
    # The older limit counts, also where the tokenizer's is lower.
    "old_limit": {
        "modules.json": old_modules(("Pooling", "1_Pooling")),
        "1_Pooling/config.json": old_pooling("mean"),
        "sentence_bert_config.json": {"max_seq_length": 7, "do_lower_case": True},
        "tokenizer_config.json": {"model_max_length": 5},
    },
    "new_limit": {
        "modules.json": old_modules(("Pooling", "1_Pooling")),
        "1_Pooling/config.json": old_pooling("mean"),
        "sentence_bert_config.json": {"transformer_task": "feature-extraction", "do_lower_case": False},
        "tokenizer_config.json": {"model_max_length": 5, "truncation_side": "left"},
    },
    "other_name": {
        "modules.json": old_modules(("Pooling", "1_Pooling")),
        "1_Pooling/config.json": old_pooling("mean"),
        "sentence_albert_config.json": {"max_seq_length": 5, "do_lower_case": False},
    },
    "prompts": {
        "modules.json": old_modules(("Pooling", "1_Pooling")),
        "1_Pooling/config.json": old_pooling("mean"),
        "sentence_bert_config.json": PLAIN,
        "config_sentence_transformers.json": {
            "prompts": {"query": "query: ", "document": "text: ", "other": "a "},
            "default_prompt_name": "other",
            "similarity_fn_name": "cosine",
            "truncate_dim": 7,
        },
    },
    # As transformers saves it.
    "plain": {"tokenizer_config.json": {"model_max_length": 7}},
}


def write(folder, files):
    for file in [BERT / "config.json", BERT / "model.safetensors", OUT / "tokenizer.json"]:
        shutil.copy(file, folder)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == "dense":
            for below, of in content.items():
                tensors = {key.removeprefix(f"{of}."): value for key, value in dense.items() if key.startswith(f"{of}.")}
                save_file(tensors, folder / below / "model.safetensors")
        elif name != "vectors":
            path.write_text(json.dumps(content))


def vectors(model):
    found = {"text": model.encode(TEXTS)}
    if any(model.prompts.values()):
        found |= {"query": model.encode_query(TEXTS), "document": model.encode_document(TEXTS)}
    return {kind: rows.astype(float).round(8).tolist() for kind, rows in found.items()}


def read_back(folder):
    """What was saved, without the transformer and its tokenizer."""
    skipped = ["config.json", "tokenizer.json"]
    return {str(path.relative_to(folder)): json.loads(path.read_text()) for path in sorted(folder.rglob("*.json")) if str(path.relative_to(folder)) not in skipped}


for name, files in MODELS.items():
    files["tokenizer_config.json"] = TOKENIZER_CONFIG | files.get("tokenizer_config.json", {})
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        write(folder, files)
        files["vectors"] = vectors(SentenceTransformer(str(folder), device="cpu"))

# What the installed version saves itself.
with tempfile.TemporaryDirectory() as folder:
    folder = Path(folder)
    write(folder, {"tokenizer_config.json": TOKENIZER_CONFIG})
    module = Transformer(str(folder))
    module.max_seq_length = 6
    layer = Dense(12, 17, activation_function=torch.nn.ReLU())
    dense |= {f"saved.{key}": value.detach().clone() for key, value in layer.state_dict().items()}
    model = SentenceTransformer(modules=[module, Pooling(12, "cls"), layer, Normalize()], device="cpu")
    expected = vectors(model)
    model.save(str(folder / "saved"))
    files = read_back(folder / "saved")
    MODELS["saved"] = files | {"dense": {"2_Dense": "saved"}, "vectors": expected}
    again = vectors(SentenceTransformer(str(folder / "saved"), device="cpu"))
    assert again == expected

(OUT / "models.json").write_text(json.dumps({"texts": TEXTS, "models": MODELS}, separators=(",", ":")) + "\n")
save_file(dense, OUT / "dense.safetensors")
(OUT / "dense.safetensors").chmod(0o644)
