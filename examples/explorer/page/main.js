// State, address and wiring: what the reader does changes the state, and the page is drawn from it again.

import { el } from "./draw.js";
import { DEFAULTS, TRAINED, fromHash, toHash } from "./state.js";
import { json } from "./files.js";
import { download } from "./models.js";
import { exampleSession, modelSession } from "./session.js";
import { drawModel, say } from "./sentence.js";
import { Missing } from "./trace.js";
import { makeView } from "./view.js";
import { drawSteps, drawStrip } from "./strip.js";
import { SCREENS } from "./screens/all.js";

const byId = (id) => document.getElementById(id);
const places = { strip: byId("strip"), steps: byId("steps"), screen: byId("screen") };
let state = read();
let example = null; // the session that was computed beforehand
let session = null; // the sentence that is shown
let known = { sentences: [], words: [] };
const fallbacks = new Map(); // the example’s session of each model
let isRepeated = false; // a key that is held
const asked = new Set(["story"]); // it comes first, and is loaded by itself
const loaded = new Map(); // what each model consists of, or the error that it failed with

const screenOf = () => SCREENS.find(({ id }) => id === state.step) ?? SCREENS[0];
const textOf = () => state.text ?? example?.text ?? "";
const isThere = (id) => loaded.has(id) && !(loaded.get(id) instanceof Error);
const hasFailed = (id) => loaded.get(id) instanceof Error;

/** Changes the state. `replace` keeps the history short while something is dragged. */
function set(changes, { replace = false } = {}) {
  const before = [state.model, textOf()].join();
  state = { ...state, ...changes };
  if ([state.model, textOf()].join() !== before) state = { ...state, source: 1, target: 1, key: null };
  if ("model" in changes) state.cut = []; // heads of the other model
  const isPicked = "attention" in changes || "source" in changes || "target" in changes || "layer" in changes || "head" in changes;
  if (isPicked && !("key" in changes)) state.key = null; // the strongest again
  draw();
  try {
    history[replace || isRepeated || state.frame ? "replaceState" : "pushState"](null, "", toHash(state));
  } catch {
    // Browsers refuse addresses that change too often; the next one is right again.
  }
}

/** The state that the address says. */
function read() {
  const said = fromHash(location.hash);
  return SCREENS.some(({ id }) => id === said.step) ? said : { ...said, step: DEFAULTS.step };
}

/** The session of the example, as long as nothing else can be shown. */
function fallback(id) {
  if (!fallbacks.has(id)) fallbacks.set(id, modelSession(example.text, loaded.get(id)));
  return fallbacks.get(id);
}

/** The session of the state's text, or the last that worked, with the sentence that says what is wrong. */
function chooseSession() {
  const [text, id] = [textOf(), state.model];
  const isCurrent = session?.text === text && session.id === id;
  if (isCurrent && !(session.isExample && isThere(id))) return null;
  if (!isThere(id)) {
    session = isThere("story") ? fallback("story") : example;
    return hasFailed(id) && text !== example.text ? "Without the model, this sentence cannot be translated." : null;
  }
  try {
    session = modelSession(text, loaded.get(id));
    return null;
  } catch (error) {
    session = fallback(id);
    return error.message;
  }
}

function draw() {
  if (!example) return;
  if (!asked.has(state.model)) load(state.model);
  const problem = chooseSession();
  const screen = screenOf();
  document.documentElement.classList.toggle("frame", state.frame);
  const active = document.activeElement;
  const focus = active?.dataset?.focus;
  const isReplaced = [places.strip, places.screen].some((place) => place.contains(active));
  const before = kept();
  const { view, content } = drawn(screen);
  places.strip.replaceChildren(...drawStrip(view, screen));
  places.steps.replaceChildren(drawSteps(SCREENS, screen, (step) => toHash({ ...state, step })));
  const number = SCREENS.indexOf(screen) + 1;
  places.screen.replaceChildren(
    el("h2", {}, el("span", { class: "number" }, String(number)), ` ${screen.title}`),
    el("p", { class: "question" }, screen.question(view)),
    ...content,
    neighbours(screen),
  );
  if (places.screen.dataset.step === screen.id) before.forEach((restore) => restore());
  places.screen.dataset.step = screen.id;
  document.title = `${screen.title}: attention, one token at a time`;
  drawModel({ state, example, known, set });
  say({ text: textOf(), session, example, known, problem, set });
  drawStatus();
  for (const [frame, chosen] of [
    ["#strip .tokens", "[aria-pressed=true]"],
    ["#steps", "[aria-current]"],
  ])
    show(document.querySelector(frame), chosen);
  const again = focus && document.querySelector(`[data-focus="${CSS.escape(focus)}"]:not(:disabled)`);
  // What had the focus may be gone, or disabled now: keys go on from the step.
  (again ?? (isReplaced ? places.screen : null))?.focus({ preventScroll: true });
  document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn ?? 0) + 1);
}

/** The view and the content of a screen; where it cannot be computed, one sentence in its place. */
function drawn(screen) {
  const viewOf = (state) => makeView(state, session, set, screen.fixed, hasFailed(state.model));
  // The example of another model has only the trained configuration.
  const own = session.id === state.model ? state : { ...state, ...TRAINED };
  try {
    const view = viewOf(own);
    return { view, content: screen.draw(view) };
  } catch (error) {
    const view = viewOf({ ...own, ...TRAINED });
    const sentence =
      error instanceof Missing
        ? view.waiting("This step needs")
        : el("p", { class: "waiting", role: "alert" }, `This cannot be computed for “${session.text}”: ${error.message}`);
    return { view, content: [sentence] };
  }
}

/** Functions that open again what is open, and scroll to where it is. */
function kept() {
  return Array.from(places.screen.querySelectorAll("figure"), (figure) => {
    const [details, at] = [figure.querySelector("details")?.open, figure.querySelector(".scroll").scrollLeft];
    return () => {
      const again = document.getElementById(figure.id);
      if (!again) return;
      if (details) again.querySelector("details").open = true;
      again.querySelector(".scroll").scrollLeft = at;
    };
  });
}

/** Scrolls a line sideways until what is chosen in it can be seen. The page itself stays where it is. */
function show(frame, chosen) {
  if (frame.scrollWidth <= frame.clientWidth) return;
  const [outer, inner] = [frame, frame.querySelector(chosen)].map((each) => each.getBoundingClientRect());
  frame.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
}

function neighbours(screen) {
  const at = SCREENS.indexOf(screen);
  const link = (other, text) =>
    other && el("a", { href: toHash({ ...state, step: other.id }), class: "neighbour", "data-focus": `to-${other.id}` }, text(other.title));
  return el(
    "p",
    { class: "neighbours" },
    link(SCREENS[at - 1], (title) => `← ${title}`),
    link(SCREENS[at + 1], (title) => `${title} →`),
  );
}

/** What there is of the model that is chosen. */
function drawStatus() {
  const id = state.model;
  const error = loaded.get(id);
  const isOther = isThere("story") && id !== "story";
  const again = () => {
    loaded.delete(id);
    asked.delete(id);
    draw();
  };
  const shown = isOther ? "below is the example of the toy grammar" : "the example below was computed beforehand";
  const parts = hasFailed(id)
    ? [
        `The model could not be loaded (${error.message}); ${shown}. `,
        el("button", { type: "button", "data-focus": "again", click: again }, "Try again"),
      ]
    : [isThere(id) ? "The model runs in this page." : `The model is loading; ${shown}.`];
  const place = byId("status");
  if (place.textContent !== el("p", {}, parts).textContent) place.replaceChildren(...parts);
}

/** Moves the token, the step or the head by a key. */
function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !session) return;
  const target = event.target;
  // Elsewhere, the keys scroll the page.
  if (target.closest?.("input, textarea, select") || !target.closest?.("#strip, #steps, #screen")) return;
  const sideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
  const box = target.closest?.(".scroll");
  // A picture that is wider than its frame has the keys to itself while it has the focus.
  if (sideways && box === target && box.scrollWidth > box.clientWidth + 1) return;
  const view = () => makeView(state, session, set, screenOf().fixed);
  const moves = {
    ArrowLeft: () => move(-1),
    ArrowRight: () => move(1),
    // In the frame of another page, they scroll.
    ...(state.frame ? {} : { ArrowUp: () => step(-1), ArrowDown: () => step(1) }),
    h: () => set({ head: (view().head + 1) % view().heads }),
  };
  const move = (by) => {
    const { token, rows, pickToken } = view();
    pickToken((token + by + rows.length) % rows.length);
  };
  const step = (by) => {
    const at = SCREENS.indexOf(screenOf()) + by;
    if (at >= 0 && at < SCREENS.length) set({ step: SCREENS[at].id });
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  isRepeated = event.repeat;
  try {
    moves[event.key]();
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
  } finally {
    isRepeated = false;
  }
}

/** Says which number it is that the pointer is on. The tables say it to everybody else. */
function onPoint(event) {
  const at = event.target.closest?.("[data-tensor]");
  const readout = byId("readout");
  readout.textContent = at
    ? `${at.dataset.tensor}[${at.dataset.at.replaceAll(",", ", ")}] = ${Number(at.getAttribute("value") ?? at.dataset.value).toPrecision(6)}`
    : "";
}

addEventListener("popstate", () => {
  state = read();
  draw();
});
addEventListener("keydown", onKey);
document.addEventListener("pointerover", onPoint);
byId("sentence-form").addEventListener("submit", (event) => {
  event.preventDefault();
  set({ text: byId("sentence").value });
});

/** Makes a model ready. */
async function load(id, files = download(id)) {
  asked.add(id);
  try {
    loaded.set(id, { id, ...(await files.load()) });
  } catch (error) {
    loaded.set(id, error);
  }
  draw();
}

async function start() {
  const [files, sentences] = [download("story"), json("story.sentences.json")];
  sentences.catch(() => {}); // the page does without them
  example = exampleSession(await json("story.json"));
  draw();
  await new Promise((resolve) => {
    requestAnimationFrame(() => setTimeout(resolve, 0));
  });
  performance.mark("painted");
  known = await sentences.catch(() => known);
  await load("story", files);
  performance.mark("ready");
  document.documentElement.dataset.ready = hasFailed("story") ? "failed" : "true";
}

start().catch((error) => {
  byId("status").textContent = `The page could not be loaded: ${error.message}`;
});
