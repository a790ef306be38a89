/** Routes of WHIP: SDP in and out; errors are a status with plain text instead of the JSON envelope. */

import { Refusal } from "../../contract/refusal.ts";
import { ForeignSession } from "../../flow/live/registry.ts";
import { PROMPT_BODY } from "../../model/api/live.ts";
import { LIMITS } from "../../contract/limits.ts";
import { readJson, readText } from "../body.ts";
import { CORS_METHODS } from "../cors.ts";
import { parameter, type Route, type RouteCall } from "../call.ts";
import { COMMON_HEADERS, json, PlainRejection, plainText } from "../reply.ts";

const WHIP = "/v1/stream/whip";

export const WHIP_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: WHIP,
    summary: "Opens a live session from a WebRTC offer.",
    handle: async (call) => {
      const offer = await readText(call, LIMITS.whip.offerBytesMax);
      return await withPlainErrors(async () => {
        const { whip, caller, request } = call;
        const accepted = await whip.offer(caller, offer, request.header("x-attach-config") ?? null);
        return new Response(accepted.answer, {
          status: 201,
          headers: {
            ...COMMON_HEADERS,
            "content-type": "application/sdp",
            location: `${WHIP}/${accepted.sessionId}`,
            "x-service-run-id": accepted.runId,
            etag: accepted.etag,
            ...iceServerLinks(whip.ice),
          },
        });
      });
    },
  },
  {
    method: "PATCH",
    path: `${WHIP}/:sess`,
    summary: "Takes ICE candidates of a live session, or restarts ICE.",
    handle: async (call) => {
      const body = await readText(call, LIMITS.whip.offerBytesMax);
      return await withPlainErrors(async () => {
        const { whip, caller, request } = call;
        const ifMatch = request.header("if-match")?.trim() ?? null;
        const trickled = await whip.trickle(caller, parameter(call, "sess"), { body, ifMatch });
        if (trickled.outcome === "taken") return plainText("", 204);
        if (trickled.outcome === "is_another") {
          throw new PlainRejection(412, "the ICE session is another one by now");
        }
        if (trickled.outcome === "not_restarted") {
          throw new PlainRejection(422, "ICE cannot be restarted with this fragment");
        }
        return new Response(trickled.fragment, {
          status: 200,
          headers: {
            ...COMMON_HEADERS,
            "content-type": "application/trickle-ice-sdpfrag",
            etag: trickled.etag,
          },
        });
      });
    },
  },
  {
    method: "DELETE",
    path: `${WHIP}/:sess`,
    summary: "Ends a live session and completes its run.",
    handle: (call) =>
      withPlainErrors(async () => {
        await call.whip.terminate(call.caller, parameter(call, "sess"));
        return plainText("", 200);
      }),
  },
  {
    method: "PATCH",
    path: `${WHIP}/:sess/prompt`,
    summary: "Changes the prompt of a live session.",
    handle: async (call) => {
      const body = await readJson(call, PROMPT_BODY);
      return await withPlainErrors(async () => json(await updatePrompt(call, body)));
    },
  },
];

/** The answer to `OPTIONS` on a WHIP URL (RFC 9725, 4.2), which needs no key; undefined for other requests. */
export function whipOptions(path: string): Response | undefined {
  if (path !== WHIP && !SESSION_PATH.test(path)) return undefined;
  return plainText("", 204, {
    "accept-post": "application/sdp",
    "access-control-allow-methods": CORS_METHODS,
  });
}

const SESSION_PATH = /^\/v1\/stream\/whip\/[^/]+$/;

function updatePrompt(call: RouteCall, body: Parameters<RouteCall["whip"]["updatePrompt"]>[2]) {
  return call.whip.updatePrompt(call.caller, parameter(call, "sess"), body);
}

/** Answers with the bare status and the message as plain text. Faults of a prompt's fields keep the JSON envelope. */
async function withPlainErrors(handle: () => Promise<Response>): Promise<Response> {
  try {
    return await handle();
  } catch (error) {
    if (!(error instanceof Refusal) || error.kind === "validation_error") throw error;
    throw new PlainRejection(statusOf(error), error.message);
  }
}

function statusOf(error: Refusal): number {
  if (error instanceof ForeignSession) return 403;
  return error.kind === "storage_unavailable" ? 500 : error.status;
}

/** The `Link` header with the STUN and TURN servers for the publisher (RFC 9725, 4.6). */
function iceServerLinks({ stunServers, turn }: RouteCall["whip"]["ice"]): { link?: string } {
  const links = stunServers.map((url) => `<${url}>; rel="ice-server"`);
  if (turn) {
    const { url, username, credential } = turn;
    const secret = username === "" ? "" : `; username=${quoted(username)}; credential=${quoted(credential)}` +
      '; credential-type="password"';
    links.push(`<${url}>; rel="ice-server"${secret}`);
  }
  return links.length === 0 ? {} : { link: links.join(", ") };
}

function quoted(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}
