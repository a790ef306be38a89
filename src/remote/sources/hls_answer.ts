/** An answer of an HLS server, unpacked where it is compressed: many servers compress playlists without being
 * asked.
 */

import { Readable } from "node:stream";
import { createUnzip } from "node:zlib";
import { sourceFault } from "../../model/sources/remote_source.ts";
import type { SourceBudget } from "./source_budget.ts";
import type { FollowedResponse } from "./source_request.ts";

export interface HlsAnswer {
  /** The address that gave the answer, behind all redirects. */
  readonly url: URL;
  readonly status: number;
  readonly headers: Headers;
  /** The body. It must be read to its end or cancelled. */
  readonly body: { [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array>; cancel(): void };
  /** Whether the body came compressed: then the headers tell the wrong length. */
  readonly isPacked: boolean;
}

/**
 * The answer to a request. Refuses (422 `source_uri`) an encoding other than gzip and deflate, and a range of
 * something compressed.
 */
export function hlsAnswer(
  { response, url }: FollowedResponse,
  budget: SourceBudget,
  signal: AbortSignal,
): HlsAnswer {
  const { status, headers, body } = response;
  const encoding = (headers.get("content-encoding") ?? "identity").trim().toLowerCase();
  if (encoding === "identity" || encoding === "") return { url, status, headers, body, isPacked: false };
  if (status === 206 || !/^(x-)?gzip$|^deflate$/.test(encoding)) {
    body.cancel();
    throw sourceFault("its server sends it compressed");
  }
  return {
    ...{ url, status, headers, isPacked: true },
    body: { [Symbol.asyncIterator]: () => unpacked(body, budget, signal), cancel: () => body.cancel() },
  };
}

/**
 * Unpacks a body in small pieces, as the reader asks for them, so that a short answer cannot fill the memory.
 */
async function* unpacked(
  body: AsyncIterable<Uint8Array>,
  budget: SourceBudget,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const packed = Readable.from(body, { objectMode: true });
  const unzip = createUnzip();
  packed.on("error", (error) => unzip.destroy(error));
  packed.pipe(unzip);
  try {
    for await (const bytes of unzip) {
      budget.spend({ unpackedBytes: bytes.length });
      await budget.turn(signal);
      yield bytes;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw (error as { code?: unknown }).code === undefined ? error : sourceFault("it cannot be unpacked");
  } finally {
    packed.destroy();
    unzip.destroy();
  }
}
