// Decoding: the translation, token by token, the likeliest words, and cross-attention.

import { answer, choice, derived, el, figure, lines, matrixFigure, number } from "../draw.js";
import { largest, likeliestOf } from "../trace.js";
import { known, rowSentence, word } from "../text.js";
import { share } from "./scale.js";

export const decodeScreen = {
  id: "decode",
  short: "write",
  title: "Writing the translation, and cross-attention",
  fixed: (attention) => (attention === "encoder.self" ? "decoder.cross" : attention),
  question: (view) => `The decoder has read “${view.query}”. What does it write next, and what does it look at in the English sentence?`,
  draw(view) {
    const { token, rows, written } = view;
    const likely = likeliest(view, 5);
    return [
      choice(
        "word",
        "word",
        [
          [-1, "← one word back"],
          [1, "one word on →"],
        ],
        null,
        (by) => view.pickToken(Math.min(Math.max(token + by, 0), rows.length - 1)),
        (by) => token + by < 0 || token + by >= rows.length,
      ),
      el(
        "p",
        { class: "so-far", lang: "es" },
        view.read
          .slice(1, token + 1)
          .join(" ")
          .replaceAll(" ·", ""),
        written[token].startsWith("·") ? "" : " ",
        el("mark", {}, written[token].replace("·", "")),
      ),
      el(
        "div",
        { class: "beside" },
        matrixFigure("cross", view, view.name("weights"), {
          caption: rowSentence(view),
          note: ["Rows: read ⇒ written. "],
          column: view.key(),
          hidden: view.mask,
          bare: true,
          pick: view.pickCell,
        }),
        el(
          "div",
          {},
          figure("likeliest", {
            caption: [
              `After ${view.read.slice(0, token + 1).join(" ")}, the likeliest next token is ${likely[0].label}, with probability `,
              likely[0].number(),
              ".",
            ],
            body: [lines(likely.map(({ label, share: value, number }, at) => [label, share(value), number(), at === 0]))],
          }),
          answer("decode", ...decodeAnswer(view, likely)),
        ),
      ),
    ];
  },
};

/** The likeliest next tokens, from the logits; the example that was computed beforehand has them ready. */
function likeliest(view, count) {
  const { trace, token, session, run } = view;
  const from = (id) => [`logits@${token}`, String(id)];
  const pairs = run.likeliest?.[token] ?? likeliestOf(trace.row("logits", token), count);
  return pairs.map(([id, value]) => ({
    id,
    share: value,
    label: session.labels([id])[0],
    number: () => derived(value, "probability", from(id), 3),
  }));
}

function decodeAnswer(view, likely) {
  const { trace, head, layer, sourceNames, read } = view;
  const at = view.token;
  const self = `decoder.${layer}.self.weights`;
  const cross = `decoder.${layer}.cross.weights`;
  const strongest = (name, names) => {
    const best = largest(trace.row(name, head, at));
    return [number(trace, name, [head, at, best]), " to ", word(names[best])];
  };
  return known(
    () => [
      "In ",
      el("i", {}, "self-attention"),
      " the query, the keys and the values come from the same text: having read ",
      word(read[at]),
      ", head ",
      String(head + 1),
      " of layer ",
      String(layer + 1),
      " gives ",
      strongest(self, read),
      ".",
    ],
    () => [
      "In ",
      el("i", {}, "cross-attention"),
      " the query comes from the text that is written, and keys and values from the encoder’s states of the sentence that is read: the same query token gives ",
      strongest(cross, sourceNames),
      ".",
    ],
    () => [
      ...(view.state.causal
        ? ["Then the decoder writes "]
        : ["The translation was written with the causal mask. Without it the decoder reads what it is to write, and would put next "]),
      word(likely[0].label),
      ", with probability ",
      likely[0].number(),
      "; the runner-up is ",
      word(likely[1].label),
      " with ",
      likely[1].number(),
      ".",
    ],
  );
}
