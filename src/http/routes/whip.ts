/** Routes of WHIP: SDP in and out; errors are a status with plain text instead of the JSON envelope. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { Refusal } from "../../contract/refusal.ts";
import { ForeignSession } from "../../flow/live/registry.ts";
import { PROMPT_BODY, UPDATED_PROMPT } from "../../model/api/live.ts";
import { CORS_METHODS } from "../admission/cors.ts";
import { COMMON_HEADERS, json, PlainRejection, plainText } from "../answers/reply.ts";
import { readJson, readText } from "../requests/body.ts";
import { parameter, type RouteCall, type UseCases } from "../route/call.ts";
import { answersJson, jsonContent, type Route } from "../route/route.ts";

const WHIP = "/v1/stream/whip";
const SDP = { "application/sdp": () => z.string().min(1) };
const ICE_FRAGMENT = { "application/trickle-ice-sdpfrag": () => z.string() };

export const WHIP_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: WHIP,
    id: "whipOffer",
    tag: "live",
    summary: "Opens a live session from a WebRTC offer.",
    body: SDP,
    headers: ["x-attach-config"],
    answers: {
      201: {
        description: "The answer to the offer; the session is at `location`",
        content: SDP,
        headers: ["location", "x-service-run-id", "etag", "link"],
      },
    },
    failures: [400, 409, 415, 500, 503],
    refusesInText: true,
    handle: async (call) => {
      const offer = await readText(call, LIMITS.whip.offerBytesMax);
      return await withPlainErrors(async () => {
        const { caller, request, use: { whip } } = call;
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
    id: "whipIce",
    tag: "live",
    summary: "Takes ICE candidates of a live session, or restarts ICE.",
    body: ICE_FRAGMENT,
    headers: ["if-match"],
    answers: {
      204: { description: "The candidates are taken" },
      200: { description: "ICE was restarted", content: ICE_FRAGMENT, headers: ["etag"] },
    },
    failures: [400, 404, 412, 422],
    refusesInText: true,
    handle: async (call) => {
      const body = await readText(call, LIMITS.whip.offerBytesMax);
      return await withPlainErrors(async () => {
        const { caller, request, use: { whip } } = call;
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
    id: "whipTerminate",
    tag: "live",
    summary: "Ends a live session and completes its run.",
    answers: { 200: { description: "The session is over" } },
    failures: [404, 500],
    refusesInText: true,
    handle: (call) =>
      withPlainErrors(async () => {
        await call.use.whip.terminate(call.caller, parameter(call, "sess"));
        return plainText("", 200);
      }),
  },
  {
    method: "PATCH",
    path: `${WHIP}/:sess/prompt`,
    id: "whipUpdatePrompt",
    tag: "live",
    summary: "Changes the prompt of a live session.",
    body: jsonContent(PROMPT_BODY),
    answers: answersJson(UPDATED_PROMPT, "The session has taken the prompt"),
    failures: [400, 403, 404, 409, 415, 422, 503],
    refusesInText: true,
    handle: async (call) => {
      const body = await readJson(call, PROMPT_BODY);
      return await withPlainErrors(async () => json(await updatePrompt(call, body)));
    },
  },
];

/**
 * The answer to `OPTIONS` on a WHIP URL (RFC 9725, 4.2), which needs no key; undefined for other requests.
 */
export function whipOptions(path: string): Response | undefined {
  if (path !== WHIP && !SESSION_PATH.test(path)) return undefined;
  return plainText("", 204, {
    "accept-post": "application/sdp",
    "access-control-allow-methods": CORS_METHODS,
  });
}

const SESSION_PATH = /^\/v1\/stream\/whip\/[^/]+$/;

function updatePrompt(call: RouteCall, body: Parameters<UseCases["whip"]["updatePrompt"]>[2]) {
  return call.use.whip.updatePrompt(call.caller, parameter(call, "sess"), body);
}

/**
 * Answers with the bare status and the message as plain text. Faults of a prompt's fields keep the JSON
 * envelope.
 */
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
function iceServerLinks({ stunServers, turn }: UseCases["whip"]["ice"]): { link?: string } {
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
