/** How one environment variable becomes a value: the parsers for the rows of the table of settings. */

import { utf8Length } from "../base/bytes.ts";
import { type IpNetwork, ipNetwork } from "../base/ip_address.ts";

/** Reads one text. `undefined` means that the text breaks the rule; the rule completes "NAME must be …". */
export interface Parser<T> {
  readonly rule: string;
  readonly read: (text: string) => T | undefined;
  /** The part of a text that breaks the rule, where a text has parts. */
  readonly faultyPart?: (text: string) => string | undefined;
}

/** One row of the table of settings: variable NAME to field `field` of the configuration. */
export interface Setting<F extends string, T> {
  /** Name in the configuration; "group.name" puts it into a group. */
  readonly field: F;
  /** The text that is read when the variable is not set; `undefined` leaves the field undefined. */
  readonly default: string | undefined;
  readonly parser: Parser<unknown>;
  /** One sentence for the operator. */
  readonly meaning: string;
  /** Never print the value of this variable. */
  readonly isSecret: boolean;
  /** Whether an empty text means the same as no variable. */
  readonly emptyIsUnset: boolean;
  /** What the service does instead, for a setting that is read and checked but changes nothing yet. */
  readonly noEffect: string | undefined;
  /** Never set: carries the type of the value only. */
  readonly value?: T;
}

interface SettingOptions {
  readonly isSecret?: boolean;
  readonly emptyIsUnset?: boolean;
  readonly noEffect?: string;
}

/** A setting that always has a value, its own or the default. */
export function setting<const F extends string, T>(
  field: F,
  defaultText: string,
  parser: Parser<T>,
  meaning: string,
  { isSecret = false, emptyIsUnset = false, noEffect }: SettingOptions = {},
): Setting<F, T> {
  return { field, default: defaultText, parser, meaning, isSecret, emptyIsUnset, noEffect };
}

/** A setting that may be left out, and that an empty text leaves out too unless the row says otherwise. */
export function optional<const F extends string, T>(
  field: F,
  parser: Parser<T>,
  meaning: string,
  { isSecret = false, emptyIsUnset = true, noEffect }: SettingOptions = {},
): Setting<F, T | undefined> {
  return { field, default: undefined, parser, meaning, isSecret, emptyIsUnset, noEffect };
}

/** Host and TCP port; an IPv6 host is kept without its brackets. */
export interface Address {
  readonly hostname: string;
  readonly port: number;
}

/** A crop in fractions of the picture, origin top left. */
export interface CropFractions {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** A switch. An unknown word is a fault and does not silently mean "off". */
export const boolean: Parser<boolean> = {
  rule: "one of 1, true, yes, on, 0, false, no, off",
  read: (text) => BOOLEANS.get(text.trim().toLowerCase()),
};

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ...["1", "true", "yes", "on"].map((word) => [word, true] as const),
  ...["0", "false", "no", "off"].map((word) => [word, false] as const),
]);

/**
 * A switch for an insecure kind of source. Only `true` and `1` admit it; every other text leaves it off, and
 * none is a fault.
 */
export const mediaToggle: Parser<boolean> = {
  rule: "true or 1 to switch it on",
  read: (text) => /^(true|1)$/i.test(text.trim()),
};

/** A whole number inside a range; one outside is a fault. */
export function integer(min: number, max = Number.MAX_SAFE_INTEGER): Parser<number> {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  return {
    rule: `an integer ${range}`,
    read: (text) => {
      const value = wholeNumber(text);
      return value !== undefined && value >= min && value <= max ? value : undefined;
    },
  };
}

/** A whole number that is moved to the nearest end of its range instead of being refused. */
export function clampedInteger(min: number, max: number): Parser<number> {
  return {
    rule: `a non-negative integer (values outside ${min} to ${max} are clamped)`,
    read: (text) => {
      const value = wholeNumber(text);
      return value === undefined ? undefined : Math.min(max, Math.max(min, value));
    },
  };
}

/** Whole seconds inside a range, as milliseconds. */
export function secondsAsMs(min: number, max: number): Parser<number> {
  const seconds = integer(min, max);
  return {
    rule: `${seconds.rule} (seconds)`,
    read: (text) => {
      const value = seconds.read(text);
      return value === undefined ? undefined : value * 1000;
    },
  };
}

/** A finite number for which `accept` is true; `rule` describes those numbers. */
export function number(rule: string, accept: (value: number) => boolean): Parser<number> {
  return {
    rule,
    read: (text) => {
      const value = realNumber(text);
      return value !== undefined && accept(value) ? value : undefined;
    },
  };
}

/** A number that is clamped to [0,1]; `nan` and `inf` count as numbers and mean `whenNotFinite`. */
export function clampedFraction(whenNotFinite: number): Parser<number> {
  return {
    rule: "a number (values outside 0 to 1 are clamped)",
    read: (text) => {
      if (/^[+-]?(nan|inf|infinity)$/i.test(text.trim())) return whenNotFinite;
      const value = realNumber(text);
      return value === undefined ? undefined : Math.min(1, Math.max(0, value));
    },
  };
}

/** Any text that is not blank, without the spaces around it. */
export const nonBlankText: Parser<string> = {
  rule: "a text that is not blank",
  read: (text) => text.trim() || undefined,
};

/** A secret, unchanged: the spaces belong to it. */
export const secretText: Parser<string> = { rule: "a text", read: (text) => text };

/** A path as it was given; whether it exists is checked by the code that opens it. */
export const path: Parser<string> = {
  rule: "a path without NUL characters",
  read: (text) => text.trim() === "" || text.includes("\0") ? undefined : text,
};

export const absolutePath: Parser<string> = {
  rule: "an absolute path",
  read: (text) => text.startsWith("/") && !text.includes("\0") ? text : undefined,
};

/** A DNS name without a port, in lower case and without a final dot. */
export const hostName: Parser<string> = {
  rule: "a host name without a port",
  read: (text) => {
    const name = text.toLowerCase().replace(/\.$/, "");
    return /^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$/.test(name) ? name : undefined;
  },
};

/** Comma-separated items, trimmed, empty ones dropped; every item must satisfy `item`. */
export function list<T>(item: Parser<T>): Parser<readonly T[]> {
  return {
    rule: `a comma-separated list, each ${item.rule}`,
    read: (text) => {
      const values: T[] = [];
      for (const part of text.split(",").map((part) => part.trim()).filter((part) => part !== "")) {
        const value = item.read(part);
        if (value === undefined) return undefined;
        values.push(value);
      }
      return Object.freeze(values);
    },
  };
}

/** How often a failed webhook delivery is retried. */
export const WEBHOOK_RETRIES = 3;

/** Networks in the notation of CIDR; an empty text is none. */
export const networks: Parser<readonly IpNetwork[]> = {
  rule: "comma-separated networks such as 192.168.0.0/16 or fd00::/8",
  read: (text) => {
    const found = parts(text).map(ipNetwork);
    return found.every((network) => network !== undefined) ? found : undefined;
  },
  faultyPart: (text) => parts(text).find((part) => ipNetwork(part) === undefined),
};

function parts(text: string): string[] {
  return text.trim() === "" ? [] : text.split(",").map((part) => part.trim());
}

/** The delay before each retry; the last one of a shorter list is repeated. */
export const retryDelays: Parser<readonly number[]> = {
  rule: `one to ${WEBHOOK_RETRIES} comma-separated integers from 0 to 3600000`,
  read: (text) => {
    const given = list(integer(0, 3_600_000)).read(text);
    if (!given || given.length < 1 || given.length > WEBHOOK_RETRIES) return undefined;
    return Array.from({ length: WEBHOOK_RETRIES }, (_, retry) => given[Math.min(retry, given.length - 1)]!);
  },
};

/**
 * The highest cap on the output tokens a second of one live session, for the setting and for a caller alike.
 */
export const OUTPUT_TOKENS_PER_SECOND_MAX = 2 ** 32 - 1;

/**
 * One word of a closed set, in upper or lower case. A key of `words` is a word that an operator may write,
 * its value what the word means.
 */
export function oneOf<const T extends string>(words: Readonly<Record<string, T>>): Parser<T> {
  return {
    rule: `one of ${Object.keys(words).join(", ")}`,
    read: (text) => {
      const word = text.trim().toLowerCase();
      return Object.hasOwn(words, word) ? words[word] : undefined;
    },
  };
}

/** A host with a port: `host:port`, `1.2.3.4:80` or `[::1]:80`. */
export const address: Parser<Address> = {
  rule: "host:port, for example 127.0.0.1:8080 or [::1]:8080",
  read: readAddress,
};

/**
 * The address of a sidecar: `host:port` or `tcp://host:port`. Sidecars use binary protocols over TCP, so an
 * http URL is a fault.
 */
export const sidecarAddress: Parser<Address> = {
  rule: "host:port or tcp://host:port (the sidecar does not speak HTTP)",
  read: (text) => readAddress(text.trim().replace(/^tcp:\/\//i, "")),
};

/** An http or https URL without the slashes at its end, so that a path can be appended. */
export const httpUrl: Parser<string> = {
  rule: "a valid http(s) URL without user name, query or fragment",
  read: (text) => {
    const url = URL.parse(text.trim());
    if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) return undefined;
    if (url.username || url.password || url.search || url.hash) return undefined;
    return text.trim().replace(/\/+$/, "");
  },
};

const TLS_MODES = ["disable", "prefer", "require", "verify-full"];

export const postgresUrl: Parser<string> = {
  rule: `a postgres:// URL with a user name and no parameter but sslmode (${TLS_MODES.join(", ")})`,
  read: (text) => {
    const url = URL.parse(text.trim());
    if (!url || !/^postgres(ql)?:$/.test(url.protocol) || !url.hostname || !url.username || url.hash) {
      return undefined;
    }
    const parameters = [...url.searchParams];
    if (parameters.length > 1) return undefined;
    if (!parameters.every(([name, value]) => name === "sslmode" && TLS_MODES.includes(value))) {
      return undefined;
    }
    const parts = [url.username, url.password, url.pathname.slice(1)];
    return parts.every(isPercentEncoded) && !parts[2]!.includes("/") ? text.trim() : undefined;
  },
};

function isPercentEncoded(text: string): boolean {
  try {
    return !decodeURIComponent(text).includes("\0");
  } catch {
    return false;
  }
}

/** The longest name of a schema in bytes: PostgreSQL cuts longer ones. */
const SCHEMA_NAME_BYTES_MAX = 63;

export const schemaName: Parser<string> = {
  rule: `a name of 1 to ${SCHEMA_NAME_BYTES_MAX} bytes that does not begin with pg_`,
  read: (text) => {
    const name = text.trim();
    const isName = name !== "" && utf8Length(name) <= SCHEMA_NAME_BYTES_MAX && !/^pg_|\0/.test(name);
    return isName ? name : undefined;
  },
};

/** The URL of a STUN or TURN server: `stun:host[:port]` or `turn:host[:port]`, with or without TLS. */
export function iceUrl(scheme: "stun" | "turn"): Parser<string> {
  const pattern = new RegExp(`^${scheme}s?:[^\\s/?#]+(\\?transport=(udp|tcp))?$`, "i");
  return {
    rule: `a ${scheme}: or ${scheme}s: URL`,
    read: (text) => pattern.test(text.trim()) ? text.trim() : undefined,
  };
}

/**
 * An origin for CORS: `*`, or exactly the text that a browser sends as its Origin: scheme and host, no path
 * and no slash at the end.
 */
export const corsOrigin: Parser<string> = {
  rule: "* or an origin such as https://app.example.com",
  read: (text) => text === "*" || /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@*]+$/i.test(text) ? text : undefined,
};

/**
 * Width and height above 0, x and y in [0,1], and no edge beyond 1 + 0.0001: the sum of two fractions may be
 * inexact.
 */
export const crop: Parser<CropFractions> = {
  rule: "four numbers x,y,width,height in [0,1] that stay inside the picture",
  read: (text) => {
    const numbers = text.split(",").map(realNumber);
    const [x, y, width, height] = numbers;
    if (numbers.length !== 4) return undefined;
    if (x === undefined || y === undefined || width === undefined || height === undefined) return undefined;
    const isInside = (start: number, size: number) =>
      start >= 0 && start <= 1 && size > 0 && start + size <= 1 + CROP_EDGE_TOLERANCE;
    return isInside(x, width) && isInside(y, height) ? Object.freeze({ x, y, width, height }) : undefined;
  },
};

const CROP_EDGE_TOLERANCE = 1e-4;

function wholeNumber(text: string): number | undefined {
  return /^\+?\d+$/.test(text.trim()) ? Number(text.trim()) : undefined;
}

function realNumber(text: string): number | undefined {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text.trim())) return undefined;
  const value = Number(text.trim());
  return Number.isFinite(value) ? value : undefined;
}

function readAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^\s:/@[\]]+)):(\d{1,5})$/i.exec(text.trim());
  const port = Number(match?.[3]);
  const hostname = match?.[1] ?? match?.[2];
  if (!hostname || port > 65535) return undefined;
  if (match?.[1] && !URL.canParse(`http://[${match[1]}]/`)) return undefined;
  return Object.freeze({ hostname, port });
}
