// Turns the module that cargo built into the page's, and notes of which sources it is. `cargo run-checks --explorer` runs it:
// node examples/explorer/pack.mjs MODULE.wasm

import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { BUILT, ROOT, built } from "./tests/sources.mjs";

const EXPORTS = ["memory", "allocate", "load", "run", "text", "text_length", "numbers", "numbers_length"];
// What Rust's compiler takes for granted in a browser.
const FEATURES = ["simd", "bulk-memory", "reference-types", "multivalue", "sign-ext", "nontrapping-float-to-int", "mutable-globals"];

const module = resolve(process.argv[2]);
const [graph, small] = [join(dirname(module), "graph.json"), join(dirname(module), "small.wasm")];
const nodes = EXPORTS.map((name) => ({ name, root: true, export: name }));
writeFileSync(graph, JSON.stringify(nodes));
// A crate that no call reaches exports a thousand functions: without them, everything that only they call goes too.
execFileSync("wasm-metadce", [module, "-f", graph, "-o", small, ...FEATURES.map((name) => `--enable-${name}`)], {
  stdio: ["ignore", "ignore", "inherit"],
});
const page = fileURLToPath(new URL("page", import.meta.url));
writeFileSync(join(page, "explorer.wasm.gz"), gzipSync(readFileSync(small), { level: 9 }));
rmSync(small);

// cargo lists what it compiled, the texts that are docs among it.
const [, listed] = readFileSync(module.replace(/wasm$/, "d"), "utf8").split(": ");
const sources = listed
  .trim()
  .split(/(?<!\\) /)
  .map((path) => relative(ROOT, path.replaceAll("\\ ", " ")))
  .filter((path) => !path.endsWith(".md"));
const text = JSON.stringify(built(sources.sort()), null, 1);
writeFileSync(BUILT, `${text}\n`);
console.log(`page/explorer.wasm.gz, of ${sources.length} sources`);
await import("./tests/make_story.mjs");
