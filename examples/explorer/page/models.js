// The translators of the page, and their files once they are asked for.

import { json, open } from "./files.js";
import { Tokenizer } from "./tokenizer.js";
import { Model } from "./wasm.js";

export const MODELS = [
  {
    id: "story",
    name: "toy grammar",
    about:
      "The model: 615,808 parameters in 16 bits, trained on sentences that a toy grammar makes; BLEU 99.5 on 400 that it had not seen.",
  },
  {
    id: "everyday",
    name: "everyday English",
    about:
      "The model: 2,451,200 parameters, its matrices in 8 bits, trained on 136,139 sentence pairs of Tatoeba (CC BY 2.0 FR, through manythings.org/anki); BLEU 48.4 on 1,000 that it had not seen. Short, plain sentences suit it best.",
    sentences: [
      "The animal didn't cross the street because it was too tired.",
      "We waited for the train until midnight.",
      "Can you help me find the station?",
      "My brother has a red car.",
      "Her sister works in a small hospital.",
      "I would like a cup of coffee.",
    ],
    sure: 0.7,
  },
];

// For all of them: the bytes are fetched, and compiled, once.
let bytes = null;
let code = null;

/** Fetches what a model needs. Its `load` compiles it, which keeps all cores busy for a moment. */
export function download(id) {
  bytes ??= open("explorer.wasm.gz");
  const files = Promise.all([bytes, open(`${id}.model.gz`), json(`${id}.tokenizer.json.gz`)]);
  files.catch(() => {}); // said by `load`
  return {
    async load() {
      try {
        const [module, model, tokenizer] = await files;
        code ??= WebAssembly.compile(module);
        const downloaded = { module: await code, model };
        // Says what is wrong with a file that is no model, before its header is read here.
        const loaded = await Model.load(downloaded);
        return { downloaded, shape: shapeOf(model), model: loaded, tokenizer: new Tokenizer(tokenizer) };
      } catch (error) {
        [bytes, code] = [null, null]; // for another try
        throw error;
      }
    },
  };
}

/** Sizes of a model, which every trace agrees with: its file begins with a line of JSON. */
export function shapeOf(model) {
  const config = JSON.parse(new TextDecoder().decode(model.subarray(0, model.indexOf(10))));
  const { n_encoder_layers: encoder, n_decoder_layers: decoder, n_heads: heads, d_model, max_len } = config;
  return { encoder, decoder, heads, width: d_model / heads, positions: max_len - 1 };
}
