/** HTTP requests for the media of a source: to checked addresses only, with its user name and password where
 * its server asks for them.
 */

import type { World } from "../../base/world.ts";
import type { IpNetwork } from "../../base/ip_address.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Authorization, SourceCredentials } from "../../model/sources/source_credentials.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused, checkedTarget, type Resolve } from "../guard/address_guard.ts";
import type { PinnedAgent } from "../guard/pinned_agent.ts";
import { pinnedRequest, type PinnedResponse } from "../guard/pinned_request.ts";
import type { SourceBudget } from "./source_budget.ts";
import type { SourceCookies } from "./source_cookies.ts";

export interface FetchContext {
  readonly world: World;
  /** The agent, which verifies certificates or not, as SERVICE_ALLOW_INSECURE_TLS says. */
  readonly agent: PinnedAgent;
  readonly resolve?: Resolve;
  /** SERVICE_MEDIA_ALLOWED_NETWORKS: where sources may have private and loopback addresses. */
  readonly allowedNetworks: readonly IpNetwork[];
  /**
   * What is known of a named source, whose callers must not learn where it is; absent for a URL that the
   * caller gave.
   */
  readonly named?: NamedTarget;
  readonly signal: AbortSignal;
  /** Called when what a relay says of its source has changed. */
  readonly onChange?: () => void;
}

export interface NamedTarget {
  /** The user name and password; null for a source without. */
  readonly login: SourceLogin | null;
}

export interface SourceLogin {
  readonly credentials: SourceCredentials;
  /** The origin of the source: nobody else gets the credentials. */
  readonly origin: string;
  /** The credentials in HTTP requests, which may share a connection. */
  readonly http: Authorization;
}

/** The reason to tell where a server refuses the credentials of a source. */
export const LOGIN_REFUSED = "its server refuses the user name and the password";

/** The addresses of a media source's host, if all of them may be called. Errors: those of `checkedTarget`. */
export async function sourceAddresses(
  url: URL,
  { world, allowedNetworks, resolve, named }: FetchContext,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const timeoutMs = LIMITS.ingest.prefetchTimeoutMs;
  const guard = { world, allowPrivate: false, allowedNetworks, timeoutMs, signal };
  try {
    return await checkedTarget(url, { ...guard, ...(resolve && { resolve }) });
  } catch (error) {
    if (!named || !(error instanceof AddressRefused)) throw error;
    // Whoever wrote the file of sources can admit it, and a camera in the own network is the usual case.
    throw new AddressRefused(`${error.withoutHost.message}; SERVICE_MEDIA_ALLOWED_NETWORKS may admit it`);
  }
}

export interface SourceRequest {
  /** Pays for the request and its answer: where it is used up, both wait. */
  readonly budget: SourceBudget;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The cookies of the source: those of earlier answers are sent, and those of this one are added. */
  readonly cookies?: SourceCookies;
}

/** An answer, and who gave it at last. */
export interface FollowedResponse {
  readonly response: PinnedResponse;
  readonly url: URL;
}

/**
 * Sends a GET that follows redirects, and checks each target like the first one. Refuses (422 `source_uri`)
 * too many of them, one to another scheme than http and https, and one from https to http.
 */
export async function followedRequest(
  first: URL,
  context: FetchContext,
  request: SourceRequest,
): Promise<FollowedResponse> {
  let url = first;
  for (let redirects = 0; redirects <= LIMITS.ingest.prefetchRedirectsMax; redirects++) {
    const response = await sourceRequest(url, context, request);
    if (!REDIRECTS.includes(response.status)) return { response, url };
    const location = response.headers.get("location");
    await response.body.drain(DRAINED_BYTES_MAX);
    url = redirectTarget(url, location);
  }
  throw sourceFault(`it was redirected more than ${LIMITS.ingest.prefetchRedirectsMax} times`);
}

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308];
/** The URL of a redirect, if it is allowed. */
function redirectTarget(from: URL, location: string | null): URL {
  const url = location === null ? null : URL.parse(location, from);
  if (!url) throw sourceFault("it was redirected to nowhere");
  if (!["http:", "https:"].includes(url.protocol)) {
    throw sourceFault(`it was redirected to the scheme ${url.protocol.slice(0, 32)}`);
  }
  if (from.protocol === "https:" && url.protocol === "http:") {
    throw sourceFault("it was redirected from https to http");
  }
  return url;
}

/**
 * Sends a GET. The answer may have any status but 401, which is refused (422 `source_uri`) where the source
 * has credentials.
 */
export async function sourceRequest(
  url: URL,
  context: FetchContext,
  { budget, headers, timeoutMs, signal, cookies }: SourceRequest,
): Promise<PinnedResponse> {
  const { world, agent, named } = context;
  const login = named?.login?.origin === url.origin ? named.login : null;
  const addresses = await sourceAddresses(url, context, signal);
  const pace = (bytes: number) => {
    budget.spend({ bytes, pieces: 1 });
    return budget.turn(signal);
  };
  while (true) {
    budget.spend({ requests: 1 });
    await budget.turn(signal);
    const cookie = cookies?.header(url) ?? null;
    const authorization = login?.http.header({ method: "GET", uri: `${url.pathname}${url.search}` });
    const response = await pinnedRequest({
      ...{ world, agent, url, addresses, method: "GET", timeoutMs, signal, pace },
      headers: {
        ...{ "accept": "*/*", "accept-encoding": "identity", ...headers },
        ...(authorization && { authorization }),
        ...(cookie !== null && { cookie }),
      },
    });
    cookies?.take(url, response.headers.getSetCookie());
    if (response.status !== 401 || login === null) {
      login?.http.accepted();
      return response;
    }
    const challenges = response.headers.get("www-authenticate");
    await response.body.drain(DRAINED_BYTES_MAX);
    if (!login.http.take(challenges === null ? [] : [challenges])) throw sourceFault(LOGIN_REFUSED);
  }
}

/**
 * The longest body in bytes that is read to its end although nobody needs it, so that the connection can be
 * used again.
 */
export const DRAINED_BYTES_MAX = 64 * 1024;
