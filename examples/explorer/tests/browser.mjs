// A Chromium, driven by the DevTools protocol: needs `node --experimental-websocket` before node 22.

import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pause } from "./check.mjs";

const NAMES = (process.env.CHROMIUM ?? "chromium chromium-browser google-chrome google-chrome-stable").split(" ");
const PATIENCE = 20_000; // ms; a loaded machine is slow

/** Starts a browser without a window. */
export async function open() {
  const profile = mkdtempSync(join(tmpdir(), "explorer-"));
  const flags = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    // A fast machine changes the address more than 200 times in 10 s, after which Chromium would drop changes.
    "--disable-ipc-flooding-protection",
    "--remote-debugging-port=0",
    `--user-data-dir=${profile}`,
    "about:blank",
  ];
  let child;
  let address;
  for (const name of NAMES) {
    child = spawn(name, flags, { stdio: ["ignore", "ignore", "pipe"] });
    address = await new Promise((resolve) => {
      let said = "";
      child.on("error", () => resolve(null));
      child.on("exit", () => resolve(null));
      child.stderr.on("data", (bytes) => {
        said += bytes;
        const found = said.match(/DevTools listening on (\S+)/);
        if (found) resolve(found[1]);
      });
    });
    if (address) break;
  }
  if (!address) throw new Error(`no browser starts, of ${NAMES.join(", ")}`);
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.onopen = resolve;
    socket.onerror = reject;
  });
  const waiting = new Map();
  const pages = new Map();
  let calls = 0;
  const send = (method, params = {}, sessionId) =>
    new Promise((resolve, reject) => {
      calls += 1;
      waiting.set(calls, { resolve, reject, method });
      socket.send(JSON.stringify({ id: calls, method, params, sessionId }));
    });
  socket.onmessage = ({ data }) => {
    const { id, result, error, method, params, sessionId } = JSON.parse(data);
    if (id) {
      const call = waiting.get(id);
      waiting.delete(id);
      if (error) call.reject(new Error(`${call.method}: ${error.message}`));
      else call.resolve(result);
    } else pages.get(sessionId)?.heard(method, params);
  };
  const page = async () => {
    const { targetId } = await send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
    const opened = new Page((method, params) => send(method, params, sessionId));
    pages.set(sessionId, opened);
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await opened.call(`${domain}.enable`);
    opened.close = () => send("Target.closeTarget", { targetId });
    return opened;
  };
  const close = async () => {
    const ended = new Promise((resolve) => {
      child.on("exit", resolve);
    });
    await send("Browser.close").catch(() => {});
    setTimeout(() => child.kill("SIGKILL"), PATIENCE).unref();
    await ended;
    // Its own children may write for a moment longer.
    for (let tries = 0; existsSync(profile) && tries < 50; tries += 1) {
      try {
        rmSync(profile, { recursive: true, force: true });
      } catch {
        await pause(100);
      }
    }
  };
  return { page, close };
}

class Page {
  errors = [];
  requests = [];

  constructor(call) {
    this.call = call;
  }

  heard(method, params) {
    if (method === "Runtime.exceptionThrown")
      this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type))
      this.errors.push(params.args.map(({ value }) => value).join(" "));
    if (method === "Log.entryAdded" && params.entry.level === "error") this.errors.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
  }

  /** The value of an expression, which may be a promise. */
  async run(expression) {
    const { result, exceptionDetails } = await this.call("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
      userGesture: true,
    });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** The text of an element, nothing of one that is hidden. */
  text(selector) {
    const at = JSON.stringify(selector);
    return this.run(`((at) => (at.hidden ? "" : at.textContent))(document.querySelector(${at}))`);
  }

  async until(expression) {
    for (const end = Date.now() + PATIENCE; Date.now() < end;) {
      if (await this.run(expression).catch(() => false)) return;
      await pause(20);
    }
    throw new Error(`the page never came to ${expression}`);
  }

  /** Opens any page. */
  async goto(url, loaded = "true") {
    await this.call("Page.navigate", { url: "about:blank" });
    await this.call("Page.navigate", { url });
    await this.until(`location.href !== "about:blank" && document.readyState === "complete" && ${loaded}`);
  }

  /** Opens the explorer, with its model. */
  go(url) {
    return this.goto(url, "document.documentElement.dataset.ready !== undefined");
  }

  async size(width, height, { dark = false, scale = 1 } = {}) {
    await this.call("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: scale, mobile: false });
    await this.call("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  }

  async key(key) {
    const code = { ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Enter: 13, Tab: 9 }[key] ?? key.toUpperCase().charCodeAt(0);
    const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined;
    const event = { key, windowsVirtualKeyCode: code, text, code: key.length === 1 ? `Key${key.toUpperCase()}` : key };
    await this.call("Input.dispatchKeyEvent", { type: "keyDown", ...event });
    await this.call("Input.dispatchKeyEvent", { type: "keyUp", ...event, text: undefined });
  }

  async shot(options = { format: "png" }) {
    const { data } = await this.call("Page.captureScreenshot", options);
    return Buffer.from(data, "base64");
  }
}
