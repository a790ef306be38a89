/** Requests to https addresses, each redirect checked; and files read the same way. */

import { fileURLToPath } from "node:url";
import { CliError } from "../../cli/failure.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { readText } from "./keys.ts";

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];

export interface Trust {
  /** Certificates in PEM that are trusted besides those of Deno. */
  readonly ca: string | null;
  readonly signal: AbortSignal;
}

/** The text of a manifest at an https or file address. */
export async function fetchManifest(uri: string, trust: Trust): Promise<string> {
  if (uri.startsWith("file:")) return readText(fileURLToPath(uri));
  const signal = AbortSignal.any([trust.signal, AbortSignal.timeout(LIMITS.edge.manifestTimeoutMs)]);
  using client = clientOf(trust);
  try {
    const answer = await request(uri, {}, client, signal);
    if (answer.status !== 200) {
      await answer.body?.cancel();
      throw new CliError("unreachable", `${uri} answers with HTTP ${answer.status}`);
    }
    const parts: Uint8Array[] = [];
    let size = 0;
    for await (const part of answer.body ?? []) {
      size += part.byteLength;
      if (size > LIMITS.edge.manifestBytesMax) {
        throw new CliError(
          "invalid",
          `the manifest is refused: it has more than ${LIMITS.edge.manifestBytesMax} bytes`,
        );
      }
      parts.push(part);
    }
    return await new Blob(parts as Uint8Array<ArrayBuffer>[]).text();
  } catch (error) {
    throw fetchError(uri, error, trust.signal);
  }
}

export function clientOf({ ca }: Trust): Deno.HttpClient {
  return Deno.createHttpClient(ca === null ? {} : { caCerts: [ca] });
}

/** Follows redirects from one https address to the next. */
export async function request(
  uri: string,
  headers: Readonly<Record<string, string>>,
  client: Deno.HttpClient,
  signal: AbortSignal,
): Promise<Response> {
  let url = uri;
  for (let count = 0; count <= LIMITS.edge.redirectsMax; count++) {
    const answer = await fetch(url, {
      // A body that is packed on the way would not have the bytes that were signed.
      headers: { ...headers, "accept-encoding": "identity" },
      redirect: "manual",
      client,
      signal,
    });
    const location = answer.headers.get("location");
    if (!REDIRECTS.includes(answer.status) || location === null) return answer;
    await answer.body?.cancel();
    url = new URL(location, url).href;
    if (!url.startsWith("https:")) {
      throw new CliError("unreachable", `${uri} leads to an address that is not https`);
    }
  }
  throw new CliError("unreachable", `${uri} leads on more than ${LIMITS.edge.redirectsMax} times`);
}

/** A failed request in words; what was decided already stays as it is, and so does an interruption. */
export function fetchError(uri: string, error: unknown, signal: AbortSignal): unknown {
  if (error instanceof CliError || signal.aborted) return error;
  if (error instanceof Error && error.name === "TimeoutError") {
    return new CliError("unreachable", `${uri} did not answer in time`);
  }
  let at: unknown = error;
  while (at instanceof Error && at.cause instanceof Error) at = at.cause;
  return new CliError("unreachable", `cannot fetch ${uri}: ${(at as Error).message}`);
}
