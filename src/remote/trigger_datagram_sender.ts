/** The local listener of trigger programs: one datagram a firing over a Unix socket, never waiting for anybody. Contract 9.5. */

import type { World } from "../base/world.ts";
import { unlessAborted } from "../base/wait.ts";

/** A listener that reads takes a datagram in microseconds; one that has taken none for so long is not reading. */
const PATIENCE_MS = 50;
/** Datagrams that wait for those before them. */
const WAITING_MAX = 32;

/**
 * Sends to a SOCK_DGRAM socket that somebody else has bound and may bind again. What the listener does not take at once
 * is lost: there may be nobody, it may have more unread than its socket holds, or the message is too long for it.
 *
 * The platform has no way to call a send off that waits for room. So the first datagram that finds the socket full may
 * still arrive later though it was counted as lost, and until it does, or the listener goes away, all others are lost.
 */
export class TriggerDatagramSender implements Disposable {
  readonly #path: string;
  readonly #world: World;
  readonly #socket: Deno.DatagramConn;
  readonly #closing = new AbortController();
  /** The end of those that were sent so far. */
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isStuck = false;

  private constructor(path: string, socket: Deno.DatagramConn, world: World) {
    this.#path = path;
    this.#socket = socket;
    this.#world = world;
  }

  /**
   * For an absolute path; nobody has to listen there yet. Needs the permission to write to exactly this path. The own end
   * has a random name of the abstract namespace (Linux), so that there is no file to remove.
   */
  static open(path: string, world: World): TriggerDatagramSender {
    const name = world.randomBytes(16).toHex();
    const socket = Deno.listenDatagram({ transport: "unixpacket", path: `\0service-trigger-${name}` });
    return new TriggerDatagramSender(path, socket, world);
  }

  /** Whether the listener took it. Never rejects. */
  async send(message: string): Promise<boolean> {
    if (this.#isStuck || this.#closing.signal.aborted || this.#waiting >= WAITING_MAX) return false;
    this.#waiting++;
    // One after the other, as the platform refuses a second send at the same time.
    const sent = this.#last.then(() => this.#sendNow(new TextEncoder().encode(message)));
    this.#last = sent;
    return await sent.finally(() => this.#waiting--);
  }

  [Symbol.dispose](): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#socket.close();
  }

  async #sendNow(bytes: Uint8Array): Promise<boolean> {
    if (this.#isStuck || this.#closing.signal.aborted) return false;
    const target: Deno.UnixAddr = { transport: "unixpacket", path: this.#path };
    const taken = this.#socket.send(bytes, target).then((count) => count === bytes.length, () => false);
    const patience = new AbortController();
    const onClose = () => patience.abort();
    this.#closing.signal.addEventListener("abort", onClose, { once: true });
    this.#world.sleep(PATIENCE_MS, patience.signal).then(onClose, () => {/* it was taken */});
    try {
      return await unlessAborted(taken, patience.signal);
    } catch {
      this.#isStuck = true;
      taken.then(() => void (this.#isStuck = false));
      return false;
    } finally {
      this.#closing.signal.removeEventListener("abort", onClose);
      patience.abort();
    }
  }
}
