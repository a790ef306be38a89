/** The requests of a live session that a publisher opens: offer and ICE. */

import { textOf } from "../http/bodies.ts";
import { type Connection, nameOf, type RequestOptions } from "../http/connection.ts";
import { ParseError } from "../http/errors.ts";
import { path } from "../http/paths.ts";
import type { AttachConfig } from "../types.ts";
import { type IceServer, readIceServers } from "./ice_servers.ts";

/** What the service answers to an offer. */
export interface WhipAnswer {
  sessionId: string;
  runId?: string;
  answerSdp: string;
  /** URL of the session. */
  resourceUrl: string;
  /** Names the ICE session, for `If-Match`; null where a browser may not read it. */
  etag: string | null;
  /** The STUN and TURN servers that the service recommends. */
  iceServers: IceServer[];
}

/** An ICE restart that the service took. */
export interface IceAnswer {
  /** The service's new credentials and candidates, as an RFC 8840 fragment. */
  fragment: string;
  etag: string | null;
}

export interface IceOptions extends RequestOptions {
  /** The ETag of the ICE session, or `*` for a restart. */
  ifMatch?: string;
}

/** Sent once: an offer that is repeated would open a second session. */
export function sendOffer(
  connection: Connection,
  sdp: string,
  attach: AttachConfig | undefined,
  options?: RequestOptions,
): Promise<WhipAnswer> {
  const call = {
    method: "POST",
    path: "/v1/stream/whip",
    body: sdp,
    headers: {
      accept: "application/sdp",
      "content-type": "application/sdp",
      ...(attach && { "x-attach-config": base64url(JSON.stringify(attach)) }),
    },
  } as const;
  return connection.send({
    ...call,
    options,
    read: async (response) => {
      const answerSdp = await textOf(nameOf(call), response, connection.maxAnswerBytes);
      const { headers } = response;
      const sessionId = headers.get("location")?.split("/").at(-1) ?? "";
      if (sessionId === "") throw new ParseError(`${nameOf(call)}: the answer has no Location`, answerSdp);
      const runId = headers.get("x-service-run-id");
      return {
        sessionId,
        ...(runId !== null && { runId }),
        answerSdp,
        resourceUrl: `${connection.baseUrl}${sessionPath(sessionId)}`,
        etag: headers.get("etag"),
        iceServers: readIceServers(headers.get("link")),
      };
    },
  });
}

/**
 * Sends candidates, or, with `ifMatch: "*"` and new credentials, restarts ICE; the answer of a restart, else
 * undefined.
 */
export function sendIce(
  connection: Connection,
  sessionId: string,
  fragment: string,
  { ifMatch, ...options }: IceOptions = {},
): Promise<IceAnswer | undefined> {
  const call = { method: "PATCH", path: sessionPath(sessionId) } as const;
  return connection.send({
    ...call,
    body: fragment,
    headers: {
      accept: "*/*",
      "content-type": "application/trickle-ice-sdpfrag",
      ...(ifMatch !== undefined && { "if-match": ifMatch }),
    },
    options,
    read: async (response) => {
      const text = await textOf(nameOf(call), response, connection.maxAnswerBytes);
      return response.status === 200 ? { fragment: text, etag: response.headers.get("etag") } : undefined;
    },
  });
}

/** Path of a session. */
export function sessionPath(sessionId: string): string {
  return path`/v1/stream/whip/${sessionId}`;
}

/** Of UTF-8, without padding. */
function base64url(text: string): string {
  const bytes = Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
  return btoa(bytes).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
