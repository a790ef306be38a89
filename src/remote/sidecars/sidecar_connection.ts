/** One TCP connection to the embedding sidecar: sends and receives a given number of bytes. */

import type { Address } from "../../contract/setting_parsers.ts";
import { unlessAborted } from "../../base/wait.ts";

/** The connection could not be opened or has ended. The message has neither the address nor any content. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/**
 * All methods reject with {@link ConnectionLost} or the reason of their signal; after that the connection is closed.
 */
export class SidecarConnection implements Disposable {
  readonly #conn: Deno.TcpConn;

  private constructor(conn: Deno.TcpConn) {
    this.#conn = conn;
  }

  static async open({ hostname, port }: Address, signal: AbortSignal): Promise<SidecarConnection> {
    const connecting = Deno.connect({ hostname, port, signal });
    try {
      const conn = await unlessAborted(connecting, signal);
      conn.setNoDelay(true);
      return new SidecarConnection(conn);
    } catch (error) {
      connecting.then((late) => late.close(), () => {/* there is nothing to close */});
      signal.throwIfAborted();
      const why = error instanceof Error ? error.name : String(error);
      throw new ConnectionLost(`cannot be connected to: ${why}`);
    }
  }

  async send(parts: readonly Uint8Array[], signal: AbortSignal): Promise<void> {
    await this.#transfer(signal, async () => {
      for (const part of parts) {
        for (let at = 0; at < part.length;) at += await this.#conn.write(part.subarray(at));
      }
    });
  }

  /** Exactly `length` bytes. */
  async receive(length: number, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = new Uint8Array(length);
    await this.#transfer(signal, async () => {
      for (let at = 0; at < length;) {
        const count = await this.#conn.read(bytes.subarray(at));
        if (count === null) throw new Deno.errors.UnexpectedEof();
        at += count;
      }
    });
    return bytes;
  }

  [Symbol.dispose](): void {
    try {
      this.#conn.close();
    } catch {
      // It was closed before.
    }
  }

  /** When `signal` aborts, the connection is closed, because that is the only way to end a read or a write. */
  async #transfer(signal: AbortSignal, transfer: () => Promise<void>): Promise<void> {
    const onAbort = () => this[Symbol.dispose]();
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await transfer();
    } catch {
      this[Symbol.dispose]();
      signal.throwIfAborted();
      throw new ConnectionLost("cut the connection");
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
