// The files of the page: beside it, or within it where the page is one file.

const inside = globalThis.oneFile;

/** A worker that runs a module of the page. */
export const workerOf = (name) => inside?.workerOf(name) ?? new Worker(name, { type: "module" });

/** A file; what its name says is compressed is decompressed. Throws a sentence if it is not there. */
export async function open(name) {
  const file = await bytes(name);
  // Some servers say how a .gz is encoded, and the browser has decompressed it then.
  const isCompressed = file[0] === 0x1f && file[1] === 0x8b;
  return new Response(isCompressed ? new Blob([file]).stream().pipeThrough(new DecompressionStream("gzip")) : file);
}

export const json = async (name) => (await open(name)).json();

async function bytes(name) {
  if (inside) return inside.bytesOf(name);
  const response = await fetch(name);
  if (!response.ok) throw new Error(`the server answers ${response.status} for ${name}`);
  return new Uint8Array(await response.arrayBuffer());
}
