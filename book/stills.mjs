// Draws the stills of the guide's figures, which stand for them in print: node --experimental-websocket book/stills.mjs

import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { open } from "../examples/explorer/tests/browser.mjs";
import { pause } from "../examples/explorer/tests/check.mjs";
import { serve } from "../examples/explorer/tests/serve.mjs";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const [WIDTH, LEAST, MOST] = [760, 200, 1400]; // pixels
const FIGURE = /src="explorer\/index\.html(#[^"]*)"><\/iframe><img [^>]*src="stills\/([^"]+)"/g;

mkdirSync(here("src/stills"), { recursive: true });
const site = await serve(here("../examples/explorer/page"));
const browser = await open();
const page = await browser.page();
for (const chapter of readdirSync(here("src")).filter((name) => name.endsWith(".md"))) {
  for (const [, state, name] of readFileSync(join(here("src"), chapter), "utf8").matchAll(FIGURE)) {
    await page.size(WIDTH, LEAST);
    await page.go(site.url + state);
    if (state.includes("step=cut")) await page.until(`document.querySelector("#cut-answer")?.hasChildNodes()`);
    await pause(200);
    const height = Math.min(await page.run("document.documentElement.scrollHeight"), MOST);
    await page.size(WIDTH, height);
    writeFileSync(join(here("src/stills"), name), await page.shot({ format: "webp", quality: 60 }));
    console.log(`${chapter}: ${name}, ${WIDTH} × ${height}`);
  }
}
await browser.close();
site.close();
