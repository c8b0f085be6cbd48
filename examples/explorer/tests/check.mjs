// What the tests of the page share: checks that are counted, and the states of the page.

import { DEFAULTS, toHash } from "../page/state.js";

export const STEPS = ["read", "embed", "project", "split", "scores", "scale", "mask", "softmax", "sum", "merge", "output", "decode", "cut"];
export const counts = { passed: 0, failed: 0 };

export function check(name, isRight, detail = "") {
  if (isRight) counts.passed += 1;
  else {
    counts.failed += 1;
    console.log(`FAILED ${name}${detail ? `: ${detail}` : ""}`);
  }
}
export const same = (name, found, expected) =>
  check(name, JSON.stringify(found) === JSON.stringify(expected), `${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);

export const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

export const addressOf = (base, state) => base + toHash({ ...DEFAULTS, ...state });

/** Changes the state without loading the page again, and waits until it is drawn. */
export async function turn(page, base, state) {
  const hash = toHash({ ...DEFAULTS, ...state });
  const before = await page.run(`(() => {
    const { drawn } = document.documentElement.dataset;
    const isSame = location.hash === ${JSON.stringify(hash)};
    location.hash = ${JSON.stringify(hash)};
    return isSame ? null : drawn;
  })()`);
  if (before !== null) await page.until(`document.documentElement.dataset.drawn !== ${JSON.stringify(before)}`);
  await pause(10);
}
