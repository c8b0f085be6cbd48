// From a token to a vector: embedding and position.

import { answer, choice, figure, lengthOf, number, numberLines, place, rust, table } from "../draw.js";
import { known, word } from "../text.js";

export const embedScreen = {
  id: "embed",
  short: "embed",
  title: "Embedding and position",
  question: (view) => `How does the word “${view.query}” become numbers, and how does the model know where it stands?`,
  draw(view) {
    const { trace, side, token, state } = view;
    const [embedded, positions, input] = [`${side}.embedded`, `${side}.positions`, `${side}.0.input`];
    const size = trace.shape(embedded)[1];
    const at = view.place(size);
    const sum = state.positions
      ? [
          "At place ",
          String(at),
          ": ",
          number(trace, embedded, [token, at], 3),
          " + ",
          number(trace, positions, [token, at], 3),
          " = ",
          number(trace, input, [token, at], 3),
          ".",
        ]
      : [
          "Without positions, the embedding alone enters the first layer; at place ",
          String(at),
          " it is ",
          number(trace, input, [token, at], 3),
          ".",
        ];
    return [
      choice(
        "positions",
        "positions",
        [
          [true, "added"],
          [false, "left out"],
        ],
        state.positions,
        (isAdded) => view.set({ positions: isAdded }),
      ),
      place(view, size, "place"),
      figure("embed", {
        caption: [`“${view.query}”, token ${token} of its text, as ${size} numbers. `, ...sum],
        body: [
          numberLines(view, at, [
            [embedded, `E[id] · √${size}`],
            ...(state.positions ? [[positions, `P[${token}]`]] : []),
            [input, "input of layer 1"],
          ]),
        ],
        table: () => table(trace, embedded, [["embedded", [token]]]),
      }),
      rust([
        state.positions ? "absolute_position: AbsolutePosition::Sinusoidal" : "absolute_position: AbsolutePosition::None",
        !state.positions,
      ]),
      answer("embed", ...embedAnswer(view)),
    ];
  },
};

function embedAnswer(view) {
  const { trace, side, token, state } = view;
  const lengths = () => [
    "The embedding of ",
    word(view.query),
    " has the length ",
    lengthOf(trace, `${side}.embedded`, [token]),
    state.positions ? ["; its position adds a vector of the length ", lengthOf(trace, `${side}.positions`, [token])] : "",
    "; what enters the first layer has the length ",
    lengthOf(trace, `${side}.0.input`, [token]),
    ".",
  ];
  const order = () => {
    const [usual, without] = [view.other({ positions: true }), view.other({ positions: false })];
    return [
      `Without a mask, attention does not know the order of the tokens: with positions the model writes “${usual.text}”, without them “${without.text}”.`,
      usual.text === without.text ? " For this sentence the words alone are enough." : "",
    ];
  };
  return known(lengths, order);
}
