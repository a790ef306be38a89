/** Routes of retained blobs. */

import type { GrantedBlob } from "../../model/events/event_table.ts";
import { parameter, type Route } from "../call.ts";
import { fileResponse } from "../file_response.ts";

export const BLOB_ROUTES: readonly Route[] = [
  blobRoute("keyframes", "Serves a stored JPEG that the run names."),
  blobRoute("media", "Serves a stored MP4 or WAV that the run names."),
];

function blobRoute(route: GrantedBlob["route"], summary: string): Route {
  return {
    method: "GET",
    path: `/v1/runs/:id/${route}/:sha256`,
    summary,
    handle: async (call) => {
      const [runId, sha256] = [parameter(call, "id"), parameter(call, "sha256")];
      return fileResponse(call.request.raw, await call.blobs.open(call.caller, runId, route, sha256));
    },
  };
}
