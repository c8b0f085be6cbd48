// What a reader does: switches, keys, links, and text that cannot be read.

import { STEPS, addressOf, check, pause, same, turn } from "./check.mjs";
import { PAGE } from "./model.mjs";
import { serve } from "./serve.mjs";
import { allHeads } from "../page/cuts.js";

/** Every switch changes its figure, and back restores it. */
export async function switches(page, base) {
  const cases = [
    ["scale", { step: "softmax", head: 0, source: 2 }, { scale: "none" }],
    ["scale by tokens", { step: "softmax", head: 0, source: 2 }, { scale: "tokens" }],
    ["causal", { step: "read", attention: "decoder.self" }, { causal: false }],
    ["positions", { step: "embed" }, { positions: false }],
    ...["encoder.1.self.3", "encoder.0.self.0"].map((head) => [`cut ${head}`, { step: "output" }, { cut: [head] }]),
    ["cut in the decoder", { step: "output", attention: "decoder.cross" }, { cut: ["decoder.1.cross.3"] }],
  ];
  const figure = `document.querySelector("#screen figure").outerHTML`;
  for (const [name, state, changed] of cases) {
    await turn(page, base, state);
    const before = await page.run(figure);
    await turn(page, base, { ...state, ...changed });
    check(`${name} changes its figure`, (await page.run(figure)) !== before);
    check(`${name} says so`, await page.run(`document.querySelector(".switched") !== null`));
    await page.run(`history.back()`);
    await pause(150);
    check(`back restores ${name}`, (await page.run(figure)) === before);
  }
  // Its buttons, and the line of Rust.
  await turn(page, base, { step: "scale" });
  await page.run(`document.querySelector('[data-focus="scale-none"]').click()`);
  check(
    "the Rust line of the scale",
    await page.run(
      `document.querySelector(".rust mark").textContent.includes("with_scale(Some(1.0))") && location.hash.includes("scale=none")`,
    ),
  );
  await page.run(`document.querySelector('[data-focus="reset"]').click()`);
  check(
    "the trained configuration again",
    await page.run(`document.querySelector(".switched") === null && !location.hash.includes("scale=")`),
  );
  await turn(page, base, { step: "mask" });
  await page.run(`document.querySelector('[data-focus="causal-false"]').click()`);
  check("the Rust line of the mask", await page.run(`document.querySelector(".rust mark").textContent.includes("causal = false")`));
  await turn(page, base, { step: "cut", text: "Her grandmother closed the yellow window." });
  await page.until(`document.querySelectorAll("[data-head]").length === 24`);
  same(
    "all heads are cut",
    await page.run(`[...document.querySelectorAll("[data-head]")].map((row) => row.dataset.head)`),
    allHeads({ encoder: 2, decoder: 2, heads: 4 }),
  );
  await page.run(`document.querySelector('[data-focus="cut-encoder.0.self.1"]').click()`);
  check(
    "a cut head is in the address",
    await page.run(`location.hash.includes("cut=encoder.0.self.1") && document.querySelector(".rust mark").textContent.includes("zeros")`),
  );
}

export async function keyboard(page, base) {
  await turn(page, base, { source: 2 });
  const pressed = () => page.text(".token[aria-pressed=true]");
  const step = () => page.text("#steps [aria-current]");
  same("the token", await pressed(), "cat");
  await page.key("ArrowRight");
  same("a key of the page that is scrolled", await pressed(), "cat");
  await page.run(`document.querySelector('[data-focus="token-2"]').focus()`);
  await page.key("ArrowRight");
  same("→", await pressed(), "sleeps");
  await page.key("ArrowLeft");
  await page.key("ArrowLeft");
  same("←", await pressed(), "old");
  await page.key("ArrowDown");
  same("↓", await step(), "2 embed");
  await page.key("ArrowUp");
  same("↑", await step(), "1 what looks at what");
  await page.key("h");
  same("h", await page.run(`document.querySelector('[data-focus="head-0"]').getAttribute("aria-pressed")`), "true");
  await page.run(`document.querySelector("#sentence").focus()`);
  await page.key("h");
  same(
    "a letter that is typed",
    await page.run(
      `document.querySelector("#sentence").value.endsWith("h") && document.querySelector('[data-focus="head-0"]').getAttribute("aria-pressed")`,
    ),
    "true",
  );
  await page.run(`(() => { const field = document.querySelector("#sentence"); field.value = "The dog sleeps."; })()`);
  await page.key("Enter");
  await page.until(`document.querySelector("#translation").textContent === "El perro duerme."`);
  // Tab reaches everything, with a focus that can be seen, and Enter keeps it.
  await page.run(`document.activeElement.blur()`);
  const reached = new Set();
  for (let at = 0; at < 70; at += 1) {
    await page.key("Tab");
    const found = await page.run(
      `(() => { const at = document.activeElement; const style = getComputedStyle(at); return [at.dataset.focus ?? (at.id || at.tagName), at === document.body || parseFloat(style.outlineWidth) >= 2]; })()`,
    );
    reached.add(found[0]);
    if (!found[1]) check(`the focus on ${found[0]} is seen`, false);
  }
  for (const focus of ["sentence", "token-0", "attention-decoder.self", "layer-0", "head-2", "step-mask", "cell-0"])
    check(`Tab reaches ${focus}`, reached.has(focus), [...reached].join());
  await page.run(`document.querySelector('[data-focus="head-2"]').focus()`);
  await page.key("Enter");
  same("Enter keeps the focus", await page.run(`document.activeElement.dataset.focus`), "head-2");
  // Keys go on where the button that has the focus comes back disabled: one of the step, and one above all steps.
  await turn(page, base, { step: "decode", target: 1 });
  await page.run(`document.querySelector('[data-focus="word--1"]').focus()`);
  await page.key("Enter");
  const chosen = () => page.run(`document.querySelector(".token[aria-pressed=true]").dataset.focus`);
  same("one word back", await chosen(), "token-0");
  await page.key("ArrowRight");
  same("→ after the first word", await chosen(), "token-1");
  await turn(page, base, { step: "scale" });
  await page.run(`document.querySelector('[data-focus="attention-encoder.self"]').focus()`);
  await page.key("ArrowDown");
  same("↓ to a step of another attention", await step(), "7 mask");
  await page.key("ArrowDown");
  same("↓ from there", await step(), "8 softmax");
}

/** What cannot be read gets one sentence, and the example stays. */
export async function badInputs(page, base) {
  for (const [text, sentence] of [
    ["", "no word"],
    [" \u200b\n", "no word"],
    ["dog ".repeat(300), "at most 63"],
  ]) {
    await turn(page, base, { text });
    const problem = await page.text("#problem");
    check(`${JSON.stringify(text.slice(0, 9))} is refused`, problem.includes(sentence), problem);
    same("the example stays", await page.text("#translation"), "El gato viejo duerme en la casa.");
  }
  for (const [text, word] of [
    ["The dog 🙂 sleeps.", "🙂"],
    ["שלום עולם", "שלום"],
    ["<b>bold</b> zebra", "zebra"],
    ["The animal didn't cross the street.", "animal"],
  ]) {
    await turn(page, base, { text });
    check(
      `${text} is answered`,
      (await page.text("#problem")) === "" &&
        (await page.text("#honesty")).includes(word) &&
        (await page.run(`document.querySelectorAll("#honesty button").length`)) === 3,
      await page.text("#honesty"),
    );
    check(`${text} stays text`, await page.run(`document.querySelector(".both .sentence").textContent === ${JSON.stringify(text)}`));
  }
  // As long as the model reads, on a phone.
  await page.size(360, 780);
  for (const step of STEPS) {
    for (const attention of ["encoder.self", "decoder.cross"]) {
      await turn(page, base, { step, attention, text: "the dog ".repeat(31), source: 61, target: 40 });
      const over = await page.run(`document.documentElement.scrollWidth - document.documentElement.clientWidth`);
      const isAnswered = step === "cut" || (await page.run(`document.querySelector("#answer-${step}") !== null`));
      const inView = `[".token[aria-pressed=true]", "#steps [aria-current]"].every((each) => { const { left, right } = document.querySelector(each).getBoundingClientRect(); return left >= 0 && right <= innerWidth + 1; })`;
      check(`the token and the step of ${step}, ${attention}, are in view`, await page.run(inView));
      check(`${step} of 63 tokens, ${attention}`, over <= 0 && isAnswered, `${over} pixels too wide`);
    }
  }
  await page.size(1280, 800);
  await turn(page, base, { text: "The dog sleeps." });
  same("a known sentence needs no warning", await page.text("#honesty"), "");
}

export async function withoutModel(browser, refuse) {
  const site = await serve(PAGE, { refuse: new Set([refuse]) });
  const page = await browser.page();
  await page.go(addressOf(site.url, { step: "scores" }));
  const status = await page.text("#status");
  check(`without ${refuse}, the page says so`, status.includes("could not be loaded"), status);
  for (const step of STEPS) {
    await turn(page, site.url, { step });
    const text = await page.text("#screen");
    check(
      `without ${refuse}, ${step} is readable`,
      text.length > 200 && (await page.run(`document.querySelector("#answer-${step}") !== null`)),
      text.slice(0, 200),
    );
    check(`without ${refuse}, ${step} does not say that it loads`, !text.includes("still loading"));
    same("and the example stays", await page.text("#translation"), "El gato viejo duerme en la casa.");
  }
  await turn(page, site.url, { text: "The dog sleeps." });
  check(`without ${refuse}, another sentence is refused`, (await page.text("#problem")).startsWith("Without the model"));
  check(
    `without ${refuse}, nothing is thrown`,
    page.errors.every((error) => error.includes("404")),
    page.errors.join("; "),
  );
  await page.close();
  site.close();
}

/** The other model cannot be loaded, and then it can. */
export async function withoutOther(browser) {
  const refuse = new Set(["everyday.model.gz"]);
  const site = await serve(PAGE, { refuse });
  const page = await browser.page();
  const status = () => page.text("#status");
  // Heads that the toy grammar's model does not have.
  await page.go(addressOf(site.url, { model: "everyday", step: "output", cut: ["encoder.1.self.5"] }));
  await page.until(`document.querySelector("#status").textContent.includes("could not be loaded")`);
  check("without the other model, the page says what is shown", (await status()).includes("example of the toy grammar"), await status());
  await page.run(`document.querySelector('[data-focus="model-story"]').click()`);
  same("the first model is there", await status(), "The model runs in this page.");
  await page.run(`document.querySelector('[data-focus="model-everyday"]').click()`);
  refuse.clear();
  await page.run(`document.querySelector('[data-focus="again"]').click()`);
  await page.until(`document.querySelectorAll('[data-focus^="head-"]').length === 6`);
  same("the other model is there", await status(), "The model runs in this page.");
  check(
    "nothing is thrown",
    page.errors.every((error) => error.includes("404")),
    page.errors.join("; "),
  );
  await page.close();
  site.close();
}

export async function history(page, base) {
  await page.go(addressOf(base, { step: "scores" }));
  await page.run(`document.querySelector('[data-focus="token-2"]').click()`);
  await page.run(`document.querySelector('[data-focus="cell-4"]').click()`);
  await page.run(`document.querySelector('[data-focus="layer-0"]').click()`);
  const html = () => page.run(`document.querySelector("#screen").innerHTML + document.querySelector("#strip").innerHTML`);
  const [drawn, address] = [await html(), await page.run("location.href")];
  await page.run("history.go(-2)");
  await pause(200);
  check("back", (await html()) !== drawn && (await page.run("location.hash")) === "#step=scores&source=2");
  await page.run("history.go(2)");
  await pause(200);
  check("forward", (await html()) === drawn);
  await page.go(address);
  check("a link shows the same", (await html()) === drawn);
}
