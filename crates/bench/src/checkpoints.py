"""Writes the checkpoints that the suite `models` needs, of random numbers, as Hugging Face's transformers does.

    python3 checkpoints.py FOLDER

Each is a folder in FOLDER; what is there stays.
"""

import os
import shutil
import sys

import torch
import transformers
from transformers import BertConfig, BertModel, LlamaConfig, LlamaForCausalLM
from transformers import T5Config, T5ForConditionalGeneration

MODELS = {
    # all-MiniLM-L6-v2, 22.7 M parameters.
    "minilm": (
        BertModel,
        BertConfig(
            vocab_size=30522,
            hidden_size=384,
            num_hidden_layers=6,
            num_attention_heads=12,
            intermediate_size=1536,
        ),
    ),
    # 125 M parameters.
    "llama": (
        LlamaForCausalLM,
        LlamaConfig(
            vocab_size=32000,
            hidden_size=768,
            intermediate_size=2048,
            num_hidden_layers=12,
            num_attention_heads=12,
            num_key_value_heads=4,
            max_position_embeddings=1024,
        ),
    ),
    # flan-t5-small, 77 M parameters.
    "t5": (
        T5ForConditionalGeneration,
        T5Config(
            vocab_size=32128,
            d_model=512,
            d_kv=64,
            d_ff=1024,
            num_layers=8,
            num_decoder_layers=8,
            num_heads=6,
            feed_forward_proj="gated-gelu",
            tie_word_embeddings=False,
            decoder_start_token_id=0,
        ),
    ),
}

transformers.utils.logging.disable_progress_bar()
for name, (model, config) in MODELS.items():
    folder = os.path.join(sys.argv[1], name)
    if os.path.exists(folder):
        continue
    torch.manual_seed(0)
    # Under another name until it is whole.
    unfinished = f"{folder}.part"
    shutil.rmtree(unfinished, ignore_errors=True)
    model(config).eval().save_pretrained(unfinished)
    os.rename(unfinished, folder)
