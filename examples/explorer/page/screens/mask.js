// The causal mask: what it hides, and what changes without it.

import { answer, choice, derived, el, figure, matrix, matrixTable, number, ofRun, rowsNote, rust } from "../draw.js";
import { Missing, sum } from "../trace.js";
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
      hidden(view),
      el("div", { class: "columns" }, compared(view, true, "Weights with the mask"), compared(view, false, "Weights without it")),
      answer("mask", ...maskAnswer(view)),
    ];
  },
};

/** The mask itself: 1 is hidden. */
function hidden(view) {
  const { rows, columns, token, head } = view;
  return guarded(view, () => {
    const run = view.other({ causal: true });
    const { trace } = run;
    const name = view.name("hidden.causal");
    const count = trace.row(name, head, token).reduce((all, cell) => all + cell, 0);
    return ofRun(
      run,
      figure("mask", {
        caption: [
          `“${view.query}” may look at ${columns.length - count} of ${columns.length} tokens: itself and what stands before it. `,
          ...(token + 1 < columns.length
            ? ["The cell of the next token is ", number(trace, name, [head, token, token + 1], 0), ", hidden."]
            : ["It is the last token, from which nothing is hidden: the first cell is ", number(trace, name, [head, token, 0], 0), "."]),
        ],
        body: [matrix(trace, name, head, { rows, columns, row: token, column: -1, hidden: name, digits: 0 })],
        note: ["1 is hidden, 0 is visible. ", ...(rowsNote(rows.length) ?? [])],
        table: () => matrixTable(trace, name, head, rows, columns),
      }),
    );
  });
}

function compared(view, causal, title) {
  const { rows, columns, token, head } = view;
  return guarded(view, () => {
    const run = view.other({ causal });
    const { trace } = run;
    const [name, mask] = [view.name("weights"), view.name("hidden.causal")];
    const later = trace
      .row(name, head, token)
      .slice(token + 1)
      .reduce((all, weight) => all + weight, 0);
    return ofRun(
      run,
      el("h3", {}, title),
      figure(causal ? "mask-on" : "mask-off", {
        caption: [
          `“${view.query}” gives itself `,
          number(trace, name, [head, token, token]),
          " and later tokens ",
          el("data", { value: later, "data-derived": "later", "data-from": `${name}@${head},${token}` }, later.toFixed(2)),
          ".",
        ],
        body: [matrix(trace, name, head, { rows, columns, row: token, column: -1, hidden: trace.has(mask) ? mask : null, bare: true })],
        table: () => matrixTable(trace, name, head, rows, columns),
      }),
    );
  });
}

function guarded(view, draw) {
  try {
    return draw();
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    return view.waiting("This needs");
  }
}

function maskAnswer(view) {
  const { head, token, columns } = view;
  const name = view.name("weights");
  const later = (run) => {
    const row = run.trace.row(name, head, token);
    return el(
      "span",
      { "data-switches": JSON.stringify(run.switches), "data-target": run.target.join() },
      derived(sum(row.slice(token + 1)), "later", [`${name}@${head},${token}`]),
    );
  };
  return known(
    () => [
      "The mask hides from each query the keys that come after it: ",
      word(view.query),
      ` sees ${token + 1} of ${columns.length} tokens. A hidden score counts as −∞, so its weight is 0 and the others still sum to 1.`,
    ],
    () => [
      "With the mask, later tokens get ",
      later(view.other({ causal: true })),
      " of its attention; without it they get ",
      later(view.other({ causal: false })),
      ", although they are not written yet when the model translates. A model that could look at the answer would learn to copy it.",
    ],
  );
}
