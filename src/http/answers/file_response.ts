/** Serves a file: whole, one range of it, or only a status. RFC 9110 ranges and conditions. */

import type { OpenFile } from "../../flow/files/open_file.ts";
import { requestedRange } from "../../model/files/byte_range.ts";
import { httpDate, precondition, rangeApplies } from "../../model/files/precondition.ts";
import { COMMON_HEADERS, plainText } from "./reply.ts";

/**
 * Owns the file from here on, and closes it when the body was sent, when the client disconnects, or at once
 * without a body. See docs/api/files.md#ranges-and-conditions.
 */
export function fileResponse(request: Request, open: OpenFile): Response {
  const { sizeBytes } = open;
  using closing = new DisposableStack();
  closing.use(open);
  const headers = headersOf(open);

  const outcome = precondition(request.headers, open);
  if (outcome === "failed") return plainText("The file has changed", 412);
  if (outcome === "not_modified") return new Response(null, { status: 304, headers });

  // Only GET has ranges (RFC 9110 14.2).
  const isGet = request.method === "GET";
  const range = isGet && rangeApplies(request.headers, open)
    ? requestedRange(request.headers.get("range"), sizeBytes)
    : "whole";
  if (range === "unsatisfiable") {
    return plainText("No byte of the file is in that range", 416, {
      "content-range": `bytes */${sizeBytes}`,
      "accept-ranges": "bytes",
    });
  }
  const { first, last } = range === "whole" ? { first: 0, last: sizeBytes - 1 } : range;
  const lengthBytes = last - first + 1;
  headers.push(["content-type", open.mediaType], ["content-length", String(lengthBytes)]);
  if (range !== "whole") headers.push(["content-range", `bytes ${first}-${last}/${sizeBytes}`]);
  const status = range === "whole" ? 200 : 206;
  if (!isGet || lengthBytes === 0) return new Response(null, { status, headers });

  open.file.seekSync(first, Deno.SeekMode.Start);
  closing.move(); // the body closes the file
  const body = last === sizeBytes - 1 ? open.file.readable : boundedBody(open.file, lengthBytes);
  return new Response(body, { status, headers });
}

/** Where a key may be. */
export const VARY_BY_KEY = "x-api-key, authorization";

function headersOf({ etag, modifiedMs, cacheControl }: OpenFile): [string, string][] {
  return Object.entries({
    ...COMMON_HEADERS,
    "cache-control": cacheControl,
    // Another caller of the same browser must not get it out of the browser's cache.
    ...(cacheControl.startsWith("private") && { vary: VARY_BY_KEY }),
    "accept-ranges": "bytes",
    etag,
    ...(modifiedMs !== null && { "last-modified": httpDate(modifiedMs) }),
  });
}

const CHUNK_BYTES = 64 * 1024;

/**
 * A body that ends before the end of the file. The runtime itself streams a body up to the end, which is
 * faster.
 */
function boundedBody(file: Deno.FsFile, lengthBytes: number): ReadableStream<Uint8Array> {
  let left = lengthBytes;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const chunk = new Uint8Array(Math.min(CHUNK_BYTES, left));
        const got = await file.read(chunk) ?? 0;
        left -= got;
        // The error cuts the connection, so that the client does not take a part for the whole.
        if (got === 0) throw new Error("the file became shorter while it was sent");
        controller.enqueue(chunk.subarray(0, got));
        if (left > 0) return;
        file.close();
        controller.close();
      } catch (error) {
        file.close();
        controller.error(error);
      }
    },
    cancel() {
      file.close();
    },
  }, { highWaterMark: 0 });
}
