/** TABLE of the operations on files and of those about the service itself, by method and path. */

import * as z from "zod";
import {
  DELETED_FILE,
  HEALTH,
  RETENTION_REPORT,
  SYSTEM,
  SYSTEM_HEALTH,
  UPLOADED,
} from "../../../model/api/answers/system.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { jsonObject } from "../../../model/events/payload_shapes.ts";
import {
  answersFile,
  answersJson,
  FILE_HEADERS,
  JSON_TYPE,
  jsonContent,
  type Operation,
} from "../operation.ts";
import type { RequestHeaderName } from "../parameters.ts";

const UPLOAD_FORM = z.strictObject({
  file: z.string().meta({ contentMediaType: "application/octet-stream" }).describe("The file with its name"),
});

const PAGE_REQUEST_HEADERS: readonly RequestHeaderName[] = ["if-match", "if-none-match"];

function answersPage(...mediaTypes: readonly string[]): Operation["answers"] {
  return {
    200: {
      description: "The file",
      content: Object.fromEntries(mediaTypes.map((type) => [type, type === JSON_TYPE ? jsonObject : "text"])),
      headers: ["etag"],
    },
    304: { description: "The copy of the caller is current", headers: ["etag"] },
  };
}

export const FILE_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/upload": {
    id: "uploadFile",
    tag: "files",
    body: { "multipart/form-data": UPLOAD_FORM },
    answers: answersJson(UPLOADED, "The file is stored"),
    failures: [400, 408, 413, 415, 422, 500],
  },
  "GET /v1/files/:filename": {
    id: "getFile",
    tag: "files",
    headers: FILE_HEADERS,
    answers: answersFile("video/*"),
    failures: [400, 404, 412, 416],
  },
  "DELETE /v1/files/:filename": {
    id: "deleteFile",
    tag: "files",
    answers: answersJson(DELETED_FILE, "The upload is deleted"),
    failures: [400, 404, 500],
  },
  "GET /v1/runs/:id/keyframes/:sha256": {
    id: "getKeyframe",
    tag: "files",
    query: {
      width: {
        description: "A JPEG of at most so many pixels across, made of the stored one; it has no ranges",
        schema: z.int().min(LIMITS.picture.width.minimum).max(LIMITS.picture.width.maximum),
      },
    },
    headers: FILE_HEADERS,
    answers: answersFile("image/jpeg"),
    failures: [400, 404, 410, 412, 416, 422, 500, 503],
  },
  "GET /v1/runs/:id/media/:sha256": {
    id: "getMedia",
    tag: "files",
    headers: FILE_HEADERS,
    answers: answersFile("video/mp4", "audio/wav"),
    failures: [404, 410, 412, 416, 422],
  },
  "GET /v1/health": {
    id: "health",
    tag: "system",
    access: "open",
    answers: answersJson(HEALTH, "The server is up"),
    failures: [],
  },
  "GET /v1/system": {
    id: "getSystem",
    tag: "system",
    answers: answersJson(SYSTEM, "Versions, the disk, and the settings without their secrets"),
    failures: [500],
  },
  "GET /v1/system/health": {
    id: "getSystemHealth",
    tag: "system",
    answers: answersJson(SYSTEM_HEALTH, "Whether live sessions and model calls are well, with the reasons"),
    failures: [500],
  },
  "GET /v1/system/retention": {
    id: "getRetention",
    tag: "system",
    answers: answersJson(
      RETENTION_REPORT,
      "What retention removes next, and why the rest stays; nothing is removed by asking",
    ),
    failures: [500],
  },
  "GET /v1/metrics": {
    id: "getMetrics",
    tag: "system",
    access: "metrics",
    answers: {
      200: { description: "Metrics in the Prometheus text format", content: { "text/plain": "text" } },
    },
    failures: [503],
  },
  "GET /openapi.json": {
    id: "getApiDescription",
    tag: "system",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("application/json"),
    failures: [404, 412],
  },
  "GET /docs": {
    id: "getReferencePage",
    tag: "system",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("text/html"),
    failures: [404, 412],
  },
  "GET /docs/:file": {
    id: "getReferencePageFile",
    tag: "system",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("text/javascript", "text/css"),
    failures: [404, 412],
  },
  "GET /console/": {
    id: "getConsole",
    tag: "system",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("text/html"),
    failures: [404, 412],
  },
  "GET /console/:file": {
    id: "getConsoleFile",
    tag: "system",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("text/javascript", "text/css"),
    failures: [404, 412],
  },
  "GET /console": {
    id: "redirectToConsole",
    tag: "system",
    access: "open",
    answers: { 302: { description: "The console is at `console/`" } },
    failures: [],
  },
  "GET /": {
    id: "getRoot",
    tag: "system",
    answers: {
      302: { description: "For a caller that accepts `text/html`: the console is at `console/`" },
      404: { description: "For every other caller, without a body" },
    },
    failures: [],
  },
  "GET /schemas/:name": {
    id: "getSchema",
    tag: "system",
    answers: { 200: { description: "A JSON Schema, draft 2020-12", content: jsonContent(jsonObject) } },
    failures: [404],
  },
};
