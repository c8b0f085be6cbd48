// Serves the files of one folder on this computer alone. `refuse` names files that are answered with 404.

import { createServer } from "node:http";
import { readFile } from "node:fs/promises";
import { join, normalize } from "node:path";

const TYPES = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  json: "application/json",
  wasm: "application/wasm",
  svg: "image/svg+xml",
};

export async function serve(folder, { refuse = new Set(), requested = [] } = {}) {
  const server = createServer(async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://here").pathname)).replace(/^\/+/, "") || "index.html";
    requested.push(path);
    const bytes = refuse.has(path) || path.startsWith("..") ? null : await readFile(join(folder, path)).catch(() => null);
    response.writeHead(bytes ? 200 : 404, { "Content-Type": TYPES[path.split(".").at(-1)] ?? "application/octet-stream" });
    response.end(bytes ?? "");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}
