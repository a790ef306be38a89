/** What a peer can do wrong: a fault of the connection, with its error code, or one of a single request, with
 * its status.
 */

/** Error codes of HTTP/3 (RFC 9114 8.1) and QPACK (RFC 9204 6). */
export const ERROR_CODES = {
  H3_NO_ERROR: 0x100,
  H3_INTERNAL_ERROR: 0x102,
  H3_STREAM_CREATION_ERROR: 0x103,
  H3_CLOSED_CRITICAL_STREAM: 0x104,
  H3_FRAME_UNEXPECTED: 0x105,
  H3_FRAME_ERROR: 0x106,
  H3_EXCESSIVE_LOAD: 0x107,
  H3_ID_ERROR: 0x108,
  H3_SETTINGS_ERROR: 0x109,
  H3_MISSING_SETTINGS: 0x10a,
  QPACK_DECOMPRESSION_FAILED: 0x200,
  QPACK_ENCODER_STREAM_ERROR: 0x201,
  QPACK_DECODER_STREAM_ERROR: 0x202,
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

/** A fault that ends the connection. The message goes to the peer, so it holds nothing secret. */
export class ConnectionFault extends Error {
  override readonly name = "ConnectionFault";

  constructor(readonly code: ErrorCode, message: string) {
    super(message);
  }
}

/**
 * A fault that ends one request, with an answer: a server may answer a malformed request before it ends the
 * stream (RFC 9114 4.1.2), and Deno 2.9 cannot reset a stream with an error code.
 */
export class RequestFault extends Error {
  override readonly name = "RequestFault";

  constructor(readonly status: number, message: string) {
    super(message);
  }
}
