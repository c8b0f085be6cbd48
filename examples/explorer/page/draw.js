// Elements and figures. Every number that is shown says which number of which tensor it is: data-tensor and data-at; a number that the
// page computes from others says how and from which: data-derived and data-from. Styles are set through the CSSOM, as the policy asks.

import { entropy, norm, sum } from "./trace.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "style") for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
export const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

/** A number as people write it, with a real minus. */
export const shown = (value, digits = 2) => {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
};

/** One number of a tensor. */
export function number(trace, name, at, digits = 2) {
  const value = trace.at(name, ...at);
  return el("data", { value, "data-tensor": name, "data-at": at.join(), class: value < 0 ? "negative" : null }, shown(value, digits));
}

/** A number that the page computes: `kind` says how, `from` lists the numbers or rows (`name@1,2`) that it is computed from. */
export function derived(value, kind, from, digits = 2) {
  return el(
    "data",
    { value, "data-derived": kind, "data-from": from.join("|"), class: value < 0 ? "negative" : null },
    shown(value, digits),
  );
}
const from = (name, at) => `${name}@${at.join()}`;
export const product = (trace, [a, i], [b, j], digits) =>
  derived(trace.at(a, ...i) * trace.at(b, ...j), "product", [from(a, i), from(b, j)], digits);
export const lengthOf = (trace, name, at, digits) => derived(norm(trace.row(name, ...at)), "norm", [from(name, at)], digits);
export const spread = (trace, name, at, digits) => derived(entropy(trace.row(name, ...at)), "entropy", [from(name, at)], digits);
export const total = (trace, name, at, digits) => derived(sum(trace.row(name, ...at)), "sum", [from(name, at)], digits);
export const top = (trace, name, at, digits) => derived(Math.max(...trace.row(name, ...at)), "largest", [from(name, at)], digits);

/** One number of a parameter of the model. */
export const parameter = (value, name, at, digits = 3) =>
  el("data", { value, "data-parameter": name, "data-at": at.join() }, shown(value, digits));

/** What another run of the model computed: its switches stand on the element, so that its numbers can be checked. */
export const ofRun = (run, ...children) => el("div", { class: "run", ...asked(run) }, ...children);
export const saidOfRun = (run, ...children) => el("span", asked(run), ...children);
const asked = ({ switches, target }) => ({ "data-switches": JSON.stringify(switches), "data-target": target.join() });

/** A picture with a sentence made of its numbers, and the same as a table for whoever cannot see it. */
export function figure(id, { caption, body, table, note }) {
  const box = el(
    "div",
    { class: "scroll", tabindex: 0, role: "group", "aria-label": `Picture: ${id}`, "data-focus": `picture-${id}` },
    ...body,
  );
  const details =
    table &&
    el(
      "details",
      {
        class: "as-table",
        toggle: (event) => {
          const place = event.target.querySelector(".scroll");
          if (event.target.open && !place.hasChildNodes()) place.append(table());
        },
      },
      el("summary", { "data-focus": `table-${id}` }, "Show as table"),
      el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Table: ${id}` }),
    );
  const quiet = note?.length > 0 && el("p", { class: "quiet" }, ...note);
  return el("figure", { id: `figure-${id}` }, el("figcaption", {}, ...caption), box, quiet, details);
}

/** A table. `heads` are the names of its columns, null for none; a row is its label and its cells. */
export const grid = (kind, heads, rows) =>
  el(
    "table",
    { class: kind },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((head) => (head === null ? el("td") : el("th", { scope: "col" }, String(head)))),
      ),
    ),
    el(
      "tbody",
      {},
      rows.map(([label, ...cells]) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, label),
          cells.map((cell) => el("td", {}, cell)),
        ),
      ),
    ),
  );

/** A table of the rows of a tensor, to four digits. `rows` are [label, index] pairs. */
export function table(trace, name, rows, columns) {
  const width = trace.row(name, ...rows[0][1]).length;
  const places = Array.from({ length: width }, (_, place) => place);
  const cells = (at) => places.map((place) => number(trace, name, [...at, place], 4));
  return grid(
    "numbers",
    [null, ...(columns ?? places)],
    rows.map(([label, at]) => [label, ...cells(at)]),
  );
}

const BAR = 10; // width of a number in the units of the drawing
const TALL = 40;

/** The numbers of a vector as bars around a line: up is positive, down and hatched is negative. `pick` makes them choose a place. */
export function bars(values, { role = "plain", scale, label, tensor, at = [], start = 0, picked, pick, weak = false, extent }) {
  const reach = scale || Math.max(...values.map(Math.abs)) || 1;
  const count = values.length;
  let inside = "";
  for (let place = 0; place < count; place += 1) {
    const value = values[place];
    const height = Math.max((Math.min(Math.abs(value) / reach, 1) * TALL) / 2, 0.4);
    const y = value < 0 ? TALL / 2 : TALL / 2 - height;
    const says = tensor
      ? ` data-tensor="${tensor}" data-at="${[...at, start + place].join()}" data-value="${value}"`
      : ` data-value="${value}"`;
    inside += `<rect x="${place * BAR + 1}" y="${y}" width="${BAR - 2}" height="${height}" ${value < 0 ? `class="below" fill="url(#hatch-${role})"` : 'class="above"'}${says}/>`;
  }
  if (picked >= 0 && picked < count) inside += `<rect class="picked" x="${picked * BAR}" y="0" width="${BAR}" height="${TALL}"/>`;
  const picture = svg("svg", {
    class: `bars role-${role}${weak ? " weak" : ""}${pick ? " pick" : ""}`,
    viewBox: `0 0 ${count * BAR} ${TALL}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": label,
    "data-reach": reach,
    style: { "--count": extent ?? count },
    click: pick
      ? (event) => {
          const frame = picture.getBoundingClientRect();
          pick(Math.min(Math.max(Math.floor(((event.clientX - frame.left) / frame.width) * count), 0), count - 1));
        }
      : null,
  });
  picture.innerHTML = `${inside}<line class="zero" x1="0" x2="${count * BAR}" y1="${TALL / 2}" y2="${TALL / 2}"/>`;
  return picture;
}

/** A row of a tensor as bars. `cut` takes a part of it. */
export function strip(trace, name, at, options = {}) {
  const row = trace.row(name, ...at);
  const [start, end] = options.cut ?? [0, row.length];
  return bars(row.subarray(start, end), { label: `${end - start} numbers of ${name}`, ...options, tensor: name, at, start });
}

/** Labels and pictures in a grid, one line each. A line is [label, picture, after]. */
export const lines = (all) =>
  el(
    "div",
    { class: "lines", style: { "--most": `${widest(all)}px` } },
    all.map(([label, picture, after, lit]) =>
      el(
        "div",
        { class: `line${lit ? " lit" : ""}` },
        el("div", { class: "name" }, label),
        el("div", { class: "of" }, picture),
        el("div", { class: "after" }, after ?? ""),
      ),
    ),
  );

/** Rows of the query token, given as [tensor, label, whether it is lit], with their numbers at one place, which a click changes. */
export function numberLines({ trace, token, pickNumber }, at, tensors) {
  const scale = Math.max(...tensors.flatMap(([name]) => [...trace.row(name, token)].map(Math.abs)));
  return lines(
    tensors.map(([name, label, lit]) => [
      label,
      strip(trace, name, [token], { scale, picked: at, pick: pickNumber }),
      number(trace, name, [token, at]),
      lit,
    ]),
  );
}

const NUMBER = 14; // pixels of a number of a vector, at most
const SHARES = 480; // pixels of a bar of shares, and of pieces
const widest = (all) =>
  Math.max(
    ...all.map(([, picture]) => {
      const count = Number(picture.style.getPropertyValue("--count"));
      return count ? count * NUMBER : picture.matches(".pieces, .bands") ? 3 * 96 * NUMBER : SHARES;
    }),
  );

/** A share of the strongest, as colour: `signed` numbers diverge around paper. */
function shade(value, reach) {
  const share = reach > 0 ? Math.min(Math.abs(value) / reach, 1) : 0;
  return { "--share": `${(share * 62).toFixed(1)}%` };
}

const MOST_ROWS = 16; // of a matrix are drawn at once, around the chosen one

/** A matrix of a head: queries are rows, keys are columns. Hidden cells are hatched across. */
function matrix(trace, name, head, { rows, columns, row, column, hidden, pick, digits = 2, signed = false, bare = false }) {
  const count = rows.length;
  const first = count > MOST_ROWS ? Math.min(Math.max(row - MOST_ROWS / 2, 0), count - MOST_ROWS) : 0;
  const places = Array.from({ length: Math.min(count, MOST_ROWS) }, (_, place) => first + place);
  let reach = signed ? 0 : 1;
  if (signed) for (const at of places) for (const value of trace.row(name, head, at)) reach = Math.max(reach, Math.abs(value));
  const isHidden = (at, key) => hidden && trace.at(hidden, head, at, key) === 1;
  const cell = (at, key) => {
    const value = trace.at(name, head, at, key);
    const off = isHidden(at, key);
    const marks = [off && "hidden", value < 0 && "below", at === row && key === column && "open"].filter(Boolean).join(" ");
    const content = bare && off ? el("span", {}, "hidden") : number(trace, name, [head, at, key], digits);
    const inner =
      pick && at === row
        ? el(
            "button",
            {
              type: "button",
              "data-focus": `cell-${key}`,
              "aria-pressed": String(key === column),
              "aria-label": `${rows[at]} and ${columns[key]}: ${shown(value, digits)}${off ? ", hidden" : ""}`,
            },
            content,
          )
        : content;
    return el("td", { class: marks || null, style: shade(off && !signed ? 0 : value, reach), "data-cell": `${at},${key}` }, inner);
  };
  return el(
    "table",
    {
      class: `matrix${signed ? " signed" : ""}`,
      click: pick
        ? (event) => {
            const at = event.target.closest("[data-cell]")?.dataset.cell.split(",").map(Number);
            if (at) pick(...at);
          }
        : null,
    },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("td", { class: "corner" }, "query ↓ key →"),
        columns.map((label, key) => el("th", { scope: "col", class: key === column ? "open" : null }, el("span", {}, label))),
      ),
    ),
    el(
      "tbody",
      {},
      places.map((at) =>
        el(
          "tr",
          { class: at === row ? "lit" : null },
          el("th", { scope: "row" }, rows[at]),
          columns.map((_, key) => cell(at, key)),
        ),
      ),
    ),
  );
}

/** A matrix of the chosen head, and its table; `trace` is another run's. A note says which rows of a long one are drawn. */
export function matrixFigure(id, view, name, { caption, note = [], trace = view.trace, ...options }) {
  const { head, token, rows, columns } = view;
  const count = rows.length;
  const drawn = count > MOST_ROWS ? [`Of ${count} rows, the ${MOST_ROWS} around the query token are drawn; the table has all.`] : [];
  const labelled = rows.map((label, at) => [label, [head, at]]);
  return figure(id, {
    caption,
    body: [matrix(trace, name, head, { rows, columns, row: token, column: -1, ...options })],
    note: [...note, ...drawn],
    table: () => table(trace, name, labelled, columns),
  });
}

/** Lines of Rust, with those that a switch changed marked. */
export const rust = (...all) =>
  el(
    "pre",
    { class: "rust" },
    all.filter(Boolean).map((line) => {
      const [text, changed] = Array.isArray(line) ? line : [line, false];
      return el(changed ? "mark" : "span", {}, `${text}\n`);
    }),
  );

/** Buttons of which one is pressed, or none of null. `choices` are [value, label] pairs. */
export const choice = (label, name, choices, value, choose, disabled = () => false) =>
  el(
    "div",
    { class: "choice", role: "group", "aria-label": label },
    el("span", { class: "choice-name" }, label),
    choices.map(([each, text]) =>
      el(
        "button",
        {
          type: "button",
          "data-focus": `${name}-${each}`,
          "aria-pressed": value === null ? null : String(each === value),
          disabled: disabled(each),
          click: () => choose(each),
        },
        text,
      ),
    ),
  );

/** A field for a place in a vector. */
export const place = (view, count, label = "number") => {
  const value = view.place(count);
  const step = (by) => view.pickNumber((value + by + count) % count);
  return el(
    "div",
    { class: "choice", role: "group", "aria-label": `Opened ${label}` },
    el("span", { class: "choice-name" }, `opened ${label}`),
    el("button", { type: "button", "data-focus": "place-less", "aria-label": "previous", click: () => step(-1) }, "−"),
    el("output", { class: "place" }, `${value} of 0…${count - 1}`),
    el("button", { type: "button", "data-focus": "place-more", "aria-label": "next", click: () => step(1) }, "+"),
  );
};

/** The answer of a screen, as text. */
export const answer = (id, ...sentences) =>
  el(
    "section",
    { class: "answer", id: `answer-${id}`, "aria-label": "Answer" },
    sentences.map((sentence) => el("p", {}, sentence)),
  );
