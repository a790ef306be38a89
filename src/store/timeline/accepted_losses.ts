/** What a repair could not bring back and the operator accepted: events and blobs that later checks do not
 * call damage again.
 */

import { join } from "node:path";

const FILE = "accepted-losses.json";

export interface AcceptedLosses {
  /** Sequence numbers of accepted events, the first and the last of each range. */
  readonly events: readonly (readonly [from: number, to: number])[];
  /** Paths of accepted blobs, relative to the data directory. */
  readonly blobs: readonly string[];
}

/** Reads what was accepted; nothing where there is no such file, or none that can be read. */
export function acceptedLosses(dataDir: string): AcceptedLosses {
  try {
    const { events, blobs } = JSON.parse(Deno.readTextFileSync(join(dataDir, FILE)));
    const isRange = (range: unknown) =>
      Array.isArray(range) && range.length === 2 && range.every(Number.isSafeInteger);
    if (
      Array.isArray(events) && events.every(isRange) && Array.isArray(blobs) &&
      blobs.every((path) => typeof path === "string")
    ) return { events, blobs };
  } catch (error) {
    if (!(error instanceof SyntaxError || error instanceof Deno.errors.NotFound)) throw error;
  }
  return { events: [], blobs: [] };
}

/** Whether all numbers from `from` to `to` are accepted; ranges may lie beside each other. */
export function isAccepted({ events }: AcceptedLosses, from: number, to: number): boolean {
  let next = from;
  for (const [start, end] of events.toSorted(([left], [right]) => left - right)) {
    if (start <= next && end >= next) next = end + 1;
  }
  return next > to;
}

/**
 * Adds to what was accepted before. The file is written under another name first, so that a crash leaves the
 * old one or the new one.
 */
export function acceptLosses(dataDir: string, more: AcceptedLosses): void {
  const before = acceptedLosses(dataDir);
  const losses: AcceptedLosses = {
    events: [...before.events, ...more.events],
    blobs: [...new Set([...before.blobs, ...more.blobs])],
  };
  const path = join(dataDir, FILE);
  Deno.writeTextFileSync(`${path}.new`, `${JSON.stringify(losses)}\n`, { mode: 0o600 });
  Deno.renameSync(`${path}.new`, path);
}
