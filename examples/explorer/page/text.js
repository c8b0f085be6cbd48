// The sentences that answer a screen's question, made of the model's numbers.

import { el, number } from "./draw.js";
import { Missing } from "./trace.js";

export const word = (text) => el("b", { class: "word", dir: "auto" }, `“${text}”`);
export const role = (name, text = name) => el("b", { class: `role-${name}` }, text);

/** A part of an answer that may need what is not computed yet. */
function ifKnown(make) {
  try {
    return make();
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    return null;
  }
}
export const known = (...makers) => makers.map(ifKnown).filter((sentence) => sentence !== null);

/** What the query token gives to its two strongest keys. */
export function rowSentence(view) {
  const { trace, head, token, columns } = view;
  const name = view.name("weights");
  const [first, second] = view.ranked(name);
  const rest = second === undefined ? "" : [" and ", number(trace, name, [head, token, second]), " to ", word(columns[second])];
  return [
    "In ",
    view.where,
    ", ",
    word(view.query),
    " gives ",
    number(trace, name, [head, token, first]),
    " of its attention to ",
    word(columns[first]),
    rest,
    ".",
  ];
}
