/** What calls have said of cameras, armed or disarmed: a small file that survives a restart. */

import { errorText } from "../base/log.ts";
import { refuse } from "../contract/refusal.ts";
import type { World } from "../base/world.ts";
import type { ArmedByCall } from "../model/sources/arming.ts";
import { readSmallFile, replaceSmallFile } from "./files/small_file.ts";

export interface ArmedCallsOptions {
  /** The caller must own its lock. */
  readonly dataDir: string;
  readonly world: World;
}

const FILE = "armed.json";

/**
 * ```
 *   armed.json   {"sources":{"dock":{"armed":false,"until_ms":1795543200000,"schedule":"…"}}}
 * ```
 * It is synced to the disk before a call is answered.
 */
export class ArmedCalls {
  readonly #options: ArmedCallsOptions;
  #calls: ReadonlyMap<string, ArmedByCall>;

  /** A file that cannot be read counts as none, which leaves the schedules. */
  static open(options: ArmedCallsOptions): ArmedCalls {
    const { dataDir, world } = options;
    try {
      return new ArmedCalls(options, callsOf(readSmallFile(dataDir, FILE) ?? '{"sources":{}}'));
    } catch (error) {
      const log = world.log.child("sources");
      log.error("armed.json cannot be read: the schedules of the sources count", { error: errorText(error) });
      return new ArmedCalls(options, new Map());
    }
  }

  private constructor(options: ArmedCallsOptions, calls: ReadonlyMap<string, ArmedByCall>) {
    this.#options = options;
    this.#calls = calls;
  }

  /** By the name of the source. */
  get all(): ReadonlyMap<string, ArmedByCall> {
    return this.#calls;
  }

  of(name: string): ArmedByCall | null {
    return this.#calls.get(name) ?? null;
  }

  /** Refuses with `storage_unavailable` when the disk is full or fails; then everything is as it was. */
  replace(calls: ReadonlyMap<string, ArmedByCall>): void {
    const text = `${JSON.stringify({ sources: Object.fromEntries(calls) })}\n`;
    try {
      replaceSmallFile(this.#options.dataDir, FILE, { text, isSynced: true });
    } catch (error) {
      const log = this.#options.world.log.child("sources");
      log.error("armed.json cannot be written", { error: errorText(error) });
      throw refuse.because("storage_unavailable", "Cannot arm or disarm as the disk takes no file");
    }
    this.#calls = new Map(calls);
  }
}

function callsOf(text: string): ReadonlyMap<string, ArmedByCall> {
  const { sources } = JSON.parse(text) as { sources: Record<string, Partial<ArmedByCall>> };
  const calls = new Map<string, ArmedByCall>();
  for (const [name, { armed, until_ms, schedule }] of Object.entries(sources)) {
    const isTime = until_ms === null || Number.isSafeInteger(until_ms);
    if (typeof armed !== "boolean" || !isTime || typeof schedule !== "string") {
      throw new Error("an entry is none of this version");
    }
    calls.set(name, { armed, until_ms: until_ms!, schedule });
  }
  return calls;
}
