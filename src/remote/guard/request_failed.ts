/** Why an outbound request failed, with a message that may be shown to the caller. */

/**
 * How a request failed. `connect`: nothing was sent yet, so another address may be tried. `tls`: the
 * certificate or the handshake. `reset`: the connection ended during the request. `timeout`: the deadline.
 * `protocol`: the answer is not HTTP.
 */
export type FailureKind = "connect" | "tls" | "reset" | "timeout" | "protocol";

/**
 * The error of a request without an answer. Its message has no addresses and no other details of the machine
 * or its network.
 */
export class RequestFailed extends Error {
  override readonly name = "RequestFailed";

  constructor(readonly kind: FailureKind, message: string) {
    super(message);
  }
}

/** The failure for an error of the network library. `isConnected`: the request may have been sent. */
export function failureOf(error: unknown, isConnected = true): RequestFailed {
  if (error instanceof RequestFailed) return error;
  const { code = "", message } = error as { code?: string; message: string };
  const row = ROWS.find(([pattern]) => pattern.test(`${code} ${message}`));
  if (row) return new RequestFailed(row[1] === "reset" && !isConnected ? "connect" : row[1], row[2]);
  return new RequestFailed(
    isConnected ? "reset" : "connect",
    isConnected ? CUT : "it cannot be connected to",
  );
}

const CUT = "the connection was cut";

/** What each error means. The first row whose pattern matches decides, so the specific ones come first. */
const ROWS: readonly (readonly [RegExp, FailureKind, string])[] = [
  [/ECONNREFUSED/, "connect", "it refuses connections"],
  [/EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT/, "connect", "it cannot be reached"],
  [/ALTNAME|NotValidForName/i, "tls", "its certificate is for another host"],
  [/CERT_HAS_EXPIRED|expired/i, "tls", "its certificate has expired"],
  [/UNABLE_TO_|SELF_SIGNED|CERT|UnknownIssuer|certificate/i, "tls", "its certificate is not trusted"],
  [
    /EPROTO|ERR_SSL|ERR_TLS|handshake|tls|InvalidContentType/i,
    "tls",
    "no secure connection can be made to it",
  ],
  [/^HPE_|parse error/i, "protocol", "its answer is not HTTP"],
  [/ECONNRESET|EPIPE|aborted|hang up|premature/i, "reset", CUT],
];
