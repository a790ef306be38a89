/** The HEADERS frame of an answer. */

import { FRAME, FRAME_HEAD_BYTES, putFrameHead } from "./wire/frames.ts";
import { FieldEncoder } from "./qpack/field_encoder.ts";

const NO_BYTES = new Uint8Array();
/** What only a connection of HTTP/1.1 has (RFC 9114 4.2). */
const DROPPED = new Set(["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"]);

/** The frame, and one of DATA behind it unless that is empty. All in one array, as making one costs more than filling it. */
export function responseHead(
  { status, headers }: Pick<Response, "status" | "headers">,
  data: Uint8Array = NO_BYTES,
): Uint8Array<ArrayBuffer> {
  const dataBytes = data.length === 0 ? 0 : FRAME_HEAD_BYTES + data.length;
  const fields = new FieldEncoder(FRAME_HEAD_BYTES);
  fields.add(":status", String(status));
  // The iterator of Deno 2.9 sorts all of them anew for each one.
  headers.forEach((value, name) => {
    if (!DROPPED.has(name)) fields.add(name, value);
  });
  const bytes = fields.block(dataBytes);
  const end = bytes.length - dataBytes;
  putFrameHead(bytes, 0, FRAME.HEADERS, end - FRAME_HEAD_BYTES);
  if (dataBytes > 0) {
    putFrameHead(bytes, end, FRAME.DATA, data.length);
    bytes.set(data, end + FRAME_HEAD_BYTES);
  }
  return bytes;
}
