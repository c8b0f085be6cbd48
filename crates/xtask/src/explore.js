"use strict";
// Works every control of an attention page, compares what it says with its data, and writes a report for page.rs.
(() => {
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
  const press = (key) => find("#detail").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const times = [];

  // Points at the middle of a cell and reads its weight.
  function point(layer, head, i, j) {
    const [rows, columns] = [layer.queries.length, layer.keys.length];
    const box = find(".surface canvas").getBoundingClientRect();
    const before = performance.now();
    find(".surface").dispatchEvent(new PointerEvent("pointermove", { bubbles: true,
      clientX: box.left + (j + 0.5) * box.width / columns, clientY: box.top + (i + 0.5) * box.height / rows }));
    void document.body.offsetHeight; // lays out what changed
    times.push(performance.now() - before);
    const what = layer.causal && j > i ? "hidden by the mask: the key comes later."
      : `weight ${(layer.heads[head].weights[i * columns + j] / data.units).toFixed(4)}`;
    const cell = `query “${layer.queries[i]}” → key “${layer.keys[j]}”`;
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

  try {
    const elements = document.querySelectorAll("*").length;
    const layers = data.groups.flatMap((group) => group.layers);
    const tokens = layers[0].queries.length + layers[0].keys.length;
    // A page with an element for every weight does not follow the pointer.
    if (elements > 4000 + 10 * tokens) failures.push(`${elements} elements for ${tokens} tokens`);
    const thumbnails = [...document.querySelectorAll(".thumbnail")];
    expect("the number of thumbnails", thumbnails.length, layers.flatMap((layer) => layer.heads).length);
    for (const scale of ["1", "max"]) {
      change("Colour scale", scale);
      for (const size of ["whole", "labelled"]) {
        [...document.querySelectorAll(".thumbnail")].at(0).click();
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
    // The last map is many times taller than wide; its first query sees nothing, and nobody looks at its last key.
    const last = [...document.querySelectorAll(".thumbnail")].at(-1);
    const height = last.getBoundingClientRect().height;
    if (height > 150) failures.push(`the thumbnail of a tall map is ${height} pixels high`);
    last.click();
    const tall = layers.at(-1);
    find(".from button").focus();
    expect("the readout", find(".readout").textContent, `Query “${tall.queries[0]}” sees nothing.`);
    [...document.querySelectorAll(".to button")].at(-1).focus();
    expect("the readout", find(".readout").textContent, `No query looks at key “${tall.keys.at(-1)}”.`);
  } catch (error) {
    failures.push(error.message);
  }
  times.sort((a, b) => a - b);
  const report = document.createElement("pre");
  report.id = "report";
  report.textContent = failures.length > 0 ? failures.slice(0, 5).join("; ")
    : `ok: ${times.length} moves of the pointer, ${times[times.length >> 1].toFixed(1)} ms at the median`;
  document.body.append(report);
})();
