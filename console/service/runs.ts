/** The caller's runs as pages of the console show them: the newest ones, as many as are wanted. */

import type { Run } from "../../client/mod.ts";
import { client } from "./session.ts";

/** Runs of one question to the service: as many as it gives at once. */
const PAGE_RUNS = 1_000;
/** Runs among which a field lets choose, and those whose names a page knows. */
export const CHOICE_RUNS = 1_000;

export interface NewestRuns {
  readonly runs: readonly Run[];
  /** Whether there are older ones. */
  readonly isMore: boolean;
}

/** The newest first. */
export async function newestRuns(count: number, signal: AbortSignal): Promise<NewestRuns> {
  const asked = client.value;
  const runs: Run[] = [];
  for (let cursor: string | null = null;;) {
    const limit = Math.min(PAGE_RUNS, count - runs.length);
    const page = await asked.listRunsPage({ order: "newest", limit, ...(cursor !== null && { cursor }) }, {
      signal,
    });
    runs.push(...page.runs);
    cursor = page.next_cursor;
    if (cursor === null || runs.length >= count) return { runs, isMore: cursor !== null };
  }
}
