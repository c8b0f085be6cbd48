// Starts the page where it is one file: modules and data stand in the document, in base64.

const texts = new Map(Array.from(document.querySelectorAll("script[data-file]"), (each) => [each.dataset.file, each.textContent]));
const urls = new Map();

const bytesOf = (name) => Uint8Array.from(atob(texts.get(name)), (character) => character.charCodeAt(0));

const textOf = (path) => new TextDecoder().decode(bytesOf(path));
const IMPORT = /^(import .* from )"(\.[^"]+)";$/gm;
const beside = (path, name) => new URL(name, `file:///${path}`).pathname.slice(1);

/** The address of a module, whose imports have addresses before it. */
function urlOf(path) {
  if (!urls.has(path))
    urls.set(path, urlOfText(textOf(path).replace(IMPORT, (_, names, name) => `${names}"${urlOf(beside(path, name))}";`)));
  return urls.get(path);
}

const urlOfText = (text) => URL.createObjectURL(new Blob([text], { type: "text/javascript" }));

/** A worker of a module. Chromium lets no worker of a file from the disk import: the modules are one script, each after its imports. */
function workerOf(path) {
  const seen = new Set();
  const scriptOf = (module) => {
    if (seen.has(module)) return "";
    seen.add(module);
    const text = textOf(module);
    const imports = Array.from(text.matchAll(IMPORT), ([, , name]) => scriptOf(beside(module, name)));
    return imports.join("") + text.replace(IMPORT, "").replace(/^export /gm, "");
  };
  return new Worker(urlOfText(scriptOf(path)));
}

globalThis.oneFile = { bytesOf, workerOf };
await import(urlOf("main.js"));
