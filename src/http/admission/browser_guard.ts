/** In open mode: refuses what a web page of somebody else makes a browser send. See
 * docs/security.md#principals.
 */

import { isAddress } from "../../base/ip_address.ts";
import { Refusal } from "../../contract/refusal.ts";

export interface BrowserGuardOptions {
  readonly requireApiKey: boolean;
  readonly corsAllowedOrigins: readonly string[];
  readonly allowedHosts: readonly string[];
}

/**
 * Without keys, being able to reach the service is the only proof of a caller, and a browser lends that to
 * every page. With keys the key is the proof, as no page can send it without a preflight.
 */
export class BrowserGuard {
  readonly #isOpen: boolean;
  readonly #origins: ReadonlySet<string>;
  readonly #hosts: ReadonlySet<string>;

  constructor({ requireApiKey, corsAllowedOrigins, allowedHosts }: BrowserGuardOptions) {
    this.#isOpen = !requireApiKey;
    this.#origins = new Set(corsAllowedOrigins);
    this.#hosts = new Set(allowedHosts);
  }

  /** Throws 421 for a host that is not the service's, 403 for a page that is neither its own nor listed. */
  admit(request: Request): void {
    if (!this.#isOpen) return;
    const host = (request.headers.get("host") ?? authorityOf(request.url)).toLowerCase();
    // A name that an attacker points to this machine makes the attacker's page and the service one origin.
    if (!this.#isOwnHost(host) || !this.#isOwnHost(authorityOf(request.url).toLowerCase())) {
      throw new Refusal(
        "misdirected_request",
        "Cannot serve this host without API keys; list its name in SERVICE_ALLOWED_HOSTS",
      );
    }
    if (this.#origins.has("*")) return;
    const origin = request.headers.get("origin");
    if (origin !== null && this.#origins.has(origin)) return;
    const isForeign = origin !== null && origin !== `http://${host}` && origin !== `https://${host}`;
    if (isForeign || request.headers.get("sec-fetch-site") === "cross-site") {
      throw new Refusal(
        "cors_forbidden",
        "Cannot serve this origin without API keys, as it is not listed in SERVICE_CORS_ALLOWED_ORIGINS",
      );
    }
  }

  #isOwnHost(host: string): boolean {
    const name = host.replace(/:\d*$/, "").replace(/\.$/, "");
    const address = /^\[(.*)\]$/.exec(name)?.[1] ?? name;
    return name === "localhost" || name.endsWith(".localhost") || isAddress(address) || this.#hosts.has(name);
  }
}

/** Host and port of an absolute URL. */
function authorityOf(url: string): string {
  return /^[^:]+:\/\/([^/?#]*)/.exec(url)?.[1] ?? "";
}
