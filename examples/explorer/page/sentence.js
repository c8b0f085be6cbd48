// What stands around the field of the sentence: the model, sentences to choose from, what is wrong with the text, and what to expect.

import { choice, el } from "./draw.js";
import { MODELS } from "./models.js";
import { nearSentences, unknownWords } from "./session.js";

const SUGGESTED = 8;
const byId = (id) => document.getElementById(id);

/** A button for each sentence; `set` is told which one is chosen. */
const suggestions = (sentences, set, changes = {}) =>
  sentences.map((text) =>
    el("button", { type: "button", class: "suggestion", "data-focus": `suggestion-${text}`, click: () => set({ text, ...changes }) }, text),
  );

/** The models to choose from, what is known of the chosen one, and sentences for it. */
export function drawModel({ state, example, known, set }) {
  const place = byId("model");
  const drawn = `${state.model} ${known.sentences.length}`;
  if (place.dataset.drawn === drawn) return; // the list may be open
  place.dataset.drawn = drawn;
  const model = MODELS.find(({ id }) => id === state.model);
  const own = model.sentences ?? [example.text, ...known.sentences.slice(0, SUGGESTED - 1)];
  place.replaceChildren(
    MODELS.length > 1
      ? choice(
          "model",
          "model",
          MODELS.map(({ id, name }) => [id, name]),
          model.id,
          (id) => set({ model: id }),
        )
      : "",
    el("p", { class: "quiet" }, model.about),
    el("details", {}, el("summary", {}, "Sentences to choose from"), el("div", { class: "chips" }, suggestions(own, set))),
  );
}

/** Says what is wrong with the text, or what the model does not know of it. */
export function say({ text, session, example, known, problem, set }) {
  const field = byId("sentence");
  // What is typed and not sent stays, unless another text is shown.
  if (field.dataset.text !== text) field.value = text;
  field.dataset.text = text;
  const place = byId("problem");
  place.hidden = !problem;
  place.textContent = problem ? `${problem} The example is shown instead.` : "";
  const honesty = byId("honesty");
  const because = problem || session.text !== text ? null : warning({ text, session, example, known });
  honesty.hidden = because === null;
  if (because === null) return;
  const near = nearSentences(text, known.sentences);
  honesty.replaceChildren(
    near.length > 0 ? `${because} The toy grammar has, for example: ` : because,
    ...suggestions(near, set, { model: "story" }),
  );
}

/** Why a translation may be bad, if it may. */
function warning({ text, session, example, known }) {
  const { sure } = MODELS.find(({ id }) => id === session.id);
  if (sure) {
    const { probability, target } = session.run({});
    const each = probability ** (1 / target.length);
    if (each >= sure) return null;
    return `The model is not sure of this translation: it gives its tokens the probability ${each.toFixed(2)} (geometric mean), and is often wrong below ${sure}.`;
  }
  if (known.words.length === 0 || known.sentences.includes(text) || text === example.text) return null;
  const strangers = unknownWords(text, known.words);
  if (strangers.length === 0) return "This model knows the sentences of a toy grammar alone; it may translate others badly.";
  const names = strangers
    .slice(0, 3)
    .map((word) => `“${word}”`)
    .join(", ");
  const others = strangers.length > 3 ? " and others are" : strangers.length > 1 ? " are" : " is";
  return `This model knows the words of a toy grammar alone, and ${names}${others} not among them: expect a bad translation.`;
}
