// What every number of the page should be: from traces of its own, by the names that stand on the numbers. The page's arithmetic is
// written out a second time here, and not called.

const split = (from) => {
  const [name, at = ""] = from.split("@");
  return [name, at === "" ? [] : at.split(",").map(Number)];
};
const norm = (row) => Math.hypot(...row);
const add = (row) => row.reduce((total, x) => total + x, 0);

/** One share of a softmax, e^s[at] / Σ e^s[k], with the numerator taken into the sum. */
const shareOf = (scores, at) => 1 / add(Array.from(scores, (score) => Math.exp(score - scores[at])));

const EOS = 2;
/** The probability that a model writes what it read, and then <eos>: the product of what it gives to each next token. */
export const probabilityOf = (trace, [, ...read]) =>
  [...read, EOS].reduce((product, next, at) => product * shareOf(trace.row("logits", at), next), 1);

/** Number `n` of Mulberry32, in [0, 1). Its state is a counter, so each number can be computed alone. */
function uniform(seed, n) {
  const state = (seed + Math.imul(0x6d2b79f5, n + 1)) >>> 0;
  const first = Math.imul(state ^ (state >>> 15), state | 1);
  const second = first ^ (first + Math.imul(first ^ (first >>> 7), first | 61));
  return ((second ^ (second >>> 14)) >>> 0) / 2 ** 32;
}

/** Number `n` of a normal distribution, by Box and Muller. */
const normal = (seed, n) => Math.cos(2 * Math.PI * uniform(seed, 2 * n + 1)) * Math.sqrt(-2 * Math.log(1 - uniform(seed, 2 * n)));

/** The mean of the largest weight over 60 draws, each of a query and its keys, from the seed that the page takes. */
function meanLargest(width, keys, factor) {
  const score = (draw, key) => {
    const start = draw * (1 + keys) * width; // of the query; the keys follow
    const at = (vector, place) => normal(1009 * width + keys, start + vector * width + place);
    return factor * add(Array.from({ length: width }, (_, place) => at(0, place) * at(1 + key, place)));
  };
  const largest = (draw) => {
    const scores = Array.from({ length: keys }, (_, key) => score(draw, key));
    return Math.max(...scores.map((_, key) => shareOf(scores, key)));
  };
  return add(Array.from({ length: 60 }, (_, draw) => largest(draw))) / 60;
}

/** `run` is the run of the sentence that the number is of, `parameterOf` gives parameters, `cutOf` probabilities without a head. */
export function expectedOf({ tensor, derived, parameter, random, at, from, run, parameterOf, cut, cutOf }) {
  const { trace } = run;
  const index = at === undefined ? [] : at.split(",").map(Number);
  if (tensor) return trace.at(tensor, ...index);
  if (parameter) {
    const { shape, data } = parameterOf(parameter);
    return shape.length === 1 ? data[index[0]] : data[index[0] * shape[1] + index[1]];
  }
  if (random) {
    const [width, keys, kind] = random.split(",");
    return meanLargest(Number(width), Number(keys), { none: 1, trained: 1 / Math.sqrt(width), tokens: 1 / Math.sqrt(keys) }[kind]);
  }
  if (cut !== undefined) return cutOf(cut);
  const parts = from.split("|");
  const row = (part) => {
    const [name, place] = split(part);
    return [...trace.row(name, ...place)];
  };
  const one = (part) => {
    const [name, place] = split(part);
    return trace.at(name, ...place);
  };
  const column = (part) => {
    const [name, [place]] = split(part);
    const {
      shape: [rows, columns],
      data,
    } = parameterOf(name);
    return Array.from({ length: rows }, (_, each) => data[each * columns + place]);
  };
  const products = (x, w) => row(x).map((value, place) => value * column(w)[place]);
  const kinds = {
    product: () => one(parts[0]) * one(parts[1]),
    norm: () => norm(row(parts[0])),
    entropy: () => -add(row(parts[0]).map((share) => (share > 0 ? share * Math.log2(share) : 0))),
    sum: () => add(row(parts[0])),
    even: () => 1 / (row(parts[0]).length - (parts[1] ? add(row(parts[1])) : 0)),
    largest: () => Math.max(...row(parts[0])),
    difference: () => one(parts[0]) - one(parts[1]),
    ratio: () => one(parts[0]) / one(parts[1]),
    exponential: () => {
      const hidden = parts[2] ? row(parts[2]) : [];
      return Math.exp(one(parts[0]) - Math.max(...row(parts[1]).filter((_, key) => hidden[key] !== 1)));
    },
    "weighted-norm": () => one(parts[0]) * norm(row(parts[1])),
    later: () => add(row(parts[0]).slice(split(parts[0])[1].at(-1) + 1)),
    linear: () => add(products(parts[0], parts[1])),
    "weighted-input": () => row(parts[0])[Number(parts[2])] * column(parts[1])[Number(parts[2])],
    "head-part": () => {
      const head = Number(parts[2]);
      const all = products(parts[0], parts[1]);
      const [name] = split(parts[1]);
      const width = all.length / trace.shape(name.replace("output.weight", "weights"))[0];
      const isCut = (run.switches.cut ?? []).some(
        (place) => name === `${place.side}.${place.layer}.${place.attention}.output.weight` && place.head === head,
      );
      return isCut ? 0 : add(all.slice(head * width, (head + 1) * width));
    },
    percent: () => (100 * norm(row(parts[0]))) / norm(row(parts[1])),
    probability: () => shareOf(row(parts[0]), Number(parts[1])),
  };
  return kinds[derived]();
}

/** Whether a bar is as high as its number asks for, and on its side of the line in the middle: y grows downward, from 0 to 40. */
export function isRightBar({ value, reach, top, height, side }) {
  const meant = Math.max(Math.min(Math.abs(value) / reach, 1) * 20, 0.4);
  const isBelow = value < 0;
  const line = isBelow ? top : top + height;
  return Math.abs(height - meant) <= 0.01 && Math.abs(line - 20) <= 0.01 && side === (isBelow ? "below" : "above");
}

/** Collects every number of the screen and every bar, with the tables open. Runs in the page. */
export async function collect() {
  for (const details of document.querySelectorAll("#screen details")) details.open = true;
  await new Promise((resolve) => {
    setTimeout(resolve, 60);
  });
  const screen = document.querySelector("#screen");
  const numbers = [...screen.querySelectorAll("[data-tensor], data")].map((element) => {
    const { tensor, derived, parameter, random, at, from, cut } = element.dataset;
    const other = element.closest("[data-switches]")?.dataset;
    return {
      tensor,
      derived,
      parameter,
      random,
      at,
      from,
      cut,
      switches: other?.switches,
      target: other?.target,
      value: Number(element.getAttribute("value") ?? element.dataset.value),
      text: element.tagName === "rect" ? null : element.textContent,
    };
  });
  const bars = [...screen.querySelectorAll(".bars rect:not(.picked)")].map((rect) => {
    const picture = rect.closest("svg");
    return {
      picture: picture.getAttribute("aria-label"),
      value: Number(rect.dataset.value),
      reach: Number(picture.dataset.reach),
      top: Number(rect.getAttribute("y")),
      height: Number(rect.getAttribute("height")),
      side: rect.getAttribute("class"),
    };
  });
  // A decimal number that does not say where it is from.
  const walker = document.createTreeWalker(screen, NodeFilter.SHOW_TEXT);
  const strangers = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (/\d\.\d/.test(node.data) && !node.parentElement.closest("data, pre")) strangers.push(node.data);
  }
  return { numbers, bars, strangers };
}
