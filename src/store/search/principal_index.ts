/** The described events of one principal's runs, apart from those of others, so that no search can find
 * another's.
 */

import { yieldToEventLoop } from "../../base/wait.ts";
import { Column } from "./column.ts";
import { Needle } from "./text_segment.ts";
import { comparableText, DistinctTexts } from "./distinct_texts.ts";

/** The index of one principal as columns, with one row for each described event, in sequence order. */
export interface DescribedEvents {
  readonly seqs: Uint32Array<ArrayBuffer>;
  /** The run of each event, as an index into `runIds`. */
  readonly runNumbers: Uint32Array<ArrayBuffer>;
  /** The number of each event's text in `DistinctTexts`. */
  readonly textNumbers: Uint32Array<ArrayBuffer>;
  readonly runIds: readonly string[];
}

export interface SearchMatches {
  readonly total: number;
  /** Sequence numbers of the first matches, ascending. */
  readonly seqs: readonly number[];
}

export interface FindOptions {
  /** Whether events of the run count; called at the end of the search. */
  readonly isSearched: (runId: string) => boolean;
  readonly limit: number;
}

/** Characters after which a search yields: some milliseconds. */
const YIELD_CHARACTERS = 16 * 1024 * 1024;

export class PrincipalIndex {
  readonly texts: DistinctTexts;
  readonly #seqs: Column;
  readonly #runNumbers: Column;
  readonly #textNumbers: Column;
  readonly #runIds: string[];
  readonly #numberOfRun = new Map<string, number>();

  constructor(events?: DescribedEvents, texts: DistinctTexts = new DistinctTexts()) {
    this.texts = texts;
    this.#seqs = new Column(events?.seqs);
    this.#runNumbers = new Column(events?.runNumbers);
    this.#textNumbers = new Column(events?.textNumbers);
    this.#runIds = [...events?.runIds ?? []];
    this.#runIds.forEach((runId, number) => this.#numberOfRun.set(runId, number));
  }

  get eventCount(): number {
    return this.#seqs.length;
  }

  add(seq: number, runId: string, description: string): void {
    let run = this.#numberOfRun.get(runId);
    if (run === undefined) {
      run = this.#runIds.push(runId) - 1;
      this.#numberOfRun.set(runId, run);
    }
    this.#seqs.push(seq);
    this.#runNumbers.push(run);
    this.#textNumbers.push(this.texts.add(comparableText(description)));
  }

  /**
   * Finds the events whose description contains the query, among those that are indexed at the time of the
   * call.
   */
  async find(query: string, { isSearched, limit }: FindOptions): Promise<SearchMatches> {
    const columns = {
      seqs: this.#seqs.values(),
      runNumbers: this.#runNumbers.values(),
      textNumbers: this.#textNumbers.values(),
    };
    const text = comparableText(query);
    // The query has nothing but characters that nobody sees.
    if (text === "") return { total: 0, seqs: [] };
    const matchBits = new Uint32Array(Math.ceil(this.texts.count / 32));
    let charactersSinceYield = 0;
    for (const characters of this.texts.search(new Needle(text), matchBits)) {
      charactersSinceYield += characters;
      if (charactersSinceYield < YIELD_CHARACTERS) continue;
      charactersSinceYield = 0;
      await yieldToEventLoop();
    }
    return collect(columns, matchBits, limit, this.#isSearchedByNumber(isSearched));
  }

  /** The columns as they are now. */
  events(): DescribedEvents {
    return {
      seqs: this.#seqs.values(),
      runNumbers: this.#runNumbers.values(),
      textNumbers: this.#textNumbers.values(),
      runIds: this.#runIds.slice(),
    };
  }

  /** How many events are in runs for which `isSearched` holds. */
  countOf(isSearched: (runId: string) => boolean): number {
    const isCounted = this.#isSearchedByNumber(isSearched);
    return this.#runNumbers.values().reduce((count, run) => count + (isCounted(run) ? 1 : 0), 0);
  }

  /** Asks `isSearched` by the run's number; called once for each run, and only for runs with a match. */
  #isSearchedByNumber(isSearched: (runId: string) => boolean): (run: number) => boolean {
    const known = new Uint8Array(this.#runIds.length);
    return (run) => {
      if (known[run] === 0) known[run] = isSearched(this.#runIds[run]!) ? 1 : 2;
      return known[run] === 1;
    };
  }
}

/** Collects the events whose texts match: `matchBits` has a bit for each text that contains the query. */
function collect(
  { seqs, runNumbers, textNumbers }: Pick<DescribedEvents, "seqs" | "runNumbers" | "textNumbers">,
  matchBits: Uint32Array,
  limit: number,
  isCounted: (run: number) => boolean,
): SearchMatches {
  const found: number[] = [];
  let total = 0;
  if (matchBits.every((word) => word === 0)) return { total, seqs: found };
  for (let row = 0; row < seqs.length; row++) {
    const text = textNumbers[row]!;
    if ((matchBits[text >>> 5]! >>> (text & 31) & 1) === 0 || !isCounted(runNumbers[row]!)) continue;
    if (total++ < limit) found.push(seqs[row]!);
  }
  return { total, seqs: found };
}
