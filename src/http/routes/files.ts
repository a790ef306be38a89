/** Routes of uploads and files. */

import * as z from "zod";
import { refuse } from "../../contract/refusal.ts";
import { DELETED_FILE, UPLOADED } from "../../model/api/system.ts";
import { fileResponse } from "../answers/file_response.ts";
import { json } from "../answers/reply.ts";
import { firstFilePart } from "../requests/upload_form.ts";
import { parameter } from "../route/call.ts";
import { answersFile, answersJson, FILE_HEADERS, type Route } from "../route/route.ts";

const UPLOAD_FORM = () =>
  z.strictObject({
    file: z.string().meta({ contentMediaType: "application/octet-stream" }).describe(
      "The file with its name",
    ),
  });

export const FILE_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/upload",
    id: "uploadFile",
    tag: "files",
    summary: "Stores a video file.",
    body: { "multipart/form-data": UPLOAD_FORM },
    answers: answersJson(UPLOADED, "The file is stored"),
    failures: [400, 408, 413, 415, 422, 500],
    handle: async (call) => {
      using part = await firstFilePart(call, "file");
      if (!part) throw refuse.invalid("file", "must be a part of the form");
      const { path, label } = await call.use.files.upload(call.caller, part.filename, part.content);
      return json({ file_path: path, name: label });
    },
  },
  {
    method: "GET",
    path: "/v1/files/:filename",
    id: "getFile",
    tag: "files",
    summary: "Serves a file of the caller or of an ingest root.",
    headers: FILE_HEADERS,
    answers: answersFile("video/*"),
    failures: [400, 404, 412, 416],
    handle: async (call) =>
      fileResponse(call.request.raw, await call.use.files.open(call.caller, parameter(call, "filename"))),
  },
  {
    method: "DELETE",
    path: "/v1/files/:filename",
    id: "deleteFile",
    tag: "files",
    summary: "Deletes an upload of the caller.",
    answers: answersJson(DELETED_FILE, "The upload is deleted"),
    failures: [400, 404, 500],
    handle: async (call) => {
      const filename = parameter(call, "filename");
      await call.use.files.delete(call.caller, filename);
      return json({ request_id: call.caller.requestId, filename, deleted: true });
    },
  },
];
