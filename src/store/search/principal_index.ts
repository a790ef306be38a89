/** The described events of one principal's runs, so that a search of one never touches what belongs to another. */

import { Column } from "./column.ts";
import { Needle } from "./text_segment.ts";
import { comparableText, DistinctTexts } from "./distinct_texts.ts";

/** What a principal's part of the index holds, column by column; a row for each described event, in sequence order. */
export interface DescribedEvents {
  readonly seqs: Uint32Array<ArrayBuffer>;
  /** Index into `runIds`. */
  readonly runs: Uint32Array<ArrayBuffer>;
  /** Number of the text in `texts`. */
  readonly texts: Uint32Array<ArrayBuffer>;
  readonly runIds: readonly string[];
}

export interface Found {
  readonly total: number;
  /** Sequence numbers of the first ones, ascending. */
  readonly seqs: readonly number[];
}

export interface FindOptions {
  /** Whether the events of the run count; asked when the search is at its end. */
  readonly counts: (runId: string) => boolean;
  readonly limit: number;
  /** Awaited whenever others should get their turn. */
  readonly yieldToEventLoop: () => Promise<void>;
}

/** A search lets others work after about this many characters: some milliseconds. */
const TURN_CHARACTERS = 16 * 1024 * 1024;

export class PrincipalDescriptions {
  readonly texts: DistinctTexts;
  readonly #seqs: Column;
  readonly #runs: Column;
  readonly #textNumbers: Column;
  readonly #runIds: string[];
  readonly #runNumbers = new Map<string, number>();

  constructor(events?: DescribedEvents, texts: DistinctTexts = new DistinctTexts()) {
    this.texts = texts;
    this.#seqs = new Column(events?.seqs);
    this.#runs = new Column(events?.runs);
    this.#textNumbers = new Column(events?.texts);
    this.#runIds = [...events?.runIds ?? []];
    this.#runIds.forEach((runId, number) => this.#runNumbers.set(runId, number));
  }

  get eventCount(): number {
    return this.#seqs.length;
  }

  add(seq: number, runId: string, description: string): void {
    let run = this.#runNumbers.get(runId);
    if (run === undefined) {
      run = this.#runIds.push(runId) - 1;
      this.#runNumbers.set(runId, run);
    }
    this.#seqs.push(seq);
    this.#runs.push(run);
    this.#textNumbers.push(this.texts.add(comparableText(description)));
  }

  /** The events that were there at the call and whose description contains the query. */
  async find(query: string, { counts, limit, yieldToEventLoop }: FindOptions): Promise<Found> {
    const [seqs, runs, texts] = [this.#seqs.values(), this.#runs.values(), this.#textNumbers.values()];
    const matches = new Uint32Array(Math.ceil(this.texts.count / 32));
    let looked = 0;
    for (const characters of this.texts.search(new Needle(comparableText(query)), matches)) {
      looked += characters;
      if (looked < TURN_CHARACTERS) continue;
      looked = 0;
      await yieldToEventLoop();
    }
    return collect(seqs, runs, texts, matches, limit, this.#countsByNumber(counts));
  }

  /** The columns as they are now. */
  events(): DescribedEvents {
    return {
      seqs: this.#seqs.values(),
      runs: this.#runs.values(),
      texts: this.#textNumbers.values(),
      runIds: this.#runIds.slice(),
    };
  }

  /** How many events are in runs for which `counts` holds. */
  countOf(counts: (runId: string) => boolean): number {
    const isCounted = this.#countsByNumber(counts);
    return this.#runs.values().reduce((count, run) => count + (isCounted(run) ? 1 : 0), 0);
  }

  /** The answer for each run is asked once, and only for runs that come up. */
  #countsByNumber(counts: (runId: string) => boolean): (run: number) => boolean {
    const known = new Uint8Array(this.#runIds.length);
    return (run) => {
      if (known[run] === 0) known[run] = counts(this.#runIds[run]!) ? 1 : 2;
      return known[run] === 1;
    };
  }
}

function collect(
  seqs: Uint32Array,
  runs: Uint32Array,
  texts: Uint32Array,
  matches: Uint32Array,
  limit: number,
  isCounted: (run: number) => boolean,
): Found {
  const found: number[] = [];
  let total = 0;
  if (matches.every((word) => word === 0)) return { total, seqs: found };
  for (let row = 0; row < seqs.length; row++) {
    const text = texts[row]!;
    if ((matches[text >>> 5]! >>> (text & 31) & 1) === 0 || !isCounted(runs[row]!)) continue;
    if (total++ < limit) found.push(seqs[row]!);
  }
  return { total, seqs: found };
}
