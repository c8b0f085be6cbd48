// Opens every chapter of the built guide in a Chromium, as on a phone and on a desktop: node --experimental-websocket book/check.mjs

import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { open } from "../examples/explorer/tests/browser.mjs";
import { check, counts, same } from "../examples/explorer/tests/check.mjs";
import { serve } from "../examples/explorer/tests/serve.mjs";
import { fromHash } from "../examples/explorer/page/state.js";

const BOOK = fileURLToPath(new URL("../target/book", import.meta.url));
const said = (value) => (Array.isArray(value) ? value.join(" ") : String(value));

const site = await serve(BOOK);
const browser = await open();
const chapters = readdirSync(BOOK).filter((name) => /^\d\d-.*\.html$/.test(name));
same("chapters", chapters.length, 17);
for (const chapter of chapters) {
  const page = await browser.page();
  await page.size(360, 780);
  await page.goto(site.url + chapter);
  const { over, frames, stills, links } = await page.run(`({
    over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    frames: [...document.querySelectorAll(".live iframe")].map((frame) => frame.src),
    stills: [...document.querySelectorAll(".live img")].map((image) => image.src),
    links: [...document.querySelectorAll("main a[href]")].map((link) => link.href),
  })`);
  check(`${chapter} fits a phone`, over <= 0, `${over} pixels too wide`);
  same(`figures of ${chapter}`, [frames.length, stills.length], [1, 1]);
  for (const address of [...frames, ...links].filter((address) => address.includes("explorer/index.html#"))) {
    const { hash } = new URL(address);
    const state = fromHash(hash);
    for (const [name, value] of new URLSearchParams(hash.slice(1))) same(`${name} in ${address} of ${chapter}`, said(state[name]), value);
  }
  for (const address of [...stills, ...links.filter((address) => address.startsWith(site.url))]) {
    const { status } = await fetch(address);
    check(`${address} of ${chapter} is there`, status === 200, `${status}`);
  }
  await page.size(1280, 900);
  await page.run(`document.querySelector(".live iframe").scrollIntoView()`);
  await page.until(`document.querySelector(".live iframe").contentDocument.documentElement.dataset.ready === "true"`);
  const figure = await page.run(`document.querySelector(".live iframe").contentDocument.querySelector("#screen").textContent.length`);
  check(`the figure of ${chapter} is drawn`, figure > 200, `${figure} characters`);
  same(`errors of ${chapter}`, page.errors, []);
  await page.close();
}
await browser.close();
site.close();
console.log(`${chapters.length} chapters: ${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed > 0 ? 1 : 0);
