// State, address and wiring: what the reader does changes the state, and the page is drawn from it again.

import { el } from "./draw.js";
import { fromHash, toHash } from "./state.js";
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
let state = fromHash(location.hash);
let example = null; // the session that was computed beforehand
let session = null; // the sentence that is shown
let known = { sentences: [], words: [] };
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
  history[replace || state.frame ? "replaceState" : "pushState"](null, "", toHash(state));
  draw();
}

/** The session of the state's text, or the last that worked, with the sentence that says what is wrong. */
function chooseSession() {
  const [text, id] = [textOf(), state.model];
  const isCurrent = session?.text === text && session.id === id;
  if (isCurrent && !(session.isExample && isThere(id))) return null;
  if (!isThere(id)) {
    session = isThere("story") ? modelSession(example.text, loaded.get("story")) : example;
    return hasFailed(id) && text !== example.text ? "Without the model, this sentence cannot be translated." : null;
  }
  try {
    session = modelSession(text, loaded.get(id));
    return null;
  } catch (error) {
    session = modelSession(example.text, loaded.get(id));
    return error.message;
  }
}

function draw() {
  if (!example) return;
  if (!asked.has(state.model)) {
    status("The model is loading.");
    load(state.model);
  }
  const problem = chooseSession();
  const screen = screenOf();
  document.documentElement.classList.toggle("frame", state.frame);
  const focus = document.activeElement?.dataset?.focus;
  let content;
  let view = null;
  const waiting = () =>
    el(
      "p",
      { class: "waiting" },
      hasFailed(state.model)
        ? "This step needs the model, which could not be loaded. The example in its trained configuration can still be read."
        : "This step needs the model, which is still loading.",
    );
  try {
    view = makeView(state, session, set, screen.fixed);
    content = screen.draw(view);
  } catch (error) {
    if (error instanceof Missing) content = [waiting()];
    else if (isThere(state.model)) content = [el("p", { class: "waiting", role: "alert" }, `This cannot be computed: ${error.message}`)];
    else throw error;
  }
  if (!view) view = makeView({ ...state, scale: "trained", causal: true, positions: true, cut: [] }, session, set, screen.fixed);
  places.strip.replaceChildren(...drawStrip(view, screen));
  places.steps.replaceChildren(drawSteps(SCREENS, screen, (step) => toHash({ ...state, step })));
  const number = SCREENS.indexOf(screen) + 1;
  places.screen.replaceChildren(
    el("h2", {}, el("span", { class: "number" }, String(number)), ` ${screen.title}`),
    el("p", { class: "question" }, screen.question(view)),
    ...content,
    neighbours(screen),
  );
  document.title = `${screen.title}: attention, one token at a time`;
  drawModel({ state, example, known, set });
  say({ text: textOf(), session, example, known, problem, set });
  for (const [frame, chosen] of [
    ["#strip .tokens", "[aria-pressed=true]"],
    ["#steps", "[aria-current]"],
  ])
    show(document.querySelector(frame), chosen);
  if (focus) document.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus({ preventScroll: true });
  document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn ?? 0) + 1);
}

/** Scrolls a line sideways until what is chosen in it can be seen. The page itself stays where it is. */
function show(frame, chosen) {
  if (frame.scrollWidth <= frame.clientWidth) return;
  const [outer, inner] = [frame, frame.querySelector(chosen)].map((each) => each.getBoundingClientRect());
  frame.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
}

function neighbours(screen) {
  const at = SCREENS.indexOf(screen);
  const link = (other, text) => other && el("a", { href: toHash({ ...state, step: other.id }), class: "neighbour" }, text(other.title));
  return el(
    "p",
    { class: "neighbours" },
    link(SCREENS[at - 1], (title) => `← ${title}`),
    link(SCREENS[at + 1], (title) => `${title} →`),
  );
}

function status(text) {
  byId("status").textContent = text;
}

/** Moves the token, the step or the head by a key. */
function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !session) return;
  const target = event.target;
  if (target.closest?.("input, textarea, select")) return;
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
  try {
    moves[event.key]();
  } catch (error) {
    if (!(error instanceof Missing)) throw error;
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
  state = fromHash(location.hash);
  draw();
});
addEventListener("keydown", onKey);
document.addEventListener("pointerover", onPoint);
byId("sentence-form").addEventListener("submit", (event) => {
  event.preventDefault();
  set({ text: byId("sentence").value });
});

/** Makes a model ready, and says so. */
async function load(id, files = download(id)) {
  asked.add(id);
  try {
    loaded.set(id, { id, ...(await files.load()) });
    status("The model runs in this page.");
  } catch (error) {
    loaded.set(id, error);
    status(`The model could not be loaded (${error.message}); the example below was computed beforehand.`);
  }
  draw();
}

async function start() {
  const [files, sentences] = [download("story"), json("story.sentences.json")];
  sentences.catch(() => {}); // said below, once the example is drawn
  example = exampleSession(await json("story.json"));
  status("The model is loading; the example was computed beforehand.");
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

start().catch((error) => status(`The page could not be loaded: ${error.message}`));
