/** An OpenAI-compatible model server on loopback: checks and records requests, and answers as the test sets.
 */

import { check, meansGone, untilGone, wholeBody } from "../http/scripted_server.ts";
import { checkMp4Head, readJpeg, type SentImage } from "./sent_media.ts";

/** One call to `/v1/chat/completions`, taken apart. */
export interface ModelRequest {
  /** Number of the call, from 0, in the order in which they came whole. */
  readonly index: number;
  readonly model: string;
  readonly prompt: string;
  readonly images: readonly SentImage[];
  readonly video: Uint8Array<ArrayBuffer> | null;
  readonly schema: { readonly name: string; readonly schema: Record<string, unknown> } | null;
  readonly maxTokens: number;
  readonly temperature: number;
  /** The whole body. */
  // deno-lint-ignore no-explicit-any -- tests look into whatever was sent
  readonly body: any;
  readonly headers: Headers;
  /** Aborts when the caller disconnects. */
  readonly signal: AbortSignal;
}

export interface ModelText {
  readonly text: string;
  readonly finishReason?: string | null;
  /** Counts of tokens in the answer; null leaves the block out; 31, 6 and 37 tokens unless given. */
  readonly usage?: Readonly<Record<string, unknown>> | null;
  /** How the answer contains the text: a plain string unless given. */
  readonly form?: "string" | "parts" | "legacy";
}

/**
 * A text (a plain string is short for it), an answer as it is, or a connection that is closed in the middle
 * of the answer.
 */
export type ModelAnswer = string | ModelText | {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Record<string, string>;
} | "cut";

/** Closes the connection in the middle of the body. */
export const CUT = "cut" as const;
/** What a plain 200 with something else than an answer looks like. */
export const MALFORMED: ModelAnswer = { status: 200, body: '{"choices": [{"message"' };
export const EMPTY: ModelAnswer = { text: "" };
/** An answer that is longer than any answer of a model may be. */
export const HUGE: ModelAnswer = { status: 200, body: `{"choices":"${"x".repeat(6 * 2 ** 20)}"}` };

/** The built-in answer of a reason chunk, as a model writes it. */
export function goodJson(fields: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    event_type: "object_observation",
    object_label: "forklift",
    confidence: 0.9,
    summary: "A forklift waits.",
    description: "A yellow forklift waits at the dock.",
    reasoning: "It does not move between the frames.",
    ...fields,
  });
}

/** JSON of the fields in prose and code fences. */
export function fencedJson(fields: Readonly<Record<string, unknown>> = {}): string {
  return `Sure! Here is {what} I see:\n\`\`\`json\n${goodJson(fields)}\n\`\`\`\nAnything else?`;
}

export interface ModelServerOptions {
  /** The answer to each request; a well-formed one unless given. */
  readonly answer?: (request: ModelRequest) => ModelAnswer | Promise<ModelAnswer>;
  /** The bearer token that it wants; without one it wants no authentication header at all. */
  readonly apiKey?: string;
  /** A path in front of `/v1`. */
  readonly basePath?: string;
  /** Status of `GET /v1/models`; 200. */
  readonly health?: () => number | Promise<number>;
  /** Whether disposing does not throw because of requests that broke the protocol. */
  readonly toleratesFaults?: boolean;
}

/** Disposing it throws when it saw faults, unless they are tolerated. */
export interface ModelServer extends AsyncDisposable {
  /** To configure as the base URL: no slash at the end. */
  readonly url: string;
  readonly requests: readonly ModelRequest[];
  /** Calls to `GET /v1/models`. */
  readonly probes: number;
  /** Requests whose caller disconnected before the answer was complete. */
  readonly aborted: number;
  /** Requests that came whole and are not answered. */
  readonly inFlight: number;
  readonly maxInFlight: number;
  /** Messages about requests that broke the protocol; each was answered with 400. */
  readonly faults: readonly string[];
  /** May be changed while it runs. */
  answer: (request: ModelRequest) => ModelAnswer | Promise<ModelAnswer>;
}

export function startModelServer(options: ModelServerOptions = {}): ModelServer {
  const { apiKey, basePath = "", health = () => 200, toleratesFaults = false } = options;
  const requests: ModelRequest[] = [];
  const faults: string[] = [];
  const count = { probes: 0, aborted: 0, inFlight: 0, maxInFlight: 0 };
  const closing = new AbortController();

  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const url = new URL(request.url);
    const authorization = request.headers.get("authorization");
    if (authorization !== (apiKey === undefined ? null : `Bearer ${apiKey}`)) {
      await request.body?.cancel();
      return Response.json({ error: { message: "wrong key" } }, { status: 401 });
    }
    if (request.method === "GET" && url.pathname === `${basePath}/v1/models`) {
      count.probes++;
      const status = await untilGone(Promise.resolve(health()), request.signal, closing.signal).catch(() =>
        503
      );
      return new Response(status === 204 ? null : '{"object":"list","data":[]}', { status });
    }
    try {
      const asked: ModelRequest = { ...await read(request, url, basePath), index: requests.length };
      requests.push(asked);
      return await answerTo(asked);
    } catch (error) {
      if (meansGone(error, request.signal, closing.signal)) return new Response(null, { status: 503 });
      faults.push(error instanceof Error ? error.message : String(error));
      return Response.json({ error: { message: faults.at(-1) } }, { status: 400 });
    }
  });

  async function answerTo(asked: ModelRequest): Promise<Response> {
    const { signal } = asked;
    count.inFlight++;
    count.maxInFlight = Math.max(count.maxInFlight, count.inFlight);
    let isDone = false;
    signal.addEventListener("abort", () => {
      if (!isDone) count.aborted++;
    });
    try {
      return responseOf(
        await untilGone(Promise.resolve(model.answer(asked)), signal, closing.signal),
        asked,
      );
    } finally {
      isDone = !signal.aborted;
      count.inFlight--;
    }
  }

  const model: ModelServer = {
    url: `http://127.0.0.1:${server.addr.port}${basePath}`,
    requests,
    faults,
    get probes() {
      return count.probes;
    },
    get aborted() {
      return count.aborted;
    },
    get inFlight() {
      return count.inFlight;
    },
    get maxInFlight() {
      return count.maxInFlight;
    },
    answer: options.answer ?? (() => "A forklift waits."),
    async [Symbol.asyncDispose]() {
      closing.abort();
      await server.shutdown();
      if (faults.length > 0 && !toleratesFaults) {
        throw new Error(`the model server saw: ${faults.join("; ")}`);
      }
    },
  };
  return model;
}

/** An answer that waits until `release` is called, or until the caller disconnects. */
export function held<T = string>(answer: T | string = "A forklift waits.") {
  const released = Promise.withResolvers<void>();
  return {
    answer: async () => {
      await released.promise;
      return answer;
    },
    release: () => released.resolve(),
  };
}

async function read(request: Request, url: URL, basePath: string): Promise<Omit<ModelRequest, "index">> {
  const { method, headers, signal } = request;
  const bytes = await wholeBody(request);
  check(method === "POST" && url.pathname === `${basePath}/v1/chat/completions`, `${method} ${url.pathname}`);
  check(url.search === "", `a query: ${url.search}`);
  check(headers.get("content-type") === "application/json", `content-type ${headers.get("content-type")}`);
  const body = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  const known = ["model", "messages", "max_tokens", "temperature", "response_format", "chat_template_kwargs"];
  const unknown = Object.keys(body).filter((name) => !known.includes(name));
  check(unknown.length === 0, `unknown fields ${unknown}`);
  check(typeof body.model === "string" && body.model !== "", "no model");
  check(Number.isInteger(body.max_tokens) && body.max_tokens > 0, `max_tokens ${body.max_tokens}`);
  check(Number.isFinite(body.temperature), `temperature ${body.temperature}`);
  check(body.messages?.length === 1 && body.messages[0].role === "user", "not a single user message");
  const wantsThinking = body.chat_template_kwargs?.enable_thinking;
  // The name of a converted model may no longer show that it is a thinking model.
  const mayBeAbsent = !body.model.includes("Qwen3.5");
  check(wantsThinking === false || (mayBeAbsent && wantsThinking === undefined), "enable_thinking");
  return {
    model: body.model,
    ...readContent(body.messages[0].content),
    schema: readSchema(body.response_format),
    maxTokens: body.max_tokens,
    temperature: body.temperature,
    body,
    headers,
    signal,
  };
}

/** A plain string when there is only text, else the text, then the images, then the video. */
function readContent(content: unknown): Pick<ModelRequest, "prompt" | "images" | "video"> {
  if (typeof content === "string") return { prompt: content, images: [], video: null };
  check(Array.isArray(content) && content.length > 1, "content is neither a string nor parts");
  // deno-lint-ignore no-explicit-any -- the shape is what is being checked
  const [text, ...media] = content as any[];
  check(text.type === "text" && typeof text.text === "string", "the first part is not text");
  const images: SentImage[] = [];
  let video: Uint8Array<ArrayBuffer> | null = null;
  for (const part of media) {
    if (part.type === "image_url") {
      check(video === null, "an image after the video");
      images.push(readJpeg(fromDataUrl(part.image_url?.url, "image/jpeg")));
    } else {
      check(part.type === "video_url" && video === null, `a part of type ${part.type}`);
      video = fromDataUrl(part.video_url?.url, "video/mp4");
      checkMp4Head(video);
    }
  }
  return { prompt: text.text, images, video };
}

function fromDataUrl(url: unknown, type: string): Uint8Array<ArrayBuffer> {
  const head = `data:${type};base64,`;
  check(typeof url === "string" && url.startsWith(head), `not a data URL of ${type}`);
  return Uint8Array.fromBase64((url as string).slice(head.length));
}

// deno-lint-ignore no-explicit-any -- the shape is what is being checked
function readSchema(format: any): ModelRequest["schema"] {
  if (format === undefined) return null;
  check(format.type === "json_schema", `response_format ${format.type}`);
  const { name, schema } = format.json_schema ?? {};
  check(typeof name === "string" && /^[\w-]{1,64}$/.test(name), `schema name ${name}`);
  check(typeof schema === "object" && schema !== null, "no schema");
  return { name, schema };
}

function responseOf(answer: ModelAnswer, { model }: ModelRequest): Response {
  if (answer === CUT) return cutResponse();
  if (typeof answer === "object" && "status" in answer) {
    const body = answer.body ?? JSON.stringify({ error: { message: `status ${answer.status}` } });
    const headers = { "content-type": "application/json", ...answer.headers };
    return new Response(body, { status: answer.status, headers });
  }
  const { text, finishReason = "stop", usage, form = "string" } = typeof answer === "string"
    ? { text: answer }
    : answer;
  const content = form === "parts" ? [{ type: "text", text }] : text;
  return Response.json({
    id: "chatcmpl-1",
    object: "chat.completion",
    model,
    choices: [{
      index: 0,
      ...(form === "legacy" ? { text } : { message: { role: "assistant", content } }),
      finish_reason: finishReason,
    }],
    ...(usage !== null && {
      usage: usage ?? { prompt_tokens: 31, completion_tokens: 6, total_tokens: 37 },
    }),
  });
}

/** The head, a piece of the body, and then the end of the connection. */
function cutResponse(): Response {
  const body = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('{"choices": [')),
    pull: (controller) => controller.close(),
  });
  return new Response(body, { headers: { "content-type": "application/json", "content-length": "1000" } });
}
