/** Sends a datagram to a local Unix socket each time a trigger fires. */

import type { World } from "../base/world.ts";
import { within } from "../base/wait.ts";

/** How long a listener may take for a datagram. One that reads takes it in microseconds. */
const SEND_TIMEOUT_MS = 50;
/** Datagrams that wait until those before them are sent. */
const QUEUE_MAX = 32;

/**
 * Sends to a SOCK_DGRAM socket, which the listener binds and may bind again. A datagram that the listener
 * does not take at once is lost: there is no listener, the buffer of its socket is full, or the message is
 * too long. See docs/protocols.md#trigger-datagrams.
 *
 * A send that waits for room in the buffer cannot be cancelled. So the first datagram that finds the buffer
 * full may still arrive later although it was counted as lost. Until then, or until the listener closes its
 * socket, all others are lost.
 */
export class TriggerDatagramSender implements Disposable {
  readonly #path: string;
  readonly #world: World;
  readonly #socket: Deno.DatagramConn;
  readonly #closing = new AbortController();
  /** Resolves when the last datagram so far was sent or lost. */
  #last: Promise<unknown> = Promise.resolve();
  #queued = 0;
  /** Whether a send waits for room in the buffer of the listener. */
  #isBlocked = false;

  private constructor(path: string, socket: Deno.DatagramConn, world: World) {
    this.#path = path;
    this.#socket = socket;
    this.#world = world;
  }

  /**
   * Opens a sender. `path` is absolute, and nobody has to listen there yet. Needs the permission to write to
   * exactly this path. The sender's own socket has a random name in the abstract namespace (Linux), so there
   * is no file to remove.
   */
  static open(path: string, world: World): TriggerDatagramSender {
    const name = world.randomBytes(16).toHex();
    const socket = Deno.listenDatagram({ transport: "unixpacket", path: `\0service-trigger-${name}` });
    return new TriggerDatagramSender(path, socket, world);
  }

  /** Whether the listener took the message. Never rejects. */
  async send(message: string): Promise<boolean> {
    if (this.#isBlocked || this.#closing.signal.aborted || this.#queued >= QUEUE_MAX) return false;
    this.#queued++;
    // One after the other, because Deno refuses a second send at the same time.
    const sent = this.#last.then(() => this.#sendNow(new TextEncoder().encode(message)));
    this.#last = sent;
    return await sent.finally(() => this.#queued--);
  }

  [Symbol.dispose](): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#socket.close();
  }

  async #sendNow(bytes: Uint8Array): Promise<boolean> {
    if (this.#isBlocked || this.#closing.signal.aborted) return false;
    const target: Deno.UnixAddr = { transport: "unixpacket", path: this.#path };
    const taken = this.#socket.send(bytes, target).then((count) => count === bytes.length, () => false);
    try {
      return await within(this.#world, SEND_TIMEOUT_MS, taken, this.#closing.signal);
    } catch {
      this.#isBlocked = true;
      taken.then(() => void (this.#isBlocked = false));
      return false;
    }
  }
}
