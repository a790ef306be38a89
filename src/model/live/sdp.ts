/** SDP: parses a session description without checking what it asks for. */

import { LIMITS } from "../../contract/limits.ts";

export interface SdpMedia {
  /** `video`, `audio`, `application` … */
  readonly kind: string;
  readonly port: number;
  readonly protocol: string;
  /** Payload types in the order of preference, as written. */
  readonly formats: readonly string[];
  readonly attributes: SdpAttributes;
}

export interface SdpSession {
  readonly attributes: SdpAttributes;
  readonly media: readonly SdpMedia[];
}

/** The text is not SDP; `message` names the line and the fault. */
export class SdpFault extends Error {
  override readonly name = "SdpFault";
}

/** The `a=` lines of one section, in order, found by their names. */
export class SdpAttributes {
  readonly #values = new Map<string, string[]>();

  /** `line` without its `a=`. */
  add(line: string): void {
    const colon = line.indexOf(":");
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).trim();
    const values = this.#values.get(name);
    if (values) values.push(value);
    else this.#values.set(name, [value]);
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  first(name: string): string | undefined {
    return this.#values.get(name)?.[0];
  }

  all(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }
}

/** Sections of one description: far more than any publisher sends. */
const MEDIA_MAX = 32;

/** Work and memory that a text may cause are bounded by its length, its lines and the formats of each section. */
const offerBytesMax = LIMITS.whip.offerBytesMax;
const offerLinesMax = LIMITS.whip.offerLinesMax;
const offerFormatsMax = LIMITS.whip.offerFormatsMax;

/** RFC 8866 as far as WebRTC needs it: `v=0`, `o=`, `s=`, `t=` in this order, then the sections. */
export function readSdp(text: string): SdpSession {
  const session = new SdpAttributes();
  const media: SdpMedia[] = [];
  const missing = ["v", "o", "s", "t"];
  let attributes = session;
  if (text.length > offerBytesMax) throw new SdpFault(`it has more than ${offerBytesMax} bytes`);
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.length > offerLinesMax) throw new SdpFault(`it has more than ${offerLinesMax} lines`);
  for (const [index, line] of lines.entries()) {
    if (line.trim() === "") continue;
    const match = /^([a-z])=(.*)$/.exec(line);
    if (!match) throw new SdpFault(`line ${index + 1} is not of the form type=value`);
    const [, type, value = ""] = match;
    if (type === missing[0]) missing.shift();
    if (index === 0 && line.trim() !== "v=0") throw new SdpFault("the first line is not v=0");
    if (type === "a") attributes.add(value);
    if (type !== "m") continue;
    if (missing.length > 0) throw new SdpFault(`there is no ${missing[0]}= line before the first m= line`);
    if (media.length === MEDIA_MAX) throw new SdpFault(`there are more than ${MEDIA_MAX} m= lines`);
    attributes = new SdpAttributes();
    media.push(mediaOf(value, attributes, index + 1));
  }
  if (missing.length > 0) throw new SdpFault(`there is no ${missing[0]}= line`);
  if (media.length === 0) throw new SdpFault("there is no m= line");
  return { attributes: session, media };
}

function mediaOf(value: string, attributes: SdpAttributes, line: number): SdpMedia {
  const [kind, port, protocol, ...formats] = value.trim().split(/ +/);
  const number = /^(\d{1,5})(\/\d+)?$/.exec(port ?? "")?.[1];
  if (!kind || number === undefined || Number(number) > 65_535 || !protocol || formats.length === 0) {
    throw new SdpFault(`line ${line} is no m= line of kind, port, protocol and formats`);
  }
  if (formats.length > offerFormatsMax) {
    throw new SdpFault(`line ${line} has more than ${offerFormatsMax} formats`);
  }
  return { kind, port: Number(number), protocol, formats, attributes };
}
