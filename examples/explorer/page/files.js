// The files of the page: beside it, or within it where the page is one file.

const inside = globalThis.oneFile;

/** A worker that runs a module of the page. */
export const workerOf = (name) => inside?.workerOf(name) ?? new Worker(name, { type: "module" });

/** The bytes of a file; what its name says is compressed is decompressed. Throws a sentence if that fails. */
export async function open(name) {
  const file = await bytes(name);
  // Some servers say how a .gz is encoded, and the browser has decompressed it then.
  if (!(file[0] === 0x1f && file[1] === 0x8b)) return file;
  const stream = new Blob([file]).stream().pipeThrough(new DecompressionStream("gzip"));
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Error(`${name} cannot be decompressed: it is damaged or not whole`);
  }
}

export const json = async (name) => JSON.parse(new TextDecoder().decode(await open(name)));

async function bytes(name) {
  if (inside) return inside.bytesOf(name);
  const response = await fetch(name);
  if (!response.ok) throw new Error(`the server answers ${response.status} for ${name}`);
  return new Uint8Array(await response.arrayBuffer());
}
