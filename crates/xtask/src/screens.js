"use strict";
// Looks at an attention page in frames of several sizes, as on several screens, and writes a report for page.rs.
addEventListener("load", () => {
  function check(frame) {
    const [width, height] = [frame.clientWidth, frame.clientHeight];
    const page = frame.contentDocument;
    const expect = (what, found, expected) => {
      if (found !== expected) failures.push(`at ${width} × ${height}, ${what} is ${found}, not ${expected}`);
    };
    const box = (selector) => page.querySelector(selector).getBoundingClientRect();
    const fits = (what) => expect(`the width of the page${what}`, page.documentElement.scrollWidth, page.documentElement.clientWidth);
    fits("");
    // The guide is open only where it leaves room for the pictures. It opens with a click, and the keyboard can reach it.
    const [guide, heading] = [page.getElementById("guide"), page.querySelector("#guide summary")];
    const open = width > 900 && height > 850;
    expect("that the guide is open", guide.open, open);
    if (width > 900) expect("that the heat map is in sight", box(".surface")[open ? "top" : "bottom"] <= height, true);
    else expect("that thumbnails are in sight", box(".thumbnail").bottom <= height, true);
    heading.focus();
    expect("what has the focus", page.activeElement, heading);
    heading.click();
    expect("that the guide is open after a click", guide.open, !open);
    // Two heads stand side by side, on a phone one below the other. There, a finger hits every button.
    [...page.querySelectorAll("#detail button")].find((button) => button.textContent === "Compare").click();
    const [first, second] = [...page.querySelectorAll(".panel")].map((panel) => panel.getBoundingClientRect());
    expect("that two heads are side by side", second.left >= first.right, width > 900);
    expect("that one head is below the other", second.top >= first.bottom, width <= 900);
    fits(" with two heads");
    const controls = [...page.querySelectorAll(".controls button, .controls select")].map((each) => each.getBoundingClientRect());
    const shown = controls.filter((each) => each.width > 0);
    const smallest = Math.min(...shown.flatMap((each) => [each.width, each.height]));
    expect("that the buttons are large enough", smallest >= (width <= 900 ? 44 : 24), true);
  }

  const frames = [...document.querySelectorAll("iframe")];
  try {
    frames.forEach(check);
  } catch (error) {
    failures.push(error.message);
  }
  const report = document.createElement("pre");
  report.id = "report";
  report.textContent = failures.length > 0 ? failures.slice(0, 5).join("; ") : `ok: ${frames.length} sizes of the screen`;
  document.body.append(report);
});
