// Of which sources the page's module is: page/built.json has their names and a hash.

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
export const BUILT = fileURLToPath(new URL("../page/built.json", import.meta.url));

/** What a module says of itself that is compiled from these files now. Comments and empty lines do not count. */
export function built(sources) {
  const hash = createHash("sha256");
  for (const path of sources) {
    const lines = readFileSync(join(ROOT, path), "utf8").split("\n");
    const code = lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("//"));
    hash.update([path, ...code, ""].join("\n"));
  }
  const module = createHash("sha256").update(readFileSync(join(ROOT, "examples/explorer/page/explorer.wasm.gz")));
  return { module: module.digest("hex"), sources: hash.digest("hex"), files: sources };
}
