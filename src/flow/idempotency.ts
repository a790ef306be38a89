/** Decides what becomes of a request with an idempotency key: it is the first, gets a kept answer, or is
 * refused.
 */

import { RefusalForNow, refuse } from "../contract/refusal.ts";
import type { Metrics } from "../contract/metrics.ts";
import type { World } from "../base/world.ts";
import { IDEMPOTENCY_KEY, keyScope, textDigest } from "../model/idempotency_key.ts";
import type { StoredEvent } from "../store/timeline/event_reader.ts";
import type { Timeline } from "../store/timeline/timeline.ts";
import type { KeptAnswers, KeptKey } from "../store/answers/kept_answers.ts";
import type { Caller } from "./caller.ts";

export interface IdempotencyOptions {
  readonly timeline: Pick<Timeline, "view" | "readAll" | "synced" | "names">;
  readonly answers: KeptAnswers;
  readonly world: World;
  readonly metrics: Metrics;
}

/** One request with a key that is well formed. */
export interface KeyedWork {
  readonly key: string;
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** The runs that the request names. */
  readonly runIds: readonly string[];
  /** The events that its work appends. */
  readonly kinds: readonly string[];
  /** Makes the answer out of an event of the work and the id of the first request, where that can be done. */
  readonly rebuild?: ((event: WorkEvent, requestId: string) => object) | undefined;
}

/** An event that tells that work was done. */
export type WorkEvent = Pick<StoredEvent, "seq" | "runId" | "payload">;

export type KeptBody = AsyncIterable<Uint8Array<ArrayBuffer>>;

/** An answer that was given before, or would have been. */
export interface AnswerAgain {
  readonly status: number;
  readonly body: KeptBody;
}

/** The first request with a key. It ends with one of these calls. */
export class FirstRequest {
  readonly #answers: KeptAnswers;
  readonly #key: KeptKey;

  constructor(answers: KeptAnswers, key: KeptKey) {
    this.#answers = answers;
    this.#key = key;
  }

  /** Resolves when the answer is kept, with the body to be sent. */
  keep(status: number, body: KeptBody): Promise<KeptBody> {
    return this.#answers.keep(this.#key, status, body);
  }

  /** The request was refused: the next request with the key is the first again. */
  free(): void {
    this.#answers.remove(this.#key);
  }

  /** The answer was interrupted: nobody knows how much of it is on the disk. */
  interrupt(): void {
    this.#answers.interrupt(this.#key);
  }
}

/** See docs/api.md#idempotency-keys. */
export class Idempotency {
  readonly #options: IdempotencyOptions;

  constructor(options: IdempotencyOptions) {
    this.#options = options;
    options.metrics.observeValue("service_idempotency_keys", () => options.answers.count);
  }

  /**
   * For the first request with the key, what its work ends with; else the answer again. Errors: 422
   * `idempotency-key` with another body, 409 while the first request is running and when its answer is not
   * there, 429 with too many keys, 503 and 507 where the key cannot be stored.
   */
  async begin(caller: Caller, work: KeyedWork): Promise<FirstRequest | AnswerAgain> {
    const { timeline, answers, world } = this.#options;
    const { principalKey, requestId } = caller;
    const scopeOf = (name: string) => keyScope(name, work.method, work.path, work.key);
    const scope = scopeOf(principalKey);
    const bodySha256 = textDigest(work.body);
    const earlier = timeline.names.earlier(principalKey);
    const known = answers.find(scope) ?? (earlier === null ? undefined : answers.find(scopeOf(earlier)));
    const again = known && await this.#again(known, bodySha256, work);
    if (again !== undefined) return again;
    // another request began while the old key was looked at
    if (answers.find(scope) !== undefined) throw runningNow();
    const { runIds } = work;
    const fromSeq = timeline.view.lastSeq + 1;
    const use = { scope, principalKey, runIds, bodySha256, requestId, begunMs: world.now(), fromSeq };
    return new FirstRequest(answers, await answers.begin(use));
  }

  /** Undefined where the work is to be done, after the key was freed. */
  async #again(key: KeptKey, bodySha256: string, work: KeyedWork): Promise<AnswerAgain | undefined> {
    const { metrics } = this.#options;
    if (key.use.bodySha256 !== bodySha256) {
      throw refuse.invalid(IDEMPOTENCY_KEY, "was used with another body: a new request needs a new key");
    }
    if (key.state.kind === "running") throw runningNow();
    const again = key.state.kind === "interrupted" ? await this.#rebuilt(key, work) : await this.#kept(key);
    if (again !== undefined) metrics.add("service_idempotency_replays_total");
    return again;
  }

  async #kept(key: KeptKey): Promise<AnswerAgain> {
    const { state } = key;
    const body = await this.#options.answers.read(key);
    if (state.kind === "answered" && body !== undefined) return { status: state.status, body };
    throw refuse.conflict(
      IDEMPOTENCY_KEY,
      "the request with this key succeeded, and its answer is not kept: its result is in the events of the run",
    );
  }

  async #rebuilt(key: KeptKey, { kinds, rebuild }: KeyedWork): Promise<AnswerAgain | undefined> {
    const { answers, timeline } = this.#options;
    const found = this.#eventOf(key, kinds);
    if (found === undefined) {
      answers.remove(key);
      return undefined;
    }
    if (rebuild === undefined) {
      throw refuse.conflict(
        IDEMPOTENCY_KEY,
        `the service stopped during the request with this key, after it may have appended event ${found.seq} of ` +
          `${found.runId}: read the events of the run, and use a new key to do the work again`,
      );
    }
    // what was committed may not be on the disk: a failed sync may be why it was interrupted
    await timeline.synced();
    if (key.state.kind !== "interrupted") throw runningNow();
    const text = JSON.stringify(rebuild(found, key.use.requestId));
    await answers.resume(key);
    return { status: 200, body: await answers.keep(key, 200, inOnePiece(text)) };
  }

  /** An event that the interrupted request appended, or may have where its kind does not name the request. */
  #eventOf({ use, state }: KeptKey, kinds: readonly string[]): StoredEvent | undefined {
    if (state.kind !== "interrupted") return undefined;
    const { timeline } = this.#options;
    const query = { fromSeq: use.fromSeq, toSeq: state.toSeq, kinds: new Set(kinds) };
    for (const batch of timeline.readAll(query)) {
      for (const event of batch) {
        if (timeline.view.run(event.runId)?.principalKey !== use.principalKey) continue;
        if (use.runIds.length > 0 && !use.runIds.includes(event.runId)) continue;
        const { request_id: requestId = use.requestId } = JSON.parse(event.payload) ?? {};
        if (requestId === use.requestId) return event;
      }
    }
    return undefined;
  }
}

function runningNow(): RefusalForNow {
  const message = "the first request with this key is still running";
  return new RefusalForNow(1, "conflict", `Cannot answer yet: ${message}`, [
    { field: IDEMPOTENCY_KEY, message },
  ]);
}

async function* inOnePiece(text: string): KeptBody {
  yield await Promise.resolve(new TextEncoder().encode(text));
}
