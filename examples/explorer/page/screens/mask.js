// The causal mask: what it hides, and what changes without it.

import { answer, choice, derived, el, matrixFigure, number, ofRun, rust, saidOfRun } from "../draw.js";
import { sum } from "../trace.js";
import { known, word } from "../text.js";

export const maskScreen = {
  id: "mask",
  short: "mask",
  title: "The mask",
  // The sentence has no padding and may be read in both directions: only the decoder's self-attention hides anything.
  fixed: () => "decoder.self",
  question: (view) =>
    `In training, and in this trace, all words of the translation are computed at once. What keeps “${view.rows[view.token]}” from looking at words that are not written yet?`,
  draw(view) {
    const { state } = view;
    const guarded = (draw) => view.orWaiting("This needs", draw);
    return [
      choice(
        "causal mask",
        "causal",
        [
          [true, "on (trained)"],
          [false, "off"],
        ],
        state.causal,
        (causal) => view.set({ causal }),
      ),
      rust([`layer.self_attention.causal = ${state.causal};`, !state.causal]),
      el(
        "p",
        {},
        "The encoder and cross-attention hide nothing here: a sentence alone in its batch has no padding, and all of it may be read.",
      ),
      guarded(() => hidden(view)),
      el(
        "div",
        { class: "columns" },
        guarded(() => compared(view, true, "Weights with the mask")),
        guarded(() => compared(view, false, "Weights without it")),
      ),
      answer("mask", ...maskAnswer(view)),
    ];
  },
};

/** The mask itself: 1 is hidden. */
function hidden(view) {
  const { columns, token, head } = view;
  const run = view.other({ causal: true });
  const { trace } = run;
  const name = view.name("hidden.causal");
  const count = sum(trace.row(name, head, token));
  return ofRun(
    run,
    matrixFigure("mask", view, name, {
      caption: [
        `“${view.query}” may look at ${columns.length - count} of ${columns.length} tokens: itself and what stands before it. `,
        ...(token + 1 < columns.length
          ? ["The cell of the next token is ", number(trace, name, [head, token, token + 1], 0), ", hidden."]
          : ["It is the last token, from which nothing is hidden: the first cell is ", number(trace, name, [head, token, 0], 0), "."]),
      ],
      note: ["1 is hidden, 0 is visible. "],
      trace,
      hidden: name,
      digits: 0,
    }),
  );
}

function compared(view, causal, title) {
  const { token, head } = view;
  const run = view.other({ causal });
  const { trace } = run;
  const [name, mask] = [view.name("weights"), view.name("hidden.causal")];
  return ofRun(
    run,
    el("h3", {}, title),
    matrixFigure(causal ? "mask-on" : "mask-off", view, name, {
      caption: [
        `“${view.query}” gives itself `,
        number(trace, name, [head, token, token]),
        " and later tokens ",
        later(view, run),
        ".",
      ],
      trace,
      hidden: trace.has(mask) ? mask : null,
      bare: true,
    }),
  );
}

/** What a run gives to the tokens after the query token. */
function later(view, { trace }) {
  const [name, at] = [view.name("weights"), [view.head, view.token]];
  return derived(sum(trace.row(name, ...at).slice(view.token + 1)), "later", [`${name}@${at}`]);
}

function maskAnswer(view) {
  const { token, columns } = view;
  const said = (causal) => {
    const run = view.other({ causal });
    return saidOfRun(run, later(view, run));
  };
  return known(
    () => [
      "The mask hides from each query the keys that come after it: ",
      word(view.query),
      ` sees ${token + 1} of ${columns.length} tokens. A hidden score counts as −∞, so its weight is 0 and the others still sum to 1.`,
    ],
    () => [
      "With the mask, later tokens get ",
      said(true),
      " of its attention; without it they get ",
      said(false),
      ", although they are not written yet when the model translates. A model that could look at the answer would learn to copy it.",
    ],
  );
}
