// The weighted sum of the values.

import { answer, bars, derived, el, figure, lengthOf, lines, number, place, strip, table } from "../draw.js";
import { role, word } from "../text.js";

export const sumScreen = {
  id: "sum",
  short: "sum",
  title: "The weighted sum of the values",
  question: (view) => `What does “${view.query}” get from the tokens that it looks at?`,
  draw(view) {
    const { trace, head, token, columns, width } = view;
    const [weights, values, mixed] = [view.name("weights"), view.name("value"), view.name("mixed")];
    const at = view.place(width);
    const pick = view.pickNumber;
    const keys = columns.map((_, key) => key).sort((a, b) => trace.at(weights, head, token, b) - trace.at(weights, head, token, a));
    const shown = keys.slice(0, 12);
    const scaledBy = (key) => trace.row(values, head, key).map((value) => value * trace.at(weights, head, token, key));
    const reach = Math.max(
      ...shown.flatMap((key) => [...scaledBy(key)].map(Math.abs)),
      ...[...trace.row(mixed, head, token)].map(Math.abs),
    );
    const length = (key) =>
      derived(Math.hypot(...scaledBy(key)), "weighted-norm", [
        `${weights}@${[head, token, key].join()}`,
        `${values}@${[head, key].join()}`,
      ]);
    const term = (key) => [number(trace, weights, [head, token, key], 3), " × ", number(trace, values, [head, key, at], 3)];
    return [
      place(view, width, "place"),
      figure("sum", {
        caption: [
          `At place ${at}: `,
          ...shown.slice(0, 3).flatMap((key, order) => [order > 0 ? " + " : "", ...term(key)]),
          columns.length > 3 ? ` + ${columns.length - 3} more` : "",
          " = ",
          number(trace, mixed, [head, token, at], 3),
          ".",
        ],
        body: [
          lines([
            ...shown.map((key) => [
              [number(trace, weights, [head, token, key]), " × ", el("b", { class: "role-value" }, `v ${columns[key]}`)],
              bars(scaledBy(key), { role: "value", scale: reach, picked: at, pick, label: `the weighted value of ${columns[key]}` }),
              ["length ", length(key)],
            ]),
            [
              el("strong", {}, "sum"),
              strip(trace, mixed, [head, token], { role: "value", scale: reach, picked: at, pick }),
              ["length ", lengthOf(trace, mixed, [head, token])],
              true,
            ],
          ]),
        ],
        note: columns.length > 12 ? [`The 12 largest of ${columns.length} weights are drawn; the sum is of all.`] : null,
        table: () =>
          table(
            trace,
            values,
            columns.map((label, key) => [label, [head, key]]),
          ),
      }),
      answer("sum", ...sumAnswer(view)),
    ];
  },
};

function sumAnswer(view) {
  const { trace, head, token, columns } = view;
  const [weights, values, mixed] = [view.name("weights"), view.name("value"), view.name("mixed")];
  const best = view.strongest();
  return [
    [
      "The result for ",
      word(view.query),
      " is the sum of all ",
      role("value", "values"),
      ", each times its weight: most of all the value of ",
      word(columns[best]),
      ", of which it takes ",
      number(trace, weights, [head, token, best]),
      ".",
    ],
    [
      "It has the length ",
      lengthOf(trace, mixed, [head, token]),
      "; the value of ",
      word(columns[best]),
      " alone has ",
      lengthOf(trace, values, [head, best]),
      ". A weight says how much is taken, and the value says of what: a large weight on a short value hands over little.",
    ],
  ];
}
