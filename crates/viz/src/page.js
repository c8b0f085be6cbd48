"use strict";
(() => {
  const data = JSON.parse(document.getElementById("attention-data").textContent);
  const view = document.getElementById("view");
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
  const FAINTEST = 0.005; // the smallest weight that gets a number, or a line when no token is chosen
  const MOST_LINES = 2000; // drawn at once, when no token is chosen

  // Every layer of every group in reading order; a step up or down moves along this list.
  const places = data.groups.flatMap((group, g) => group.layers.map((layer, l) => ({ group, layer, g, l })));
  if (places.length === 0) return;

  // The chosen head, and the second one beside it if two are compared.
  const picked = (p, h) => ({ p, h, ...places[p], head: places[p].layer.heads[h] });
  const state = { first: picked(0, 0), second: null, pinned: null, scale: null, labelled: false };
  const shown = () => [state.first, state.second].filter(Boolean);
  const thumbnails = []; // thumbnails[place][head]: button

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
  const hex = (color) => `#${color.map((c) => c.toString(16).padStart(2, "0")).join("")}`;
  // Numbers change colour where black and white letters are equally legible, as in color.rs.
  const inkOn = (share) => (darkScheme.matches
    ? (share < 0.44 ? "#e6edf3" : "#0a1016") : (share < 0.62 ? "#101820" : "#ffffff"));

  const stored = (of, i, j) => of.head.weights[i * of.layer.keys.length + j]; // below 0 where the key is hidden
  const weight = (of, i, j) => Math.max(stored(of, i, j), 0) / data.units;
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
    return { top: (long || all) / data.units || 1, all: all / data.units, hasLong: long > 0 };
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
  // Two heads side by side have one scale: a colour is the same weight in both. It is the wider of their scales.
  const isFullShown = () => shown().some((of) => isFullScale(of.layer));
  function scaleShown() {
    if (isFullShown()) return { top: 1, whose: "" };
    const heads = shown().map((of) => largest(of.head));
    const { top, hasLong } = heads.reduce((a, b) => (b.top > a.top ? b : a));
    if (heads.every(({ all }) => all <= top)) return { top, whose: `, the largest weight of ${state.second ? "both heads" : "this head"}` };
    return { top, whose: hasLong ? ` or more, the largest weight of rows of over ${LARGE} keys` : " or more" };
  }
  const shorten = (token, longest = LONGEST_LABEL) => {
    const characters = [...token];
    return characters.length > longest ? characters.slice(0, longest - 1).join("") + "…" : token;
  };
  // A row: the token that its query reads and, where that is known, the one that the model writes next. The mark of direction keeps
  // them in this order in any script.
  const known = new Map();
  const once = (tokens) => {
    const name = JSON.stringify(tokens);
    if (!known.has(name)) known.set(name, tokens);
    return known.get(name);
  };
  places.forEach(({ group: { written }, layer: at }) => {
    [at.queries, at.keys] = [once(at.queries), once(at.keys)]; // lists of the same tokens are one list
    at.heads.forEach((of) => { of.columns = at.keys.length; });
    const rows = (cut) => at.queries.map((read, i) => `${cut(read)} \u200e⇒ ${cut(written[i])}`);
    at.shortKeys = at.keys.map((token) => shorten(token));
    at.rows = written.length > 0 ? rows((token) => token) : at.queries;
    at.shortRows = written.length > 0 ? rows((token) => shorten(token, LONGEST_OF_TWO)) : at.queries.map((token) => shorten(token));
  });
  const isMean = (of) => of.name === "mean";
  const titleOf = (at, h) => (isMean(at.heads[h]) ? `mean of ${at.heads.length - 1} heads` : at.heads[h].name);
  const nameOf = (of, h) => `${of.group.name}, ${of.layer.title}, ${titleOf(of.layer, h)}`;

  // One pixel per weight, enlarged by the browser without smoothing: sharp on any screen, at any zoom and on paper.
  const SHADES = 1024;
  const palette = () => Array.from({ length: SHADES }, (_, step) => shade(step / (SHADES - 1)));
  const stepOf = (w, top) => Math.min(Math.round(w * (SHADES - 1) / (top * data.units)), SHADES - 1);
  function heatmap(at, of, top) {
    const canvas = html("canvas", { width: at.keys.length, height: at.queries.length });
    const context = canvas.getContext("2d");
    const image = context.createImageData(canvas.width, canvas.height);
    const colors = palette();
    of.weights.forEach((w, cell) => {
      if (w < 0) return; // stays transparent, and shows the hatching behind the canvas
      const color = colors[stepOf(w, top)];
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
            mousedown: (event) => { if (event.shiftKey) event.preventDefault(); }, // selects no text
            click: (event) => {
              if (event.shiftKey) compare(p, h);
              else choose(p, h);
              if (narrow.matches) detail.scrollIntoView();
            },
          }, heatmap(at.layer, of, topOf(at.layer, of)));
        });
        grid.append(...thumbnails[p]);
      });
      const causal = group.layers.length > 0 && group.layers.every((each) => each.causal);
      const own = group.layers.filter((each) => !isFullScale(each)).length;
      const which = own < group.layers.length ? `In layers of more than ${LARGE} keys, colours` : "Colours";
      const largeScale = own > 0 && `${which} go up to the largest weight of each head.`;
      const note = [
        group.note,
        group.written.length > 0 && "A row is the token just read ⇒ the token written next.",
        causal && "Masked: no token looks at a later one.",
        largeScale,
      ].filter(Boolean).join(" ");
      overview.append(html("div", { class: "group" }, html("h2", {}, group.name),
        ...(note ? [html("p", { class: "note" }, note)] : []), grid));
    });
    markChosen();
  }

  function markChosen() {
    thumbnails.forEach((row, p) => row.forEach((button, h) => {
      const is = (of) => of !== null && p === of.p && h === of.h;
      button.setAttribute("aria-pressed", is(state.first) || is(state.second));
      button.classList.toggle("second", is(state.second) && !is(state.first));
      button.tabIndex = is(state.first) ? 0 : -1;
    }));
  }

  const within = (n, count) => Math.min(Math.max(n, 0), count - 1);
  const nearest = (p, h) => {
    const place = within(p, places.length);
    return picked(place, within(h, places[place].layer.heads.length));
  };
  function choose(p, h) {
    state.first = nearest(p, h);
    if (overview.contains(document.activeElement)) thumbnails[state.first.p][state.first.h].focus();
    redraw();
  }

  function compare(p, h) {
    state.second = p === undefined ? null : nearest(p, h);
    redraw();
  }

  function redraw() {
    // A pinned token stays pinned while a head with this token is shown, so that heads can be compared on it.
    if (!shown().some((of) => fit(state.pinned, of))) state.pinned = null;
    const names = shown().map((of) => `${of.g + 1}.${of.l + 1}.${of.h + 1}`);
    try {
      history.replaceState(null, "", `#${names.join("-")}`);
    } catch { /* some viewers forbid it for files; the page works without */ }
    markChosen();
    drawDetail();
  }

  // Detail.
  let panels = []; // a picture of each head that is shown, and what the pointer can light up in it

  function drawDetail() {
    const { first, second } = state;
    const scrolled = detail.scrollTop;
    const focused = detail.contains(document.activeElement) && document.activeElement;
    const [name, panel] = focused ? [nameOfControl(focused), panels.findIndex(({ box }) => box.contains(focused))] : [];
    const step = (label, title, p, h) => html("button", {
      type: "button", title, "aria-label": title,
      disabled: !places[p] || !places[p].layer.heads[Math.min(h, places[p].layer.heads.length - 1)],
      click: () => choose(p, h),
    }, label);
    const token = (label, title, by) => html("button", { type: "button", title, "aria-label": title, click: () => stepToken(by) }, label);
    const full = isFullShown();
    const scale = html("select", { "aria-label": "Colour scale",
      change: (event) => { state.scale = event.target.value; drawOverview(); drawDetail(); } },
      html("option", { value: "1", selected: full }, "colours from 0 to 1"),
      html("option", { value: "max", selected: !full }, "colours up to the largest weight"));
    const size = html("select", { "aria-label": "Size of the squares",
      change: (event) => { state.labelled = event.target.value === "labelled"; drawDetail(); } },
      html("option", { value: "whole", selected: !state.labelled }, "the whole map"),
      html("option", { value: "labelled", selected: state.labelled }, "squares with labels"));
    const boxes = shown().map(() => html("section", { class: "panel" }));
    view.classList.toggle("comparing", second !== null);
    detail.replaceChildren(
      html("div", { class: "controls" },
        html("span", { class: "steps" },
          step("←", "Previous head", first.p, first.h - 1),
          step("→", "Next head", first.p, first.h + 1 < first.layer.heads.length ? first.h + 1 : NaN),
          step("↑", "Previous layer", first.p - 1, first.h),
          step("↓", "Next layer", first.p + 1, first.h)),
        html("span", { class: "steps" }, token("‹ token", "Previous query", -1), token("token ›", "Next query", 1)),
        scale,
        ...(shown().some((of) => isLarge(of.layer)) ? [size] : []),
        html("button", { type: "button", "aria-pressed": String(second !== null),
          click: () => (second ? compare() : compare(...beside(first))) }, "Compare"),
        ...(second ? [chooser(second)] : []),
        html("button", { type: "button", class: "to-overview", click: () => overview.scrollIntoView() }, "All heads")),
      html("div", { class: "panels" }, ...boxes));
    panels = shown().map((of, n) => drawPanel(of, boxes[n]));
    show(state.pinned);
    detail.scrollTop = scrolled;
    // The buttons are new: hand the keyboard focus to the one in the same place.
    if (focused) {
      detail.focus({ preventScroll: true });
      const again = [...(boxes[panel] || detail).querySelectorAll("button, select")].find((each) => nameOfControl(each) === name);
      if (again) again.focus({ preventScroll: true });
      if (state.pinned) show(state.pinned); // rather than a token that has the focus
    }
  }

  const many = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;
  const nameOfControl = (element) => element.getAttribute("aria-label") || element.textContent;

  // The head that is first shown beside `of`: the next of its layer, or else the one before, or else the next layer's.
  function beside({ p, h, layer }) {
    if (layer.heads.length > 1) return [p, h + 1 < layer.heads.length ? h + 1 : h - 1];
    return [p + 1 < places.length ? p + 1 : Math.max(p - 1, 0), 0];
  }

  // The choice of the second head among all.
  function chooser(second) {
    return html("select", { "aria-label": "Second head", change: (event) => compare(...event.target.value.split(".").map(Number)) },
      ...data.groups.map(({ name }, g) => html("optgroup", { label: name },
        ...places.flatMap((at, p) => (at.g !== g ? [] : at.layer.heads.map((_, h) => html("option",
          { value: `${p}.${h}`, selected: p === second.p && h === second.h }, `${at.layer.title}, ${titleOf(at.layer, h)}`)))))));
  }

  // The title of a head, its map, and the lines between its tokens.
  function drawPanel(of, box) {
    const spread = of.head.entropy;
    const { top, whose } = scaleShown();
    const heat = html("div", { class: "heat" });
    const readout = html("p", { class: "readout", "aria-live": "polite" });
    const lines = html("div", { class: "lines-box" });
    const button = (kind) => html("button", { type: "button", 
      click: () => saveMap(of, { top, whose }, kind).catch(({ message }) => readout.replaceChildren(`The ${kind} was not saved: ${message}`)) },
    `Save as ${kind}`);
    box.append(
      html("div", { class: "ends" },
        html("h2", {}, `${of.group.name} · ${of.layer.title} · ${titleOf(of.layer, of.h)}`),
        html("span", { class: "controls" }, button("SVG"), button("PNG"))),
      html("div", { class: "ends" },
        html("p", { class: "note" },
          `spread ${spread.toFixed(2)} bits: as wide as ${(2 ** spread).toFixed(1)} of ${many(of.layer.keys.length, "key")}`),
        html("span", { class: "legend" }, "0",
          html("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops().map(hex)})` }),
          `${Number(top.toPrecision(2))}${whose}`,
          ...(hides(of.head) ? [html("span", { class: "swatch" }), "hidden"] : []))),
      readout,
      html("div", { class: "pictures" }, heat, lines));
    return { of, box, readout, lit: [], ...drawHeat(of, heat, top), ...drawLines(of, lines) };
  }

  // Where squares of this size and their labels stand.
  const pen = document.createElement("canvas").getContext("2d");
  const family = getComputedStyle(document.body).fontFamily;
  const longest = (tokens, size) => {
    pen.font = `700 ${size}px ${family}`;
    return Math.max(...tokens.map((token) => pen.measureText(token).width));
  };
  // The labels of the keys lean to the right by 50 degrees; the last one needs room beyond the last column.
  const [SINE, COSINE] = [0.766, 0.643];
  function laidOut({ layer: at }, cell, labelled) {
    const size = Math.min(13, cell * 0.75);
    const keys = labelled ? longest(at.shortKeys, size) : 0;
    const left = labelled ? Math.ceil(longest(at.shortRows, size)) + 12 : 2;
    const top = labelled ? Math.ceil(keys * SINE + size) + 10 : 2;
    const [across, down] = [at.keys.length * cell, at.queries.length * cell];
    return { cell, labelled, size, left, top, across, down,
      width: left + across + (labelled ? Math.ceil(keys * COSINE) : 2), height: top + down + 2 };
  }

  // What stands over the squares and does not change with the pointer, as vectors: gaps, numbers and labels.
  function overlay({ layer: at, head }, { cell, labelled, size, left, top, across, down }, scaleTop) {
    const columns = at.keys.length;
    const rest = [];
    if (labelled) {
      const gaps = [...at.keys.map((_, j) => `M${left + (j + 1) * cell - 0.5} ${top}v${down}`),
        ...at.queries.map((_, i) => `M${left} ${top + (i + 1) * cell - 0.5}h${across}`)];
      rest.push(svg("path", { class: "gap", d: gaps.join("") }));
    }
    if (cell >= 34) {
      head.weights.forEach((w, n) => {
        const [i, j, share] = [Math.floor(n / columns), n % columns, w / data.units];
        if (share < FAINTEST) return;
        rest.push(svg("text", { x: left + (j + 0.5) * cell, y: top + (i + 0.5) * cell + 4, "font-size": 11,
          "text-anchor": "middle", style: `fill: ${inkOn(share / scaleTop)}` }, share.toFixed(2).replace(/^0/, "")));
      });
    }
    const queries = !labelled ? [] : at.shortRows.map((token, i) => svg("text",
      { x: left - 7, y: top + i * cell + cell / 2 + size / 3, "text-anchor": "end" }, token));
    const keys = !labelled ? [] : at.shortKeys.map((token, j) => svg("text",
      { transform: `translate(${left + j * cell + cell / 2 + 1} ${top - 6}) rotate(-50)` }, token));
    return { queries, keys, all: [...rest, ...queries, ...keys] };
  }

  // A heat map of squares, and its overlay.
  function drawHeat(of, box, scaleTop) {
    const at = of.layer;
    const [rows, columns] = [at.queries.length, at.keys.length];
    const room = box.parentElement.clientWidth;
    const forKeys = room - longest(at.shortRows, 13) - 12 - longest(at.shortKeys, 13) * COSINE * 0.6;
    const labelled = state.labelled || !isLarge(at);
    const plan = laidOut(of, labelled
      ? Math.floor(Math.min(Math.max(forKeys / columns, READABLE), Math.max((innerHeight - ABOVE) / rows, COMFORTABLE), 44))
      : Math.min(Math.max((room - 4) / columns, 2), READABLE), labelled);
    const { cell, size, left, top, across: wide, down: high, width, height } = plan;

    const squares = heatmap(at, of.head, scaleTop);
    squares.style.cssText = `left: ${left}px; top: ${top}px; width: ${wide}px; height: ${high}px`;
    const { queries, keys, all } = overlay(of, plan, scaleTop);
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-size": size }, ...all);
    const across = html("div", { class: "cross", style: `left: ${left - 2}px; top: ${top - 2}px;
      width: ${wide + 3}px; height: ${cell + 3}px` });
    const down = html("div", { class: "cross", style: `left: ${left - 2}px; top: ${top - 2}px;
      width: ${cell + 3}px; height: ${high + 3}px` });
    const surface = html("div", { class: "surface", role: "img", "aria-label": `Heat map of ${nameOf(of, of.h)}`,
      style: `width: ${width}px; height: ${height}px` }, squares, picture, across, down);

    const under = (event) => {
      const frame = surface.getBoundingClientRect();
      const i = Math.floor((event.clientY - frame.top - top) / cell);
      const j = Math.floor((event.clientX - frame.left - left) / cell);
      const onRow = i >= 0 && i < rows;
      const onColumn = j >= 0 && j < columns;
      if (onRow && onColumn) return { i, j, layer: at };
      if (onRow && j < 0) return { i, layer: at };
      const key = keys.indexOf(event.target);
      return key >= 0 ? { j: key, layer: at } : null;
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
    return { queries, keys, frame, across };
  }

  function drawLines(of, box) {
    const at = of.layer;
    const rows = Math.max(at.queries.length, at.keys.length);
    const picture = svg("svg", { height: rows * ROW, viewBox: `0 0 100 ${rows * ROW}`, preserveAspectRatio: "none",
      "aria-hidden": "true" });
    const token = (text, target) => html("button", { type: "button", title: text,
      "aria-label": target.j === undefined ? `query ${target.i + 1}, ${text}` : `key ${target.j + 1}, ${text}`,
      pointerenter: () => show(target), pointerleave: () => show(state.pinned),
      focus: () => show(target), blur: () => show(state.pinned), click: () => pin(target) }, text);
    const from = at.rows.map((text, i) => token(text, { i, layer: at }));
    const to = at.keys.map((text, j) => token(text, { j, layer: at }));
    const fromShares = from.map(() => html("span", { class: "share" }));
    const toShares = to.map(() => html("span", { class: "share" }));
    // As long as no token is chosen, only the strongest lines of a large map are drawn.
    const { all, cells: first } = strongest(of.head);
    box.replaceChildren(
      html("p", { class: "lines-title" },
        `From query to key${all ? "" : `: the ${MOST_LINES} strongest`}`),
      html("div", { class: of.group.written.length > 0 ? "lines pairs" : "lines" },
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
      // Where a token's weights are all small, its strongest lines are drawn nevertheless.
      const peak = cells.reduce((most, [row, column]) => Math.max(most, weight(of, row, column)), 0);
      const least = Math.min(FAINTEST, peak / 10) || FAINTEST;
      picture.replaceChildren(...cells.filter(([row, column]) => weight(of, row, column) >= least).map(([row, column]) => {
        const w = weight(of, row, column);
        return svg("line", { x1: 0, y1: (row + 0.5) * ROW, x2: 100, y2: (column + 0.5) * ROW,
          "stroke-width": Math.max(target ? 1 : 0.6, w * 9), "stroke-opacity": (target ? 0.4 : 0.1) + 0.6 * w });
      }));
      // Most shares of a long row stay as they are, and what is not written needs no layout.
      const write = (span, text) => { if (span.textContent !== text) span.textContent = text; };
      fromShares.forEach((span, other) => write(span, j === undefined ? "" : weight(of, other, j).toFixed(3)));
      toShares.forEach((span, other) => write(span, i === undefined ? "" : weight(of, i, other).toFixed(3)));
    };
    return { from, to, draw };
  }

  // What is pointed at: { i } a query, { j } a key, { i, j } a cell, each with the layer that has it; null nothing. Another head has
  // the same query or key if its tokens are the same.
  function fit(target, { layer: { queries, keys } }) {
    const i = target && target.layer.queries === queries ? target.i : undefined;
    const j = target && target.layer.keys === keys ? target.j : undefined;
    return i === undefined && j === undefined ? null : { i, j };
  }
  const sameTarget = (a, b) => (a && b ? a.i === b.i && a.j === b.j : a === b);
  const show = (target) => panels.forEach((panel) => showIn(panel, fit(target, panel.of)));
  function showIn(panel, target) {
    if (panel.target !== undefined && sameTarget(panel.target, target)) return;
    panel.target = target;
    panel.frame(target);
    panel.draw(target);
    panel.lit.forEach((label) => label.classList.remove("marked"));
    const { i, j } = target || {};
    panel.lit = [panel.queries[i], panel.from[i], panel.keys[j], panel.to[j]].filter(Boolean);
    panel.lit.forEach((label) => label.classList.add("marked"));
    panel.readout.replaceChildren(...words(panel.of, target));
  }

  function words(of, target) {
    const at = of.layer;
    const strong = (token) => html("b", {}, `“${token}”`);
    if (!target) return ["Point at a square or a token to see its weights. Click to keep it while you change heads."];
    const { i, j } = target;
    if (i !== undefined && j !== undefined) {
      const hidden = at.causal && j > i ? " hidden by the mask: the key comes later."
        : " hidden: the weight is exactly 0, as behind a mask.";
      const what = stored(of, i, j) < 0 ? hidden : ` weight ${weight(of, i, j).toFixed(4)}`;
      return ["query ", strong(at.rows[i]), " → key ", strong(at.keys[j]), ":", what];
    }
    const [tokens, cell] = i !== undefined ? [at.keys, (other) => [i, other]] : [at.rows, (other) => [other, j]];
    const share = (other) => weight(of, ...cell(other));
    const order = tokens.map((_, other) => other).filter((other) => share(other) > 0)
      .sort((a, b) => share(b) - share(a) || a - b).slice(0, 4);
    if (order.length === 0) {
      // What is visible may have weights that round to 0.
      const isHidden = tokens.every((_, other) => stored(of, ...cell(other)) < 0);
      const least = 1 / data.units;
      if (i === undefined) {
        return isHidden ? ["No query looks at key ", strong(at.keys[j]), "."]
          : ["No query gives key ", strong(at.keys[j]), ` a weight of ${least} or more.`];
      }
      return isHidden ? ["Query ", strong(at.rows[i]), " sees nothing."]
        : ["Query ", strong(at.rows[i]), ` gives no key a weight of ${least} or more.`];
    }
    const list = order.flatMap((other, n) =>
      [n === 0 ? " " : ", ", strong(tokens[other]), ` ${share(other).toFixed(3)}`]);
    if (i === undefined) return ["Key ", strong(at.keys[j]), " is looked at most by", ...list, "."];
    return ["Query ", strong(at.rows[i]), " looks most at", ...list, `. The row sums to ${of.head.sums[i].toFixed(2)}.`];
  }

  function pin(target) {
    state.pinned = target && sameTarget(fit(state.pinned, target), fit(target, target)) ? null : target;
    show(state.pinned);
  }

  // Pins the next query, or the one before; a pinned key stays.
  function stepToken(by) {
    const fits = shown().map((of) => ({ ...fit(state.pinned, of), layer: of.layer }));
    const { i, j, layer } = fits.find((target) => target.i !== undefined) || fits[0];
    const count = layer.queries.length;
    state.pinned = { i: i === undefined ? (by > 0 ? 0 : count - 1) : within(i + by, count), j, layer };
    show(state.pinned);
    // The row comes into sight below the readout, in both heads if they stand side by side.
    const stacked = narrow.matches;
    (stacked ? panels.slice(0, 1) : panels).forEach(({ across, readout }) => {
      const row = across.getBoundingClientRect();
      const above = readout.getBoundingClientRect().bottom;
      const below = stacked ? innerHeight : Math.min(detail.getBoundingClientRect().bottom, innerHeight);
      if (row.height > 0) (stacked ? window : detail).scrollBy(0, Math.min(row.top - above, 0) || Math.max(row.bottom - below, 0));
    });
  }

  // With labels, whether or not the page shows them.
  function saveMap(of, { top: scaleTop, whose }, kind) {
    const at = of.layer;
    const plan = laidOut(of, isLarge(at) ? READABLE : 34, true);
    return save({
      title: nameOf(of, of.h), plan, family, over: overlay(of, plan, scaleTop).all, top: Number(scaleTop.toPrecision(2)), whose,
      rows: at.queries.map((_, i) => at.keys.map((_, j) => (stored(of, i, j) < 0 ? -1 : stepOf(stored(of, i, j), scaleTop)))),
      colors: palette().map(hex), ramp: stops().map(hex),
    }, kind);
  }

  document.addEventListener("keydown", (event) => {
    // On many keyboards a bracket needs AltGr, which some systems call Ctrl and Alt.
    const by = { "[": -1, "]": 1 }[event.key];
    if (by && !event.metaKey && (event.altKey || !event.ctrlKey)) {
      event.preventDefault();
      stepToken(by);
    }
    if (event.altKey || event.ctrlKey || event.metaKey || (event.shiftKey && !state.second)) return;
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (event.key === "Escape") {
      if (state.second) compare();
      else pin(null);
    }
    // A wide map that has the focus is scrolled by the browser.
    if (event.target.matches(".heat") && event.target.scrollWidth > event.target.clientWidth) return;
    // The plain arrows choose in a list that has the focus.
    if (event.target.closest("select") && !event.shiftKey) return;
    // Up and down scroll the page until the reader has clicked into the pictures.
    const inside = overview.contains(event.target) || detail.contains(event.target);
    if (!move || (move[0] !== 0 && !inside)) return;
    event.preventDefault();
    const { p, h } = event.shiftKey ? state.second : state.first;
    (event.shiftKey ? compare : choose)(p + move[0], h + move[1]);
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
  view.hidden = false;
  const linked = location.hash.slice(1).split("-").map((name) => {
    const [g, l, h] = name.split(".").map((part) => Number(part) - 1);
    const p = places.findIndex((at) => at.g === g && at.l === l);
    return p >= 0 && places[p].layer.heads[h] ? picked(p, h) : null;
  });
  if (linked[0]) [state.first, state.second = null] = linked;
  drawOverview();
  drawDetail();
})();
