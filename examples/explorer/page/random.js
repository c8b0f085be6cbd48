// Random vectors from a seeded generator: the same numbers on every machine.

/** Mulberry32: 32 bits of state, enough for a picture. */
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const DRAWS = 60;
const known = new Map();

/** The scores of random queries and keys of a width, which only the factor changes afterwards. */
function scoresOf(width, keys) {
  const name = `${width},${keys}`;
  if (!known.has(name)) {
    const uniform = generator(width * 1009 + keys);
    const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
    const draws = Array.from({ length: DRAWS }, () => {
      const query = Float64Array.from({ length: width }, normal);
      return Array.from({ length: keys }, () => query.reduce((score, x) => score + x * normal(), 0));
    });
    known.set(name, draws);
  }
  return known.get(name);
}

/** The mean over draws of the largest weight of a softmax over `keys` scores times `factor`. */
export function meanLargest(width, keys, factor) {
  const largest = scoresOf(width, keys).map((scores) => {
    const top = Math.max(...scores);
    return 1 / scores.reduce((total, score) => total + Math.exp((score - top) * factor), 0);
  });
  return largest.reduce((total, share) => total + share, 0) / largest.length;
}
