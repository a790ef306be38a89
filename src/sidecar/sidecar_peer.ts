/** The sidecar's end of one connection: reads and writes whole messages, and notices when the client
 * disconnects.
 */

export class SidecarPeer implements Disposable {
  readonly #conn: Deno.TcpConn;
  /** What `watch` has read of the next message: at most one byte. */
  #ahead: Uint8Array = new Uint8Array();
  #watching: Promise<void> | undefined;

  constructor(conn: Deno.TcpConn) {
    conn.setNoDelay(true);
    this.#conn = conn;
  }

  /**
   * `length` bytes; null if the client ended the connection before the first of them. Rejects when it is cut
   * off.
   */
  async read(length: number): Promise<Uint8Array | null> {
    await this.#watching;
    const bytes = new Uint8Array(length);
    if (length === 0) return bytes;
    bytes.set(this.#ahead);
    let at = this.#ahead.length;
    this.#ahead = new Uint8Array();
    while (at < length) {
      const count = await this.#conn.read(bytes.subarray(at));
      if (count === null && at === 0) return null;
      if (count === null) throw new Deno.errors.UnexpectedEof("the connection ended within a message");
      at += count;
    }
    return bytes;
  }

  async write(parts: readonly Uint8Array[]): Promise<void> {
    for (const part of parts) {
      for (let at = 0; at < part.length;) at += await this.#conn.write(part.subarray(at));
    }
  }

  /** Calls `onDisconnect` if the connection ends before the next message begins. */
  watch(onDisconnect: () => void): void {
    const byte = new Uint8Array(1);
    this.#watching = this.#conn.read(byte).then((count) => {
      if (count === null) onDisconnect();
      else this.#ahead = byte;
    }, onDisconnect).finally(() => this.#watching = undefined);
  }

  [Symbol.dispose](): void {
    try {
      this.#conn.close();
    } catch {
      // It was closed before.
    }
  }
}
