// Makes page/story.json: what the page shows of its example before the model is loaded. Run it again with every new model:
// node examples/explorer/tests/make_story.mjs

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { PAGE, loadModel } from "./model.mjs";
import { likeliestOf, probabilityOf, unpacked } from "../page/trace.js";
import { modelSession } from "../page/session.js";
import { allHeads } from "../page/cuts.js";
import { DEFAULTS, placeOf } from "../page/state.js";

const TEXT = "The old cat sleeps in the house.";
const MOST = 60_000; // bytes of the file

const parts = await loadModel("story");
const { model, tokenizer } = parts;
const session = modelSession(TEXT, parts);
const run = session.run({});
const { trace } = run;
const own = `encoder.${DEFAULTS.layer}`; // the layer that a page without an address shows
const isKept = (name) =>
  name === "encoder.embedded" ||
  name === "encoder.positions" ||
  name === "encoder.0.input" ||
  name === `${own}.input` ||
  (name.startsWith(`${own}.self.`) && !/\.(query|key|value|hidden\.padding)$/.test(name)) ||
  name === `${own}.after_self` ||
  /^decoder\.\d\.(self|cross)\.(weights|hidden\.causal)$/.test(name);

const { heads, width } = session.shape;
const tensors = [];
const bytes = [];
for (const name of trace.names.filter(isKept)) {
  const { shape, data } = trace.get(name);
  const step = data.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / (2 ** 23 - 1) || 1;
  tensors.push({ name, shape, offset: bytes.length / 3, step });
  for (const value of data) {
    const whole = Math.round(value / step);
    bytes.push(whole & 255, (whole >> 8) & 255, (whole >> 16) & 255);
  }
}
const copy = (name, band) => ({ name: `${own}.self.${name}`, of: `${own}.self.projected`, start: band * heads * width, heads, width });
const copies = [copy("query", 0), copy("key", 1), copy("value", 2)];
const cuts = allHeads(session.shape).map((head) => {
  const cut = [placeOf(head)];
  const probability = Number(probabilityOf(model.trace(session.source, run.target, { cut }), run.target).toPrecision(6));
  return { head, text: tokenizer.decode(model.translate(session.source, { cut })), probability };
});
const likeliest = run.target.map((_, at) =>
  likeliestOf(trace.row("logits", at), 5).map(([id, share]) => [id, Number(share.toPrecision(6))]),
);
const ids = [...new Set([...session.source, ...run.target, ...likeliest.flat().map(([id]) => id)])];
const story = {
  text: TEXT,
  shape: session.shape,
  source: session.source,
  labels: ids.map((id) => [id, tokenizer.labels([id])[0]]),
  run: { target: run.target, text: run.text, isEnded: run.isEnded, probability: Number(run.probability.toPrecision(6)), likeliest },
  cuts,
  tensors,
  copies,
  numbers: Buffer.from(bytes).toString("base64"),
};
// What is read back is what the model computed.
const back = unpacked(story);
for (const name of back.names) {
  const [made, meant] = [back.get(name).data, trace.get(name).data];
  if (made.length !== meant.length || made.some((value, at) => !(Math.abs(value - meant[at]) <= 1e-5)))
    throw new Error(`${name} is not read back`);
}
const text = JSON.stringify(story);
if (text.length > MOST) throw new Error(`story.json would have ${text.length} bytes, more than ${MOST}`);
writeFileSync(join(PAGE, "story.json"), text);
console.log(`story.json: ${text.length} bytes, ${bytes.length / 3} numbers, “${run.text}”`);
