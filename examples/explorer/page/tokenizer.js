// Byte-level BPE as the crate `tokenizers` does it, for the file that the translator writes.

const SPECIAL = 4; // <pad> <bos> <eos> <unk>
export const BOS = 1;
export const EOS = 2;

// GPT-2's, with Unicode's white space where JavaScript's \s differs from it (U+FEFF, U+0085).
const WORDS =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const OUTER_SPACE = /^\p{White_Space}+|\p{White_Space}+$/gu;
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|\p{Cc}|\p{White_Space}/gu;

/** Without byte order marks and outer white space, with composed letters. */
export function composed(text) {
  return trimmed(text.replaceAll("\ufeff", "")).normalize("NFC");
}

/** Whether nothing of a text can be seen. */
export const isBlank = (text) => text.replace(INVISIBLE, "") === "";

const trimmed = (text) => text.replace(OUTER_SPACE, "");

/** Every byte as a character that can be seen, as GPT-2 writes them. */
function characterOfByte() {
  const isShown = (byte) => (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isShown(byte) ? byte : next++));
}

/** Turns text into ids and back. */
export class Tokenizer {
  #characters = characterOfByte();
  #bytes = new Map(this.#characters.map((character, byte) => [character, byte]));
  #ids;
  #tokens;
  #ranks;
  #known = new Map();

  constructor({ model }) {
    this.#ids = new Map(Object.entries(model.vocab));
    this.#tokens = [];
    for (const [token, id] of this.#ids) this.#tokens[id] = token;
    this.#ranks = new Map(model.merges.map((pair, rank) => [Array.isArray(pair) ? pair.join(" ") : pair, rank]));
  }

  /** The ids of a text, without special tokens: no text is mistaken for one. */
  encode(text) {
    const clean = composed(text);
    const prefixed = clean.startsWith(" ") || clean === "" ? clean : ` ${clean}`;
    return [...prefixed.matchAll(WORDS)].flatMap(([word]) => this.#word(word));
  }

  #word(word) {
    if (!this.#known.has(word)) {
      const bytes = new TextEncoder().encode(word);
      let parts = Array.from(bytes, (byte) => this.#characters[byte]);
      for (let best = this.#best(parts); best; best = this.#best(parts)) parts = merged(parts, best);
      this.#known.set(
        word,
        parts.map((part) => this.#ids.get(part)),
      );
    }
    return this.#known.get(word);
  }

  /** The pair of neighbours that was learnt first. */
  #best(parts) {
    let [best, lowest] = [null, Infinity];
    for (let at = 0; at + 1 < parts.length; at += 1) {
      const rank = this.#ranks.get(`${parts[at]} ${parts[at + 1]}`);
      if (rank < lowest) [best, lowest] = [[parts[at], parts[at + 1]], rank];
    }
    return best;
  }

  #text(ids) {
    const bytes = ids.flatMap((id) => [...(this.#tokens[id] ?? "")].map((character) => this.#bytes.get(character)));
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
  }

  /** The text of ids, in one line; special tokens are left out. */
  decode(ids) {
    return trimmed(this.#text(ids.filter((id) => id >= SPECIAL))).replace(/\p{Cc}/gu, " ");
  }

  /** What to show for each token: its text, with `·` in front if it continues a word. */
  labels(ids) {
    return ids.map((id) => {
      if (id < SPECIAL) return this.#tokens[id];
      const text = this.#text([id]);
      if (text === " ") return "␠";
      return text.startsWith(" ") ? text.slice(1) : `·${text}`;
    });
  }
}

function merged(parts, [left, right]) {
  const joined = [];
  for (let at = 0; at < parts.length; at += 1) {
    if (parts[at] === left && parts[at + 1] === right) {
      joined.push(left + right);
      at += 1;
    } else {
      joined.push(parts[at]);
    }
  }
  return joined;
}
