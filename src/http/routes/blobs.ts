/** Routes of retained blobs, interface 4.10. */

import type { GrantedBlob } from "../../model/events/event_table.ts";
import { parameter, type Route } from "../call.ts";
import { fileResponse } from "../file_response.ts";

export const BLOB_ROUTES: readonly Route[] = [blobRoute("keyframes"), blobRoute("media")];

function blobRoute(route: GrantedBlob["route"]): Route {
  return {
    method: "GET",
    path: `/v1/runs/:id/${route}/:sha256`,
    handle: async (call) => {
      const [runId, sha256] = [parameter(call, "id"), parameter(call, "sha256")];
      return fileResponse(call.request.raw, await call.blobs.open(call.caller, runId, route, sha256));
    },
  };
}
