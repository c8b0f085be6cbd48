// Named tensors: the numbers of every step of a computation, without the batch.

/** What a trace does not hold: the example that was computed beforehand has only a part of it. */
export class Missing extends Error {}

/** Tensors by name. */
export class Trace {
  #tensors = new Map();

  constructor(places, numbers) {
    /** How many numbers are kept in memory. */
    this.size = numbers.length;
    for (const { name, shape, offset } of places) {
      const size = shape.reduce((product, extent) => product * extent, 1);
      this.#tensors.set(name, { name, shape, data: numbers.subarray(offset, offset + size) });
    }
  }

  /** The names in the order of computation. */
  get names() {
    return [...this.#tensors.keys()];
  }

  has(name) {
    return this.#tensors.has(name);
  }

  get(name) {
    const tensor = this.#tensors.get(name);
    if (!tensor) throw new Missing(`${name} is not computed yet`);
    return tensor;
  }

  shape(name) {
    return this.get(name).shape;
  }

  /** One number. */
  at(name, ...index) {
    const { shape, data } = this.get(name);
    if (index.length !== shape.length) throw new RangeError(`${name} has the shape ${shape}, not a number at ${index}`);
    return data[flat(name, shape, index)];
  }

  /** The last axis at an index of all others. */
  row(name, ...index) {
    const { shape, data } = this.get(name);
    const width = shape.at(-1);
    const start = flat(name, shape, [...index, 0]);
    return data.subarray(start, start + width);
  }
}

function flat(name, shape, index) {
  return index.reduce((place, at, axis) => {
    if (!(at >= 0 && at < shape[axis])) throw new RangeError(`${name} has the shape ${shape}, not a number at ${index}`);
    return place * shape[axis] + at;
  }, 0);
}

/** Arithmetic on rows. */
export const sum = (row) => row.reduce((total, x) => total + x, 0);
export const norm = (row) => Math.sqrt(sum(row.map((x) => x * x)));
export const largest = (row) => row.reduce((best, x, at) => (x > row[best] ? at : best), 0);
/** In bits: 0 if all is on one, log₂ n if it is spread evenly over n. */
export const entropy = (row) => sum(row.map((share) => (share > 0 ? -share * Math.log2(share) : 0)));
export function softmax(row) {
  const top = row.reduce((a, b) => Math.max(a, b), -Infinity);
  const shares = Float64Array.from(row, (x) => Math.exp(x - top));
  const total = sum(shares);
  return shares.map((share) => share / total);
}

/** The `count` likeliest tokens by a row of logits, each with its probability. */
export function likeliestOf(logits, count) {
  const shares = softmax(logits);
  const ids = Array.from(shares.keys()).sort((a, b) => shares[b] - shares[a]);
  return ids.slice(0, count).map((id) => [id, shares[id]]);
}

/** The probability that each token of `target` is written after those before it, <eos> at the end included, as one product. */
export function probabilityOf(trace, target, end = 2) {
  const log = target.map((_, at) => Math.log(softmax(trace.row("logits", at))[target[at + 1] ?? end]));
  return Math.exp(sum(log));
}

/** The decoder of the file of the example: whole numbers of 24 bits in base64, times a step for each tensor. */
export function unpacked({ tensors, copies, numbers }) {
  const bytes = Uint8Array.from(atob(numbers), (character) => character.charCodeAt(0));
  const read = (at) => ((bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16)) << 8) >> 8;
  const values = new Float32Array(bytes.length / 3);
  for (const { shape, offset, step } of tensors) {
    const size = shape.reduce((product, extent) => product * extent, 1);
    for (let place = offset; place < offset + size; place += 1) values[place] = read(place * 3) * step;
  }
  const trace = new Trace(tensors, values);
  // A split into heads moves numbers and computes none, so they are stored once.
  const extra = copies.map(({ name, of, start, heads, width }) => {
    const [len] = trace.shape(of);
    const data = [];
    for (let head = 0; head < heads; head += 1) {
      for (let token = 0; token < len; token += 1)
        data.push(...trace.row(of, token).subarray(start + head * width, start + (head + 1) * width));
    }
    return { name, shape: [heads, len, width], data };
  });
  const places = [...tensors];
  let offset = values.length;
  for (const { name, shape, data } of extra) {
    places.push({ name, shape, offset });
    offset += data.length;
  }
  return new Trace(places, Float32Array.from([...values, ...extra.flatMap(({ data }) => data)]));
}
