/** Event streams whose clients do not take what they are sent: how far they may be ahead of their clients.
 * See docs/events.md#event-stream.
 */

import { timer, yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";

/** What one event stream has sent. Disposing it ends the account. */
export interface SentBytes extends Disposable {
  /** Whether more may be sent. Where not, `resume` is called once it may. */
  mayGoOn(): boolean;
  /** Counts bytes that were given to the runtime. */
  add(bytes: number): void;
}

export interface SentBytesOptions {
  readonly principalKey: string;
  /** The other end of its TCP connection, `address port`; undefined where there is none. */
  readonly client: string | undefined;
  readonly resume: () => void;
}

export interface UntakenAnswersOptions {
  readonly world: Pick<World, "sleep" | "monotonicMs">;
  /** Which of these clients have not acknowledged more than a little; null where it is not known. */
  readonly behind: (clients: readonly string[]) => Promise<ReadonlySet<string> | null>;
}

/** From one look at the connections to the next. */
const LOOK_MS = 25;
/** A look at thousands of connections takes long: at most a tenth of the time of its thread. */
const PAUSE_FOR_LOOK = 10;
/**
 * Deno 2.9 keeps so much of one answer in front of a socket that is full, and asks for no more (measured on
 * 28 November 2026).
 */
const RUNTIME_BYTES = 480 * 1024;

/**
 * What a stream has sent counts until its client has taken it, which only the system knows:
 *
 *     sent ─▶ runtime ─▶ socket ─▶ acknowledged by the client
 *     └───── counts as untaken ─────┘
 *
 * While the streams of a principal together have as much untaken as they may, each goes on only up to a small
 * part of its own. The others wait until connections are seen to have nothing left to send, and then go on in
 * the order in which they came. Where that cannot be seen, and of HTTP/3, everything counts as taken at the
 * next look.
 */
export class UntakenAnswers implements Disposable {
  readonly #options: UntakenAnswersOptions;
  readonly #principals = new Map<string, PrincipalStreams>();
  #timer: Disposable | undefined;
  #isLooking = false;
  #isClosed = false;

  constructor(options: UntakenAnswersOptions) {
    this.#options = options;
  }

  open({ principalKey, client, resume }: SentBytesOptions): SentBytes {
    const stream: FollowedStream = { client, resume, untaken: 0 };
    const principal = () => this.#principals.getOrInsertComputed(principalKey, () => new PrincipalStreams());
    return {
      mayGoOn: () => {
        if (principal().admits(stream)) return true;
        principal().waiting.add(stream);
        this.#schedule(LOOK_MS);
        return false;
      },
      add: (bytes) => {
        principal().set(stream, stream.untaken + bytes);
        // Before any has to wait: those whose clients take everything seldom do then.
        if (principal().untaken >= LIMITS.sse.untakenBytesPerPrincipal / 2) this.#schedule(LOOK_MS);
      },
      [Symbol.dispose]: () => {
        const left = this.#principals.get(principalKey);
        left?.waiting.delete(stream);
        left?.set(stream, 0);
        if (left?.ahead.size === 0 && left.waiting.size === 0) this.#principals.delete(principalKey);
      },
    };
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#timer?.[Symbol.dispose]();
  }

  #schedule(ms: number): void {
    if (this.#isClosed || this.#isLooking) return;
    this.#timer ??= timer(this.#options.world, ms, () => {
      this.#timer = undefined;
      void this.#look();
    });
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    const { world, behind } = this.#options;
    this.#isLooking = true;
    const startedMs = world.monotonicMs();
    const asked = [...this.#principals.values()].map((principal) => ({
      principal,
      sent: [...principal.ahead].map((stream) => [stream, stream.untaken] as const),
    }));
    await yieldToEventLoop(); // what was sent until now is in a socket then, or behind what is in one
    const clients = asked.flatMap(({ sent }) => sent.flatMap(([{ client }]) => client ?? []));
    const late = await behind(clients).catch(() => null);
    const tookMs = world.monotonicMs() - startedMs;
    for (const { principal, sent } of asked) {
      for (const [stream, bytes] of sent) {
        if (stream.client !== undefined && late?.has(stream.client)) continue;
        principal.set(stream, Math.max(0, stream.untaken - bytes));
      }
      principal.resume();
    }
    this.#isLooking = false;
    if (asked.some(({ principal }) => principal.waiting.size > 0)) {
      this.#schedule(Math.max(LOOK_MS, tookMs * PAUSE_FOR_LOOK));
    }
  }
}

interface FollowedStream {
  readonly client: string | undefined;
  readonly resume: () => void;
  untaken: number;
}

/** The streams of one principal. */
class PrincipalStreams {
  /** Untaken bytes of all streams; each counts at most what the runtime keeps. */
  untaken = 0;
  /** With untaken bytes. */
  readonly ahead = new Set<FollowedStream>();
  /** The streams, in the order in which they came. */
  readonly waiting = new Set<FollowedStream>();

  admits({ untaken }: FollowedStream): boolean {
    return this.untaken < LIMITS.sse.untakenBytesPerPrincipal || untaken < LIMITS.sse.untakenBytesOfEach;
  }

  set(stream: FollowedStream, untaken: number): void {
    this.untaken += Math.min(untaken, RUNTIME_BYTES) - Math.min(stream.untaken, RUNTIME_BYTES);
    stream.untaken = untaken;
    if (untaken > 0) this.ahead.add(stream);
    else this.ahead.delete(stream);
  }

  resume(): void {
    for (const stream of [...this.waiting]) {
      if (!this.admits(stream)) continue;
      this.waiting.delete(stream);
      stream.resume();
    }
  }
}
