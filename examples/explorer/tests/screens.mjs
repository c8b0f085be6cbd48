// The page on screens of every size, light and dark, and pictures of it.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { STEPS, check, pause, turn } from "./check.mjs";

export async function screens(page, base, shots) {
  const wide = `(() => { const all = document.documentElement; return all.scrollWidth - all.clientWidth; })()`;
  const small = `[...document.querySelectorAll("button, summary, #steps a, .neighbour, input")].filter((each) => { const { width, height } = each.getBoundingClientRect(); return width > 0 && (height < 43.5 || width < 43.5) && each.type !== "range"; }).map((each) => each.outerHTML.slice(0, 80))`;
  for (const [width, height] of [
    [360, 780],
    [640, 450],
    [768, 1024],
    [1280, 800],
    [1920, 1080],
  ]) {
    for (const dark of [false, true]) {
      await page.size(width, height, { dark });
      for (const step of STEPS) {
        for (const attention of ["encoder.self", "decoder.cross"]) {
          await turn(page, base, { step, attention });
          const over = await page.run(wide);
          check(`${step} at ${width}, ${attention}`, over <= 0, `${over} pixels too wide`);
        }
        await turn(page, base, { step, model: "everyday", text: "My brother has a red car." });
        const other = await page.run(wide);
        check(`${step} at ${width}, of the other model`, other <= 0, `${other} pixels too wide`);
        const targets = await page.run(small);
        check(`targets of ${step} at ${width}`, targets.length === 0, targets.slice(0, 2).join(" "));
      }
    }
  }
  await page.call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "reduce" }] });
  check(
    "no motion where none is wanted",
    await page.run(`[...document.querySelectorAll("*")].every((each) => getComputedStyle(each).transitionDuration === "0s")`),
  );
  if (process.env.AXE) await axe(page, base, readFileSync(process.env.AXE, "utf8"));
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  const views = [
    ["read", 1280, 900, false],
    ["embed", 1280, 900, true],
    ["project", 1920, 1080, false],
    ["split", 768, 1024, true],
    ["scores", 1280, 1200, false],
    ["scale", 1280, 1200, true],
    ["mask", 1920, 1080, true],
    ["softmax", 360, 780, false],
    ["sum", 1280, 1000, false],
    ["merge", 768, 1024, false],
    ["decode", 1280, 1000, true],
    ["cut", 360, 780, true],
  ];
  for (const [step, width, height, dark] of views) {
    await page.size(width, height, { dark });
    await turn(page, base, { step, text: step === "cut" ? "Her grandmother closed the yellow window." : null, source: 5 });
    if (step === "cut") await page.until(`document.querySelector("#cut-answer").hasChildNodes()`);
    await page.run(`scrollTo(0, ${width < 700} ? document.querySelector("#screen").offsetTop : 0)`);
    await pause(200);
    writeFileSync(join(shots, `${step}-${width}-${dark ? "dark" : "light"}.png`), await page.shot());
  }
}

/** What axe-core finds serious; `AXE` names its file. */
async function axe(page, base, script) {
  await page.size(1280, 800);
  await page.run(script);
  for (const dark of [false, true]) {
    await page.size(1280, 800, { dark });
    for (const step of STEPS) {
      await turn(page, base, { step, attention: "decoder.cross" });
      const found = await page.run(
        `axe.run().then(({ violations }) => violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => id + ": " + nodes[0].html))`,
      );
      check(`axe on ${step}`, found.length === 0, found.join("; "));
    }
  }
}
