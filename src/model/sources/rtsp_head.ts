/** Heads of RTSP messages as cameras write them, read as loosely as players do: what they mean, never how
 * they are spelled.
 */

/** The first line of a message of a server. */
export type RtspStart =
  | { readonly kind: "reply"; readonly code: number }
  | { readonly kind: "request"; readonly method: string };

/** The values of headers by the lower-case name, in their order. */
export type RtspHeaders = ReadonlyMap<string, readonly string[]>;

/**
 * Reads a line without its end: what it begins, `RTSP/1.0 200 OK`, `rtsp/1.1  200`, `OPTIONS * RTSP/1.0`.
 * Null for everything else, as an answer in HTTP.
 */
export function rtspStart(line: string): RtspStart | null {
  const status = /^[ \t]*RTSP\/[\d.]*[ \t]+\+?0*(\d{1,3})(?!\d)/i.exec(line)?.[1];
  if (status !== undefined) return { kind: "reply", code: Number(status) };
  const method = /^[ \t]*([A-Z_]{1,32})[ \t]+\S+[ \t]+RTSP\/[\d.]*[ \t]*$/i.exec(line)?.[1];
  return method === undefined ? null : { kind: "request", method: method.toUpperCase() };
}

/** The headers that are in `wanted`, by lower-case names. What is no header, and all others, are left out. */
export function rtspHeaders(lines: readonly string[], wanted: ReadonlySet<string>): RtspHeaders {
  const headers = new Map<string, string[]>();
  /** The values to which the next line goes if it begins with a blank. */
  let folded: string[] | null = null;
  for (const line of lines) {
    if (/^[ \t]/.test(line) && folded !== null) {
      if (folded.length > 0) folded.push(`${folded.pop()} ${valueIn(line)}`.trim());
      continue;
    }
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).trim().toLowerCase();
    folded = [];
    if (!wanted.has(name)) continue;
    folded = headers.get(name) ?? [];
    headers.set(name, folded);
    folded.push(valueIn(line.slice(colon + 1)));
  }
  return headers;
}

/** A value as a program in C reads it: up to a NUL. */
function valueIn(text: string): string {
  return text.split("\0", 1)[0]!.trim();
}

/** A number at the beginning of the last of these values; null without one. */
export function leadingNumber(values: readonly string[] | undefined): number | null {
  const digits = /^\+?(\d{1,10})/.exec(values?.at(-1) ?? "")?.[1];
  return digits === undefined ? null : Number(digits);
}

/** What `Session` says; null without a name. */
export function rtspSession(
  value: string | undefined,
): { readonly name: string; readonly timeoutS: number | null } | null {
  const [name = "", ...parameters] = (value ?? "").split(";").map((part) => part.trim());
  if (name === "") return null;
  const timeouts = parameters.map((part) => /^timeout\s*=\s*"?(\d{1,6})/i.exec(part)?.[1]);
  const timeoutS = timeouts.find((timeout) => timeout !== undefined);
  return { name, timeoutS: timeoutS === undefined ? null : Number(timeoutS) };
}

/** One way for the media, of `Transport`. */
export interface RtspTransport {
  /** The protocol in lower case: `rtp/avp/tcp`. */
  readonly protocol: string;
  /** The values without their quotes by lower-case names; empty for a parameter that is a word. */
  readonly parameters: ReadonlyMap<string, string>;
}

/** All that a value of `Transport` names. */
export function rtspTransports(value: string): RtspTransport[] {
  return outsideQuotes(value, ",").map((text) => {
    const [protocol = "", ...rest] = outsideQuotes(text, ";").map((part) => part.trim());
    const parameters = rest.filter((part) => part !== "").map((part): [string, string] => {
      const [, name, parameter = ""] = /^([^=]*)(?:=(.*))?$/s.exec(part)!;
      return [name!.trim().toLowerCase(), parameter.trim().replace(/^"(.*)"$/s, "$1").trim()];
    });
    return { protocol: protocol.replace(/\s/g, "").toLowerCase(), parameters: new Map(parameters) };
  });
}

function outsideQuotes(text: string, separator: string): string[] {
  const parts = [""];
  let isQuoted = false;
  for (const character of text) {
    if (character === '"') isQuoted = !isQuoted;
    if (character === separator && !isQuoted) parts.push("");
    else parts[parts.length - 1] += character;
  }
  return parts;
}

/**
 * Reads two numbers such as `0-1`; the second may be missing, and there may be blanks. Null for anything
 * else, and beyond `max`.
 */
export function numberPair(text: string | undefined, max: number): [first: number, second: number] | null {
  const [, first, second] = /^\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?$/.exec(text ?? "") ?? [];
  if (first === undefined) return null;
  const pair: [number, number] = [Number(first), Number(second ?? Number(first) + 1)];
  return pair.every((number) => number <= max) ? pair : null;
}

/** The tracks of a description whose addresses are paths: they begin with `/`. */
export function pathControls(description: string): string[] {
  return Array.from(
    description.matchAll(/^[ \t]*a[ \t]*=[ \t]*control[ \t]*:[ \t]*(\/[^\s]{0,1023})[ \t]*\r*$/gim),
    ([, path]) => path!,
  );
}

/**
 * Where the track may be that a player asks for at `address`, the likeliest first. A path of `paths` stands
 * behind the host; servers that mean it behind their base, and those that name a host of their own, find it
 * at the others.
 */
export function trackAddresses(
  address: string,
  { paths, server }: { readonly paths: readonly string[]; readonly server: string },
): string[] {
  const originOf = (text: string) => /^[a-z]+:\/\/[^/?]*/i.exec(text)?.[0] ?? "";
  const path = paths.find((one) => address.endsWith(one));
  const found = path === undefined ? [address] : [
    originOf(address) + path,
    address.slice(0, -path.length).replace(/(?<!:\/?)\/+$/, "") + path,
    address,
  ];
  const elsewhere = found.map((one) => originOf(server) + one.slice(originOf(one).length));
  return [...new Set([...found, ...originOf(address) === "" ? [] : elsewhere])];
}
