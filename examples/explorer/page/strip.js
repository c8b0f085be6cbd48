// What stands at the top of every screen: both sentences, the query token, and which head is looked at.

import { choice, el } from "./draw.js";
import { TRAINED } from "./state.js";
import { headInWords } from "./view.js";

const NAMES = [
  ["encoder.self", "encoder self"],
  ["decoder.self", "decoder self"],
  ["decoder.cross", "cross"],
];

const numbered = (count) => Array.from({ length: count }, (_, at) => [at, String(at + 1)]);

export function drawStrip(view, screen) {
  const { state, set, isDecoder, token, rows, session, run } = view;
  const allowed = (attention) => !screen.fixed || screen.fixed(attention) === attention;
  const button = (label, at, choose, pressed) =>
    el(
      "button",
      { type: "button", class: "token", dir: "auto", "data-focus": `token-${at}`, "aria-pressed": String(pressed), click: choose },
      label,
    );
  const tokens = el(
    "div",
    { class: "tokens", role: "group", "aria-label": isDecoder ? "Query token: what is read ⇒ what is written" : "Query token" },
    rows.map((label, at) => button(label, at, () => view.pickToken(at), at === token)),
  );
  const switched = switchedOn(state);
  return [
    el(
      "p",
      { class: "both" },
      el("span", { dir: "auto", class: "sentence", lang: "en" }, session.text),
      el("span", { class: "arrow", "aria-label": "translates to" }, " ▸ "),
      el("span", { id: "translation", dir: "auto", lang: "es" }, run.text || "(nothing)"),
    ),
    tokens,
    el(
      "div",
      { class: "places" },
      choice(
        "attention",
        "attention",
        NAMES,
        view.attention,
        (attention) => set({ attention }),
        (attention) => !allowed(attention),
      ),
      choice("layer", "layer", numbered(view.layers), view.layer, (layer) => set({ layer })),
      choice("head", "head", numbered(view.heads), view.head, (head) => set({ head })),
    ),
    switched.length > 0 &&
      el(
        "p",
        { class: "switched" },
        el("strong", {}, "Changed: "),
        `${switched.join("; ")}. `,
        el("button", { type: "button", "data-focus": "reset", click: () => set(TRAINED) }, "Back to the trained configuration"),
      ),
  ].filter(Boolean);
}

/** The switches that are not as in training, in words. */
function switchedOn({ scale, causal, positions, cut }) {
  return [
    scale === "none" && "scores are not scaled",
    scale === "tokens" && "scores are divided by the root of the number of tokens",
    !causal && "no causal mask",
    !positions && "no positions",
    cut.length > 0 && `cut: ${cut.map(headInWords).join(", ")}`,
  ].filter(Boolean);
}

export function drawSteps(screens, current, address) {
  return el(
    "ol",
    {},
    screens.map((screen, at) =>
      el(
        "li",
        {},
        el(
          "a",
          { href: address(screen.id), "data-focus": `step-${screen.id}`, "aria-current": screen === current ? "step" : null },
          el("span", { class: "number" }, String(at + 1)),
          ` ${screen.short}`,
        ),
      ),
    ),
  );
}
