// One sentence and what the model computes for it; and the sentences that cannot be computed, with one sentence that says why.

import { Missing, probabilityOf, unpacked } from "./trace.js";
import { BOS, EOS, isBlank } from "./tokenizer.js";

// Of all runs that are kept: 64 MiB. The run of the example has 0.1 million, that of the longest sentence 5 million.
const MOST_NUMBERS = 2 ** 24;
const FEWEST_RUNS = 7; // are kept however long they are: “why √d” computes as many without the causal mask and with a head cut

/** The example, computed beforehand: the page can be read without the model. */
export function exampleSession(example) {
  const trace = unpacked(example);
  const labels = new Map(example.labels);
  const usual = { ...example.run, switches: {}, trace };
  return {
    text: example.text,
    source: example.source,
    id: "story",
    shape: example.shape,
    isExample: true,
    labels: (ids) => ids.map((id) => labels.get(id) ?? `<${id}>`),
    run(switches) {
      if (Object.keys(switches).length > 0) throw new Missing("this needs the model");
      return usual;
    },
    parameter() {
      throw new Missing("this needs the model");
    },
    cuts: example.cuts,
  };
}

/** A sentence for the model that is loaded. Throws a sentence about text that it cannot read. */
export function modelSession(text, { id, shape, model, tokenizer, downloaded }) {
  if (isBlank(text)) throw new Error("There is no word to translate: type a sentence, or choose one below.");
  const most = shape.positions; // of the sentence, <eos> included, and of the translation, <bos> included
  const source = [...tokenizer.encode(text), EOS];
  if (source.length > most) {
    throw new Error(`This sentence has ${source.length} tokens, <eos> included, but the model reads at most ${most}: shorten it.`);
  }
  const runs = new Map(); // by their switches; the last that was asked for comes last
  const run = (switches) => {
    const key = JSON.stringify(switches);
    const found = runs.get(key) ?? compute(switches);
    runs.delete(key);
    runs.set(key, found);
    forget(runs);
    return found;
  };
  const compute = (switches) => {
    // Nothing can be generated without the causal mask: the finished translation is read again.
    const { causal, ...others } = switches;
    const written = causal === false ? run(others) : null;
    const ids = written ? written.ids : model.translate(source, others);
    const target = [BOS, ...ids].slice(0, most);
    const trace = model.trace(source, target, switches);
    const best = (at) => trace.row("logits", at).reduce((top, logit, id, row) => (logit > row[top] ? id : top), 0);
    const isEnded = () => target.length === ids.length + 1 && best(target.length - 1) === EOS;
    return {
      switches,
      ids,
      target,
      trace,
      probability: probabilityOf(trace, target),
      text: tokenizer.decode(ids),
      isEnded: written ? written.isEnded : isEnded(),
    };
  };
  return {
    text,
    source,
    id,
    shape,
    isExample: false,
    labels: (ids) => tokenizer.labels(ids),
    decode: (ids) => tokenizer.decode(ids),
    run,
    parameter: (name) => model.parameter(name),
    cuts: null,
    /** What a worker needs for a model of its own. */
    downloaded,
  };
}

/** Drops the runs that were asked for longest ago, until the others are small enough together. */
function forget(runs) {
  let numbers = [...runs.values()].reduce((total, { trace }) => total + trace.size, 0);
  for (const [key, { trace }] of runs) {
    if (numbers <= MOST_NUMBERS || runs.size <= FEWEST_RUNS) return;
    runs.delete(key);
    numbers -= trace.size;
  }
}

/** The words of a text that no sentence of the model's training had. */
export function unknownWords(text, words) {
  const known = new Set(words);
  return [...new Set(text.match(/[\p{L}\p{N}\p{M}'’]+|\p{Extended_Pictographic}/gu) ?? [])].filter(
    (word) => !known.has(word.toLowerCase()),
  );
}

/** The sentences that share most words with a text. */
export function nearSentences(text, sentences, count = 3) {
  const wordsOf = (sentence) => new Set(sentence.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []);
  const own = wordsOf(text);
  const likeness = (sentence) => {
    const words = wordsOf(sentence);
    const both = [...words].filter((word) => own.has(word)).length;
    return both / (own.size + words.size - both || 1);
  };
  const ranked = sentences.map((sentence) => [likeness(sentence), sentence]).sort(([a], [b]) => b - a);
  return ranked.slice(0, count).map(([, sentence]) => sentence);
}
