// One linear layer makes query, key and value; a number of it opens into its products.

import { answer, bars, derived, el, figure, grid, lengthOf, lines, number, parameter, place, strip, table } from "../draw.js";
import { sum } from "../trace.js";
import { known, role, word } from "../text.js";

/** The linear layers of an attention: their tensor, their parameter, whose rows they read, and the bands of their output. */
export function projections(view) {
  const { prefix, kind } = view;
  if (kind === "self")
    return [
      {
        tensor: `${prefix}.projected`,
        parameter: `${prefix}.query_key_value`,
        input: `${prefix}.normed`,
        bands: ["query", "key", "value"],
        of: "own",
      },
    ];
  return [
    { tensor: `${prefix}.projected_query`, parameter: `${prefix}.query`, input: `${prefix}.normed`, bands: ["query"], of: "own" },
    {
      tensor: `${prefix}.projected_memory`,
      parameter: `${prefix}.key_value`,
      input: "encoder.output",
      bands: ["key", "value"],
      of: "source",
    },
  ];
}

export const projectScreen = {
  id: "project",
  short: "linear layer",
  title: "One linear layer: query, key, value",
  question: (view) => `Where do the query, the key and the value of “${view.query}” come from?`,
  draw(view) {
    const all = projections(view);
    const size = all.reduce((wide, { tensor }) => wide + view.trace.shape(tensor)[1], 0);
    const at = view.place(size);
    let start = 0;
    const figures = all.map((layer) => {
      const [, wide] = view.trace.shape(layer.tensor);
      const picked = at >= start && at < start + wide ? at - start : -1;
      const before = start; // numbers of the layers before this one
      const drawn = bands(view, layer, before, picked);
      start += wide;
      const what = "The products of the opened number need the weights of";
      return [drawn, picked >= 0 && view.orWaiting(what, () => opened(view, layer, before, picked))];
    });
    return [place(view, size, "number"), ...figures.flat().filter(Boolean), answer("project", ...projectAnswer(view))];
  },
};

/** The row of the query token, and of the tokens around it, in bands. */
function bands(view, { tensor, bands: roles, of }, start, picked) {
  const { trace } = view;
  const [count, wide] = trace.shape(tensor);
  const width = wide / roles.length;
  const names = of === "source" ? view.sourceNames : view.isDecoder ? view.read : view.sourceNames;
  const own = of === "source" ? view.key() : view.token;
  const row = (token, weak) =>
    el(
      "div",
      { class: "bands" },
      roles.map((role, band) => {
        const inside = picked - band * width;
        return strip(trace, tensor, [token], {
          cut: [band * width, (band + 1) * width],
          role,
          weak,
          extent: width,
          picked: weak ? -1 : inside,
          pick: weak ? null : (chosen) => view.pickNumber(start + band * width + chosen),
          label: `${role} of ${names[token]}: ${width} numbers`,
        });
      }),
    );
  const near = [own - 1, own, own + 1].filter((token) => token >= 0 && token < count);
  return figure(`project-${roles.join("-")}`, {
    caption: [
      `The layer turns the ${view.heads * view.width} numbers of “${names[own]}” into ${wide}: `,
      ...roles.flatMap((role, band) => [
        band > 0 ? ", " : "",
        el("b", { class: `role-${role}` }, role),
        ` ${start + band * width}…${start + (band + 1) * width - 1}`,
      ]),
      ". The row begins with ",
      number(trace, tensor, [own, 0], 3),
      ".",
    ],
    body: [lines(near.map((token) => [names[token], row(token, token !== own), "", token === own]))],
    table: () =>
      table(
        trace,
        tensor,
        names.map((name, token) => [name, [token]]),
      ),
  });
}

/** One number as the sum of its products. */
function opened(view, { tensor, parameter: layer, input, of }, before, column) {
  const { trace } = view;
  const token = of === "source" ? view.key() : view.token;
  const name = of === "source" ? view.sourceNames[token] : view.query;
  const [weights, bias] = ["weight", "bias"].map((kind) => view.session.parameter(`${layer}.${kind}`));
  const x = trace.row(input, token);
  const [rows, columns] = weights.shape;
  const w = Float32Array.from({ length: rows }, (_, row) => weights.data[row * columns + column]);
  const products = x.map((value, row) => value * w[row]);
  return figure("products", {
    caption: [
      "Number ",
      String(before + column),
      " opened: Σ of ",
      String(rows),
      " products = ",
      derived(sum(products), "linear", [`${input}@${token}`, `${layer}.weight@${column}`], 3),
      ", plus the bias ",
      parameter(bias.data[column], `${layer}.bias`, [column]),
      ", is ",
      number(trace, tensor, [token, column], 3),
      ".",
    ],
    body: [
      lines([
        [`x, “${name}” normed`, strip(trace, input, [token], { label: `${rows} inputs` })],
        [`W, column ${column}`, bars(w, { label: `${rows} weights` })],
        ["x · W", bars(products, { label: `${rows} products` })],
      ]),
    ],
    table: () =>
      grid(
        "numbers",
        ["place", "x", "W", "x · W"],
        Array.from(x, (_, row) => [
          String(row),
          number(trace, input, [token, row], 4),
          parameter(w[row], `${layer}.weight`, [row, column], 4),
          derived(products[row], "weighted-input", [`${input}@${token}`, `${layer}.weight@${column}`, String(row)], 4),
        ]),
      ),
  });
}

function projectAnswer(view) {
  const { trace, head, token, columns, kind, width } = view;
  const key = view.key();
  const source =
    kind === "self"
      ? "one linear layer, applied to every token alike"
      : "two linear layers, one for the text that is written and one for the sentence that is read";
  return known(
    () => [
      "The ",
      role("query"),
      " says what ",
      word(view.query),
      " looks for, the ",
      role("key"),
      " says what a token offers to be found by, and the ",
      role("value"),
      ` is what it hands over when it is found. All three come from ${source}.`,
    ],
    () => [
      "In ",
      view.headName,
      ", the query of ",
      word(view.query),
      " meets the key of ",
      word(columns[key]),
      ` with the score `,
      number(trace, view.name("scores"), [head, token, key]),
      `, a sum of ${width} products; the value of `,
      word(columns[key]),
      " has the length ",
      lengthOf(trace, view.name("value"), [head, key]),
      ".",
    ],
  );
}
