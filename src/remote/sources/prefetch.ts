/** Downloads a remote media file completely, from checked addresses only, before it is opened. */

import { LIMITS } from "../../contract/limits.ts";
import { type RemoteSource, sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused } from "../guard/address_guard.ts";
import { Deadline, OutOfTime } from "../../base/wait.ts";
import type { PinnedResponse } from "../guard/pinned_request.ts";
import { RequestFailed } from "../guard/request_failed.ts";
import { SourceBudget } from "./source_budget.ts";
import { type FetchContext, followedRequest } from "./source_request.ts";

/**
 * Receives the bytes in order. They belong to the sink until its promise resolves; then the next ones come,
 * maybe in the same memory.
 */
export type Sink = (bytes: Uint8Array) => Promise<void>;

/**
 * Passes the body to `sink`. It follows redirects, and checks each target like the first one. Refuses (422
 * `source_uri`): a host that may not be called, more than 5 redirects, a redirect to a scheme other than http
 * and https or from https to http, an answer other than 200, a body that is empty or over 256 MiB, and a
 * download that takes longer than 30 s in total. Errors: those of `sink`, and the reason of the signal. See
 * docs/security/sources.md#outbound-addresses.
 */
export async function prefetch(source: RemoteSource, sink: Sink, context: FetchContext): Promise<void> {
  using deadline = new Deadline(context.world, LIMITS.ingest.prefetchTimeoutMs, context.signal);
  try {
    const { response } = await followedRequest(source.url, context, {
      timeoutMs: LIMITS.ingest.prefetchTimeoutMs,
      signal: deadline.signal,
      budget: new SourceBudget(context.world),
    });
    await copyBody(response, sink);
  } catch (error) {
    throw refusalOf(error, context.signal);
  }
}

async function copyBody({ status, headers, body }: PinnedResponse, sink: Sink): Promise<void> {
  try {
    if (status !== 200) throw sourceFault(`its server answered HTTP ${status}`);
    const encoding = headers.get("content-encoding") ?? "identity";
    if (encoding.toLowerCase() !== "identity") throw sourceFault("its server sends it compressed");
    if (Number(headers.get("content-length")) > LIMITS.ingest.prefetchBytesMax) throw tooLarge();
    let receivedBytes = 0;
    for await (const bytes of body) {
      receivedBytes += bytes.length;
      if (receivedBytes > LIMITS.ingest.prefetchBytesMax) throw tooLarge();
      await sink(bytes);
    }
    if (receivedBytes === 0) throw sourceFault("the file is empty");
  } finally {
    body.cancel();
  }
}

function tooLarge() {
  return sourceFault(`it is larger than ${LIMITS.ingest.prefetchBytesMax / 2 ** 20} MiB`);
}

/** The refusal for a failure of the download; other errors unchanged. */
function refusalOf(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const isLate = error instanceof OutOfTime || (error instanceof RequestFailed && error.kind === "timeout");
  if (isLate) return sourceFault(`fetching it took longer than ${LIMITS.ingest.prefetchTimeoutMs / 1000} s`);
  if (error instanceof AddressRefused) return sourceFault(error.message);
  if (error instanceof RequestFailed) return sourceFault(`it cannot be fetched: ${error.message}`);
  return error;
}
