/** Requests whose answers are taken piece by piece, such as exports; the client reads its answers whole. */

import { answerError, CliError, unreachable } from "./failure.ts";
import type { Settings } from "./settings/settings.ts";

export interface StreamRequest {
  /** With its query, from `/v1` on. */
  readonly path: string;
  readonly accept: string;
  readonly signal: AbortSignal;
}

/** Time until the head of the answer is there. */
const HEAD_TIMEOUT_MS = 60_000;

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
  }, HEAD_TIMEOUT_MS);
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
  if (response.ok) return response;
  throw refusal(response.status, await response.text());
}

/** The lines of a text that arrives in pieces, without their ends. */
export async function* linesOf(response: Response): AsyncGenerator<string> {
  // A line of many pieces is put together once.
  let pieces: string[] = [];
  for await (const text of response.body!.pipeThrough(new TextDecoderStream())) {
    let start = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", start)) {
      pieces.push(text.slice(start, end));
      yield pieces.join("");
      pieces = [];
      start = end + 1;
    }
    if (start < text.length) pieces.push(text.slice(start));
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
