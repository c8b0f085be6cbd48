// The whole state of the page, and how an address holds it: every picture has a link.

import { MODELS } from "./models.js";

const ATTENTIONS = ["encoder.self", "decoder.self", "decoder.cross"];
const SCALES = ["trained", "none", "tokens"];

/** The configuration that a model was trained in; `cut` has heads, as encoder.0.self.2. */
export const TRAINED = Object.freeze({ scale: "trained", causal: true, positions: true, cut: Object.freeze([]) });

/** What a page without an address shows. `text` and `key` are chosen by the page where they are null. */
export const DEFAULTS = Object.freeze({
  step: "read",
  model: "story",
  text: null, // the example's
  attention: "encoder.self",
  layer: 1,
  head: 3,
  source: 5, // the query token in the sentence
  target: 2, // the query token in the translation
  key: null, // the opened cell of the scores: the strongest
  number: 0, // the opened place in a vector
  width: 24, // of the random vectors
  ...TRAINED,
  frame: false, // one step alone, as a figure of another page
});

const NAMES = Object.keys(DEFAULTS);
const HEAD = /^(encoder\.\d{1,2}\.self|decoder\.\d{1,2}\.(self|cross))\.\d{1,2}$/;
const MOST_TEXT = 1000; // characters of a sentence

/** The state as the part of an address behind `#`. Only the step and what differs from the defaults is said: a link to `#` would jump. */
export function toHash(state) {
  const said = new URLSearchParams();
  for (const name of NAMES) {
    const [value, usual] = [state[name], DEFAULTS[name]];
    if (name === "step" || (name === "cut" ? value.length > 0 : value !== usual))
      said.set(name, name === "cut" ? value.join(" ") : String(value));
  }
  return `#${said}`;
}

/** The state that an address says. Whatever it says wrong is as if it was not said. */
export function fromHash(hash) {
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const state = { ...DEFAULTS };
  for (const name of NAMES) {
    const value = said.get(name);
    const read = value === null ? undefined : READERS[name](value);
    if (read !== undefined) state[name] = read;
  }
  return state;
}

const whole = (value) => (/^\d{1,4}$/.test(value) ? Number(value) : undefined);
const oneOf = (values) => (value) => (values.includes(value) ? value : undefined);
const truth = (value) => ({ true: true, false: false })[value];
const READERS = {
  step: (value) => (/^[a-z]+$/.test(value) ? value : undefined),
  model: oneOf(MODELS.map(({ id }) => id)),
  text: (value) => value.slice(0, MOST_TEXT),
  attention: oneOf(ATTENTIONS),
  layer: whole,
  head: whole,
  source: whole,
  target: whole,
  key: whole,
  number: whole,
  width: whole,
  scale: oneOf(SCALES),
  causal: truth,
  positions: truth,
  frame: truth,
  cut: (value) => {
    const heads = value.split(" ");
    return heads.every((head) => HEAD.test(head)) ? [...new Set(heads)] : undefined;
  },
};

/** A head, as requests say it. */
export const placeOf = (head) => {
  const [side, layer, attention, number] = head.split(".");
  return { side, layer: Number(layer), attention, head: Number(number) };
};

/** What the model is asked to do differently. `tokens` is the length of the sentence. */
export function switchesOf({ scale, causal, positions, cut }, tokens) {
  const switches = {};
  if (scale === "none") switches.scale = 1;
  if (scale === "tokens") switches.scale = 1 / Math.sqrt(tokens);
  if (!causal) switches.causal = false;
  if (!positions) switches.positions = false;
  if (cut.length > 0) switches.cut = cut.map(placeOf);
  return switches;
}
