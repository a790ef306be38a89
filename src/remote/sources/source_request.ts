/** HTTP requests for the media of a source: to checked addresses only, with its user name and password where its server asks for them. */

import type { World } from "../../base/world.ts";
import type { IpNetwork } from "../../base/ip_address.ts";
import { LIMITS } from "../../model/limits.ts";
import type { Authorization, SourceCredentials } from "../../model/sources/source_credentials.ts";
import { sourceFault } from "../../model/sources/remote_source.ts";
import { AddressRefused, checkedTarget, type Resolve } from "../guard/address_guard.ts";
import type { PinnedAgent } from "../guard/pinned_agent.ts";
import { pinnedRequest, type PinnedResponse } from "../guard/pinned_request.ts";

export interface FetchContext {
  readonly world: World;
  /** Verifies certificates or not, as SERVICE_ALLOW_INSECURE_TLS says. */
  readonly agent: PinnedAgent;
  readonly resolve?: Resolve;
  /** Media sources there may have private and loopback addresses: SERVICE_MEDIA_ALLOWED_NETWORKS. */
  readonly allowedNetworks: readonly IpNetwork[];
  /** Of a named source, whose callers must not learn where it is; absent for a URL that the caller gave. */
  readonly named?: NamedTarget;
  readonly signal: AbortSignal;
}

export interface NamedTarget {
  /** Null for a source without a user name. */
  readonly login: SourceLogin | null;
}

export interface SourceLogin {
  readonly credentials: SourceCredentials;
  /** The origin of the source: nobody else gets the credentials. */
  readonly origin: string;
  /** For HTTP requests, as they may share a connection. */
  readonly http: Authorization;
}

/** The reason where a server refuses the credentials of a source. */
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
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** A GET. The answer may have any status but 401, which is refused (422 `source_uri`) where the source has credentials. */
export async function sourceRequest(
  url: URL,
  context: FetchContext,
  { headers, timeoutMs, signal }: SourceRequest,
): Promise<PinnedResponse> {
  const { world, agent, named } = context;
  const login = named?.login?.origin === url.origin ? named.login : null;
  const addresses = await sourceAddresses(url, context, signal);
  while (true) {
    const authorization = login?.http.header({ method: "GET", uri: `${url.pathname}${url.search}` });
    const response = await pinnedRequest({
      ...{ world, agent, url, addresses, method: "GET", timeoutMs, signal },
      headers: {
        ...{ "accept": "*/*", "accept-encoding": "identity", ...headers },
        ...(authorization && { authorization }),
      },
    });
    if (response.status !== 401 || login === null) {
      login?.http.accepted();
      return response;
    }
    const challenges = response.headers.get("www-authenticate");
    await response.body.drain(DRAINED_BYTES_MAX);
    if (!login.http.take(challenges === null ? [] : [challenges])) throw sourceFault(LOGIN_REFUSED);
  }
}

/** The body of such an answer is ignored. A short one is read to its end, so that the connection can be used again. */
export const DRAINED_BYTES_MAX = 64 * 1024;
