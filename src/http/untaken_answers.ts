/** Event streams whose clients do not take what they are sent: how far each may be ahead of its client. See docs/events.md#event-stream. */

import { timer, yieldToEventLoop } from "../base/wait.ts";
import type { World } from "../base/world.ts";

/** One event stream. Disposing it ends the accounts. */
export interface SentBytes extends Disposable {
  /** Whether more may be sent. Where not, `resume` is called once it may. */
  mayGoOn(): boolean;
  /** So many bytes were given to the runtime. */
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
  /** Of these clients those whose system has not acknowledged everything; null where it is not known. */
  readonly behind: (clients: readonly string[]) => Promise<ReadonlySet<string> | null>;
  /** How many bytes may be under way to one event stream of the principal. */
  readonly shareOf: (principalKey: string) => number;
}

/**
 * Deno 2.9 keeps some 410 KB in front of a socket that is full, and asks for 64 KB more (measured on 28 November 2026). A stream that may
 * be ahead by as much needs no account: it is not asked for more.
 */
export const RUNTIME_BYTES = 480 * 1024;

/** From one look at the connections to the next. */
const LOOK_MS = 250;
/** A look at thousands of connections takes long: at most a twentieth of the time. */
const PAUSE_FOR_LOOK = 20;

/**
 * What a stream has sent counts until its client has taken it, which only the system knows:
 *
 *     sent ─▶ runtime ─▶ socket ─▶ acknowledged by the client
 *     └────── counts as under way ───────┘
 *
 * A stream whose part is used up waits until its connection has nothing left to send. Where that is not known, and of HTTP/3, everything
 * counts as taken at the next look.
 */
export class UntakenAnswers implements Disposable {
  readonly #options: UntakenAnswersOptions;
  /** Those with bytes under way. */
  readonly #ahead = new Set<Account>();
  #timer: Disposable | undefined;
  #isLooking = false;
  #isClosed = false;

  constructor(options: UntakenAnswersOptions) {
    this.#options = options;
  }

  open(options: SentBytesOptions): SentBytes {
    const account = new Account(options);
    return {
      mayGoOn: () => {
        const share = this.#options.shareOf(options.principalKey);
        account.isWaiting = share < RUNTIME_BYTES && account.bytes >= share;
        if (account.isWaiting) this.#schedule(LOOK_MS);
        return !account.isWaiting;
      },
      add: (bytes) => {
        account.bytes += bytes;
        this.#ahead.add(account);
        const share = this.#options.shareOf(options.principalKey);
        // Before it has to wait: so a client that takes everything seldom does.
        if (share < RUNTIME_BYTES && account.bytes >= share / 2) this.#schedule(LOOK_MS);
      },
      [Symbol.dispose]: () => {
        account.isWaiting = false;
        this.#ahead.delete(account);
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
    this.#isLooking = true;
    const startedMs = this.#options.world.monotonicMs();
    const asked = new Map([...this.#ahead].map((account) => [account, account.bytes] as const));
    // What was sent until now is in the socket then, or behind other bytes there.
    await yieldToEventLoop();
    const behind = await this.#options.behind(clientsOf(asked.keys())).catch(() => null);
    const tookMs = this.#options.world.monotonicMs() - startedMs;
    this.#isLooking = false;
    for (const [account, bytes] of asked) {
      if (account.client !== undefined && behind?.has(account.client)) continue;
      account.bytes -= bytes;
      if (account.bytes === 0) this.#ahead.delete(account);
    }
    for (const account of asked.keys()) this.#resume(account);
    if (this.#ahead.values().some(({ isWaiting }) => isWaiting)) {
      this.#schedule(Math.max(LOOK_MS, tookMs * PAUSE_FOR_LOOK));
    }
  }

  #resume(account: Account): void {
    if (!account.isWaiting || account.bytes >= this.#options.shareOf(account.principalKey)) return;
    account.isWaiting = false;
    account.resume();
  }
}

/** Of one event stream. */
class Account {
  readonly principalKey: string;
  readonly client: string | undefined;
  readonly resume: () => void;
  /** Under way. */
  bytes = 0;
  isWaiting = false;

  constructor({ principalKey, client, resume }: SentBytesOptions) {
    this.principalKey = principalKey;
    this.client = client;
    this.resume = resume;
  }
}

function clientsOf(accounts: Iterable<Account>): string[] {
  return [...accounts].flatMap(({ client }) => client ?? []);
}
