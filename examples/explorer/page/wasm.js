// The model in WebAssembly: requests in JSON go in, JSON and numbers come out. Runs in a page, in a worker and in node.

import { Trace } from "./trace.js";

/** A model that is loaded. */
export class Model {
  #exports;
  #broken = null;

  /** Instantiates the module and loads the bytes of a model. Throws a sentence about what is wrong. */
  static async load({ module, model }) {
    const loaded = new Model();
    let memory = null;
    const imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      imports[from] ??= {};
      // Initial parameters, which the saved ones replace, are drawn from the browser's generator. Nothing else is ever called.
      imports[from][name] = name.includes("getRandomValues")
        ? (place, length) => crypto.getRandomValues(new Uint8Array(memory.buffer, place, length))
        : () => {
            throw new Error(`the module calls ${name}, which this page does not have`);
          };
    }
    loaded.#exports = (await WebAssembly.instantiate(module, imports)).exports;
    memory = loaded.#exports.memory;
    loaded.#call("load", model);
    return loaded;
  }

  /** The greedy translation of token ids that end in <eos>, as ids. */
  translate(source, switches = {}) {
    return this.#request({ task: "translate", source, switches }).target;
  }

  /** Every step of the computation; `target` is what the decoder reads. */
  trace(source, target, switches = {}) {
    return this.#tensors({ task: "trace", source, target, switches });
  }

  /** A parameter by its name. */
  parameter(name) {
    return this.#tensors({ task: "parameter", name }).get(name);
  }

  #tensors(request) {
    const { tensors = [] } = this.#request(request);
    const { memory, numbers, numbers_length: length } = this.#exports;
    // Copied: the next call overwrites them.
    return new Trace(tensors, new Float32Array(memory.buffer, numbers(), length()).slice());
  }

  #request(request) {
    return JSON.parse(this.#call("run", new TextEncoder().encode(JSON.stringify(request))));
  }

  #call(name, input) {
    if (this.#broken) throw new Error(this.#broken);
    const exports = this.#exports;
    const text = () => new TextDecoder().decode(new Uint8Array(exports.memory.buffer, exports.text(), exports.text_length()));
    let isAnswered;
    try {
      const place = exports.allocate(input.length);
      new Uint8Array(exports.memory.buffer, place, input.length).set(input);
      isAnswered = exports[name]();
    } catch (error) {
      // A panic ends the module. It leaves its sentence as the text.
      this.#broken = `the model stopped: ${error instanceof WebAssembly.RuntimeError ? text() || error.message : error.message}`;
      throw new Error(this.#broken);
    }
    if (!isAnswered) throw new Error(text());
    return text();
  }
}
