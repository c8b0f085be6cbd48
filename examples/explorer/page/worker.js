// Translates a sentence once for each head that is cut, beside the page.

import { probabilityOf } from "./trace.js";
import { Model } from "./wasm.js";

let model = null;
let newest = 0;

const pause = () =>
  new Promise((resolve) => {
    setTimeout(resolve, 0);
  });

addEventListener("message", async ({ data }) => {
  if (data.load) {
    model = Model.load(data.load);
    model.catch(() => {}); // said with the first answer
    return;
  }
  const { call, source, target, heads } = data;
  newest = call;
  try {
    const loaded = await model;
    for (const { head, cut } of heads) {
      const probability = probabilityOf(loaded.trace(source, target, { cut }), target);
      postMessage({ call, head, of: heads.length, target: loaded.translate(source, { cut }), probability });
      await pause(); // a newer call takes the place of this one
      if (newest !== call) return;
    }
  } catch (error) {
    postMessage({ call, error: error.message });
  }
});
