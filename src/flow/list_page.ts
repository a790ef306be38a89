/** Pages of long lists: `limit` and `cursor` of a request, and where the next page begins. See
 * docs/api/runs.md#pages.
 */

import { refuse } from "../contract/refusal.ts";
import { LIMITS } from "../contract/limits.ts";

/** Query values as they came. */
export interface PageQuery {
  readonly cursor?: string | undefined;
  readonly limit?: number | undefined;
}

/** Which part of a list is wanted. */
export interface ListPage {
  readonly limit: number;
  /** `next_cursor` of the page before; null for the first one. */
  readonly cursor: string | null;
}

/** Null where neither is given: the whole list. Errors: 422 on `limit`. */
export function pageOf(query: PageQuery): ListPage | null {
  return query.cursor === undefined && query.limit === undefined ? null : firstPageOr(query);
}

/** The first page where neither is given. Errors: 422 on `limit`. */
export function firstPageOr({ cursor, limit = LIMITS.list.pageDefault }: PageQuery): ListPage {
  const { minimum, maximum } = LIMITS.list.page;
  if (limit < minimum || limit > maximum) {
    throw refuse.invalid("limit", `must be from ${minimum} to ${maximum}`);
  }
  return { limit, cursor: cursor ?? null };
}

/** The numbers of a cursor, with `-` between them; null for the first page. Errors: 422 on `cursor`. */
export function cursorNumbers(page: ListPage | null, count: number): readonly number[] | null {
  if (page === null || page.cursor === null) return null;
  const parts = page.cursor.split("-");
  if (parts.length !== count || !parts.every((part) => /^\d{1,15}$/.test(part))) throw foreignCursor();
  return parts.map(Number);
}

export function foreignCursor(): Error {
  return refuse.invalid("cursor", "must be a next_cursor of this list");
}

/** The entries of one page of a list, and what reads on behind them once they were read. */
export class PageEntries<Entry> implements AsyncIterable<readonly Entry[]> {
  readonly #batches: AsyncIterable<readonly Entry[]>;
  readonly #limit: number;
  readonly #cursorOf: (entry: Entry) => string;
  #nextCursor: string | null = null;

  /** `batches` begin behind the cursor of the page. */
  constructor(
    batches: AsyncIterable<readonly Entry[]>,
    { limit }: Pick<ListPage, "limit">,
    cursorOf: (entry: Entry) => string,
  ) {
    this.#batches = batches;
    this.#limit = limit;
    this.#cursorOf = cursorOf;
  }

  /** Null at the end of the list, and before everything was read. */
  get nextCursor(): string | null {
    return this.#nextCursor;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<readonly Entry[]> {
    let left = this.#limit;
    let last: Entry | undefined;
    for await (const batch of this.#batches) {
      if (batch.length > left) {
        if (left > 0) yield batch.slice(0, left);
        this.#nextCursor = this.#cursorOf(left > 0 ? batch[left - 1]! : last!);
        return;
      }
      left -= batch.length;
      last = batch.at(-1) ?? last;
      yield batch;
    }
  }
}
