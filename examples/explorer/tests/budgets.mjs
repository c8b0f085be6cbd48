// How long a reader waits: medians of five.

import { addressOf, check, pause } from "./check.mjs";
import { sentences } from "./numbers.mjs";

// A machine that others compute on may be three times as slow as it was. Times over a budget are seen in what is printed.
const NOISE = process.env.CI ? 3 : 1;
const median = (times) => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];

export async function budgets(browser, base) {
  const times = { "first paint": [], ready: [], "a sentence": [], "a switch": [], "24 head cuts": [] };
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
    await page.close();
  }
  const limits = { "first paint": 500, ready: 1500, "a sentence": 100, "a switch": 100, "24 head cuts": 1500 };
  for (const [name, limit] of Object.entries(limits)) {
    const time = median(times[name]);
    console.log(`${name}: ${time.toFixed(0)} ms, budget ${limit} ms (${times[name].map((each) => each.toFixed(0)).join(", ")})`);
    check(`budget of ${name}`, time <= limit * NOISE, `${time.toFixed(0)} ms`);
  }
}
