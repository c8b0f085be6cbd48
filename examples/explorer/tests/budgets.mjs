// How long a reader waits: medians of five.

import { addressOf, check, pause } from "./check.mjs";
import { sentences } from "./numbers.mjs";

// A machine that others compute on may be three times as slow as it was. Times over a budget are seen in what is printed.
const NOISE = process.env.CI ? 3 : 1;
const OTHERS = [
  "The animal didn't cross the street because it was too tired.",
  "Can you help me find the station?",
  "We waited for the train until midnight.",
  "I would like a cup of coffee.",
  "She asked me what I wanted to do on Sunday.",
];
// In ms.
const LIMITS = {
  "first paint": 500,
  ready: 1500,
  "a sentence": 100,
  "a switch": 100,
  "24 head cuts": 1500,
  "a sentence of the other model": 250,
  "its switch": 250,
  "its 36 head cuts": 6000,
};
const median = (times) => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];

export async function budgets(browser, base) {
  const times = Object.fromEntries(Object.keys(LIMITS).map((name) => [name, []]));
  for (let round = 0; round < 5; round += 1) {
    const page = await browser.page();
    await page.size(1280, 800);
    await page.go(addressOf(base, {}));
    const at = (name) => page.run(`performance.getEntriesByName("${name}")[0].startTime`);
    times["first paint"].push(await at("painted"));
    times.ready.push(await at("ready"));
    const timed = (change) =>
      page.run(`(() => { const start = performance.now(); ${change}; document.body.offsetHeight; return performance.now() - start; })()`);
    // The first calls compile what they run; readers notice the later ones.
    const submit = (text) =>
      timed(
        `document.querySelector("#sentence").value = ${JSON.stringify(text)}; document.querySelector("#sentence-form").requestSubmit()`,
      );
    await submit("The dog sleeps.");
    times["a sentence"].push(await submit(sentences[round].source));
    await page.run(`location.hash = "#step=embed"`);
    await pause(100);
    times["a switch"].push(await timed(`document.querySelector('[data-focus="positions-false"]').click()`));
    await page.run(
      `window.start = performance.now(); location.hash = "#step=cut&text=" + encodeURIComponent(${JSON.stringify(sentences[round].source)})`,
    );
    await page.until(`document.querySelector("#cut-answer")?.hasChildNodes()`);
    times["24 head cuts"].push(await page.run(`performance.now() - window.start`));
    await page.run(`location.hash = "#model=everyday"`);
    await page.until(`document.querySelectorAll('[data-focus^="head-"]').length === 6`);
    await submit("Her sister works in a small hospital.");
    times["a sentence of the other model"].push(await submit(OTHERS[round]));
    await page.run(`location.hash = "#model=everyday&step=embed&text=" + encodeURIComponent(${JSON.stringify(OTHERS[round])})`);
    await pause(200);
    times["its switch"].push(await timed(`document.querySelector('[data-focus="positions-false"]').click()`));
    await page.run(
      `window.start = performance.now(); location.hash = "#model=everyday&step=cut&text=" + encodeURIComponent(${JSON.stringify(OTHERS[round])})`,
    );
    await page.until(`document.querySelector("#cut-answer")?.hasChildNodes()`);
    times["its 36 head cuts"].push(await page.run(`performance.now() - window.start`));
    await page.close();
  }
  for (const [name, limit] of Object.entries(LIMITS)) {
    const time = median(times[name]);
    console.log(`${name}: ${time.toFixed(0)} ms, budget ${limit} ms (${times[name].map((each) => each.toFixed(0)).join(", ")})`);
    check(`budget of ${name}`, time <= limit * NOISE, `${time.toFixed(0)} ms`);
  }
}
