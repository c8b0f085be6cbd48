// The page's model in node: in WebAssembly, and the native program that answers the same requests.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { shapeOf } from "../page/models.js";
import { Tokenizer } from "../page/tokenizer.js";
import { Trace } from "../page/trace.js";
import { Model } from "../page/wasm.js";

export const PAGE = fileURLToPath(new URL("../page", import.meta.url));
export const here = (name) => fileURLToPath(new URL(name, import.meta.url));

const compressed = (name) => gunzipSync(readFileSync(join(PAGE, `${name}.gz`)));

/** What a session needs of a model; `make` makes it of its bytes. */
async function parts(id, make) {
  const bytes = compressed(`${id}.model`);
  return {
    id,
    shape: shapeOf(bytes),
    model: await make(bytes),
    tokenizer: new Tokenizer(JSON.parse(compressed(`${id}.tokenizer.json`))),
  };
}

/** The model as the page runs it. */
export const loadModel = (id) => parts(id, (model) => Model.load({ module: new WebAssembly.Module(compressed("explorer.wasm")), model }));

/** The same model in the native program. */
export const nativeModel = (id, program) => parts(id, () => new Native(id, program));

/** Answers as `Model` does. Every request is asked once. */
class Native {
  #answers = new Map();
  #ask;

  constructor(id, program) {
    const options = { maxBuffer: 2 ** 30, env: { ...process.env, BURN_DEVICE: "flex" } };
    this.#ask = (input) => execFileSync(program, ["answer", "--name", id, "--page", PAGE], { ...options, input }).toString();
  }

  #answer(request) {
    const line = JSON.stringify(request);
    if (!this.#answers.has(line)) this.#answers.set(line, JSON.parse(this.#ask(line)));
    const answer = this.#answers.get(line);
    if (answer.error) throw new Error(answer.error);
    return answer;
  }

  translate(source, switches = {}) {
    return this.#answer({ task: "translate", source, switches }).target;
  }

  trace(source, target, switches = {}) {
    return this.#tensors({ task: "trace", source, target, switches });
  }

  parameter(name) {
    return this.#tensors({ task: "parameter", name }).get(name);
  }

  #tensors(request) {
    const { tensors, numbers } = this.#answer(request);
    return new Trace(tensors, Float32Array.from(numbers));
  }
}
