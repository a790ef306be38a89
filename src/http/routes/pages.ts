/** Routes of the web pages and of the API description: static files without data, which need no key. See
 * docs/api/system.md#web-pages.
 */

import { jsonObject } from "../../model/events/payload_shapes.ts";
import { precondition } from "../../model/files/precondition.ts";
import { isBrowser } from "../admission/guard.ts";
import { acceptsGzip } from "../answers/compress.ts";
import { COMMON_HEADERS, CONSOLE_HEADERS, PAGE_HEADERS, plainText } from "../answers/reply.ts";
import { parameter, type RouteCall } from "../route/call.ts";
import type { RequestHeaderName } from "../route/parameters.ts";
import { type Answers, JSON_TYPE, type Route } from "../route/route.ts";

const PAGE_REQUEST_HEADERS: readonly RequestHeaderName[] = ["if-match", "if-none-match"];

export const PAGE_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/openapi.json",
    id: "getApiDescription",
    tag: "system",
    summary: "Serves the description of this API, OpenAPI 3.1.",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("application/json"),
    failures: [404, 412],
    handle: (call) => pageFile(call, "openapi", "openapi.json"),
  },
  {
    method: "GET",
    path: "/docs",
    id: "getReferencePage",
    tag: "system",
    summary: "Serves the API reference as a web page.",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("text/html"),
    failures: [404, 412],
    handle: (call) => pageFile(call, "docs"),
  },
  {
    method: "GET",
    path: "/docs/:file",
    id: "getReferencePageFile",
    tag: "system",
    summary: "Serves a script or a style sheet of the API reference.",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("text/javascript", "text/css"),
    failures: [404, 412],
    handle: (call) => pageFile(call, "docs", parameter(call, "file")),
  },
  {
    method: "GET",
    path: "/console/",
    id: "getConsole",
    tag: "system",
    summary: "Serves the console, a web page.",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("text/html"),
    failures: [404, 412],
    handle: (call) => pageFile(call, "console"),
  },
  {
    method: "GET",
    path: "/console/:file",
    id: "getConsoleFile",
    tag: "system",
    summary: "Serves a script or a style sheet of the console.",
    access: "open",
    headers: PAGE_REQUEST_HEADERS,
    answers: answersPage("text/javascript", "text/css"),
    failures: [404, 412],
    handle: (call) => pageFile(call, "console", parameter(call, "file")),
  },
  {
    method: "GET",
    path: "/console",
    id: "redirectToConsole",
    tag: "system",
    summary: "Sends a browser to the console.",
    access: "open",
    answers: { 302: { description: "The console is at `console/`" } },
    failures: [],
    handle: () => Promise.resolve(toConsole("console/")),
  },
  {
    method: "GET",
    path: "/",
    id: "getRoot",
    tag: "system",
    summary: "Sends a browser to the console; every other caller with a key gets 404.",
    answers: {
      302: { description: "For a caller that accepts `text/html`: the console is at `console/`" },
      404: { description: "For every other caller, without a body" },
    },
    failures: [],
    handle: ({ request }) =>
      Promise.resolve(isBrowser(request.raw.headers) ? toConsole("console/") : plainText("", 404)),
  },
];

function answersPage(...mediaTypes: readonly string[]): Answers {
  return {
    200: {
      description: "The file",
      content: Object.fromEntries(mediaTypes.map((type) => [type, type === JSON_TYPE ? jsonObject : "text"])),
      headers: ["etag"],
    },
    304: { description: "The copy of the caller is current", headers: ["etag"] },
  };
}

/** The page is relative, so that it is found below the path of a proxy, too. */
function toConsole(place: string): Response {
  return new Response(null, { status: 302, headers: { ...COMMON_HEADERS, location: place } });
}

/** The headers of each page; the others have those of every answer. */
const HEADERS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  docs: PAGE_HEADERS,
  console: CONSOLE_HEADERS,
};

/**
 * A file of a page: kept by browsers for ever where its name has its hash, else asked for again each time.
 */
async function pageFile({ use, request }: RouteCall, page: string, name?: string): Promise<Response> {
  const takesGzip = acceptsGzip(request.header("accept-encoding") ?? null);
  const file = await use.pages.read(page, name);
  const etag = `"${file.version}${takesGzip ? "-gzip" : ""}"`;
  const headers = new Headers({
    ...(HEADERS[page] ?? COMMON_HEADERS),
    "cache-control": file.isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
    vary: "accept-encoding",
    etag,
  });
  const outcome = precondition(request.raw.headers, { etag, modifiedMs: null });
  if (outcome === "failed") return plainText("The file has changed", 412);
  if (outcome === "not_modified") return new Response(null, { status: 304, headers });
  headers.set("content-type", file.mediaType);
  if (takesGzip) headers.set("content-encoding", "gzip");
  const bytes = takesGzip ? file.compressed : file.plain;
  headers.set("content-length", String(bytes.length));
  return new Response(inPieces(bytes), { headers });
}

/**
 * A response copies bytes that it is given at once, and keeps them until the client has read them all: of
 * these, only what the client reads next.
 */
function inPieces(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array<ArrayBuffer>> {
  let at = 0;
  return new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      controller.enqueue(bytes.subarray(at, at += PIECE_BYTES));
      if (at >= bytes.length) controller.close();
    },
  }, { highWaterMark: 0 });
}

const PIECE_BYTES = 16 * 1024;
