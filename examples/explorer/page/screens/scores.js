// Scores: the products of a query with every key, and one of them opened into its products.

import { answer, bars, el, figure, grid, lengthOf, lines, matrixFigure, number, product, strip } from "../draw.js";
import { role, word } from "../text.js";

export const scoresScreen = {
  id: "scores",
  short: "scores",
  title: "Scores: query times key",
  question: (view) => `How does “${view.query}” find out which tokens matter to it?`,
  draw(view) {
    const { trace, head, token, columns } = view;
    const key = view.key();
    const name = view.name("scores");
    return [
      el(
        "div",
        { class: "beside" },
        matrixFigure("scores", view, name, {
          caption: [
            `“${view.query}” and “${columns[key]}”: q · k = `,
            number(trace, name, [head, token, key]),
            ". Choose a cell to open it.",
          ],
          note: view.mask ? ["Hatched scores are those that the mask of step 7 hides. "] : [],
          column: key,
          signed: true,
          digits: 1,
          hidden: view.mask,
          pick: view.pickCell,
        }),
        el("div", {}, opened(view, key), answer("scores", ...scoresAnswer(view))),
      ),
    ];
  },
};

function opened(view, key) {
  const { trace, head, token, columns, width } = view;
  const [query, keys] = [view.name("query"), view.name("key")];
  const q = trace.row(query, head, token);
  const k = trace.row(keys, head, key);
  const products = q.map((value, at) => value * k[at]);
  const places = Array.from({ length: width }, (_, at) => at);
  return figure("products", {
    caption: [
      `The ${width} products of “${view.query}” and “${columns[key]}” sum to `,
      number(trace, view.name("scores"), [head, token, key]),
      ". The largest by size is ",
      product(trace, [query, [head, token, largestOf(products)]], [keys, [head, key, largestOf(products)]]),
      `, at place ${largestOf(products)}.`,
    ],
    body: [
      lines([
        [el("b", { class: "role-query" }, `q ${view.query}`), strip(trace, query, [head, token], { role: "query" })],
        [el("b", { class: "role-key" }, `k ${columns[key]}`), strip(trace, keys, [head, key], { role: "key" })],
        ["q · k, place by place", bars(products, { label: `${width} products` })],
      ]),
    ],
    table: () =>
      grid(
        "numbers",
        [null, ...places],
        [
          ["q", ...places.map((at) => number(trace, query, [head, token, at], 4))],
          ["k", ...places.map((at) => number(trace, keys, [head, key, at], 4))],
          ["q · k", ...places.map((at) => product(trace, [query, [head, token, at]], [keys, [head, key, at]], 4))],
        ],
      ),
  });
}

const largestOf = (row) => row.reduce((best, value, at) => (Math.abs(value) > Math.abs(row[best]) ? at : best), 0);

function scoresAnswer(view) {
  const { trace, head, token, columns } = view;
  const name = view.name("scores");
  const ranked = view.ranked(name);
  const [best, worst] = [ranked[0], ranked.at(-1)];
  const score = (key) => [word(columns[key]), " with ", number(trace, name, [head, token, key])];
  const range =
    best === worst
      ? ["The only key that ", word(view.query), " may see is ", score(best), "."]
      : ["The best key for ", word(view.query), " is ", score(best), "; the worst is ", score(worst), "."];
  return [
    ["A score is the product of the ", role("query"), " with a ", role("key"), ", number by number, summed. ", range],
    [
      "It grows with how well the two vectors agree, and with how long they are: the query has the length ",
      lengthOf(trace, view.name("query"), [head, token]),
      ", the key of ",
      word(columns[best]),
      " ",
      lengthOf(trace, view.name("key"), [head, best]),
      ".",
    ],
  ];
}
