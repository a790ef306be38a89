/** Ends TCP connections of clients that do not take their answers, outside of the sandbox, by the numbers of
 * the system.
 */

import { timer } from "../base/wait.ts";
import type { World } from "../base/world.ts";
import type { ListenedAt } from "../http/connections.ts";
import { LIMITS } from "../contract/limits.ts";
import { connectionsTo, inodeOf, isStuck, type ListedConnection, unsentOf } from "./tcp_connections.ts";

export interface StallLimits {
  /** Milliseconds after which a client that takes nothing is cut off. */
  readonly stalledMs: number;
  /**
   * How many such clients may be there at once; of more, those that have taken nothing for longest are cut
   * off.
   */
  readonly stalledMax: number;
}

/** Ends the connections of these sockets of this process, and returns how many there were. */
export type CutConnections = (inodes: ReadonlySet<string>) => number;

/** From one look to the next. A client that takes one segment meanwhile counts as moving. */
const LOOK_MS = 2_000;

/** A connection whose client takes nothing. */
interface Stalled {
  readonly unsent: number;
  readonly sinceMs: number;
}

/**
 * Ends connections of clients that take nothing. Deno 2.9 keeps some 550 KB for such a client, as long as the
 * client likes, and does not end its connection while that is full.
 */
export class StalledAnswers {
  readonly #limits: StallLimits;
  readonly #cut: CutConnections;
  #before = new Map<string, Stalled>();

  constructor(limits: StallLimits, cut: CutConnections) {
    this.#limits = limits;
    this.#cut = cut;
  }

  /** Looks once at the connections, and says how many were cut off. */
  look(connections: Iterable<ListedConnection>, nowMs: number): number {
    const { stalledMs, stalledMax } = this.#limits;
    const waiting = new Map<string, Stalled>();
    const stalled: { readonly inode: string; readonly sinceMs: number }[] = [];
    for (const connection of connections) {
      const unsent = unsentOf(connection);
      if (unsent === 0 || !isStuck(connection)) continue;
      const inode = inodeOf(connection);
      const before = this.#before.get(inode);
      const sinceMs = before?.unsent === unsent ? before.sinceMs : nowMs;
      waiting.set(inode, { unsent, sinceMs });
      if (sinceMs < nowMs) stalled.push({ inode, sinceMs });
    }
    this.#before = waiting;
    const tooMany = stalled.length - stalledMax;
    const ended = stalled.toSorted((one, other) => one.sinceMs - other.sinceMs)
      .filter(({ sinceMs }, index) => index < tooMany || nowMs - sinceMs >= stalledMs);
    return ended.length === 0 ? 0 : this.#cut(new Set(ended.map(({ inode }) => inode)));
  }
}

/**
 * Looks from time to time, where the system has a list of connections and its C library can be called, until
 * it is disposed.
 */
export function endStalledAnswers(
  listener: ListenedAt,
  world: Pick<World, "sleep" | "monotonicMs" | "log">,
): Disposable {
  const cut = openCut();
  const limits = { stalledMs: LIMITS.answer.stalledMs, stalledMax: LIMITS.answer.stalledMax };
  const stalled = cut && new StalledAnswers(limits, cut);
  let pending: Disposable | undefined;
  const look = () => {
    try {
      const connections = stalled!.look(connectionsTo(listener), world.monotonicMs());
      if (connections > 0) {
        world.log.warn("clients that did not take their answers were cut off", { connections });
      }
    } catch {
      return; // no list
    }
    pending = timer(world, LOOK_MS, look);
  };
  if (stalled !== null) pending = timer(world, LOOK_MS, look);
  return { [Symbol.dispose]: () => pending?.[Symbol.dispose]() };
}

const [SOL_SOCKET, SO_LINGER, BOTH_WAYS] = [1, 13, 2];
/** A socket option with which closing drops what was not sent, and tells the client so. */
const DROP_UNSENT = new Int32Array([1, 0]);

/** What ends connections; null where native code may not be used, or is not that of Linux with glibc. */
export function openCut(): CutConnections | null {
  if (Deno.build.os !== "linux" || Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return null;
  }
  try {
    const { symbols: libc } = Deno.dlopen("libc.so.6", {
      setsockopt: { parameters: ["i32", "i32", "i32", "buffer", "u32"], result: "i32" },
      shutdown: { parameters: ["i32", "i32"], result: "i32" },
    });
    return (inodes) => {
      let count = 0;
      for (const { name } of Deno.readDirSync("/proc/self/fd")) {
        const inode = inodeOfFile(name);
        if (inode === null || !inodes.has(inode)) continue;
        const file = Number(name);
        libc.setsockopt(file, SOL_SOCKET, SO_LINGER, DROP_UNSENT, DROP_UNSENT.byteLength);
        if (libc.shutdown(file, BOTH_WAYS) === 0) count++;
      }
      return count;
    };
  } catch {
    return null; // another C library
  }
}

/** The number of the socket that an open file of this process is; null for another file. */
function inodeOfFile(name: string): string | null {
  try {
    return /^socket:\[(\d+)\]$/.exec(Deno.readLinkSync(`/proc/self/fd/${name}`))?.[1] ?? null;
  } catch {
    return null; // closed meanwhile
  }
}
