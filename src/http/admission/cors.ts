/** CORS: answers preflights, and adds the headers for listed origins to responses. See docs/api.md#cors. */

import { LIMITS } from "../../contract/limits.ts";
import { Refusal } from "../../contract/refusal.ts";
import { plainText } from "../answers/reply.ts";

/**
 * Also the answer to a plain `OPTIONS` on a WHIP endpoint: publishers look there for `PATCH` before they
 * trickle.
 */
export const CORS_METHODS = "GET,POST,PATCH,DELETE,OPTIONS";
/**
 * `last-event-id` is for browsers that resume the event stream with fetch, `if-match` for publishers that
 * restart ICE; some publishers send the tag of their session as `etag`.
 */
const REQUEST_HEADERS =
  "content-type,x-api-key,authorization,x-tenant-id,x-attach-config,last-event-id,if-match,etag,idempotency-key";
const EXPOSED_HEADERS =
  "location,x-service-run-id,link,etag,accept-post,access-control-allow-methods,idempotency-replayed,retry-after";

export class Cors {
  readonly #origins: ReadonlySet<string>;

  /** `*` means every origin; the configuration accepts it only in open mode. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  /**
   * The response to a preflight, to which `expose` adds the origin as to every response; undefined for other
   * requests. Throws 400 without an origin, 403 for an origin that is not listed.
   */
  preflight(request: Request): Response | undefined {
    if (request.method !== "OPTIONS" || !request.headers.has("access-control-request-method")) {
      return undefined;
    }
    const origin = request.headers.get("origin");
    if (origin === null) {
      throw new Refusal("preflight_without_origin", "Cannot answer a preflight without an Origin header", [
        { field: "origin", message: "is required" },
      ]);
    }
    if (!this.#allowed(origin)) {
      throw new Refusal("cors_forbidden", "Cannot serve this origin as it is not listed");
    }
    return plainText("", 204, {
      "access-control-allow-methods": CORS_METHODS,
      "access-control-allow-headers": REQUEST_HEADERS,
      "access-control-max-age": String(LIMITS.cors.preflightMaxAgeSeconds),
    });
  }

  /** Adds the headers that a browser needs to read the response, for a listed origin only. */
  expose(request: Request, response: Response): void {
    if (this.#origins.size === 0) return;
    const origin = request.headers.get("origin");
    const allowed = origin === null ? undefined : this.#allowed(origin);
    if (!allowed) return;
    for (const [name, value] of Object.entries(allowed)) response.headers.append(name, value);
    response.headers.set("access-control-expose-headers", EXPOSED_HEADERS);
  }

  #allowed(origin: string): Record<string, string> | undefined {
    if (this.#origins.has("*")) return { "access-control-allow-origin": "*" };
    return this.#origins.has(origin) ? { "access-control-allow-origin": origin, vary: "origin" } : undefined;
  }
}
