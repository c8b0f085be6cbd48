// Why scores are divided by √d: the same scores with other factors, and random vectors of any width.

import { answer, choice, el, figure, lines, number, ofRun, rust, saidOfRun, shown, spread, table, top } from "../draw.js";
import { Missing } from "../trace.js";
import { known, word } from "../text.js";
import { meanLargest } from "../random.js";

const WIDTHS = [4, 8, 16, 24, 32, 64, 128, 256, 512];

export const scaleScreen = {
  id: "scale",
  short: "why √d",
  title: "Why scores are divided by √d",
  question: (view) => `The scores are divided by √${view.width}. Why, and why not by the root of the number of tokens?`,
  draw(view) {
    const { state, tokens, width } = view;
    const choices = [
      ["none", "by nothing"],
      ["trained", `by √${width} (trained)`],
      ["tokens", `by √${tokens}, the number of tokens`],
    ];
    const code = {
      none: "config.block().with_scale(Some(1.0))",
      trained: `config.block() // 1 / √${width}`,
      tokens: `config.block().with_scale(Some(1.0 / ${tokens}_f64.sqrt()))`,
    };
    return [
      choice("scores are divided", "scale", choices, state.scale, (scale) => view.set({ scale })),
      rust([code[state.scale], state.scale !== "trained"]),
      el(
        "div",
        { class: "columns" },
        choices.map(([scale, label]) => compared(view, scale, label)),
      ),
      answer("scale", ...scaleAnswer(view)),
      random(view),
    ];
  },
};

function compared(view, scale, label) {
  const { head, token, columns } = view;
  const name = view.name("weights");
  const title = el("h3", {}, scale === "none" ? "Not divided" : `Divided ${label}`);
  let run;
  try {
    run = view.other({ scale });
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
    return el("div", {}, title, view.waiting("This needs"));
  }
  const { trace } = run;
  if (hasDiverged(view, run))
    return el(
      "div",
      {},
      title,
      el("p", { class: "waiting" }, `With this factor another translation is written up to here: “${run.text}”.`),
    );
  const at = [head, token];
  const labels = view.attention === "decoder.self" ? view.session.labels(run.target) : columns;
  const keys = labels.length;
  return ofRun(
    run,
    title,
    figure(`scale-${scale}`, {
      caption: ["Largest weight ", top(trace, name, at), ", entropy ", spread(trace, name, at), " bits."],
      body: [
        lines(
          Array.from({ length: keys }, (_, key) => [labels[key], share(trace.at(name, ...at, key)), number(trace, name, [...at, key])]),
        ),
      ],
      table: () => table(trace, view.name("scaled"), [[view.query, at]], labels),
    }),
    el("p", {}, "It translates: ", el("em", { lang: "es", class: "translation" }, run.text)),
  );
}

export const share = (value) => el("div", { class: "share", style: { "--share": `${(value * 100).toFixed(2)}%` } });

/** Needs no model: queries and keys whose numbers are drawn from a normal distribution. */
function random(view) {
  const known = WIDTHS.indexOf(view.state.width);
  const at = known < 0 ? WIDTHS.indexOf(24) : known;
  const width = WIDTHS[at];
  const { tokens } = view;
  const rows = [
    ["none", "not divided", 1],
    ["trained", `divided by √${width}`, 1 / Math.sqrt(width)],
    ["tokens", `divided by √${tokens}`, 1 / Math.sqrt(tokens)],
  ].map(([kind, label, factor]) => [kind, label, meanLargest(width, tokens, factor)]);
  const slider = el("input", {
    type: "range",
    id: "width",
    min: 0,
    max: WIDTHS.length - 1,
    step: 1,
    value: at,
    "data-focus": "width",
    "aria-valuetext": `${width} numbers`,
    input: (event) => view.set({ width: WIDTHS[event.target.value] }, { replace: true }),
  });
  const value = ([kind, , mean]) => el("data", { value: mean, "data-random": `${width},${tokens},${kind}` }, shown(mean));
  return el(
    "section",
    { class: "random" },
    el("h3", {}, "Vectors of any width"),
    el(
      "p",
      {},
      "Random queries and keys, which know nothing: the numbers are drawn from a normal distribution, so that a score is a sum of d products of size 1, about √d in size. The wider the vectors, the more an undivided softmax gives all to one key, by chance.",
    ),
    el("label", { for: "width", class: "slider" }, `d = ${width}`, slider),
    figure("random", {
      caption: [
        `Mean largest weight over ${tokens} keys, d = ${width}: not divided `,
        value(rows[0]),
        `; by √${width} `,
        value(rows[1]),
        `; by √${tokens} `,
        value(rows[2]),
        ".",
      ],
      body: [lines(rows.map((row) => [row[1], share(row[2]), value(row)]))],
    }),
  );
}

function scaleAnswer(view) {
  const { head, token, width } = view;
  const name = view.name("weights");
  const said = (scale) => {
    const run = view.other({ scale });
    if (hasDiverged(view, run)) throw new Missing("the query token is of another translation");
    const at = [head, token];
    return saidOfRun(run, "largest weight ", top(run.trace, name, at), ", entropy ", spread(run.trace, name, at), " bits");
  };
  return known(
    () => [
      `A score is a sum of ${width} products. If the numbers of query and key are independent and of size 1, about as at the start of training, its size is √${width}: it grows with the width. Divided by √${width}, it is about 1 for every width, and the softmax stays soft enough to learn.`,
    ],
    () => ["For ", word(view.query), ": divided by √", String(width), ", ", said("trained"), "; not divided, ", said("none"), "."],
    () => [
      `Divided by √${view.tokens}, ${view.tokens} being the number of tokens: `,
      said("tokens"),
      ". That factor would change with the length of the sentence, and says nothing about the vectors.",
    ],
  );
}

/** Whether another translation differs before the query token ends: its numbers are of other words then. */
const hasDiverged = ({ isDecoder, token, run: { target } }, other) =>
  isDecoder && target.slice(0, token + 1).join() !== other.target.slice(0, token + 1).join();
