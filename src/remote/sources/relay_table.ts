/** The relays of one Worker: does the orders of the service's thread, and reports what comes of them. */

import { errorText, type Level, type Log } from "../../base/log.ts";
import { Refusal } from "../../contract/refusal.ts";
import { timer } from "../../base/wait.ts";
import { realWorld, type World } from "../../base/world.ts";
import { trustedRoots } from "../guard/trusted_roots.ts";
import { HlsProgress } from "./hls_progress.ts";
import type { RelayOrder, RelayReport, RelaySaid } from "./relay_messages.ts";
import { type RelayedSource, type RelaySettings, RelaysHere, type SourceRelay } from "./relays.ts";
import type { DatagramOutcome } from "./rtp_datagrams.ts";

/** Bytes of a file that are passed on at once: a message costs as much as writing so many. */
const PASSED_BYTES = 256 * 1024;
/** How long datagrams are counted before they are reported. */
const COUNTED_MS = 1000;

type PostRelayReport = (report: RelayReport, moved: readonly ArrayBuffer[]) => void;

/** One source, from its order to the report that it is closed. */
interface OrderedSource {
  readonly closing: AbortController;
  /** Resolves when it is open, fetched or refused; never rejects. */
  done: Promise<void>;
  relay: SourceRelay | null;
  /** Resolved when the bytes that were passed on last were taken. */
  taken: PromiseWithResolvers<ArrayBuffer>;
}

export class RelayTable {
  readonly #post: PostRelayReport;
  readonly #world: World;
  readonly #sources = new Map<number, OrderedSource>();
  readonly #datagrams: DatagramCounts;
  #relays: RelaysHere | null = null;

  constructor(post: PostRelayReport) {
    this.#post = post;
    this.#world = realWorld(reportedLog(post));
    this.#datagrams = new DatagramCounts(this.#world, post);
  }

  take(order: RelayOrder): void {
    if (order.kind === "start") this.#relays = this.#start(order.settings);
    else if (order.kind === "open" || order.kind === "fetch") this.#begin(order);
    else if (order.kind === "taken") this.#sources.get(order.id)?.taken.resolve(order.room);
    else if (order.kind === "ask") this.#say(order.id, true);
    else void this.#close(order.id);
  }

  /** An error that no code caught. The relays go on. */
  onUncaught(error: unknown): void {
    this.#world.log.warn("uncaught error in a relay worker", { error: errorText(error) });
  }

  #start({ allowInsecureTls, allowedNetworks }: RelaySettings): RelaysHere {
    return new RelaysHere({
      ...{ world: this.#world, allowInsecureTls, allowedNetworks },
      outbound: { roots: trustedRoots },
      countDatagrams: (outcome, datagrams) => this.#datagrams.add(outcome, datagrams),
    });
  }

  #begin(order: Extract<RelayOrder, { kind: "open" | "fetch" }>): void {
    const closing = new AbortController();
    const ordered: OrderedSource = {
      ...{ closing, done: Promise.resolve(), relay: null, taken: Promise.withResolvers<ArrayBuffer>() },
    };
    this.#sources.set(order.id, ordered);
    ordered.done = this.#do(order, ordered);
  }

  async #do(
    order: Extract<RelayOrder, { kind: "open" | "fetch" }>,
    ordered: OrderedSource,
  ): Promise<void> {
    const { id, named } = order;
    const source: RelayedSource = {
      remote: { kind: order.source, url: new URL(order.url) },
      ...(named && { named }),
    };
    try {
      if (order.kind === "fetch") {
        await this.#fetch(source, id, ordered);
        this.#post({ kind: "fetched", id }, []);
        return;
      }
      const { before, ...options } = order.options;
      const relay = await this.#relays!.openStream(
        source,
        { ...options, before: before && HlsProgress.of(before) },
        ordered.closing.signal,
        () => this.#say(id, false),
      );
      ordered.relay = relay;
      this.#post({ kind: "opened", id, url: relay.url, said: saidOf(relay) }, []);
    } catch (error) {
      if (ordered.closing.signal.aborted) return;
      const reason = error instanceof Refusal ? error.details[0]?.message ?? error.message : null;
      if (reason !== null) this.#post({ kind: "refused", id, reason }, []);
      else this.#post({ kind: "failed", id, message: errorText(error) }, []);
    }
  }

  async #fetch(source: RelayedSource, id: number, ordered: OrderedSource): Promise<void> {
    let room = new Uint8Array(PASSED_BYTES);
    let filled = 0;
    const pass = async () => {
      const bytes = room.subarray(0, filled);
      filled = 0;
      ordered.taken = Promise.withResolvers();
      this.#post({ kind: "bytes", id, bytes }, [bytes.buffer]);
      room = new Uint8Array(await ordered.taken.promise);
    };
    const sink = async (bytes: Uint8Array) => {
      for (let at = 0; at < bytes.length;) {
        const part = bytes.subarray(at, at + room.length - filled);
        room.set(part, filled);
        filled += part.length;
        at += part.length;
        if (filled === room.length) await pass();
      }
    };
    await this.#relays!.fetchFile(source, sink, ordered.closing.signal);
    if (filled > 0) await pass();
  }

  #say(id: number, isAnswer: boolean): void {
    const relay = this.#sources.get(id)?.relay;
    if (relay) this.#post({ kind: "said", id, said: saidOf(relay), isAnswer }, []);
  }

  async #close(id: number): Promise<void> {
    const ordered = this.#sources.get(id);
    try {
      ordered?.closing.abort(new Error("the source is closed"));
      ordered?.taken.resolve(new ArrayBuffer(PASSED_BYTES));
      await ordered?.done;
      await ordered?.relay?.[Symbol.asyncDispose]();
      this.#say(id, false);
    } finally {
      this.#sources.delete(id);
      this.#post({ kind: "closed", id }, []);
    }
  }
}

function saidOf({ fault, end, progress }: SourceRelay): RelaySaid {
  return {
    fault: fault ? fault.details[0]?.message ?? fault.message : null,
    end: end ?? null,
    parts: progress?.parts ?? [],
  };
}

/** Reports datagrams together: each alone would cost more than passing it on. */
class DatagramCounts {
  readonly #world: World;
  readonly #post: PostRelayReport;
  readonly #counts = new Map<DatagramOutcome, number>();

  constructor(world: World, post: PostRelayReport) {
    this.#world = world;
    this.#post = post;
  }

  add(outcome: DatagramOutcome, datagrams: number): void {
    if (this.#counts.size === 0) timer(this.#world, COUNTED_MS, () => this.#report());
    this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + datagrams);
  }

  #report(): void {
    for (const [outcome, datagrams] of this.#counts) {
      this.#post({ kind: "datagrams", outcome, datagrams }, []);
    }
    this.#counts.clear();
  }
}

/** A log whose lines the service's thread writes. */
function reportedLog(post: PostRelayReport): Log {
  const line = (level: Level) => (message: string, fields: Record<string, unknown> = {}) =>
    post({ kind: "log", level, message, fields }, []);
  const log: Log = {
    trace: () => {},
    debug: () => {},
    ...{ info: line("info"), warn: line("warn"), error: line("error") },
    child: () => log,
  };
  return log;
}
