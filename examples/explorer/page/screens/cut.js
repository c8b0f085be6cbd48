// Each head is cut in turn, in a worker: which words of the translation change?

import { answer, el, grid, rust } from "../draw.js";
import { attentionName, headInWords } from "../view.js";
import { allHeads, cutAll } from "../cuts.js";

/** The probability of the usual translation without a head, or with all of them. */
const chance = (value, head = "") => el("data", { value, "data-cut": head }, value.toFixed(3));

export const cutScreen = {
  id: "cut",
  short: "cut",
  title: "What each head is for",
  question: () => "If one head is cut (ablated), which words of the translation change?",
  draw(view) {
    const { state, session, set } = view;
    const { text: usual, probability: whole } = session.run({});
    const progress = el("progress", { id: "cut-progress", max: allHeads(session.shape).length, value: 0, "aria-label": "heads cut" });
    const table = grid("cuts", ["head that is cut", "translation without it", "probability of the usual one", "switch"], []);
    const trained = view.isSwitched ? ", in the trained configuration" : "";
    const place = el("div", { id: "cut-answer" });
    const status = el(
      "p",
      { class: "quiet", role: "status", id: "cut-status" },
      "The heads are being cut, one after another, in the background.",
    );
    const toggle = (head) =>
      set({ cut: state.cut.includes(head) ? state.cut.filter((other) => other !== head) : [...state.cut, head].sort() });
    const rows = new Map();
    const show = ({ head, text, probability }) => {
      const changed = changedWords(usual, text);
      const [side, layer, kind, at] = head.split(".");
      const row = el(
        "tr",
        { "data-head": head, class: changed.some(([, isNew]) => isNew) || text !== usual ? "changes" : null },
        el("th", { scope: "row" }, `${attentionName(`${side}.${kind}`)}, layer ${Number(layer) + 1}, head ${Number(at) + 1}`),
        el(
          "td",
          { lang: "es", class: "translation" },
          text === usual
            ? el("span", { class: "quiet" }, "no change")
            : changed.map(([word, isNew]) => [el(isNew ? "mark" : "span", {}, word), " "]),
        ),
        el("td", {}, chance(probability, head)),
        el(
          "td",
          {},
          el(
            "button",
            { type: "button", "data-focus": `cut-${head}`, "aria-pressed": String(state.cut.includes(head)), click: () => toggle(head) },
            state.cut.includes(head) ? "restore" : "cut",
          ),
        ),
      );
      rows.set(head, { head, text, probability });
      table.tBodies[0].append(row);
      progress.value = rows.size;
    };
    const finish = () => {
      status.textContent = `All ${rows.size} heads were cut in turn, with the others left as they are${trained}.`;
      progress.hidden = true;
      place.replaceChildren(answer("cut", ...cutAnswer(usual, whole, [...rows.values()])));
    };
    cutAll(session, show).then(finish, (error) => {
      status.textContent = `The heads cannot be cut: ${error.message}.`;
      progress.hidden = true;
    });
    const first = state.cut[0]?.split(".");
    return [
      status,
      progress,
      place,
      rust(
        first
          ? ["output.weight.slice_assign([head * width..(head + 1) * width, 0..columns], zeros)", true]
          : "output.weight // no head is cut",
      ),
      el(
        "figure",
        { id: "figure-cuts" },
        el(
          "figcaption",
          {},
          `Without a cut${trained} (probability `,
          chance(whole),
          "): ",
          el("em", { lang: "es" }, usual),
          " Words that a cut changes are marked. A button cuts the head on every screen.",
        ),
        el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Heads that are cut" }, table),
      ),
    ];
  },
};

/** The words of a text, each with whether another text lacks it at its place: by the longest common subsequence. */
function changedWords(before, after) {
  const [a, b] = [before.split(" "), after.split(" ")];
  const common = Array.from({ length: a.length + 1 }, () => new Array(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1)
      common[i][j] = a[i] === b[j] ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
  }
  const words = [];
  let [i, j] = [0, 0];
  while (j < b.length) {
    if (i < a.length && a[i] === b[j]) {
      words.push([b[j], false]);
      i += 1;
      j += 1;
    } else if (i < a.length && common[i + 1][j] >= common[i][j + 1]) i += 1;
    else {
      words.push([b[j], true]);
      j += 1;
    }
  }
  return words;
}

/** `cuts` are the translations without each head, and the probability of the usual one. */
function cutAnswer(usual, whole, cuts) {
  const changing = cuts.filter(({ text }) => text !== usual);
  const worst = cuts.reduce((low, cut) => (cut.probability < low.probability ? cut : low));
  const hurts = [
    "The probability of the usual translation is ",
    chance(whole),
    `; without ${headInWords(worst.head)}, which it misses most, it is `,
    chance(worst.probability, worst.head),
    ".",
  ];
  const what =
    changing.length === 0
      ? `Cutting any one of the ${cuts.length} heads leaves the words of this translation as they are: the others do without it. That a head looks at something does not prove that the model needs it.`
      : `${changing.length} of ${cuts.length} heads change${changing.length === 1 ? "s" : ""} the words of this translation when cut; it can do without any one of the other ${cuts.length - changing.length}. For example, without ${headInWords(changing[0].head)} the model writes “${changing[0].text}”.`;
  return [
    [what],
    hurts,
    [
      "Where a head looks shows what it could be for. Only cutting it shows what the model does without it, and that for this sentence alone.",
    ],
  ];
}
