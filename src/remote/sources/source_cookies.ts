/** The cookies that the servers of one source set, each given back to its own server alone. */

import type { World } from "../../base/world.ts";

interface Cookie {
  readonly origin: string;
  readonly path: string;
  readonly name: string;
  readonly value: string;
  /** When the cookie ends, on the wall clock; never for one that lasts as long as the source. */
  readonly expiresMs: number;
}

/**
 * The cookies of one source. The rules are stricter than those of a browser (RFC 6265): a cookie goes to the
 * scheme, host and port that set it, whatever its `Domain` says, and below its path. Cookies are kept in
 * memory and are never logged.
 */
export class SourceCookies {
  readonly #world: Pick<World, "now">;
  /** The cookies, in the order in which they were set. */
  readonly #cookies = new Map<string, Cookie>();

  constructor(world: Pick<World, "now">) {
    this.#world = world;
  }

  /** Takes what an answer of `url` sets. What is malformed, too long or one too many is left out. */
  take(url: URL, lines: readonly string[]): void {
    for (const line of lines.slice(0, COOKIES_MAX)) {
      const cookie = cookieOf(url, line, this.#world.now());
      if (cookie === null) continue;
      const key = `${cookie.origin} ${cookie.path} ${cookie.name}`;
      this.#cookies.delete(key);
      if (cookie.expiresMs <= this.#world.now()) continue;
      this.#cookies.set(key, cookie);
      if (this.#cookies.size > COOKIES_MAX) this.#cookies.delete(this.#cookies.keys().next().value!);
    }
  }

  /** The header `Cookie` of a request to `url`; null where there is none. */
  header(url: URL): string | null {
    const nowMs = this.#world.now();
    const sent = [...this.#cookies.values()].filter(({ origin, path, expiresMs }) =>
      origin === url.origin && expiresMs > nowMs && isBelow(url.pathname, path)
    );
    const pairs = sent.sort((one, other) => other.path.length - one.path.length)
      .map(({ name, value }) => `${name}=${value}`);
    while (pairs.join("; ").length > HEADER_CHARACTERS_MAX) pairs.pop();
    return pairs.length === 0 ? null : pairs.join("; ");
  }
}

const COOKIES_MAX = 50;
const COOKIE_CHARACTERS_MAX = 4096;
const HEADER_CHARACTERS_MAX = 8192;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const VALUE = /^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/;

function cookieOf(url: URL, line: string, nowMs: number): Cookie | null {
  if (line.length > COOKIE_CHARACTERS_MAX) return null;
  const [pair = "", ...rest] = line.split(";");
  const at = pair.indexOf("=");
  const [name, value] = [pair.slice(0, Math.max(0, at)).trim(), pair.slice(at + 1).trim()];
  const bare = /^"(.*)"$/.exec(value)?.[1] ?? value;
  if (!NAME.test(name) || !VALUE.test(bare.replace(/[ ,]/g, ""))) return null;
  const attributes = new Map(rest.map((text) => {
    const [key = "", ...words] = text.split("=");
    return [key.trim().toLowerCase(), words.join("=").trim()];
  }));
  const isSecure = attributes.has("secure");
  if (isSecure && url.protocol !== "https:") return null;
  const given = attributes.get("path") ?? "";
  const path = given.startsWith("/") ? given : url.pathname.slice(0, url.pathname.lastIndexOf("/")) || "/";
  const domain = (attributes.get("domain") ?? "").replace(/^\./, "").toLowerCase();
  if (domain !== "" && url.hostname !== domain && !url.hostname.endsWith(`.${domain}`)) return null;
  if (/^__secure-/i.test(name) && !isSecure) return null;
  if (/^__host-/i.test(name) && !(isSecure && given === "/" && domain === "")) return null;
  return { origin: url.origin, path, name, value, expiresMs: expiry(attributes, nowMs) };
}

function expiry(attributes: ReadonlyMap<string, string>, nowMs: number): number {
  const age = attributes.get("max-age");
  if (age !== undefined && /^-?\d+$/.test(age)) return nowMs + Number(age) * 1000;
  const date = Date.parse(attributes.get("expires") ?? "");
  return Number.isNaN(date) ? Infinity : date;
}

/** Whether a path is below the path of a cookie (RFC 6265, 5.1.4). */
function isBelow(pathname: string, path: string): boolean {
  return pathname === path || pathname.startsWith(path.endsWith("/") ? path : `${path}/`);
}
