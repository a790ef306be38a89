/** Routes of retained blobs. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import type { GrantedBlob } from "../../model/events/event_table.ts";
import { precondition } from "../../model/files/precondition.ts";
import { fileResponse, VARY_BY_KEY } from "../answers/file_response.ts";
import { COMMON_HEADERS, plainText } from "../answers/reply.ts";
import { parameter, type RouteCall, wholeNumber } from "../route/call.ts";
import { answersFile, FILE_HEADERS, type Route } from "../route/route.ts";

export const BLOB_ROUTES: readonly Route[] = [
  blobRoute("keyframes", {
    id: "getKeyframe",
    summary: "Serves a stored JPEG that the run names.",
    query: {
      width: {
        description: "A JPEG of at most so many pixels across, made of the stored one; it has no ranges",
        schema: () => z.int().min(LIMITS.picture.width.minimum).max(LIMITS.picture.width.maximum),
      },
    },
    answers: answersFile("image/jpeg"),
    failures: [400, 404, 410, 412, 416, 422, 500, 503],
  }),
  blobRoute("media", {
    id: "getMedia",
    summary: "Serves a stored MP4 or WAV that the run names.",
    answers: answersFile("video/mp4", "audio/wav"),
    failures: [404, 410, 412, 416, 422],
  }),
];

function blobRoute(
  route: GrantedBlob["route"],
  description: Pick<Route, "id" | "summary" | "query" | "answers" | "failures">,
): Route {
  return {
    method: "GET",
    path: `/v1/runs/:id/${route}/:sha256`,
    ...description,
    tag: "files",
    headers: FILE_HEADERS,
    handle: async (call) => {
      const [runId, sha256] = [parameter(call, "id"), parameter(call, "sha256")];
      const width = route === "keyframes" ? wholeNumber(call, "width") : undefined;
      if (width !== undefined) return await smallerPicture(call, runId, sha256, width);
      return fileResponse(call.request.raw, await call.use.blobs.open(call.caller, runId, route, sha256));
    },
  };
}

/**
 * Answers with a picture that follows from the larger one and the width alone, so both are its version.
 * Unlike the larger one it has no ranges.
 */
async function smallerPicture(
  call: RouteCall,
  runId: string,
  sha256: string,
  width: number,
): Promise<Response> {
  const picture = await call.use.blobs.smaller(call.caller, runId, sha256, width);
  const etag = `"${sha256.toLowerCase()}-${width}"`;
  const headers = {
    ...COMMON_HEADERS,
    "cache-control": "private, max-age=31536000, immutable",
    etag,
    vary: VARY_BY_KEY,
    "accept-ranges": "none",
  };
  const outcome = precondition(call.request.raw.headers, { etag, modifiedMs: null });
  if (outcome === "failed") return plainText("The file has changed", 412);
  if (outcome === "not_modified") return new Response(null, { status: 304, headers });
  return new Response(picture, { headers: { ...headers, "content-type": "image/jpeg" } });
}
