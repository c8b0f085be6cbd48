// What a screen draws from: the state, the run of the model that it asks for, and names for what is shown.

import { allHeads } from "./cuts.js";
import { el } from "./draw.js";
import { switchesOf } from "./state.js";
import { Missing, largest } from "./trace.js";

const clamp = (value, count) => Math.min(Math.max(value, 0), count - 1);

/**
 * `session` has the sentence: `text`, `source` ids, `labels` of ids, and `run(switches)`; `set` changes the state. A screen may be about
 * one attention only: `fixed` says which, given what the reader chose.
 */
export function makeView(asked, session, set, fixed, hasFailed = false) {
  const state = { ...asked, cut: asked.cut.filter((head) => allHeads(session.shape).includes(head)) };
  const tokens = session.source.length;
  const switches = switchesOf(state, tokens);
  const run = session.run(switches);
  const attention = fixed ? fixed(state.attention) : state.attention;
  const [side, kind] = attention.split(".");
  const { trace } = run;
  const layers = session.shape[side];
  const layer = clamp(state.layer, layers);
  const prefix = `${side}.${layer}.${kind}`;
  const isDecoder = side === "decoder";
  const sourceNames = named(session.labels(session.source));
  const read = session.labels(run.target);
  const readNames = named(read);
  // The last token is not read: what is written after it ends the translation, or was cut off.
  const written = [...read.slice(1), run.isEnded ? "<eos>" : "…"];
  const rows = isDecoder ? read.map((label, at) => `${label} \u200e⇒ ${written[at]}`) : sourceNames;
  const columns = kind === "cross" || !isDecoder ? sourceNames : readNames;
  const token = clamp(isDecoder ? state.target : state.source, rows.length);
  const head = clamp(state.head, session.shape.heads);
  const mask = `${prefix}.hidden.causal`;
  const isHidden = (key) => trace.has(mask) && trace.at(mask, head, token, key) === 1;
  const view = {
    state,
    session,
    set,
    run,
    trace,
    attention,
    side,
    kind,
    layer,
    layers,
    prefix,
    head,
    token,
    rows,
    columns,
    read,
    written,
    sourceNames,
    isDecoder,
    heads: session.shape.heads,
    width: session.shape.width,
    tokens,
    name: (step) => `${prefix}.${step}`,
    /** The token that the query belongs to, as it is quoted in sentences. */
    query: isDecoder ? readNames[token] : sourceNames[token],
    strongest: (of = trace, name = `${prefix}.weights`) => largest(of.row(name, head, token)),
    /** The mask of the query token where the attention has one. Nothing is hidden by padding in a batch of one sentence. */
    mask: trace.has(mask) ? mask : null,
    isHidden,
    /** The keys that the query token may see, those with the largest numbers of a tensor first. */
    ranked: (name) => {
      const row = trace.row(name, head, token);
      const visible = Array.from(row.keys()).filter((key) => !isHidden(key));
      return visible.sort((a, b) => row[b] - row[a]);
    },
    waiting: (what) => el("p", { class: "waiting" }, `${what} the model, which ${hasFailed ? "could not be loaded" : "is still loading"}.`),
    /** What `draw` makes or, where that needs the model, a sentence that begins with `what`. */
    orWaiting: (what, draw) => {
      try {
        return draw();
      } catch (error) {
        if (!(error instanceof Missing)) throw error;
        return view.waiting(what);
      }
    },
    place: (count) => clamp(state.number, count),
    pickNumber: (number) => set({ number }),
    pickToken: (at) => set({ [isDecoder ? "target" : "source"]: at }),
    pickCell: (at, key) => set({ [isDecoder ? "target" : "source"]: at, key }),
    /** The same computation with other switches. */
    other: (changes) => session.run(switchesOf({ ...state, ...changes }, tokens)),
    isSwitched: Object.keys(switches).length > 0,
  };
  view.key = () => (state.key === null ? view.strongest() : clamp(state.key, columns.length));
  view.headName = `head ${head + 1}`;
  view.where = headInWords(`${prefix}.${head}`);
  return view;
}

export const attentionName = (attention) =>
  ({
    "encoder.self": "encoder’s self-attention",
    "decoder.self": "decoder’s self-attention",
    "decoder.cross": "cross-attention",
  })[attention];

/** A head such as `encoder.0.self.2`, in words. */
export function headInWords(head) {
  const [side, layer, kind, at] = head.split(".");
  return `head ${Number(at) + 1} of layer ${Number(layer) + 1} of the ${attentionName(`${side}.${kind}`)}`;
}

/** Labels in which a word that stands several times is numbered, so that a sentence can say which. */
function named(labels) {
  const seen = new Map();
  return labels.map((label) => {
    const times = (seen.get(label) ?? 0) + 1;
    seen.set(label, times);
    return times > 1 ? `${label}${String(times).replace(/./g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit])}` : label;
  });
}
