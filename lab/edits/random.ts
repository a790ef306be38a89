/** Random numbers that depend on a label alone, so that a video is drawn the same way every time. */

/** A generator seeded by a text. Small fast counter (sfc32), seeded by an FNV hash that is mixed well. */
export class Random {
  readonly #label: string;
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;
  #noise: Int8Array | undefined;

  constructor(label: string) {
    this.#label = label;
    this.#a = hashOf(`${label}/a`);
    this.#b = hashOf(`${label}/b`);
    this.#c = hashOf(`${label}/c`);
    for (let round = 0; round < 12; round++) this.#bits();
  }

  /** A generator of its own for one part, so that what is drawn there changes nothing elsewhere. */
  fork(part: string): Random {
    return new Random(`${this.#label}/${part}`);
  }

  /** A number in [0, 1). */
  next(): number {
    return this.#bits() / 2 ** 32;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** An integer from `low` to `high`, both included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  /** An even integer from `low` to `high`, so that chroma planes have a sample there. */
  even(low: number, high: number): number {
    return 2 * this.int(Math.ceil(low / 2), Math.max(Math.ceil(low / 2), Math.floor(high / 2)));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** A sign: +1 or -1. */
  sign(): number {
    return this.next() < 0.5 ? -1 : 1;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.int(0, items.length - 1)];
    if (item === undefined) throw new Error("Nothing to pick from");
    return item;
  }

  /** Picks an item with the probability of its weight. */
  weighted<Item>(items: readonly Item[], weight: (item: Item) => number): Item {
    let left = this.next() * items.reduce((sum, item) => sum + weight(item), 0);
    for (const item of items) {
      left -= weight(item);
      if (left < 0) return item;
    }
    return this.pick(items);
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    const order = [...items];
    for (let i = order.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      [order[i], order[j]] = [order[j]!, order[i]!];
    }
    return order;
  }

  /** A normally distributed number of mean 0 and deviation 1. */
  gauss(): number {
    return Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
  }

  /**
   * Normally distributed values of deviation 16, for noise over whole pictures: read from random places of
   * it.
   */
  noise(): Int8Array {
    if (!this.#noise) {
      this.#noise = new Int8Array(NOISE_LENGTH);
      for (let i = 0; i < NOISE_LENGTH; i++) {
        this.#noise[i] = Math.max(-127, Math.min(127, Math.round(16 * this.gauss())));
      }
    }
    return this.#noise;
  }

  #bits(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
}

const NOISE_LENGTH = 1 << 15;

/** Hash of a text: FNV-1a with a final mix, 32 bits. */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
