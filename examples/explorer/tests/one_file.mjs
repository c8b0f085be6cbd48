// The page as one file, opened from the disk.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { addressOf, check, same } from "./check.mjs";
import { PAGE } from "./model.mjs";

export async function oneFile(browser, program) {
  const folder = mkdtempSync(join(tmpdir(), "explorer-"));
  const file = join(folder, "explorer.html");
  execFileSync(program, ["one-file", "--page", PAGE, "--out", file], { stdio: "ignore" });
  const page = await browser.page();
  const base = `file://${file}`;
  await page.go(addressOf(base, { step: "cut", text: "Her grandmother closed the yellow window." }));
  same("one file translates", await page.text("#translation"), "Su abuela cerró la ventana amarilla.");
  // In a worker of its own.
  await page.until(`document.querySelector("#cut-answer")?.hasChildNodes()`);
  same("one file cuts all heads", await page.run(`document.querySelectorAll("[data-head]").length`), 24);
  same("no error of one file", page.errors, []);
  const others = page.requests.filter((url) => !url.startsWith(base) && !/^(blob|data):|^about:blank/.test(url));
  check("one file asks for nothing else", others.length === 0, others.join());
  await page.close();
  rmSync(folder, { recursive: true });
}
