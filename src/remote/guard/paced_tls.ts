/** TLS connections that are read no faster than their reader takes it: a paused one of Deno 2.9.6 reads on,
 * and fills the memory.
 */

import { freeMemory } from "../../base/bytes.ts";
import { connect as connectPlain } from "node:net";
import { Duplex } from "node:stream";
import * as tls from "node:tls";

/**
 * Connects to `host`, and speaks TLS through a stream that is read only while the TLS connection is not
 * paused.
 */
export function connectPaced(
  { host, port, ...options }: tls.ConnectionOptions & { readonly host: string; readonly port: number },
): tls.TLSSocket {
  const plain = connectPlain({ host, port });
  const stream = new Duplex({
    read() {/* the bytes come as they do */},
    write: (bytes, _encoding, done) => void plain.write(bytes, done),
    final: (done) => void plain.end(done),
    destroy: (error, done) => {
      plain.destroy();
      done(error);
    },
  });
  const secure = tls.connect({ ...options, host, socket: stream });
  plain.on("data", (bytes: Uint8Array) => {
    stream.push(bytes);
    const isCopied = stream.readableLength === 0;
    if (isCopied && bytes.length === bytes.buffer.byteLength) freeMemory([bytes]);
  });
  plain.once("end", () => void stream.push(null));
  plain.once("error", (error) => secure.destroy(error));
  secure.on("pause", () => void plain.pause());
  secure.on("resume", () => void plain.resume());
  secure.once("close", () => void plain.destroy());
  return secure;
}
