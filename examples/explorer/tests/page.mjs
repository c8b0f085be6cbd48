// Opens the page in a Chromium, and compares what it shows with the native program, its translations and the budgets:
// node --experimental-websocket examples/explorer/tests/page.mjs target/debug/explorer [FOLDER FOR SCREENSHOTS]

import { readFileSync } from "node:fs";
import { history, badInputs, keyboard, switches, withoutModel, withoutOther } from "./behaviour.mjs";
import { open } from "./browser.mjs";
import { budgets } from "./budgets.mjs";
import { addressOf, check, counts, same } from "./check.mjs";
import { PAGE, nativeModel } from "./model.mjs";
import { allNumbers, answers, compared, everyday, example, hashes, tokens, translations } from "./numbers.mjs";
import { oneFile } from "./one_file.mjs";
import { screens } from "./screens.mjs";
import { serve } from "./serve.mjs";
import { BUILT, built } from "./sources.mjs";

const [program, shots] = process.argv.slice(2);
const noted = JSON.parse(readFileSync(BUILT, "utf8"));
const REBUILD = "`cargo run-checks --explorer` builds it again";
check(`the module is of these sources: ${REBUILD}`, built(noted.files).sources === noted.sources);
check(`the module is the one that was built: ${REBUILD}`, built(noted.files).module === noted.module);
const native = await nativeModel("story", program);
const people = await nativeModel("everyday", program);
const requested = [];
const site = await serve(PAGE, { requested });
const browser = await open();
try {
  tokens(native);
  hashes();
  example(native);
  await budgets(browser, site.url);
  const page = await browser.page();
  await page.size(1280, 800);
  await page.go(addressOf(site.url, {}));
  const parts = {
    translations,
    everyday: (...of) => everyday(...of, people),
    answers: (...of) => answers(...of, native),
    allNumbers: (...of) => allNumbers(...of, native),
    switches,
    keyboard,
    badInputs,
    screens: (...of) => screens(...of, shots),
    history,
  };
  for (const [name, part] of Object.entries(parts)) {
    const start = Date.now();
    await part(page, site.url).catch((error) => check(name, false, error.stack));
    console.log(`${name}: ${((Date.now() - start) / 1000).toFixed(1)} s`);
  }
  console.log(`${compared} numbers compared`);
  same("no console error", page.errors, []);
  same(
    "no request leaves",
    page.requests.filter((url) => !url.startsWith(site.url) && url !== "about:blank"),
    [],
  );
  same(
    "only files of the page",
    [...new Set(requested)].filter(
      (path) => !/^(index\.html|[a-z/_-]+\.js|style\.css|icon\.svg|story(\.[a-z]+)?\.json|[a-z.]+\.gz|favicon\.ico)$/.test(path),
    ),
    [],
  );
  await withoutModel(browser, "explorer.wasm.gz");
  await withoutModel(browser, "story.model.gz");
  await withoutOther(browser);
  await oneFile(browser, program);
} finally {
  await browser.close();
  site.close();
}
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed > 0 ? 1 : 0);
