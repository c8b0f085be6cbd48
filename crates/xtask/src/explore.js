"use strict";
// Works every control of an attention page, compares what it says with its data, and writes a report for page.rs.
(async () => {
  const report = document.createElement("pre");
  report.id = "report";
  // The browser hands over the page as soon as it has loaded: one picture after the other holds that up until there is a report.
  (function hold(event) {
    if (event) URL.revokeObjectURL(event.target.src);
    if (report.isConnected) return;
    const picture = new Image();
    picture.onload = hold;
    picture.onerror = hold;
    picture.src = URL.createObjectURL(new Blob(["<svg xmlns='http://www.w3.org/2000/svg'/>"], { type: "image/svg+xml" }));
  })();
  const data = JSON.parse(document.getElementById("attention-data").textContent);
  const find = (selector) => document.querySelector(selector);
  const expect = (what, found, expected) => {
    if (found !== expected) failures.push(`${what} is ${found}, not ${expected}`);
  };
  const change = (label, value) => {
    const select = find(`select[aria-label="${label}"]`);
    if (!select) {
      failures.push(`there is no choice of "${label}"`);
      return;
    }
    select.value = value;
    select.dispatchEvent(new Event("change"));
  };
  const press = (key, shiftKey = false) => find("#detail").dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, bubbles: true }));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const texts = (selector) => all(selector).map((element) => element.textContent).join(" | ");
  const button = (name) => all("#detail button").find((each) => (each.getAttribute("aria-label") || each.textContent) === name);
  const times = [];
  const layers = data.groups.flatMap((group) => group.layers.map((layer) => ({ ...layer,
    rows: layer.queries.map((read, i) => (group.written.length > 0 ? `${read} \u200e⇒ ${group.written[i]}` : read)) })));
  const thumbnails = () => [...document.querySelectorAll(".thumbnail")];

  // Points at the middle of a cell and reads its weight.
  function point(layer, head, i, j) {
    const [rows, columns] = [layer.queries.length, layer.keys.length];
    const box = find(".surface canvas").getBoundingClientRect();
    const before = performance.now();
    find(".surface").dispatchEvent(new PointerEvent("pointermove", { bubbles: true,
      clientX: box.left + (j + 0.5) * box.width / columns, clientY: box.top + (i + 0.5) * box.height / rows }));
    void document.body.offsetHeight; // lays out what changed
    times.push(performance.now() - before);
    const stored = layer.heads[head].weights[i * columns + j];
    const hidden = layer.causal ? "hidden by the mask: the key comes later." : "hidden: the weight is exactly 0, as behind a mask.";
    const what = stored < 0 ? hidden : `weight ${(stored / data.units).toFixed(4)}`;
    const cell = `query “${layer.rows[i]}” → key “${layer.keys[j]}”`;
    expect("the readout", find(".readout").textContent, `${cell}: ${what}`);
  }

  function walk(layer, head) {
    const last = layer.queries.length - 1;
    for (let step = 0; step <= 20; step += 1) {
      const at = Math.floor(last * step / 20);
      point(layer, head, at, at);
      point(layer, head, at, last - at);
    }
    find(".surface").dispatchEvent(new PointerEvent("pointerleave"));
  }

  // Long rows have the colours of their largest weight, unless the reader chooses.
  function checkScale(layer) {
    const long = layer.keys.length > 64;
    expect("the colour scale", find('select[aria-label="Colour scale"]').value, long ? "max" : "1");
    // The first query of a causal layer gives 1 to the first key, and says nothing about the others.
    const counted = (cell) => !layer.causal || cell >= 64 * layer.keys.length;
    const largest = layer.heads[0].weights.reduce((a, b, cell) => (counted(cell) ? Math.max(a, b) : a), 0);
    const top = Number((largest / data.units).toPrecision(2));
    const whose = layer.causal ? " or more, the largest weight of rows of over 64 keys" : ", the largest weight of this head";
    const legend = find(".legend").textContent.replace(/^0|hidden$/g, "");
    expect("the legend", legend, long ? `${top}${whose}` : "1");
  }

  // What is hidden leaves its picture transparent, before hatching; every other square has a colour, a weight of 0 too.
  function checkHidden(layer, thumbnail) {
    for (const canvas of [thumbnail.querySelector("canvas"), find(".surface canvas")]) {
      const { data: pixels } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const wrong = layer.heads[0].weights.findIndex((w, cell) => pixels[cell * 4 + 3] !== (w < 0 ? 0 : 255));
      expect("the first square that looks hidden and is not, or the other way round", wrong, -1);
      const hatching = getComputedStyle(canvas).backgroundImage.startsWith("repeating-linear-gradient");
      expect("that there is hatching", hatching, true);
    }
    expect("that the legend has hatching", find(".swatch") !== null, layer.heads[0].weights.some((w) => w < 0));
  }

  // Two heads side by side, with the same query kept in both, by pointer and by keyboard.
  function checkComparison() {
    const [layer, causal, tall] = layers;
    const pressed = () => thumbnails().flatMap((each, n) => (each.getAttribute("aria-pressed") === "true" ? [n] : [])).join();
    // Query `n` is kept in both heads.
    const kept = (what, n, ...heads) => {
      expect(`the queries ${what}`, texts(".from .marked"), heads.map(([of]) => of.rows[n]).join(" | "));
      const weights = heads.flatMap(([of, h]) => of.heads[h].weights.slice(n * of.keys.length, (n + 1) * of.keys.length));
      expect(`the weights ${what}`, texts(".to .share"), weights.map((w) => (Math.max(w, 0) / data.units).toFixed(3)).join(" | "));
    };
    const [one, two, mean] = [0, 1, 2].map((h) => [layer, h]);
    thumbnails()[0].click();
    expect("the panels before", all(".panel").length, 1);
    thumbnails()[1].dispatchEvent(new MouseEvent("click", { shiftKey: true, bubbles: true }));
    expect("the heads side by side", texts(".panel h2"), "Any · layer 1 · head 1 | Any · layer 1 · head 2");
    expect("the thumbnails that are pressed", pressed(), "0,1");
    expect("the link", location.hash, "#1.1.1-1.1.2");
    press("]");
    kept("after one step", 0, one, two);
    press("]");
    button("Next query").click();
    kept("after three steps", 2, one, two);
    press("[");
    kept("after a step back", 1, one, two);
    for (const _ of [1, 2, 3]) button("Previous query").click();
    kept("at the first one", 0, one, two);
    press("ArrowRight", true);
    kept("beside the mean", 0, one, mean);
    press("ArrowRight");
    kept("of the second head", 0, two, mean);
    expect("the thumbnails that are pressed", pressed(), "1,2");
    change("Second head", "1.0");
    kept("beside another layer", 0, two, [causal, 0]);
    // The last layer has the queries of the first one, and other keys.
    all(".from button")[3].click();
    change("Second head", "2.0");
    kept("beside other keys", 3, two, [tall, 0]);
    change("Colour scale", "max");
    const [first, second] = all(".legend").map((legend) => legend.textContent.replace("hidden", ""));
    expect("the scale of the second head", second, first);
    expect("that it is that of both", second, "00.75, the largest weight of both heads");
    press("Escape");
    expect("the panels after Escape", all(".panel").length, 1);
    expect("the query that stays", texts(".from .marked"), layer.rows[3]);
    press("Escape");
    expect("the query after another Escape", texts(".from .marked"), "");
    const compare = () => button("Compare");
    compare().focus();
    for (const [count, state] of [[2, "true"], [1, "false"]]) {
      compare().click();
      expect("the panels after the button", all(".panel").length, count);
      expect("the state of the button", compare().getAttribute("aria-pressed"), state);
      expect("what has the focus", document.activeElement, compare());
    }
  }

  // The file that a button saves, and its name.
  function saved(name) {
    const files = new Map();
    const { createObjectURL } = URL;
    const { click } = HTMLAnchorElement.prototype;
    URL.createObjectURL = (file) => {
      const url = createObjectURL.call(URL, file);
      files.set(url, file);
      return url;
    };
    return new Promise((done, fail) => {
      setTimeout(() => fail(new Error(`${name}: there is no file after a minute`)), 60_000);
      HTMLAnchorElement.prototype.click = function caught() {
        Object.assign(URL, { createObjectURL });
        Object.assign(HTMLAnchorElement.prototype, { click });
        done([this.download, files.get(this.href)]);
      };
      button(name).click();
    });
  }

  // An SVG with the title, every label and every square, and a PNG that is not of one colour.
  async function checkSaved(layer, title) {
    const name = title.toLowerCase().replace(/[, ]+/g, "-");
    const [svgName, svg] = await saved("Save as SVG");
    expect("the name of the SVG", svgName, `${name}.svg`);
    const picture = new DOMParser().parseFromString(await svg.text(), "image/svg+xml").documentElement;
    expect("the root of the SVG", picture.localName, "svg");
    const labels = [...picture.querySelectorAll("text")].map((text) => text.textContent);
    for (const label of [title, ...layer.rows, ...layer.keys]) {
      const at = labels.indexOf(label);
      if (at < 0) failures.push(`the SVG lacks “${label}”`);
      else labels.splice(at, 1);
    }
    const runs = [...picture.querySelectorAll("g g path")].flatMap((path) => [...path.getAttribute("d").matchAll(/h(\d+)v1/g)]);
    expect("the squares of the SVG", runs.reduce((sum, [, run]) => sum + Number(run), 0), layer.rows.length * layer.keys.length);
    const [pngName, png] = await saved("Save as PNG");
    expect("the name of the PNG", pngName, `${name}.png`);
    expect("the type of the PNG", png.type, "image/png");
    const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
    const context = canvas.getContext("2d");
    context.drawImage(await createImageBitmap(png), 0, 0, 64, 64);
    const colors = new Set(new Uint32Array(context.getImageData(0, 0, 64, 64).data.buffer));
    if (colors.size < 5) failures.push(`the PNG has ${colors.size} colours`);
  }

  try {
    const elements = document.querySelectorAll("*").length;
    const tokens = layers[0].queries.length + layers[0].keys.length;
    // A page with an element for every weight does not follow the pointer.
    if (elements > 4000 + 10 * tokens) failures.push(`${elements} elements for ${tokens} tokens`);
    expect("the number of thumbnails", thumbnails().length, layers.flatMap((layer) => layer.heads).length);
    // The mean of the first layer is behind its two heads, and looks like neither.
    const [, second, mean, causal] = thumbnails();
    expect("the name of the mean", mean.getAttribute("aria-label"), "Any, layer 1, mean of 2 heads");
    expect("the style of its frame", getComputedStyle(mean).borderStyle, "dashed");
    expect("the style of a head's frame", getComputedStyle(second).borderStyle, "solid");
    for (const [layer, thumbnail] of [[layers[0], thumbnails()[0]], [layers[1], causal], [layers.at(-1), thumbnails().at(-1)]]) {
      thumbnail.click();
      checkScale(layer);
      checkHidden(layer, thumbnail);
    }
    const pairs = [...document.querySelectorAll(".from button")].map((button) => button.textContent);
    expect("the rows of a decoder", pairs.join(), layers.at(-1).rows.join());
    for (const scale of ["1", "max"]) {
      change("Colour scale", scale);
      for (const size of ["whole", "labelled"]) {
        thumbnails().at(0).click();
        // A small map always has labels, and no choice.
        if (Math.max(layers[0].queries.length, layers[0].keys.length) > 64) change("Size of the squares", size);
        walk(layers[0], 0);
        press("ArrowRight");
        walk(layers[0], 1);
        press("ArrowDown");
        walk(layers[1], 0);
        press("ArrowUp");
      }
    }
    expect("the role of the heat map", find(".surface").getAttribute("role"), "img");
    expect("the name of the heat map", find(".surface").getAttribute("aria-label"),
      "Heat map of Any, layer 1, head 1");
    const [query, key] = [find(".from button"), find(".to button")];
    query.focus();
    expect("the query that is marked", find(".from .marked"), query);
    key.focus();
    expect("the key that is marked", find(".to .marked"), key);
    key.click();
    press("Escape");
    document.activeElement.blur();
    expect("what is marked at the end", find(".marked"), null);
    // A map that can be scrolled keeps its arrow keys.
    const scroller = find(".heat");
    const heading = () => find("#detail h2").textContent;
    const [before, keeps] = [heading(), scroller.scrollWidth > scroller.clientWidth];
    scroller.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    expect("that an arrow key on the map changes the head", heading() !== before, !keeps);
    // The last map is many times taller than wide; its first query sees nothing, and no query looks at its last key.
    const last = thumbnails().at(-1);
    const height = last.getBoundingClientRect().height;
    if (height > 150) failures.push(`the thumbnail of a tall map is ${height} pixels high`);
    last.click();
    const tall = layers.at(-1);
    find(".from button").focus();
    expect("the readout", find(".readout").textContent, `Query “${tall.rows[0]}” sees nothing.`);
    [...document.querySelectorAll(".to button")].at(-1).focus();
    expect("the readout", find(".readout").textContent, `No query looks at key “${tall.keys.at(-1)}”.`);
    await checkSaved(tall, "Tall, layer 1, head 1");
    checkComparison();
    thumbnails()[3].click();
    await checkSaved(layers[1], "Causal, layer 1, head 1");
  } catch (error) {
    failures.push(error.message);
  }
  times.sort((a, b) => a - b);
  report.textContent = failures.length > 0 ? failures.slice(0, 5).join("; ")
    : `ok: ${times.length} moves of the pointer, ${times[times.length >> 1].toFixed(1)} ms at the median`;
  document.body.append(report);
})();
