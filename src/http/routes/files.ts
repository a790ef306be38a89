/** Routes of uploads and files. */

import { refuse } from "../../contract/refusal.ts";
import { parameter, type Route } from "../call.ts";
import { fileResponse } from "../file_response.ts";
import { json } from "../reply.ts";
import { firstFilePart } from "../upload_form.ts";

export const FILE_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/upload",
    summary: "Stores a video file.",
    handle: async (call) => {
      using part = await firstFilePart(call, "file");
      if (!part) throw refuse.invalid("file", "must be a part of the form");
      const { path, label } = await call.files.upload(call.caller, part.filename, part.content);
      return json({ file_path: path, name: label });
    },
  },
  {
    method: "GET",
    path: "/v1/files/:filename",
    summary: "Serves a file of the caller or of an ingest root.",
    handle: async (call) =>
      fileResponse(call.request.raw, await call.files.open(call.caller, parameter(call, "filename"))),
  },
  {
    method: "DELETE",
    path: "/v1/files/:filename",
    summary: "Deletes an upload of the caller.",
    handle: async (call) => {
      const filename = parameter(call, "filename");
      await call.files.delete(call.caller, filename);
      return json({ request_id: call.caller.requestId, filename, deleted: true });
    },
  },
];
