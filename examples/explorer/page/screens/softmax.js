// Softmax: scores become shares that sum to 1.

import { answer, derived, el, figure, grid, lines, number, spread, table, top, total } from "../draw.js";
import { known, word } from "../text.js";
import { share } from "./scale.js";

const MOST_RATIO = 10_000; // is said as a number

export const softmaxScreen = {
  id: "softmax",
  short: "softmax",
  title: "Softmax: scores become weights",
  question: (view) => `Scores are any numbers. How do they become the shares that “${view.query}” gives to each token?`,
  draw(view) {
    const { trace, head, heads, token, columns } = view;
    const [scaled, weights, mask] = [view.name("scaled"), view.name("weights"), view.mask];
    const at = [head, token];
    const seen = columns.map((_, key) => !view.isHidden(key));
    const largest = Math.max(...columns.map((_, key) => (seen[key] ? trace.at(scaled, ...at, key) : -Infinity)));
    const raised = (key) => Math.exp(trace.at(scaled, ...at, key) - largest);
    const rows = columns.map((label, key) =>
      seen[key]
        ? [
            label,
            number(trace, scaled, [...at, key]),
            derived(
              raised(key),
              "exponential",
              [`${scaled}@${[...at, key].join()}`, `${scaled}@${at.join()}`, mask ? `${mask}@${at.join()}` : ""],
              3,
            ),
            share(trace.at(weights, ...at, key)),
            number(trace, weights, [...at, key]),
          ]
        : [label, el("span", { class: "quiet" }, "hidden"), "0", share(0), number(trace, weights, [...at, key])],
    );
    const shares = (each) =>
      lines(columns.map((label, key) => [label, share(trace.at(weights, each, token, key)), number(trace, weights, [each, token, key])]));
    return [
      figure("softmax", {
        caption: [
          `The weights of “${view.query}” sum to `,
          total(trace, weights, at, 4),
          ". Their entropy is ",
          spread(trace, weights, at),
          " bits.",
        ],
        body: [grid("steps-table", ["key", "scaled score", "e to the score − largest", "share", "weight"], rows)],
        table: () => table(trace, weights, [[view.query, at]], columns),
      }),
      el("h3", {}, "The same token in all heads of the layer"),
      el(
        "div",
        { class: "columns four" },
        Array.from({ length: heads }, (_, each) =>
          figure(`head-${each + 1}`, {
            caption: [`Head ${each + 1}: entropy `, spread(trace, weights, [each, token]), " bits."],
            body: [shares(each)],
          }),
        ),
      ),
      answer("softmax", ...softmaxAnswer(view)),
    ];
  },
};

function softmaxAnswer(view) {
  const { trace, head, token, columns } = view;
  const [scaled, weights] = [view.name("scaled"), view.name("weights")];
  const [first, second] = view.ranked(weights);
  const pair = () => {
    const gap = trace.at(scaled, head, token, first) - trace.at(scaled, head, token, second);
    return [
      "A difference of scores becomes a ratio of weights: ",
      word(columns[first]),
      " is ahead of ",
      word(columns[second]),
      " by ",
      derived(gap, "difference", [`${scaled}@${[head, token, first].join()}`, `${scaled}@${[head, token, second].join()}`]),
      ", so it gets e to that power, ",
      gap > Math.log(MOST_RATIO)
        ? `more than ${MOST_RATIO.toLocaleString("en")}`
        : derived(Math.exp(gap), "ratio", [`${weights}@${[head, token, first].join()}`, `${weights}@${[head, token, second].join()}`], 1),
      " times its weight.",
    ];
  };
  return known(
    () => [
      "e is raised to the power of each score, and each result is divided by the sum of them all. The weights of ",
      word(view.query),
      " sum to ",
      total(trace, weights, [head, token], 4),
      "; the largest is ",
      top(trace, weights, [head, token]),
      ", for ",
      word(columns[first]),
      ".",
    ],
    ...(second === undefined ? [] : [pair]),
  );
}
