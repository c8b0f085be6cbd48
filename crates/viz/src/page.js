"use strict";
(() => {
  const data = JSON.parse(document.getElementById("attention-data").textContent);
  const overview = document.getElementById("overview");
  const detail = document.getElementById("detail");
  const darkScheme = matchMedia("screen and (prefers-color-scheme: dark)");
  const narrow = matchMedia("(max-width: 900px)");
  const ROW = 26; // height of a token in the line view, as in page.css
  const LONGEST_LABEL = 18;
  const LONGEST_OF_TWO = 12; // where a label has two tokens
  const READABLE = 13; // the smallest square, in pixels, that a label fits beside
  const COMFORTABLE = 22; // squares become no smaller than this to fit a low screen
  const ABOVE = 500; // what stands above the squares, about, in pixels
  const LARGE = 64; // more tokens than fit a screen with their labels, and so many that their weights are small
  const FAINTEST = 0.005; // the smallest weight that gets a line or a number
  const MOST_LINES = 2000; // drawn at once, when no token is chosen

  // Every layer of every group in reading order; a step up or down moves along this list.
  const places = data.groups.flatMap((group, g) => group.layers.map((layer, l) => ({ group, layer, g, l })));
  if (places.length === 0) return;

  const state = { place: 0, head: 0, pinned: null, scale: null, labelled: false };
  const thumbnails = []; // thumbnails[place][head]: button

  // Elements. Text always enters through textContent, so that no token is ever read as markup.
  const SVG = "http://www.w3.org/2000/svg";
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  }
  const html = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

  // Colours.
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const ramps = { light: data.light.map(channels), dark: data.dark.map(channels) };
  const stops = () => (darkScheme.matches ? ramps.dark : ramps.light);
  function shade(share) {
    const ramp = stops();
    const position = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
    const below = Math.min(Math.floor(position), ramp.length - 2);
    return ramp[below].map((from, c) => Math.round(from + (ramp[below + 1][c] - from) * (position - below)));
  }
  const rgb = (color) => `rgb(${color.join(" ")})`;
  // Numbers change colour where black and white letters are equally legible, as in color.rs.
  const inkOn = (share) => (darkScheme.matches
    ? (share < 0.44 ? "#e6edf3" : "#0a1016") : (share < 0.62 ? "#101820" : "#ffffff"));

  // The chosen head.
  const place = () => places[state.place];
  const layer = () => place().layer;
  const head = () => layer().heads[state.head];
  const stored = (i, j) => head().weights[i * layer().keys.length + j]; // below 0 where the key is hidden
  const weight = (i, j) => Math.max(stored(i, j), 0) / data.units;
  const isLarge = (at) => Math.max(at.queries.length, at.keys.length) > LARGE;
  // What does not change with the reader's choices is computed once for each head.
  const perHead = (compute) => {
    const known = new Map();
    return (of) => {
      if (!known.has(of)) known.set(of, compute(of));
      return known.get(of);
    };
  };
  // The largest weight, of the long rows if there are any: behind a causal mask the first query always gives 1 to the first key.
  const largest = perHead(({ weights, columns }) => {
    let [all, long] = [0, 0];
    for (let start = 0; start < weights.length; start += columns) {
      const seen = weights.slice(start, start + columns).filter((w) => w >= 0);
      const top = seen.reduce((a, b) => Math.max(a, b), 0);
      all = Math.max(all, top);
      if (seen.length > LARGE) long = Math.max(long, top);
    }
    const whose = long > 0 && long < all ? ` or more, the largest weight of rows of over ${LARGE} keys` : ", the largest weight of this head";
    return { top: (long || all) / data.units || 1, whose };
  });
  const strongest = perHead(({ weights }) => {
    const visible = weights.flatMap((w, n) => (w >= FAINTEST * data.units ? [n] : []));
    return { all: visible.length <= MOST_LINES,
      cells: visible.sort((a, b) => weights[b] - weights[a]).slice(0, MOST_LINES) };
  });
  const hides = perHead((of) => of.weights.some((w) => w < 0));
  // Unless the reader has chosen, the colours of long rows do not go up to 1.
  const isFullScale = (at) => (state.scale ? state.scale === "1" : at.keys.length <= LARGE);
  const topOf = (at, of) => (isFullScale(at) ? 1 : largest(of).top);
  const shorten = (token, longest = LONGEST_LABEL) => {
    const characters = [...token];
    return characters.length > longest ? characters.slice(0, longest - 1).join("") + "…" : token;
  };
  // A row: the token that its query reads and, where that is known, the one that the model writes next. The mark of direction keeps
  // them in this order in any script.
  places.forEach(({ group: { written }, layer: at }) => {
    at.heads.forEach((of) => { of.columns = at.keys.length; });
    const rows = (cut) => at.queries.map((read, i) => `${cut(read)} \u200e⇒ ${cut(written[i])}`);
    at.rows = written.length > 0 ? rows((token) => token) : at.queries;
    at.shortRows = written.length > 0 ? rows((token) => shorten(token, LONGEST_OF_TWO)) : at.queries.map((token) => shorten(token));
  });
  const isMean = (of) => of.name === "mean";
  const titleOf = (at, h) => (isMean(at.heads[h]) ? `mean of ${at.heads.length - 1} heads` : at.heads[h].name);
  const nameOf = (at, h) => `${at.group.name}, ${at.layer.title}, ${titleOf(at.layer, h)}`;

  // One pixel per weight, enlarged by the browser without smoothing: sharp on any screen, at any zoom and on paper.
  const SHADES = 1024;
  function heatmap(at, of) {
    const canvas = html("canvas", { width: at.keys.length, height: at.queries.length });
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    const palette = Array.from({ length: SHADES }, (_, step) => shade(step / (SHADES - 1)));
    const perUnit = (SHADES - 1) / (topOf(at, of) * data.units);
    of.weights.forEach((w, cell) => {
      if (w < 0) return; // stays transparent, and shows the hatching behind the canvas
      const color = palette[Math.min(Math.round(w * perUnit), SHADES - 1)];
      for (let c = 0; c < 3; c += 1) image.data[cell * 4 + c] = color[c];
      image.data[cell * 4 + 3] = 255;
    });
    context.putImageData(image, 0, 0);
    return canvas;
  }

  function drawOverview() {
    overview.replaceChildren();
    thumbnails.length = 0;
    data.groups.forEach((group, g) => {
      // The mean of a layer, which is no head, has a column of its own behind a gap.
      const heads = ({ heads: all }) => all.filter((of) => !isMean(of)).length;
      const columns = Math.max(0, ...group.layers.map(heads));
      const meanColumn = columns + 3;
      const hasMean = group.layers.some((each) => each.heads.length > heads(each));
      const grid = html("div", {
        class: "thumbnails",
        style: `grid-template-columns: 3.4rem repeat(${columns}, minmax(0, 5rem))${hasMean ? " 0.3rem minmax(0, 5rem)" : ""}`,
      });
      for (let h = 1; h <= columns; h += 1) grid.append(html("span", { class: "column", style: `grid-column: ${h + 1}` }, `h${h}`));
      if (hasMean) grid.append(html("span", { class: "column mean", style: `grid-column: ${meanColumn}` }, "mean"));
      places.forEach((at, p) => {
        if (at.g !== g) return;
        grid.append(html("span", { class: "layer", style: "grid-column: 1" }, at.layer.title));
        thumbnails[p] = at.layer.heads.map((of, h) => {
          return html("button", {
            class: isMean(of) ? "thumbnail mean" : "thumbnail", type: "button", "aria-label": nameOf(at, h), title: nameOf(at, h),
            style: `grid-column: ${isMean(of) ? meanColumn : h + 2}`,
            click: () => { choose(p, h); if (narrow.matches) detail.scrollIntoView(); },
          }, heatmap(at.layer, of));
        });
        grid.append(...thumbnails[p]);
      });
      const causal = group.layers.length > 0 && group.layers.every((each) => each.causal);
      const note = [
        group.note,
        group.written.length > 0 && "A row is the token just read ⇒ the token written next.",
        causal && "Masked: no token looks at a later one.",
        !group.layers.every(isFullScale) && "Colours go up to the largest weight of each head.",
      ].filter(Boolean).join(" ");
      overview.append(html("div", { class: "group" }, html("h2", {}, group.name),
        ...(note ? [html("p", { class: "note" }, note)] : []), grid));
    });
    markChosen();
  }

  function markChosen() {
    thumbnails.forEach((row, p) => row.forEach((button, h) => {
      const chosen = p === state.place && h === state.head;
      button.setAttribute("aria-pressed", chosen);
      button.tabIndex = chosen ? 0 : -1;
    }));
  }

  function choose(p, h) {
    const target = Math.min(Math.max(p, 0), places.length - 1);
    const before = layer();
    state.place = target;
    state.head = Math.min(Math.max(h, 0), layer().heads.length - 1);
    // A pinned token stays pinned while the tokens stay the same, so that heads can be compared on it.
    const same = (a, b) => a.length === b.length && a.every((token, at) => token === b[at]);
    if (!same(before.queries, layer().queries) || !same(before.keys, layer().keys)) state.pinned = null;
    if (overview.contains(document.activeElement)) thumbnails[state.place][state.head].focus();
    const { g, l } = place();
    try {
      history.replaceState(null, "", `#${g + 1}.${l + 1}.${state.head + 1}`);
    } catch { /* some viewers forbid it for files; the page works without */ }
    markChosen();
    drawDetail();
  }

  // Detail.
  let marks = null; // what the pointer can light up in the picture now shown

  function drawDetail() {
    const at = place();
    const scrolled = detail.scrollTop;
    const focused = detail.contains(document.activeElement) && document.activeElement.getAttribute("aria-label");
    const step = (label, title, p, h) => html("button", {
      type: "button", title, "aria-label": title,
      disabled: !places[p] || !places[p].layer.heads[Math.min(h, places[p].layer.heads.length - 1)],
      click: () => choose(p, h),
    }, label);
    const scale = html("select", { "aria-label": "Colour scale",
      change: (event) => { state.scale = event.target.value; drawOverview(); drawDetail(); } },
      html("option", { value: "1", selected: isFullScale(at.layer) }, "colours from 0 to 1"),
      html("option", { value: "max", selected: !isFullScale(at.layer) }, "colours up to the largest weight"));
    const size = html("select", { "aria-label": "Size of the squares",
      change: (event) => { state.labelled = event.target.value === "labelled"; drawDetail(); } },
      html("option", { value: "whole", selected: !state.labelled }, "the whole map"),
      html("option", { value: "labelled", selected: state.labelled }, "squares with labels"));
    const [spread, top] = [head().entropy, topOf(at.layer, head())];
    const heat = html("div", { class: "heat" });
    const readout = html("p", { class: "readout", "aria-live": "polite" });
    const lines = html("div", { class: "lines-box" });
    detail.replaceChildren(
      html("h2", {}, `${at.group.name} · ${at.layer.title} · ${titleOf(at.layer, state.head)}`),
      html("p", { class: "note" },
        `spread ${spread.toFixed(2)} bits: as wide as ${(2 ** spread).toFixed(1)} of ${at.layer.keys.length} keys`),
      html("div", { class: "controls" },
        html("span", { class: "steps" },
          step("←", "Previous head", state.place, state.head - 1),
          step("→", "Next head", state.place, state.head + 1 < layer().heads.length ? state.head + 1 : NaN),
          step("↑", "Previous layer", state.place - 1, state.head),
          step("↓", "Next layer", state.place + 1, state.head)),
        scale,
        ...(isLarge(at.layer) ? [size] : []),
        html("span", { class: "legend" }, "0",
          html("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops().map(rgb)})` }),
          `${Number(top.toPrecision(2))}${isFullScale(at.layer) ? "" : largest(head()).whose}`,
          ...(hides(head()) ? [html("span", { class: "swatch" }), "hidden"] : [])),
        html("button", { type: "button", class: "to-overview", click: () => overview.scrollIntoView() }, "All heads")),
      readout,
      html("div", { class: "pictures" }, heat, lines));
    marks = { readout, lit: [], ...drawHeat(heat), ...drawLines(lines) };
    show(state.pinned);
    detail.scrollTop = scrolled;
    // The buttons are new: hand the keyboard focus to the one in the same place.
    if (focused) {
      detail.focus({ preventScroll: true });
      const again = [...detail.querySelectorAll("button, select")]
        .find((each) => each.getAttribute("aria-label") === focused);
      if (again) again.focus({ preventScroll: true });
    }
  }

  // A heat map of squares, and over it, as vectors, what does not change with the weights: labels and gaps.
  function drawHeat(box) {
    const at = layer();
    const [rows, columns] = [at.queries.length, at.keys.length];
    const pen = document.createElement("canvas").getContext("2d");
    const family = getComputedStyle(document.body).fontFamily;
    const longest = (tokens, size) => {
      pen.font = `700 ${size}px ${family}`;
      return Math.max(...tokens.map((token) => pen.measureText(token).width));
    };
    const shortKeys = at.keys.map((token) => shorten(token));
    // The labels of the keys lean to the right by 50 degrees; the last one needs room beyond the last column.
    const [sine, cosine] = [0.766, 0.643];
    const room = detail.clientWidth - longest(at.shortRows, 13) - 12 - longest(shortKeys, 13) * cosine * 0.6;
    const labelled = state.labelled || !isLarge(at);
    const cell = labelled
      ? Math.floor(Math.min(Math.max(room / columns, READABLE), Math.max((innerHeight - ABOVE) / rows, COMFORTABLE), 44))
      : Math.min(Math.max((detail.clientWidth - 4) / columns, 2), READABLE);
    const size = Math.min(13, cell * 0.75);
    const left = labelled ? Math.ceil(longest(at.shortRows, size)) + 12 : 2;
    const top = labelled ? Math.ceil(longest(shortKeys, size) * sine + size) + 10 : 2;
    const width = left + columns * cell + (labelled ? Math.ceil(longest(shortKeys, size) * cosine) : 2);
    const height = top + rows * cell + 2;

    const squares = heatmap(at, head());
    squares.style.cssText = `left: ${left}px; top: ${top}px; width: ${columns * cell}px; height: ${rows * cell}px`;
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-size": size });
    if (labelled) {
      const down = at.keys.map((_, j) => `M${left + (j + 1) * cell - 0.5} ${top}v${rows * cell}`);
      const across = at.queries.map((_, i) => `M${left} ${top + (i + 1) * cell - 0.5}h${columns * cell}`);
      picture.append(svg("path", { class: "gap", d: [...down, ...across].join("") }));
    }
    const scaleTop = topOf(at, head());
    if (cell >= 34) {
      head().weights.forEach((w, n) => {
        const [i, j, share] = [Math.floor(n / columns), n % columns, w / data.units];
        if (share < FAINTEST) return;
        picture.append(svg("text", { x: left + (j + 0.5) * cell, y: top + (i + 0.5) * cell + 4, "font-size": 11,
          "text-anchor": "middle", style: `fill: ${inkOn(share / scaleTop)}` }, share.toFixed(2).replace(/^0/, "")));
      });
    }
    const queries = !labelled ? [] : at.shortRows.map((token, i) => svg("text",
      { x: left - 7, y: top + i * cell + cell / 2 + size / 3, "text-anchor": "end" }, token));
    const keys = !labelled ? [] : shortKeys.map((token, j) => svg("text",
      { transform: `translate(${left + j * cell + cell / 2 + 1} ${top - 6}) rotate(-50)` }, token));
    picture.append(...queries, ...keys);
    const across = html("div", { class: "cross", style: `left: ${left - 2}px; top: ${top - 2}px;
      width: ${columns * cell + 3}px; height: ${cell + 3}px` });
    const down = html("div", { class: "cross", style: `left: ${left - 2}px; top: ${top - 2}px;
      width: ${cell + 3}px; height: ${rows * cell + 3}px` });
    const surface = html("div", { class: "surface", role: "img", "aria-label": `Heat map of ${nameOf(place(), state.head)}`,
      style: `width: ${width}px; height: ${height}px` }, squares, picture, across, down);

    const under = (event) => {
      const frame = surface.getBoundingClientRect();
      const i = Math.floor((event.clientY - frame.top - top) / cell);
      const j = Math.floor((event.clientX - frame.left - left) / cell);
      const onRow = i >= 0 && i < rows;
      const onColumn = j >= 0 && j < columns;
      if (onRow && onColumn) return { i, j };
      if (onRow && j < 0) return { i };
      const key = keys.indexOf(event.target);
      return key >= 0 ? { j: key } : null;
    };
    surface.addEventListener("pointermove", (event) => show(under(event) || state.pinned));
    surface.addEventListener("pointerleave", () => show(state.pinned));
    surface.addEventListener("click", (event) => pin(under(event)));
    box.replaceChildren(surface);
    const frame = (target) => {
      across.style.display = target && target.i !== undefined ? "" : "none";
      down.style.display = target && target.j !== undefined ? "" : "none";
      if (!target) return;
      if (target.i !== undefined) across.style.transform = `translateY(${target.i * cell}px)`;
      if (target.j !== undefined) down.style.transform = `translateX(${target.j * cell}px)`;
    };
    return { queries, keys, frame };
  }

  function drawLines(box) {
    const at = layer();
    const rows = Math.max(at.queries.length, at.keys.length);
    const picture = svg("svg", { height: rows * ROW, viewBox: `0 0 100 ${rows * ROW}`, preserveAspectRatio: "none",
      "aria-hidden": "true" });
    const token = (text, target) => html("button", { type: "button", title: text,
      "aria-label": target.j === undefined ? `query ${target.i + 1}, ${text}` : `key ${target.j + 1}, ${text}`,
      pointerenter: () => show(target), pointerleave: () => show(state.pinned),
      focus: () => show(target), blur: () => show(state.pinned), click: () => pin(target) }, text);
    const from = at.rows.map((text, i) => token(text, { i }));
    const to = at.keys.map((text, j) => token(text, { j }));
    const fromShares = from.map(() => html("span", { class: "share" }));
    const toShares = to.map(() => html("span", { class: "share" }));
    // As long as no token is chosen, only the strongest lines of a large map are drawn.
    const { all, cells: first } = strongest(head());
    box.replaceChildren(
      html("p", { class: "lines-title" },
        `From query to key${all ? "" : `: the ${MOST_LINES} strongest`}`),
      html("div", { class: place().group.written.length > 0 ? "lines pairs" : "lines" },
        html("ol", { class: "from", "aria-label": "Queries" }, ...from.map((b, i) => html("li", {}, fromShares[i], b))),
        picture,
        html("ol", { class: "to", "aria-label": "Keys" }, ...to.map((b, j) => html("li", {}, b, toShares[j])))));
    let drawn;
    const draw = (target) => {
      // A cell belongs to its query: all its lines are drawn, whatever the key.
      const [i, j] = target ? [target.i, target.i === undefined ? target.j : undefined] : [];
      const now = `${i} ${j}`;
      if (now === drawn) return;
      drawn = now;
      let cells = first.map((n) => [Math.floor(n / to.length), n % to.length]);
      if (i !== undefined) cells = to.map((_, other) => [i, other]);
      else if (j !== undefined) cells = from.map((_, other) => [other, j]);
      picture.replaceChildren(...cells.filter(([row, column]) => weight(row, column) >= FAINTEST).map(([row, column]) => {
        const w = weight(row, column);
        return svg("line", { x1: 0, y1: (row + 0.5) * ROW, x2: 100, y2: (column + 0.5) * ROW,
          "stroke-width": Math.max(target ? 1 : 0.6, w * 9), "stroke-opacity": (target ? 0.4 : 0.1) + 0.6 * w });
      }));
      // Most shares of a long row stay as they are, and what is not written needs no layout.
      const write = (span, text) => { if (span.textContent !== text) span.textContent = text; };
      fromShares.forEach((span, other) => write(span, j === undefined ? "" : weight(other, j).toFixed(3)));
      toShares.forEach((span, other) => write(span, i === undefined ? "" : weight(i, other).toFixed(3)));
    };
    return { from, to, draw };
  }

  // What is pointed at: { i } a query, { j } a key, { i, j } a cell, null nothing.
  const sameTarget = (a, b) => (a && b ? a.i === b.i && a.j === b.j : a === b);
  function show(target) {
    if (marks.target !== undefined && sameTarget(marks.target, target)) return;
    marks.target = target;
    marks.frame(target);
    marks.draw(target);
    marks.lit.forEach((label) => label.classList.remove("marked"));
    const { i, j } = target || {};
    marks.lit = [marks.queries[i], marks.from[i], marks.keys[j], marks.to[j]].filter(Boolean);
    marks.lit.forEach((label) => label.classList.add("marked"));
    marks.readout.replaceChildren(...words(target));
  }

  function words(target) {
    const at = layer();
    const strong = (token) => html("b", {}, `“${token}”`);
    if (!target) return ["Point at a square or a token to see its weights. Click to keep it while you change heads."];
    const { i, j } = target;
    if (i !== undefined && j !== undefined) {
      const hidden = at.causal && j > i ? " hidden by the mask: the key comes later."
        : " hidden: the weight is exactly 0, as behind a mask.";
      const what = stored(i, j) < 0 ? hidden : ` weight ${weight(i, j).toFixed(4)}`;
      return ["query ", strong(at.rows[i]), " → key ", strong(at.keys[j]), ":", what];
    }
    const [tokens, share] = i !== undefined
      ? [at.keys, (other) => weight(i, other)] : [at.rows, (other) => weight(other, j)];
    const order = tokens.map((_, other) => other).filter((other) => share(other) > 0)
      .sort((a, b) => share(b) - share(a) || a - b).slice(0, 4);
    if (order.length === 0) {
      return i === undefined ? ["No query looks at key ", strong(at.keys[j]), "."]
        : ["Query ", strong(at.rows[i]), " sees nothing."];
    }
    const list = order.flatMap((other, n) =>
      [n === 0 ? " " : ", ", strong(tokens[other]), ` ${share(other).toFixed(3)}`]);
    if (i === undefined) return ["Key ", strong(at.keys[j]), " is looked at most by", ...list, "."];
    const sum = at.keys.reduce((total, _, other) => total + weight(i, other), 0);
    return ["Query ", strong(at.rows[i]), " looks most at", ...list, `. The row sums to ${sum.toFixed(2)}.`];
  }

  function pin(target) {
    state.pinned = sameTarget(target, state.pinned) ? null : target;
    show(state.pinned);
  }

  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.target.closest("select")) return;
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Escape") pin(null);
    // A wide map that has the focus is scrolled by the browser.
    if (event.target.matches(".heat") && event.target.scrollWidth > event.target.clientWidth) return;
    // Up and down scroll the page until the reader has clicked into the pictures.
    const inside = overview.contains(event.target) || detail.contains(event.target);
    if (!move || (move[0] !== 0 && !inside)) return;
    event.preventDefault();
    choose(state.place + move[0], state.head + move[1]);
  });
  darkScheme.addEventListener("change", () => { drawOverview(); drawDetail(); });
  let width = innerWidth;
  let waiting = false; // for the next frame: a window that is being dragged sends more events than there are frames
  addEventListener("resize", () => {
    if (innerWidth === width || waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      width = innerWidth;
      drawDetail();
    });
  });

  // On a small screen the pictures come first.
  if (narrow.matches || matchMedia("(max-height: 850px)").matches) document.getElementById("guide").open = false;
  document.getElementById("view").hidden = false;
  const [g, l, h] = location.hash.slice(1).split(".").map((part) => Number(part) - 1);
  const linked = places.findIndex((at) => at.g === g && at.l === l);
  if (linked >= 0 && places[linked].layer.heads[h]) [state.place, state.head] = [linked, h];
  drawOverview();
  drawDetail();
})();
