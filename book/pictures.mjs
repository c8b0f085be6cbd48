// Draws the pictures of the explorer and of the translator's page, which needs a translator that was trained before:
//     cargo run --release -p translation && node --experimental-websocket book/pictures.mjs translation-run

import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { open } from "../examples/explorer/tests/browser.mjs";
import { pause } from "../examples/explorer/tests/check.mjs";
import { serve } from "../examples/explorer/tests/serve.mjs";

if (!process.argv[2]) throw new Error("name the folder of the trained translator: pictures.mjs translation-run");
const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const PICTURES = [
  {
    folder: here("../examples/explorer/page"),
    address: "#step=scores&attention=decoder.cross&layer=1&head=3&target=2",
    loaded: "document.documentElement.dataset.ready !== undefined",
    width: 1240,
    height: 1180,
    name: "explorer/explorer.png",
  },
  {
    folder: process.argv[2],
    address: "attention.html#3.1.2",
    loaded: "!(document.getElementById('guide').open = false)",
    width: 1160,
    height: 1310,
    name: "translation/attention.png",
  },
];

const browser = await open();
const page = await browser.page();
for (const { folder, address, loaded, width, height, name } of PICTURES) {
  const site = await serve(folder);
  await page.size(width, height);
  await page.goto(site.url + address, loaded);
  await pause(500);
  writeFileSync(here(`../examples/${name}`), await page.shot());
  console.log(`${name}, ${width} × ${height}`);
  site.close();
}
await browser.close();
