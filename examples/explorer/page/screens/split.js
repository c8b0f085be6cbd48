// The split into heads: a cut of the projected row, and no computation.

import { answer, el, figure, lines, number, strip, table } from "../draw.js";
import { projections } from "./project.js";

export const splitScreen = {
  id: "split",
  short: "split",
  title: "The split into heads",
  question: () => "Does every head have a matrix of its own, or is there one layer? What is the query size?",
  draw(view) {
    const { trace, head, heads, token, width } = view;
    const rows = projections(view).flatMap(({ tensor, bands, of }) =>
      bands.map((role, band) => {
        const at = of === "source" ? view.key() : token;
        const whose = of === "source" ? view.sourceNames[at] : view.query;
        const start = band * heads * width;
        const pieces = Array.from({ length: heads }, (_, each) =>
          el(
            "button",
            {
              type: "button",
              class: `piece${each === head ? " chosen" : ""}`,
              "data-focus": `piece-${role}-${each}`,
              "aria-pressed": String(each === head),
              "aria-label": `${role} of head ${each + 1}`,
              click: () => view.set({ head: each }),
            },
            strip(trace, tensor, [at], {
              cut: [start + each * width, start + (each + 1) * width],
              role,
              weak: each !== head,
              extent: width,
            }),
          ),
        );
        return [[el("b", { class: `role-${role}` }, role), ` of ${whose}`], el("div", { class: "pieces" }, pieces), ""];
      }),
    );
    const [first] = projections(view);
    return [
      figure("split", {
        caption: [
          `query size = ${heads * width} / ${heads} = ${width}`,
          `. H${view.headName.slice(1)} takes numbers ${head * width}…${(head + 1) * width - 1} of each band: its query begins with `,
          number(trace, view.name("query"), [head, token, 0], 3),
          ", number ",
          String(head * width),
          " of the row, ",
          number(trace, first.tensor, [token, head * width], 3),
          ".",
        ],
        body: [lines(rows)],
        note: [
          `The dashed lines are the only thing that happens here: [${view.rows.length} tokens, ${heads * width}] is read as [${view.rows.length} tokens, ${heads} heads, ${width}]. Choose a piece to follow its head.`,
        ],
        table: () =>
          table(
            trace,
            view.name("query"),
            Array.from({ length: heads }, (_, each) => [`head ${each + 1}`, [each, token]]),
          ),
      }),
      answer("split", ...splitAnswer(view)),
    ];
  },
};

function splitAnswer(view) {
  const { heads, width, kind } = view;
  return [
    [
      `There is one layer, and its output is cut: ${kind === "self" ? `${3 * heads * width} = 3 × ${heads} × ${width}` : `${heads * width} = ${heads} × ${width} for the query, ${2 * heads * width} = 2 × ${heads} × ${width} for key and value`}. That is the same as a matrix of its own for each head, laid side by side and multiplied at once.`,
    ],
    [
      `The query size is the model’s width divided by the heads: ${heads * width} / ${heads} = ${width}. More heads need no more parameters and no more multiplications: each compares tokens in fewer dimensions. But every head has a matrix of weights of its own.`,
    ],
  ];
}
