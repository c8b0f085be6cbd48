// The merge of the heads: a transpose, then a reshape; and what a reshape alone would make.

import { answer, el, figure, lengthOf, lines, number, strip, table } from "../draw.js";
import { word } from "../text.js";

export const mergeScreen = {
  id: "merge",
  short: "merge",
  title: "The merge of the heads",
  question: (view) => `How do the results of ${view.heads} heads become one vector of “${view.query}” again?`,
  draw(view) {
    const { trace, head, heads, token, width, rows } = view;
    const [mixed, merged] = [view.name("mixed"), view.name("merged")];
    const count = rows.length;
    const names = view.isDecoder ? view.read : view.sourceNames;
    const reach = Math.max(...Array.from({ length: heads }, (_, each) => [...trace.row(mixed, each, token)].map(Math.abs)).flat());
    const pieces = (from, chosen) =>
      el(
        "div",
        { class: "pieces" },
        from.map(([each, of]) =>
          el(
            "div",
            { class: `piece${chosen(each, of) ? " chosen" : ""}` },
            strip(trace, mixed, [each, of], { role: "value", scale: reach, extent: width }),
            el("small", {}, `head ${each + 1}, ${names[of]}`),
          ),
        ),
      );
    const right = Array.from({ length: heads }, (_, each) => [each, token]);
    const wrong = mergedFrom(token, heads, count);
    const moved = wrong.findIndex(([each, of], piece) => each !== piece || of !== token);
    const at = head * width;
    return [
      figure("merge", {
        caption: [
          `[${heads} heads, ${count} tokens, ${width}] → transpose → [${count}, ${heads}, ${width}] → reshape → [${count}, ${heads * width}]. Number ${at} of the merged row, `,
          number(trace, merged, [token, at], 3),
          `, is number 0 of ${view.headName}, `,
          number(trace, mixed, [head, token, 0], 3),
          ".",
        ],
        body: [
          lines([
            ["merged", strip(trace, merged, [token], { role: "value", scale: reach }), "", true],
            ["its pieces", pieces(right, (each) => each === head), ""],
          ]),
        ],
        table: () => table(trace, merged, [[view.query, [token]]]),
      }),
      figure("merge-wrong", {
        caption: [
          `A reshape alone, without the transpose, would put into the row of “${view.query}”: ${wrong.map(([each, of]) => `head ${each + 1} of ${names[of]}`).join(", ")}. `,
          ...(moved < 0
            ? ["Here that is what belongs there."]
            : [
                `Number ${moved * width} would be `,
                number(trace, mixed, [...wrong[moved], 0], 3),
                ", not ",
                number(trace, merged, [token, moved * width], 3),
                ".",
              ]),
        ],
        body: [lines([["scrambled", pieces(wrong, (each, of) => of === token), ""]])],
      }),
      answer("merge", ...mergeAnswer(view)),
    ];
  },
};

/** Which head and token each piece of a row comes from if [heads, tokens, width] is read as [tokens, heads · width] without a transpose. */
const mergedFrom = (token, heads, tokens) =>
  Array.from({ length: heads }, (_, piece) => {
    const at = token * heads + piece;
    return [Math.floor(at / tokens), at % tokens];
  });

function mergeAnswer(view) {
  const { trace, heads, width, head, token, rows } = view;
  const wrong = mergedFrom(token, heads, rows.length);
  const foreign = wrong.filter(([, of]) => of !== token).length;
  return [
    [
      `The heads lie one after another, each with all tokens; a row needs all heads of one token. So the axes of heads and tokens change places (a transpose), and only then are the last two joined: ${heads} × ${width} = ${heads * width}. Nothing is computed.`,
    ],
    [
      "Of the ",
      String(heads),
      " pieces that a reshape alone would give to ",
      word(view.query),
      `, ${foreign} belong to other tokens. The right piece of ${view.headName} has the length `,
      lengthOf(trace, view.name("mixed"), [head, token]),
      ".",
    ],
  ];
}
