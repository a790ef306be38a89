/** Requests whose answers are taken piece by piece, such as exports; the client reads its answers whole. */

import { answerError, CliError, unreachable } from "./failure.ts";
import { visible } from "./output/visible.ts";
import type { Settings } from "./settings/settings.ts";

export interface StreamRequest {
  /** With its query, from `/v1` on. */
  readonly path: string;
  readonly accept: string;
  readonly signal: AbortSignal;
}

/** Time until the head of the answer is there, and for each piece behind it. */
const SILENCE_MS = 60_000;
/** No line of the server is longer: it is near the longest text that the runtime has. */
const LINE_CHARACTERS_MAX = 512 * 1024 * 1024;
/** Of the text of a refusal, and of short answers. */
const SHORT_BYTES_MAX = 4 * 1024 * 1024;

/** The headers that say who calls. */
export function identityOf({ apiKey, tenantId }: Settings): Record<string, string> {
  return {
    ...(apiKey !== undefined && { "x-api-key": apiKey }),
    ...(tenantId !== undefined && { "x-tenant-id": tenantId }),
  };
}

/** The answer of a GET as it arrives; throws a failure for anything but success. */
export async function openStream(settings: Settings, request: StreamRequest): Promise<Response> {
  const { path, accept, signal } = request;
  const deadline = new AbortController();
  const timer = setTimeout(() => {
    deadline.abort(new DOMException("the answer did not begin in time", "TimeoutError"));
  }, SILENCE_MS);
  let response: Response;
  try {
    response = await fetch(settings.url + path, {
      headers: {
        ...identityOf(settings),
        accept,
        // On one machine compressing takes longer than copying.
        ...(isLoopback(settings.url) && { "accept-encoding": "identity" }),
      },
      // It would take the API key to another place.
      redirect: "error",
      signal: AbortSignal.any([signal, deadline.signal]),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw unreachable(settings.url, error);
  } finally {
    clearTimeout(timer);
  }
  if (!response.ok) {
    throw refusal(response.status, await shortText(response, { url: settings.url, signal }));
  }
  const type = response.headers.get("content-type") ?? "none";
  if (accept === "*/*" || type.startsWith(accept)) return response;
  await response.body?.cancel();
  throw new CliError(
    "server",
    `${settings.url} answers, but not as this service does: with the type ${visible(type.slice(0, 80))}`,
    "--url has to name the address of the service itself",
  );
}

/** Whom an answer is from, and what ends its reading. */
interface Reading {
  readonly url: string;
  readonly signal: AbortSignal;
}

/**
 * The bytes of an answer as they come. A connection that breaks or is silent for too long is told as such.
 */
export async function* piecesOf(
  response: Response,
  { url, signal }: Reading,
): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = response.body!.getReader();
  const late = new DOMException("the answer stopped", "TimeoutError");
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    for (;;) {
      const silence = new Promise<never>((_, reject) => timer = setTimeout(() => reject(late), SILENCE_MS));
      const { done, value } = await Promise.race([reader.read(), silence]).catch((error) => {
        signal.throwIfAborted();
        throw unreachable(url, error);
      });
      clearTimeout(timer);
      if (done) return;
      yield value;
    }
  } finally {
    clearTimeout(timer);
    await reader.cancel().catch(() => {});
  }
}

/** The whole text of a short answer. */
export async function shortText(response: Response, reading: Reading): Promise<string> {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const piece of piecesOf(response, reading)) {
    bytes += piece.length;
    if (bytes > SHORT_BYTES_MAX) {
      throw new CliError("server", `an answer of ${reading.url} has more than ${SHORT_BYTES_MAX} bytes`);
    }
    pieces.push(piece);
  }
  return await new Blob(pieces).text();
}

/** The lines of a text that arrives in pieces, without their ends. */
export async function* linesOf(response: Response, reading: Reading): AsyncGenerator<string> {
  // A line of many pieces is put together once.
  let pieces: string[] = [];
  let kept = 0;
  const decoder = new TextDecoder();
  for await (const bytes of piecesOf(response, reading)) {
    const text = decoder.decode(bytes, { stream: true });
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      pieces.push(text.slice(start, end));
      yield pieces.join("");
      pieces = [];
      kept = 0;
      start = end + 1;
    }
    if (start < text.length) pieces.push(text.slice(start));
    kept += text.length - start;
    if (kept > LINE_CHARACTERS_MAX) {
      throw new CliError("server", `${reading.url} sends a line without an end`);
    }
  }
  if (pieces.length > 0) throw new CliError("server", "the answer was cut off in the middle of a line");
}

function isLoopback(url: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(new URL(url).hostname);
}

function refusal(status: number, text: string): CliError {
  try {
    const { code, message, request_id: requestId, details } = JSON.parse(text).error;
    const faults = details?.map((detail: { field: string; message: string }) =>
      `${detail.field}: ${detail.message}`
    ).join("; ");
    return answerError({ status, code, message: faults || message, requestId });
  } catch {
    return answerError({ status, message: text.trim().slice(0, 500) });
  }
}
