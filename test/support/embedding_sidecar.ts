/** An embedding sidecar that answers as it is told, holds its callers to the protocol and keeps what they sent. */

import { joinedBytes } from "../../src/base/bytes.ts";
import {
  decodeEmbeddingRequest,
  EMBEDDING_HEADER_BYTES,
  type EmbeddingStatus,
  encodeEmbedding,
  encodeEmbeddingFailure,
} from "../../src/model/embedding_protocol.ts";

export interface EmbeddingRequest {
  /** Counted from 0; requests of one number came over one connection. */
  readonly connection: number;
  readonly jpeg: Uint8Array;
}

/** Bytes to send; `cut` closes the connection without an answer, `hang` keeps it open without one. */
export type EmbeddingReply = Uint8Array | "cut" | "hang";
export type EmbeddingScript = (
  request: EmbeddingRequest,
  index: number,
) => EmbeddingReply | Promise<EmbeddingReply>;

export interface EmbeddingDouble extends AsyncDisposable {
  /** For SERVICE_NOVELTY_EMBEDDING_ADDR. */
  readonly address: string;
  readonly port: number;
  readonly requests: readonly EmbeddingRequest[];
  /** What callers did that the protocol forbids; a connection ends with its first fault. */
  readonly faults: readonly string[];
  /** Connections that were opened so far, and that are open now. */
  readonly accepted: number;
  readonly open: number;
  /** How everything is answered from now on. */
  answer(script: EmbeddingScript): void;
  /** Closes every connection, and takes new ones on. */
  dropConnections(): void;
}

/** Answers every picture with the same embedding, unless `script` says otherwise. */
export function openEmbeddingDouble(script: EmbeddingScript = embedded(axis(0))): EmbeddingDouble {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections = new Set<Deno.Conn>();
  const requests: EmbeddingRequest[] = [];
  const faults: string[] = [];
  let current = script;
  let accepted = 0;

  async function serve(conn: Deno.Conn, connection: number) {
    try {
      for (;;) {
        const head = await readExactly(conn, EMBEDDING_HEADER_BYTES);
        if (!head) return;
        const jpeg = await readExactly(conn, decodeEmbeddingRequest(head).jpegBytes);
        if (!jpeg) throw new Error("the request was cut off");
        requests.push({ connection, jpeg });
        const reply = await current(requests.at(-1)!, requests.length - 1);
        if (reply === "cut") return;
        if (reply === "hang") await readExactly(conn, 1);
        else for (let at = 0; at < reply.length;) at += await conn.write(reply.subarray(at));
      }
    } catch (error) {
      const isGone = error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted ||
        error instanceof Deno.errors.BrokenPipe || error instanceof Deno.errors.ConnectionReset;
      if (!isGone) faults.push(String(error));
    } finally {
      connections.delete(conn);
      close(conn);
    }
  }
  const accepting = (async () => {
    const serving = new Set<Promise<void>>();
    for await (const conn of listener) {
      connections.add(conn);
      const served = serve(conn, accepted++).finally(() => serving.delete(served));
      serving.add(served);
    }
    await Promise.all(serving);
  })();

  const { port } = listener.addr as Deno.NetAddr;
  const double: EmbeddingDouble = {
    address: `127.0.0.1:${port}`,
    port,
    requests,
    faults,
    get accepted() {
      return accepted;
    },
    get open() {
      return connections.size;
    },
    answer: (script) => void (current = script),
    dropConnections() {
      for (const conn of [...connections]) close(conn);
    },
    async [Symbol.asyncDispose]() {
      listener.close();
      double.dropConnections();
      await accepting;
    },
  };
  return double;
}

/** The unit vector along one of the 768 axes. */
export function axis(index: number): Float32Array {
  return new Float32Array(768).with(index, 1);
}

export function embedded(embedding: Float32Array): EmbeddingScript {
  return () => joinedBytes(...encodeEmbedding(embedding));
}

export function refusedEmbedding(status: Exclude<EmbeddingStatus, "ok">): EmbeddingScript {
  return () => joinedBytes(...encodeEmbeddingFailure(status, "told to fail"));
}

/** A good answer with `change` made to its bytes. */
function garbled(change: (bytes: Uint8Array, view: DataView) => Uint8Array | void): EmbeddingScript {
  return () => {
    const bytes = joinedBytes(...encodeEmbedding(axis(0)));
    return change(bytes, new DataView(bytes.buffer)) ?? bytes;
  };
}

/** Answers of which none may be taken, by what is wrong with them. */
export const MALFORMED_EMBEDDINGS: Readonly<Record<string, EmbeddingScript>> = {
  "another magic": garbled((bytes) => void (bytes[3] = 0)),
  "another version": garbled((bytes) => void (bytes[4] = 2)),
  "a status that nobody knows": garbled((bytes) => void (bytes[5] = 5)),
  "other dimensions": garbled((_bytes, view) => view.setUint16(6, 512)),
  "another length": garbled((_bytes, view) => view.setUint32(8, 3_076)),
  "gigabytes of text": garbled((_bytes, view) => {
    view.setUint8(5, 2);
    view.setUint32(8, 0xffffffff);
  }),
  "a number that is none": garbled((_bytes, view) => view.setFloat32(12 + 4 * 767, NaN, true)),
  "an infinite number": garbled((_bytes, view) => view.setFloat32(12, Infinity, true)),
};

async function readExactly(conn: Deno.Conn, length: number): Promise<Uint8Array | null> {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length;) {
    const count = await conn.read(bytes.subarray(at));
    if (count === null) {
      if (at > 0) throw new Error("a message was cut off");
      return null;
    }
    at += count;
  }
  return bytes;
}

function close(conn: Deno.Conn): void {
  try {
    conn.close();
  } catch {
    // It was closed before.
  }
}
