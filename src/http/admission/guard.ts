/** Authentication: the API key, in `x-api-key` or as a bearer token, determines the principal, or the request
 * is 401. See docs/api.md#authentication.
 */

import { utf8Length } from "../../base/bytes.ts";
import { LIMITS } from "../../contract/limits.ts";
import { Refusal, refuse } from "../../contract/refusal.ts";
import { PUBLIC_PRINCIPAL } from "../../model/identifiers.ts";
import type { PrincipalNames } from "../../model/principal_names.ts";
import { RefusedKeys } from "./refused_keys.ts";

export interface GuardOptions {
  readonly requireApiKey: boolean;
  readonly apiKeys: readonly string[];
  readonly requireTenantId: boolean;
  readonly metricsRequireApiKey: boolean;
}

/** A request, as far as its key decides. */
export interface GuardedRequest {
  /** As the router sees it. */
  readonly path: string;
  readonly headers: Headers;
  /** Address of the other end of the connection; undefined where there is none. */
  readonly address: string | undefined;
}

/** The principal of a request that was admitted. */
export interface Admission {
  readonly principalKey: string;
  /** Whether a key was required and valid; false for health, web pages and in open mode. */
  readonly isAuthenticated: boolean;
}

const HEALTH_PATH = "/v1/health";
const METRICS_PATH = "/v1/metrics";

export class Guard {
  readonly #options: GuardOptions;
  readonly #keys: readonly { padded: Uint8Array; admission: Admission }[];
  /**
   * A buffer for the caller's key, padded like the accepted keys, so that every comparison takes the same
   * time.
   */
  readonly #given: Uint8Array;
  readonly #encoder = new TextEncoder();
  readonly #refusedKeys: RefusedKeys;

  constructor(options: GuardOptions, names: Pick<PrincipalNames, "ofKey">, nowMs: () => number) {
    this.#options = options;
    this.#refusedKeys = new RefusedKeys(nowMs);
    const encoded = options.apiKeys.map((key) => this.#encoder.encode(key));
    // one byte more, so that no truncated longer key can match
    const length = 1 + Math.max(0, ...encoded.map((key) => key.length));
    this.#given = new Uint8Array(length);
    this.#keys = options.apiKeys.map((key, index) => {
      const padded = new Uint8Array(length);
      padded.set(encoded[index]!);
      return { padded, admission: { principalKey: names.ofKey(key), isAuthenticated: true } };
    });
  }

  /**
   * Throws 401, 429 after many wrong keys, or 503 `metrics_unavailable`; unknown routes are guarded like any
   * other.
   */
  admit({ path, headers, address }: GuardedRequest): Admission {
    const { requireApiKey, requireTenantId, metricsRequireApiKey } = this.#options;
    if (path === HEALTH_PATH || isPage(path) || (path === "/" && isBrowser(headers))) return OPEN;
    const isGuardedMetrics = path === METRICS_PATH && metricsRequireApiKey;
    if (isGuardedMetrics && this.#keys.length === 0) {
      throw refuse.because(
        "metrics_unavailable",
        "Cannot serve metrics as they need an API key and none is configured",
      );
    }
    if (!requireApiKey && !isGuardedMetrics) return OPEN;
    const admission = this.#principalOf(keyIn(headers), address);
    if (requireApiKey && requireTenantId && !tenantOf(headers)) {
      throw new Refusal("unauthorized", "Cannot serve this request without an x-tenant-id header");
    }
    return admission;
  }

  /** Compares with every accepted key in full, so that the time does not depend on which one matches. */
  #principalOf(key: string | null, address: string | undefined): Admission {
    let admission: Admission | undefined;
    if (key !== null) {
      const { read, written } = this.#encoder.encodeInto(key, this.#given.fill(0));
      // what does not fit is left out, so a longer key may begin like an accepted one
      const isWhole = read === key.length;
      for (const accepted of this.#keys) {
        if (isSame(this.#given, accepted.padded) && isWhole && written > 0) admission = accepted.admission;
      }
    }
    if (admission === undefined) {
      if (key !== null && address !== undefined) this.#refusedKeys.refused(address);
      throw new Refusal(
        "unauthorized",
        "Cannot serve this request without a valid API key in x-api-key or Authorization: Bearer",
      );
    }
    if (address !== undefined) this.#refusedKeys.accepted(address, admission.principalKey);
    return admission;
  }
}

/**
 * The web pages and the API description, which have no data in them: what they show they ask for with the key
 * of the person who looks.
 */
function isPage(path: string): boolean {
  return path === "/openapi.json" || PAGES.some((page) => path === page || path.startsWith(`${page}/`));
}

const PAGES = ["/docs", "/console"];

/**
 * Whether a person looks: only browsers ask for HTML by name. They are sent from `/` to the console, which
 * asks for the key.
 */
export function isBrowser(headers: Headers): boolean {
  return (headers.get("accept") ?? "").includes("text/html");
}

/** Without a key: health, the web pages, and everything in open mode. */
const OPEN: Admission = { principalKey: PUBLIC_PRINCIPAL, isAuthenticated: false };

/**
 * Looks at every byte, whatever the bytes before it were. The system's function does the same and costs ten
 * times as much for a key.
 */
function isSame(one: Uint8Array, other: Uint8Array): boolean {
  let difference = one.length ^ other.length;
  for (let at = 0; at < one.length; at++) difference |= one[at]! ^ other[at]!;
  return difference === 0;
}

/**
 * The key of a request; null without one. Two that differ are none, so that nobody is taken for somebody
 * else.
 */
function keyIn(headers: Headers): string | null {
  const key = headers.get("x-api-key");
  const bearer = /^bearer +(.+)$/i.exec(headers.get("authorization") ?? "")?.[1] ?? null;
  return key !== null && bearer !== null && key !== bearer ? null : key ?? bearer;
}

/** The tenant in the x-tenant-id header, which every new run records; 422 for one that is too long. */
export function tenantOf(headers: Headers): string | null {
  const tenantId = headers.get("x-tenant-id");
  if (tenantId !== null && utf8Length(tenantId) > LIMITS.name.bytesMax) {
    throw refuse.invalid("x-tenant-id", `must be at most ${LIMITS.name.bytesMax} bytes`);
  }
  return tenantId;
}
