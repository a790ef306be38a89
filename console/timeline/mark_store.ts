/** Marks in columns: a run may have hundreds of thousands, of which a screen shows a few. */

import { type Mark, type MarkFilter, type MarkStatus, showsLane } from "./mark.ts";

const STATUSES: readonly (MarkStatus | null)[] = [
  null,
  "exact",
  "provisional",
  "finalized",
];

/** Marks in the order of `seq`, by their index from 0. */
export class MarkStore {
  #count = 0;
  #capacity = 1024;
  #seqs = new Float64Array(this.#capacity);
  #startsMs = new Float64Array(this.#capacity);
  #endsMs = new Float64Array(this.#capacity);
  /** -1 for none. */
  #frames = new Int32Array(this.#capacity);
  /** NaN for none. */
  #confidences = new Float32Array(this.#capacity);
  #statuses = new Uint8Array(this.#capacity);
  #kinds = new Uint16Array(this.#capacity);
  #eventTypes = new Uint16Array(this.#capacity);
  /** 0 for none. */
  #origins = new Uint16Array(this.#capacity);
  #lanes = new Uint16Array(this.#capacity);
  readonly #labels: string[] = [];
  readonly #pictures = new Map<number, string>();
  readonly #names = new Names();

  get count(): number {
    return this.#count;
  }

  /** A mark of a higher `seq` than all others. Returns its index. */
  add(mark: Mark): number {
    if (this.#count === this.#capacity) this.#grow();
    const index = this.#count++;
    this.#seqs[index] = mark.seq;
    this.#startsMs[index] = mark.startMs;
    this.#endsMs[index] = mark.endMs;
    this.#frames[index] = mark.frame ?? -1;
    this.#confidences[index] = mark.confidence ?? NaN;
    this.#statuses[index] = Math.max(0, STATUSES.indexOf(mark.status));
    this.#kinds[index] = this.#names.idOf(mark.kind);
    this.#eventTypes[index] = mark.eventType === null ? 0 : this.#names.idOf(mark.eventType);
    this.#origins[index] = mark.origin === null ? 0 : this.#names.idOf(mark.origin);
    this.#lanes[index] = this.#names.idOf(mark.lane);
    this.#labels.push(mark.label);
    if (mark.sha256 !== null) this.#pictures.set(index, mark.sha256);
    return index;
  }

  at(index: number): Mark {
    const frame = this.#frames[index]!;
    const confidence = this.#confidences[index]!;
    const eventType = this.#eventTypes[index]!;
    return {
      seq: this.#seqs[index]!,
      kind: this.#names.of(this.#kinds[index]!),
      eventType: eventType === 0 ? null : this.#names.of(eventType),
      origin: this.#originAt(index),
      lane: this.laneAt(index),
      startMs: this.#startsMs[index]!,
      endMs: this.#endsMs[index]!,
      frame: frame < 0 ? null : frame,
      confidence: Number.isNaN(confidence) ? null : Math.round(confidence * 1e4) / 1e4,
      status: STATUSES[this.#statuses[index]!]!,
      sha256: this.#pictures.get(index) ?? null,
      label: this.#labels[index]!,
    };
  }

  startMsAt(index: number): number {
    return this.#startsMs[index]!;
  }

  endMsAt(index: number): number {
    return this.#endsMs[index]!;
  }

  seqAt(index: number): number {
    return this.#seqs[index]!;
  }

  statusAt(index: number): MarkStatus | null {
    return STATUSES[this.#statuses[index]!]!;
  }

  laneAt(index: number): string {
    return this.#names.of(this.#lanes[index]!);
  }

  sha256At(index: number): string | null {
    return this.#pictures.get(index) ?? null;
  }

  /**
   * The types of markers whose lanes a filter shows, each with its origin, and commas between; undefined
   * where it hides none:
   * `measured:scene_cut,model:scene_cut`.
   */
  typesShown(filter: MarkFilter): string | undefined {
    const shown = new Set<string>();
    let hidesSome = false;
    for (let index = 0; index < this.#count; index++) {
      const type = this.#eventTypes[index]!;
      if (type === 0) continue;
      const origin = this.#originAt(index) ?? "measured";
      if (showsLane(filter, this.laneAt(index))) shown.add(`${origin}:${this.#names.of(type)}`);
      else hidesSome = true;
    }
    return hidesSome ? Array.from(shown).join(",") : undefined;
  }

  /** The index of a mark; -1 for none. */
  indexOfSeq(seq: number): number {
    let [low, high] = [0, this.#count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#seqs[middle]! < seq) low = middle + 1;
      else high = middle;
    }
    return low < this.#count && this.#seqs[low] === seq ? low : -1;
  }

  /** Whether a filter lets a mark pass; `text` is its text in lower case. */
  passes(
    index: number,
    filter: MarkFilter,
    text: string,
  ): boolean {
    if (!showsLane(filter, this.laneAt(index))) return false;
    if (this.#confidences[index]! < filter.minConfidence) return false; // one without a confidence passes
    if (text === "") return true;
    const eventType = this.#eventTypes[index]!;
    return this.#labels[index]!.toLowerCase().includes(text) ||
      (eventType !== 0 &&
        this.#names.of(eventType).toLowerCase().includes(text));
  }

  #originAt(index: number): string | null {
    const origin = this.#origins[index]!;
    return origin === 0 ? null : this.#names.of(origin);
  }

  #grow(): void {
    this.#capacity *= 2;
    this.#seqs = grown(this.#seqs, new Float64Array(this.#capacity));
    this.#startsMs = grown(this.#startsMs, new Float64Array(this.#capacity));
    this.#endsMs = grown(this.#endsMs, new Float64Array(this.#capacity));
    this.#frames = grown(this.#frames, new Int32Array(this.#capacity));
    this.#confidences = grown(
      this.#confidences,
      new Float32Array(this.#capacity),
    );
    this.#statuses = grown(this.#statuses, new Uint8Array(this.#capacity));
    this.#kinds = grown(this.#kinds, new Uint16Array(this.#capacity));
    this.#eventTypes = grown(this.#eventTypes, new Uint16Array(this.#capacity));
    this.#origins = grown(this.#origins, new Uint16Array(this.#capacity));
    this.#lanes = grown(this.#lanes, new Uint16Array(this.#capacity));
  }
}

/** Names by small numbers from 1; an operator's labels may make some hundreds. */
class Names {
  readonly #names: string[] = [""];
  readonly #ids = new Map<string, number>();

  idOf(name: string): number {
    let id = this.#ids.get(name);
    if (id === undefined) {
      // Past what the columns can hold, the last name stands for all others.
      id = Math.min(this.#names.length, 65_535);
      this.#names[id] = name;
      this.#ids.set(name, id);
    }
    return id;
  }

  of(id: number): string {
    return this.#names[id]!;
  }
}

function grown<Column extends { set(from: Column): void }>(
  from: Column,
  to: Column,
): Column {
  to.set(from);
  return to;
}
