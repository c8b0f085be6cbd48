// All heads, each cut in turn, in a worker that has a model of its own: the page stays quick.

import { workerOf } from "./files.js";
import { placeOf } from "./state.js";
import { Missing } from "./trace.js";

/** Every head of the model, by name. */
export function allHeads({ encoder, decoder, heads }) {
  const of = (stack, kind, layers) =>
    Array.from({ length: layers * heads }, (_, at) => `${stack}.${Math.floor(at / heads)}.${kind}.${at % heads}`);
  return [...of("encoder", "self", encoder), ...of("decoder", "self", decoder), ...of("decoder", "cross", decoder)];
}

const workers = new Map(); // by model
let calls = 0;

function modelWorker({ id, downloaded }) {
  if (!workers.has(id)) {
    const worker = workerOf("worker.js");
    // The next call gets another one.
    worker.addEventListener("error", () => {
      worker.terminate();
      workers.delete(id);
    });
    worker.postMessage({ load: downloaded });
    workers.set(id, worker);
  }
  return workers.get(id);
}

/** Cuts each head in turn, and hands on each result as it comes. */
export async function cutAll(session, show) {
  if (session.cuts) {
    session.cuts.forEach(show);
    return;
  }
  if (!session.downloaded) throw new Missing("this needs the model");
  const worker = modelWorker(session);
  calls += 1;
  const call = calls;
  const found = [];
  let failed = null;
  const texts = await new Promise((resolve, reject) => {
    failed = (event) => reject(new Error(event.message || "the worker does not start"));
    const listener = ({ data }) => {
      if (data.call < call) return;
      if (data.call > call) reject(new Error("another sentence takes its place"));
      else if (data.error) reject(new Error(data.error));
      else if (data.head) {
        const result = { head: data.head, text: session.decode(data.target), probability: data.probability };
        found.push(result);
        show(result);
        if (found.length < data.of) return;
        resolve(found);
      }
      worker.removeEventListener("message", listener);
    };
    worker.addEventListener("message", listener);
    worker.addEventListener("error", failed);
    const heads = allHeads(session.shape).map((head) => ({ head, cut: [placeOf(head)] }));
    worker.postMessage({ call, source: session.source, target: session.run({}).target, heads });
  }).finally(() => worker.removeEventListener("error", failed));
  session.cuts = texts;
}
