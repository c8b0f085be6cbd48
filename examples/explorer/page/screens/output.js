// The output projection mixes the heads, and the residual connection adds the result to what was there.

import { answer, bars, derived, figure, lengthOf, lines, number, numberLines, parameter, place, table } from "../draw.js";
import { norm, sum } from "../trace.js";
import { known, word } from "../text.js";

/** What the result is added to, and where the sum is. */
function residual({ side, layer, kind }) {
  const before = kind === "self" ? `${side}.${layer}.input` : `${side}.${layer}.after_self`;
  return [before, `${side}.${layer}.after_${kind}`];
}

export const outputScreen = {
  id: "output",
  short: "output",
  title: "Output projection and residual",
  question: (view) => `Each head wrote into its own ${view.width} numbers. Who mixes the heads, and where does the result go?`,
  draw(view) {
    const { trace, token } = view;
    const [before, after] = residual(view);
    const output = view.name("output");
    const size = trace.shape(output)[1];
    const at = view.place(size);
    return [
      place(view, size, "place"),
      view.orWaiting("What each head adds needs the weights of", () => heads(view, at)),
      figure("residual", {
        caption: [
          `At place ${at}: `,
          number(trace, before, [token, at], 3),
          " + ",
          number(trace, output, [token, at], 3),
          " = ",
          number(trace, after, [token, at], 3),
          ".",
        ],
        body: [
          numberLines(view, at, [
            [before, "before"],
            [output, "output of attention"],
            [after, "sum", true],
          ]),
        ],
        note: ["The sum goes on, through the other sublayers, to the next layer: attention adds to a token and never replaces it."],
        table: () => table(trace, output, [[view.query, [token]]]),
      }),
      answer("output", ...outputAnswer(view)),
    ];
  },
};

/** One number of the output, as what each head adds to it. */
function heads(view, column) {
  const { trace, token, width, prefix, state } = view;
  const merged = view.name("merged");
  const [weights, bias] = ["weight", "bias"].map((kind) => view.session.parameter(`${prefix}.output.${kind}`));
  const x = trace.row(merged, token);
  const [, columns] = weights.shape;
  const isCut = (head) => state.cut.includes(`${prefix}.${head}`);
  const products = (head) =>
    x
      .subarray(head * width, (head + 1) * width)
      .map((value, at) => (isCut(head) ? 0 : value * weights.data[(head * width + at) * columns + column]));
  const all = Array.from({ length: view.heads }, (_, head) => products(head));
  const reach = Math.max(...all.flatMap((row) => [...row].map(Math.abs))) || 1;
  const part = (head) =>
    derived(sum(all[head]), "head-part", [`${merged}@${token}`, `${prefix}.output.weight@${column}`, String(head)], 3);
  return figure("heads", {
    caption: [
      `Number ${column} of the output is the sum of what the heads add: `,
      ...all.flatMap((_, head) => [head > 0 ? " + " : "", part(head)]),
      " + bias ",
      parameter(bias.data[column], `${prefix}.output.bias`, [column]),
      " = ",
      number(trace, view.name("output"), [token, column], 3),
      ".",
    ],
    body: [
      lines(
        all.map((row, head) => [
          `head ${head + 1}${isCut(head) ? ", cut" : ""}`,
          bars(row, { scale: reach, label: `${width} products of head ${head + 1}` }),
          part(head),
          head === view.head,
        ]),
      ),
    ],
    note: [`W_O has ${view.heads * width} rows; rows ${view.head * width}…${(view.head + 1) * width - 1} belong to ${view.headName}.`],
  });
}

function outputAnswer(view) {
  const { trace, token } = view;
  const [before] = residual(view);
  const share = norm(trace.row(view.name("output"), token)) / norm(trace.row(before, token));
  return known(
    () => [
      "One more linear layer, W_O, mixes the heads: every number of its output is a sum over all of them. For ",
      word(view.query),
      " the output has the length ",
      lengthOf(trace, view.name("output"), [token]),
      ".",
    ],
    () => [
      "It is added to what was there, of the length ",
      lengthOf(trace, before, [token]),
      ": this attention changes ",
      word(view.query),
      " by ",
      derived(share * 100, "percent", [`${view.name("output")}@${token}`, `${before}@${token}`], 0),
      " % of its length.",
    ],
  );
}
