/** A Gemini server on loopback: files are uploaded, polled and deleted, contents generated as the test sets.
 */

import { check, meansGone, untilGone, wholeBody } from "../http/scripted_server.ts";
import { checkMp4Head, readJpeg, type SentImage } from "./sent_media.ts";

/** One call to `:generateContent`, taken apart. */
export interface GeminiRequest {
  /** Number of the call, from 0, in order of arrival. */
  readonly index: number;
  readonly model: string;
  readonly prompt: string;
  readonly images: readonly SentImage[];
  /** The uploaded clips that it names. */
  readonly videos: readonly Uint8Array<ArrayBuffer>[];
  readonly schema: Record<string, unknown> | null;
  // deno-lint-ignore no-explicit-any -- tests look into whatever was sent
  readonly config: any;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

/** A text, parts and counts as the wire has them, or an answer as it is. */
export type GeminiAnswer =
  | string
  | {
    readonly parts?: readonly Record<string, unknown>[];
    readonly finishReason?: string;
    readonly usage?: Record<string, unknown>;
  }
  | { readonly status: number; readonly body?: string };

export type GeminiAnswerer = (request: GeminiRequest) => GeminiAnswer | Promise<GeminiAnswer>;

export interface GeminiServerOptions {
  readonly apiKey: string;
  readonly answer?: GeminiAnswerer;
  /**
   * The states that a file goes through, one for each poll, then the last one again; ACTIVE at once unless
   * given.
   */
  readonly states?: readonly string[];
  /** The status of any step, to make it fail: "start", "upload", "poll", "delete", "probe"; 200. */
  readonly status?: (step: GeminiStep) => number | Promise<number>;
  /** The URL that it gives the caller for the upload; its own unless given. */
  readonly uploadUrl?: string;
  readonly toleratesFaults?: boolean;
}

export type GeminiStep = "start" | "upload" | "poll" | "delete" | "probe";

/** Disposing it throws when it saw faults, unless they are tolerated. */
export interface GeminiServer extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly GeminiRequest[];
  /** Every step in order of arrival; `generate` among them. */
  readonly steps: readonly (GeminiStep | "generate")[];
  /**
   * Files whose upload was started, and that were neither deleted nor refused; their bytes may be missing.
   */
  readonly announced: number;
  /** How many of the files had their bytes received. */
  readonly stored: number;
  /** Content requests whose caller disconnected before the answer. */
  readonly aborted: number;
  readonly inFlight: number;
  readonly faults: readonly string[];
  /** May be changed while it runs. */
  answer: GeminiAnswerer;
}

interface StoredFile {
  bytes: Uint8Array<ArrayBuffer> | null;
  polls: number;
}

export function startGeminiServer(options: GeminiServerOptions): GeminiServer {
  const { apiKey, states = ["ACTIVE"], status = () => 200, toleratesFaults = false } = options;
  const requests: GeminiRequest[] = [];
  const steps: (GeminiStep | "generate")[] = [];
  const faults: string[] = [];
  const files = new Map<string, StoredFile>();
  const count = { aborted: 0, inFlight: 0, uploads: 0 };
  const closing = new AbortController();

  const fileBody = (id: string) => ({
    name: `files/${id}`,
    mimeType: "video/mp4",
    uri: `${origin()}/v1beta/files/${id}`,
    state: states[Math.min(files.get(id)!.polls, states.length - 1)],
  });

  const routes: readonly [
    string,
    RegExp,
    (request: Request, match: string[]) => Promise<Response> | Response,
  ][] = [
    ["POST", /^\/upload\/v1beta\/files$/, start],
    ["PUT", /^\/upload\/(f\d+)$/, upload],
    ["GET", /^\/v1beta\/files\/(f\d+)$/, poll],
    ["DELETE", /^\/v1beta\/files\/(f\d+)$/, remove],
    ["GET", /^\/v1beta\/models\/([\w.-]+)$/, probe],
    ["POST", /^\/v1beta\/models\/([\w.-]+):generateContent$/, generate],
  ];

  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const url = new URL(request.url);
    // The upload URL needs no key.
    if (request.method !== "PUT" && url.searchParams.get("key") !== apiKey) {
      await request.body?.cancel();
      return refusal(403, "wrong key");
    }
    try {
      for (const [method, path, handle] of routes) {
        const match = path.exec(url.pathname);
        if (method === request.method && match) return await handle(request, match);
      }
      throw new Error(`${request.method} ${url.pathname}`);
    } catch (error) {
      if (meansGone(error, request.signal, closing.signal)) return new Response(null, { status: 503 });
      faults.push(error instanceof Error ? error.message : String(error));
      return refusal(400, faults.at(-1)!);
    }
  });
  const origin = () => `http://127.0.0.1:${server.addr.port}`;

  async function start(request: Request): Promise<Response> {
    steps.push("start");
    const header = (name: string) => request.headers.get(`x-goog-upload-${name}`);
    check(header("protocol") === "resumable" && header("command") === "start", "not the start of an upload");
    check(Number(header("header-content-length")) > 0, "no length");
    check(header("header-content-type") === "video/mp4", `a file of ${header("header-content-type")}`);
    check(typeof (await jsonOf(request)).file === "object", "no file");
    const bad = await status("start");
    if (bad !== 200) return refusal(bad, "start");
    const id = `f${++count.uploads}`;
    files.set(id, { bytes: null, polls: 0 });
    return new Response(null, {
      headers: { "x-goog-upload-url": options.uploadUrl ?? `${origin()}/upload/${id}` },
    });
  }

  async function upload(request: Request, [, id]: string[]): Promise<Response> {
    steps.push("upload");
    const header = (name: string) => request.headers.get(`x-goog-upload-${name}`);
    check(header("command") === "upload, finalize" && header("offset") === "0", "not the whole of an upload");
    const bytes = await wholeBody(request);
    checkMp4Head(bytes);
    const bad = await status("upload");
    if (bad !== 200) {
      files.delete(id!);
      return refusal(bad, "upload");
    }
    files.get(id!)!.bytes = bytes;
    return Response.json({ file: fileBody(id!) });
  }

  async function poll(_request: Request, [, id]: string[]): Promise<Response> {
    steps.push("poll");
    const bad = await status("poll");
    if (bad !== 200) return refusal(bad, "poll");
    files.get(id!)!.polls++;
    return Response.json(fileBody(id!));
  }

  async function remove(_request: Request, [, id]: string[]): Promise<Response> {
    steps.push("delete");
    const bad = await untilGone(Promise.resolve(status("delete")), closing.signal);
    if (bad !== 200) return refusal(bad, "delete");
    check(files.delete(id!), `no file ${id}`);
    return Response.json({});
  }

  async function probe(request: Request, [, model]: string[]): Promise<Response> {
    steps.push("probe");
    const code = await untilGone(Promise.resolve(status("probe")), request.signal, closing.signal).catch(() =>
      503
    );
    return code === 200 ? Response.json({ name: `models/${model}` }) : refusal(code, "probe");
  }

  async function generate(request: Request, [, model]: string[]): Promise<Response> {
    steps.push("generate");
    const body = await jsonOf(request);
    const asked = readRequest(body, model!, requests.length, request.signal, files);
    requests.push(asked);
    count.inFlight++;
    let isDone = false;
    request.signal.addEventListener("abort", () => {
      if (!isDone) count.aborted++;
    });
    try {
      return responseOf(
        await untilGone(Promise.resolve(gemini.answer(asked)), request.signal, closing.signal),
      );
    } finally {
      isDone = !request.signal.aborted;
      count.inFlight--;
    }
  }

  const gemini: GeminiServer = {
    url: origin(),
    requests,
    steps,
    faults,
    get announced() {
      return files.size;
    },
    get stored() {
      return [...files.values()].filter(({ bytes }) => bytes !== null).length;
    },
    get aborted() {
      return count.aborted;
    },
    get inFlight() {
      return count.inFlight;
    },
    answer: options.answer ?? (() => "A forklift waits."),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await server.shutdown();
      if (faults.length > 0 && !toleratesFaults) {
        throw new Error(`the gemini server saw: ${faults.join("; ")}`);
      }
    },
  };
  return gemini;
}

// deno-lint-ignore no-explicit-any -- its reader checks the shape
async function jsonOf(request: Request): Promise<any> {
  return JSON.parse(new TextDecoder().decode(await wholeBody(request)));
}

/** Images, then files, then the text. */
function readRequest(
  // deno-lint-ignore no-explicit-any -- the shape is what is being checked
  body: any,
  model: string,
  index: number,
  signal: AbortSignal,
  files: ReadonlyMap<string, StoredFile>,
): GeminiRequest {
  check(body.contents?.length === 1 && body.contents[0].role === "user", "not a single content");
  const { generationConfig: config } = body;
  check(Number.isInteger(config.maxOutputTokens) && config.maxOutputTokens > 0, "no maxOutputTokens");
  check(("temperature" in config) === !model.startsWith("gemini-3."), "temperature");
  check(
    [undefined, "LOW", "MEDIUM", "HIGH"].map((word) => word && `MEDIA_RESOLUTION_${word}`)
      .includes(config.mediaResolution),
    `mediaResolution ${config.mediaResolution}`,
  );
  check(
    config.responseSchema === undefined || config.responseMimeType === "application/json",
    "no responseMimeType",
  );
  if (config.responseSchema) checkSchema(config.responseSchema);
  const images: SentImage[] = [];
  const videos: Uint8Array<ArrayBuffer>[] = [];
  const parts = [...body.contents[0].parts];
  const text = parts.pop();
  check(typeof text?.text === "string", "the last part is not text");
  for (const { inlineData, fileData } of parts) {
    if (inlineData) {
      check(videos.length === 0, "an image after a file");
      check(inlineData.mimeType === "image/jpeg", `an image of ${inlineData.mimeType}`);
      images.push(readJpeg(Uint8Array.fromBase64(inlineData.data)));
    } else {
      const file = files.get(fileData.fileUri.split("/").at(-1));
      check(fileData.mimeType === "video/mp4" && !!file?.bytes, `no such file: ${fileData.fileUri}`);
      videos.push(file.bytes);
    }
  }
  return {
    index,
    model,
    prompt: text.text,
    images,
    videos,
    schema: config.responseSchema ?? null,
    config,
    signal,
  };
}

/** Refuses requests that the real server refuses. */
function checkSchema(schema: Record<string, unknown>): void {
  const unknown = Object.keys(schema).filter((name) => !SCHEMA_FIELDS.includes(name));
  check(unknown.length === 0, `schema fields ${unknown}`);
  const inner = [...(schema.anyOf as [] ?? []), ...Object.values(schema.properties ?? {}), schema.items];
  check(
    schema.anyOf !== undefined || SCHEMA_TYPES.includes(schema.type as string),
    `schema type ${schema.type}`,
  );
  for (const part of inner) if (part !== undefined) checkSchema(part as Record<string, unknown>);
}

const SCHEMA_TYPES = ["STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT"];
const SCHEMA_FIELDS = [
  ..."type format title description nullable enum maxItems minItems properties required minLength maxLength"
    .split(" "),
  ..."pattern anyOf propertyOrdering items minimum maximum".split(" "),
];

function responseOf(answer: GeminiAnswer): Response {
  if (typeof answer === "object" && "status" in answer) {
    return new Response(answer.body ?? "{}", { status: answer.status });
  }
  const { parts, finishReason = "STOP", usage } = typeof answer === "string"
    ? { parts: [{ text: answer }] }
    : answer;
  return Response.json({
    candidates: [{ content: { role: "model", parts }, finishReason }],
    usageMetadata: usage ?? {
      promptTokenCount: 31,
      candidatesTokenCount: 6,
      thoughtsTokenCount: 2,
      totalTokenCount: 39,
    },
  });
}

function refusal(status: number, message: string): Response {
  return Response.json({ error: { code: status, message } }, { status });
}
