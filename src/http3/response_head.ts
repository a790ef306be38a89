/** The HEADERS frame of an answer. */

import { FRAME, frame } from "./frames.ts";
import { FieldEncoder } from "./qpack/field_encoder.ts";

/** What only a connection of HTTP/1.1 has (RFC 9114 4.2). */
const DROPPED = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);

export function responseHead(
  { status, headers }: Pick<Response, "status" | "headers">,
): Uint8Array<ArrayBuffer> {
  const fields = new FieldEncoder();
  fields.add(":status", String(status));
  for (const [name, value] of headers) {
    if (!DROPPED.has(name)) fields.add(name, value);
  }
  return frame(FRAME.HEADERS, fields.block);
}
