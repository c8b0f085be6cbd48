"use strict";
// A heat map as a file, made in the page: nothing is requested or sent.
const save = (() => {
  const MOST_PIXELS = 2 ** 24; // of a PNG: what every browser can draw
  const MARGIN = 16;

  // The squares, one unit wide. Those of a colour are one path, in which neighbours of a row are one rectangle.
  function squares(rows, colors, hatching) {
    const paths = new Map();
    rows.forEach((steps, i) => {
      for (let [j, next] = [0, 0]; j < steps.length; j = next) {
        while (next < steps.length && steps[next] === steps[j]) next += 1;
        if (!paths.has(steps[j])) paths.set(steps[j], []);
        paths.get(steps[j]).push(`M${j} ${i}h${next - j}v1h${j - next}z`);
      }
    });
    return [...paths].map(([step, d]) => svg("path", { d: d.join(""), fill: step < 0 ? hatching : colors[step] }));
  }

  // A title as part of a file's name.
  const wordsOf = (title) => title.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean).join("-");

  // `rows` has the place in `colors` of every square, below 0 where the key is hidden; `over` stands over the squares, as `plan` says.
  function drawn({ title, rows, colors, ramp, over, plan, top, whose, family }) {
    const style = getComputedStyle(document.documentElement);
    const [ink, quiet, paper, rule, hatch] = ["ink", "quiet", "paper", "rule", "hatch"]
      .map((name) => style.getPropertyValue(`--${name}`).trim());
    // Several pictures in one document each need their own names.
    const own = `${wordsOf(title)}-${paper.replace("#", "")}`;
    const hides = rows.some((steps) => steps.some((step) => step < 0));
    const pen = html("canvas").getContext("2d");
    pen.font = `700 14px ${family}`;
    const scale = `weight from 0 to ${top}${whose}`;
    const titleWidth = pen.measureText(title).width;
    pen.font = `12px ${family}`;
    const width = Math.ceil(Math.max(plan.width, titleWidth, 120 + pen.measureText(scale).width, 300)) + 2 * MARGIN;
    const height = plan.height + 100;
    const legend = plan.height + 56;
    const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "font-family": family,
      "font-size": 12, fill: ink, style: "white-space: pre" },
      svg("title", {}, title),
      svg("defs", {},
        svg("pattern", { id: `hidden-${own}`, width: 0.25, height: 0.25, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
          svg("path", { d: "M0 0h0.08v0.25h-0.08z", fill: hatch })),
        svg("linearGradient", { id: `weights-${own}` },
          ...ramp.map((color, n) => svg("stop", { offset: n / (ramp.length - 1), "stop-color": color })))),
      svg("rect", { width: "100%", height: "100%", fill: paper }),
      svg("text", { x: MARGIN, y: 28, "font-size": 14, "font-weight": 700 }, title),
      svg("g", { transform: `translate(${MARGIN} 40)`, "font-size": plan.size },
        svg("g", { transform: `translate(${plan.left} ${plan.top}) scale(${plan.cell})`, "shape-rendering": "crispEdges" },
          ...squares(rows, colors, `url(#hidden-${own})`)),
        ...over),
      svg("rect", { x: MARGIN, y: legend, width: 112, height: 10, fill: `url(#weights-${own})`, stroke: rule }),
      svg("text", { x: MARGIN + 120, y: legend + 10 }, scale),
      svg("text", { x: MARGIN, y: legend + 30, fill: quiet }, `rows: queries, columns: keys${hides ? "; hatched: hidden" : ""}`));
    picture.querySelectorAll(".gap").forEach((gap) => gap.setAttribute("stroke", paper));
    return { picture, width, height };
  }

  // An SVG as a PNG, of twice its size where that is not too large.
  async function pixels(file, width, height) {
    const url = URL.createObjectURL(file);
    const image = new Image();
    image.src = url;
    try {
      await image.decode();
    } catch {
      URL.revokeObjectURL(url);
      throw new Error("this browser cannot draw the SVG.");
    }
    const scale = Math.min(2, Math.sqrt(MOST_PIXELS / (width * height)));
    const canvas = html("canvas", { width: Math.floor(width * scale), height: Math.floor(height * scale) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    const png = await new Promise((done) => { canvas.toBlob(done, "image/png"); });
    if (!png) throw new Error(`this browser cannot encode ${canvas.width} × ${canvas.height} pixels.`);
    return png;
  }

  // `kind` is SVG or PNG; the name of the file is the title.
  return async (map, kind) => {
    const { picture, width, height } = drawn(map);
    let file = new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" });
    if (kind === "PNG") file = await pixels(file, width, height);
    const url = URL.createObjectURL(file);
    html("a", { href: url, download: `${wordsOf(map.title)}.${kind.toLowerCase()}` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser may ask where to put it first
  };
})();
