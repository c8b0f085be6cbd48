// What looks at what: the weights of one head, as a matrix.

import { answer, derived, el, matrixFigure, number } from "../draw.js";
import { largest } from "../trace.js";
import { known, rowSentence, word } from "../text.js";
import { headInWords } from "../view.js";

export const readScreen = {
  id: "read",
  short: "what looks at what",
  title: "What looks at what",
  question: (view) => `Every token gathers information from other tokens. What does “${view.rows[view.token]}” look at, and how much?`,
  draw(view) {
    return [
      el(
        "div",
        { class: "beside" },
        matrixFigure("weights", view, view.name("weights"), {
          caption: rowSentence(view),
          note: [
            "A row is a query, the token that looks; a column is a key, a token that is looked at; the number is the weight. Each row sums to 1. ",
            ...(view.isDecoder ? ["A row named “gato ⇒ viejo” has just read gato and is at work on viejo. "] : []),
          ],
          column: view.key(),
          hidden: view.mask,
          bare: true,
          pick: view.pickCell,
        }),
        answer("read", ...readAnswer(view)),
      ),
    ];
  },
};

function readAnswer(view) {
  const { trace, head, token, columns, kind } = view;
  const name = view.name("weights");
  const own = () => [
    "It also looks at itself: ",
    number(trace, name, [head, token, token]),
    " of its attention stays with ",
    word(view.query),
    ".",
  ];
  const cross = () => {
    const { layer, run } = view;
    const at = Math.min(view.state.target, run.target.length - 1);
    const weights = `decoder.${layer}.cross.weights`;
    const best = largest(trace.row(weights, head, at));
    return [
      "And while the decoder writes ",
      word(view.written[at]),
      `, ${headInWords(`decoder.${layer}.cross.${head}`)} gives `,
      number(trace, weights, [head, at, best]),
      " to ",
      word(view.sourceNames[best]),
      ".",
    ];
  };
  return known(
    () => [
      word(view.query),
      " looks most at ",
      word(columns[view.strongest()]),
      ": ",
      number(trace, name, [head, token, view.strongest()]),
      " of its attention, where an even look at the ",
      String(view.ranked(name).length),
      " tokens that it may see would give each ",
      derived(1 / view.ranked(name).length, "even", [
        `${name}@${[head, token].join()}`,
        view.mask ? `${view.mask}@${[head, token].join()}` : "",
      ]),
      ".",
    ],
    ...(kind === "self" && view.strongest() !== token ? [own] : []),
    ...(view.isDecoder ? [] : [cross]),
  );
}
