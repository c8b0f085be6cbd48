// Every number that the page shows, beside the native program's.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { STEPS, check, same, turn } from "./check.mjs";
import { collect, expectedOf, isRightBar, probabilityOf } from "./expected.mjs";
import { PAGE, here } from "./model.mjs";
import { MODELS } from "../page/models.js";
import { DEFAULTS, fromHash, switchesOf, toHash } from "../page/state.js";
import { modelSession } from "../page/session.js";
import { unpacked } from "../page/trace.js";

const TOLERANCE = 1e-4;
const EXAMPLE = "The old cat sleeps in the house.";

/** Sentences of the toy corpus that no training saw, with the ids and the translations of the native translator. */
export const sentences = readFileSync(here("sentences.tsv"), "utf8")
  .trim()
  .split("\n")
  .slice(1)
  .map((line) => {
    const [source, ids, target] = line.split("\t");
    return { source, ids: ids.split(" ").map(Number), target };
  });

export function tokens({ tokenizer }) {
  for (const { source, ids } of sentences) same(`ids of ${source}`, tokenizer.encode(source), ids);
  for (const { text, ids, labels, decoded } of JSON.parse(readFileSync(here("hostile.json"), "utf8"))) {
    same(`ids of ${JSON.stringify(text)}`, tokenizer.encode(text), ids);
    same(`labels of ${JSON.stringify(text)}`, tokenizer.labels(tokenizer.encode(text)), labels);
    const plain = decoded.replace(/^\p{White_Space}+|\p{White_Space}+$/gu, "").replace(/\p{Cc}/gu, " ");
    same(`text of ${JSON.stringify(text)}`, tokenizer.decode(ids), plain);
  }
}

/** A hash says all of a state, and nothing else comes of a bad one. */
export function hashes() {
  const states = [
    DEFAULTS,
    {
      ...DEFAULTS,
      step: "scale",
      text: "a & b = c # 100 % ☃ +",
      attention: "decoder.cross",
      layer: 0,
      head: 2,
      source: 3,
      target: 4,
      key: 1,
      number: 95,
      width: 512,
      scale: "tokens",
      causal: false,
      positions: false,
      cut: ["encoder.0.self.2", "decoder.1.cross.3"],
    },
    { ...DEFAULTS, text: "" },
  ];
  for (const state of states) same(`hash ${toHash(state)}`, fromHash(toHash(state)), { ...state, cut: [...state.cut] });
  same("a bad hash", fromHash("#layer=-1&head=x&attention=all&scale=1&cut=a.b&number=1e9&step=../x&causal=maybe&cut=encoder.0.cross.0"), {
    ...DEFAULTS,
    cut: [],
  });
}

export async function translations(page, base) {
  for (const { source, target } of sentences) {
    await turn(page, base, { text: source });
    same(`translation of ${source}`, await page.text("#translation"), target);
  }
}

/** The other model: what it is asked for, its numbers on every step, and what it says of a translation that it is not sure of. */
export async function everyday(page, base, native) {
  const model = "everyday";
  await turn(page, base, { model });
  await page.until(`document.querySelectorAll('[data-focus^="head-"]').length === 6`);
  for (const text of MODELS.find(({ id }) => id === model).sentences) {
    await turn(page, base, { model, text });
    const { text: target } = modelSession(text, native).run({});
    same(`translation of ${text}`, await page.text("#translation"), target);
  }
  const states = [
    { attention: "encoder.self", head: 5, number: 191 },
    { attention: "decoder.cross", layer: 0, head: 2, target: 3, number: 170 },
  ];
  for (const step of STEPS)
    for (const state of states) await numbers(page, base, native, { ...state, step, model, text: "My brother has a red car." });
  same("all its heads are cut", await page.run(`document.querySelectorAll("[data-head]").length`), 36);
  const honesty = () => page.text("#honesty");
  await turn(page, base, { model, text: "My brother has a red car." });
  same("a translation that it is sure of", await honesty(), "");
  await turn(page, base, { model, text: "Colourless green ideas sleep furiously." });
  check("a translation that it is not sure of", (await honesty()).includes("not sure"), await honesty());
  await page.run(`document.querySelector("#honesty button").click()`);
  await page.until(`document.querySelector('[data-focus="model-story"]').getAttribute("aria-pressed") === "true"`);
  same("a sentence of the toy grammar needs no warning", await honesty(), "");
}

/** The switches that cut a head, read from its name in another place than the page does. */
function without(head) {
  const [side, layer, attention, number] = head.split(".");
  return { cut: [{ side, layer: Number(layer), attention, head: Number(number) }] };
}

/** The example that is computed beforehand is what the model computes. */
export function example({ model, tokenizer, ...parts }) {
  const made = JSON.parse(readFileSync(join(PAGE, "story.json"), "utf8"));
  const session = modelSession(made.text, { model, tokenizer, ...parts });
  const run = session.run({});
  same("the shape of the example", made.shape, session.shape);
  same("the words of the example", [made.source, made.run.target, made.run.text], [session.source, run.target, run.text]);
  const stored = unpacked(made);
  for (const name of stored.names) {
    const [found, expected] = [stored.get(name).data, run.trace.get(name).data];
    const worst = found.reduce((most, value, at) => Math.max(most, Math.abs(value - expected[at])), 0);
    check(`${name} of the example`, found.length === expected.length && worst < 1e-4, `${worst}`);
  }
  made.run.likeliest.forEach((pairs, at) => {
    const row = run.trace.row("logits", at);
    const total = row.reduce((sum, logit) => sum + Math.exp(logit), 0);
    for (const [id, share] of pairs) check(`likeliest of the example at ${at}`, Math.abs(share - Math.exp(row[id]) / total) < TOLERANCE);
  });
  same("heads of the example", made.cuts.length, 24);
  for (const { head, text, probability } of made.cuts) {
    same(`the example without ${head}`, text, tokenizer.decode(model.translate(session.source, without(head))));
    const expected = probabilityOf(model.trace(session.source, run.target, without(head)), run.target);
    check(`its probability without ${head}`, Math.abs(probability - expected) < TOLERANCE);
  }
}

/** The questions of the guide's first seven chapters, and what answers them on the page: `#` is a number of the native program. */
const ANSWERS = [
  ["read", {}, ["“the” looks most at “house”: # of its attention"], [["encoder.1.self.weights", 3, 5, 6]]],
  [
    "project",
    {},
    ["The query says what “the” looks for", "the value is what it hands over", "with the score #"],
    [["encoder.1.self.scores", 3, 5, 6]],
  ],
  ["scores", {}, ["A score is the product of the query with a key", "“house” with #"], [["encoder.1.self.scores", 3, 5, 6]]],
  ["scale", {}, ["its size is √24: it grows with the width", "divided by √24, largest weight #"], [["encoder.1.self.weights", 3, 5, 6]]],
  [
    "mask",
    { attention: "decoder.self" },
    ["hides from each query the keys that come after it", "later tokens get #"],
    [["decoder.1.self.weights", 3, 2, 3]],
  ],
  ["sum", {}, ["is the sum of all values, each times its weight", "of which it takes #"], [["encoder.1.self.weights", 3, 5, 6]]],
  ["split", {}, ["288 = 3 × 4 × 24", "96 / 4 = 24"], []],
  ["merge", {}, ["change places (a transpose)", "4 × 24 = 96"], []],
  [
    "decode",
    { attention: "decoder.cross" },
    ["the query comes from the text that is written", "gives # to “old”"],
    [["decoder.1.cross.weights", 3, 2, 1]],
  ],
];

export async function answers(page, base, native) {
  const { trace } = modelSession(EXAMPLE, native).run({});
  for (const [step, state, said, at] of ANSWERS) {
    await turn(page, base, { ...state, step });
    const text = await page.text(`#answer-${step}`);
    const numbers = at.map(([name, ...index]) =>
      trace
        .at(name, ...index)
        .toFixed(2)
        .replace("-", "−"),
    );
    for (const part of said) {
      const meant = part.includes("#") ? part.replace("#", numbers.shift()) : part;
      check(`the answer of ${step}`, text.includes(meant), `“${meant}” is not in “${text}”`);
    }
  }
}

export let compared = 0;
async function numbers(page, base, native, state) {
  await turn(page, base, state);
  const step = state.step ?? "read";
  if (step === "cut") await page.until(`document.querySelector("#cut-answer").hasChildNodes()`);
  const name = toHash({ ...DEFAULTS, ...state });
  const found = await page.run(`(${collect})()`);
  const full = { ...DEFAULTS, ...state };
  const session = modelSession(full.text ?? EXAMPLE, native);
  const usual = session.run(switchesOf(full, session.source.length));
  const cutOf = (head) => {
    const { target, trace } = session.run({});
    if (head === "") return probabilityOf(trace, target);
    return probabilityOf(native.model.trace(session.source, target, without(head)), target);
  };
  const wrong = [];
  for (const number of found.numbers) {
    const run = number.switches ? session.run(JSON.parse(number.switches)) : usual;
    if (number.target && number.target !== run.target.join()) wrong.push(`${number.tensor} is of another translation`);
    let expected;
    try {
      expected = expectedOf({ ...number, run, parameterOf: session.parameter, cutOf });
    } catch (error) {
      wrong.push(`${JSON.stringify(number)}: ${error.message}`);
      continue;
    }
    const close = TOLERANCE * Math.max(1, Math.abs(expected));
    if (!(Math.abs(number.value - expected) <= close)) wrong.push(`${JSON.stringify(number)} should be ${expected}`);
    if (number.text !== null) {
      const text = number.text.replace("−", "-");
      const digits = text.split(".")[1]?.length ?? 0;
      if (!(Math.abs(Number(text) - expected) <= 0.5 * 10 ** -digits + close)) wrong.push(`“${number.text}” should be ${expected}`);
    }
  }
  // Those of products too, which are in no tensor.
  for (const bar of found.bars) if (!isRightBar(bar)) wrong.push(`this bar is wrong: ${JSON.stringify(bar)}`);
  compared += found.numbers.length;
  check(
    `numbers of ${name}`,
    wrong.length === 0 && found.numbers.length > 0,
    `${wrong.length} of ${found.numbers.length}; ${wrong.slice(0, 3).join("; ")}`,
  );
  check(`every number of ${name} says where it is from`, found.strangers.length === 0, found.strangers.slice(0, 3).join(" | "));
  check(`${name} answers`, (await page.run(`document.querySelector("#answer-${step}")?.textContent.length ?? 0`)) > 60);
}

export async function allNumbers(page, base, native) {
  for (const step of STEPS) {
    await numbers(page, base, native, { step });
    await numbers(page, base, native, {
      step,
      attention: "decoder.self",
      layer: 0,
      head: 1,
      target: 3,
      number: 7,
      text: "Her grandmother closed the yellow window.",
    });
    // A query that sees one token.
    await numbers(page, base, native, { step, attention: "decoder.self", target: 0 });
    await numbers(page, base, native, { step, attention: "decoder.cross", layer: 1, head: 0, target: 1, number: 100, key: 0 });
  }
  await numbers(page, base, native, { step: "output", cut: ["encoder.1.self.3"], number: 5 });
  await numbers(page, base, native, { step: "softmax", scale: "tokens" });
  await numbers(page, base, native, { step: "embed", positions: false });
  await numbers(page, base, native, { step: "read", causal: false, attention: "decoder.self" });
  await numbers(page, base, native, { step: "scores", text: "Zebras 🙂 שלום don't translate ½ of THIS!", source: 2 });
}
