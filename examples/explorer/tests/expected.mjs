// What every number of the page should be: from traces of its own, by the names that stand on the numbers.

import { softmax } from "../page/trace.js";
import { meanLargest } from "../page/random.js";

const split = (from) => {
  const [name, at = ""] = from.split("@");
  return [name, at === "" ? [] : at.split(",").map(Number)];
};
const norm = (row) => Math.hypot(...row);
const add = (row) => row.reduce((total, x) => total + x, 0);

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
    probability: () => softmax(row(parts[0]))[Number(parts[1])],
  };
  return kinds[derived]();
}

/** Collects every number of the screen, with the tables open. Runs in the page. */
export async function collect() {
  for (const details of document.querySelectorAll("#screen details")) details.open = true;
  await new Promise((resolve) => {
    setTimeout(resolve, 60);
  });
  const screen = document.querySelector("#screen");
  const numbers = [...screen.querySelectorAll("[data-tensor], data")].map((element) => {
    const { tensor, derived, parameter, random, at, from, cut } = element.dataset;
    const other = element.closest("[data-switches]")?.dataset;
    const bar =
      element.tagName === "rect"
        ? [Number(element.getAttribute("height")), Number(element.closest("svg").dataset.reach), element.getAttribute("class")]
        : null;
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
      bar,
      value: Number(element.getAttribute("value") ?? element.dataset.value),
      text: bar ? null : element.textContent,
    };
  });
  // A decimal number that does not say where it is from.
  const walker = document.createTreeWalker(screen, NodeFilter.SHOW_TEXT);
  const strangers = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (/\d\.\d/.test(node.data) && !node.parentElement.closest("data, pre")) strangers.push(node.data);
  }
  return { numbers, strangers };
}
