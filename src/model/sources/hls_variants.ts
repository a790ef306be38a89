/** Which variant of an HLS master playlist is taken: of the same film in several sizes, the best picture. */

import { attributesOf, withAttributes } from "./hls_attributes.ts";

/** One variant of a master playlist. */
export interface HlsVariant {
  /** The address of the variant, as the playlist has it. */
  readonly uri: string;
  readonly pixels: number;
  readonly bandwidth: number;
  /** The group of its sound where that is a playlist of its own. */
  readonly audioGroup: string | null;
  /** The group of further pictures, each of which is a playlist of its own. */
  readonly videoGroup: string | null;
  /**
   * Whether the variant's tag says that it has a picture; where it says neither that nor the opposite, only
   * its parts tell.
   */
  readonly saysPicture: boolean;
  /** The number of the line of the variant's tag. */
  readonly line: number;
}

/**
 * The variants, the best one first: most pixels, then the highest bandwidth. Those without a picture and
 * those in a codec that ffmpeg may not know are left out, unless there are no others. Empty for a playlist of
 * parts.
 */
export function variantsOf(playlist: string): readonly HlsVariant[] {
  if (!playlist.includes(VARIANT)) return [];
  const lines = linesOf(playlist);
  const all: (HlsVariant & { isTaken: boolean })[] = [];
  for (const [line, text] of lines.entries()) {
    if (!text.startsWith(VARIANT)) continue;
    const next = addressLine(lines, line);
    if (next === undefined) continue;
    const attributes = attributesOf(text);
    const [, width, height] = /^(\d+)x(\d+)$/i.exec(attributes.get("RESOLUTION") ?? "") ?? [];
    const pixels = Number(width ?? 0) * Number(height ?? 0);
    const codecs = (attributes.get("CODECS") ?? "").split(",").map((codec) => codec.trim().split(".")[0]!);
    const known = codecs.filter((codec) => codec !== "");
    const saysPicture = pixels > 0 || known.some((codec) => PICTURE.test(codec));
    all.push({
      uri: lines[next]!.trim(),
      pixels,
      bandwidth: Number(attributes.get("BANDWIDTH") ?? 0) || 0,
      audioGroup: attributes.get("AUDIO") ?? null,
      videoGroup: attributes.get("VIDEO") ?? null,
      saysPicture,
      line,
      isTaken: known.every((codec) => PICTURE.test(codec) || OTHER.test(codec)) &&
        (known.length === 0 || saysPicture),
    });
  }
  const taken = all.filter(({ isTaken }) => isTaken);
  return (taken.length > 0 ? taken : all)
    .toSorted((one, other) => other.pixels - one.pixels || other.bandwidth - one.bandwidth);
}

/**
 * The playlist with this variant alone, with one playlist of sound for it where it has any, and with all of
 * its pictures.
 */
export function withVariantOnly(playlist: string, variant: HlsVariant): string {
  const lines = linesOf(playlist);
  const address = addressLine(lines, variant.line);
  const sound = soundLine(lines, variant.audioGroup);
  const kept = lines.filter((text, line) => {
    if (text.startsWith(MEDIA)) return line === sound;
    if (text.startsWith(VARIANT)) return line === variant.line;
    return text.startsWith("#") || line === address;
  });
  // Their sizes are not said: the largest is taken, and of equal ones the variant's own, which comes first.
  const pictures = renditions(lines, "VIDEO", variant.videoGroup).map(({ attributes }) =>
    withAttributes(MEDIA.slice(0, -1), new Map([...attributes, ["DEFAULT", "NO"]]))
  );
  return `${[...kept, ...pictures].join("\n")}\n`;
}

/**
 * The line of the sound to take: the default one of its group, else one that may be chosen by itself, else
 * the first.
 */
function soundLine(lines: readonly string[], group: string | null): number | undefined {
  const all = renditions(lines, "AUDIO", group);
  const chosen = all.find(({ attributes }) => attributes.get("DEFAULT") === "YES") ??
    all.find(({ attributes }) => attributes.get("AUTOSELECT") === "YES") ?? all[0];
  return chosen?.line;
}

function renditions(lines: readonly string[], type: "AUDIO" | "VIDEO", group: string | null) {
  return lines.flatMap((text, line) => {
    if (group === null || !text.startsWith(MEDIA)) return [];
    const attributes = attributesOf(text);
    return attributes.get("TYPE") === type && attributes.get("GROUP-ID") === group
      ? [{ line, attributes }]
      : [];
  });
}

/** The line with the address that belongs to the tag in `line`. */
function addressLine(lines: readonly string[], line: number): number | undefined {
  for (let at = line + 1; at < lines.length; at++) {
    if (lines[at]!.startsWith(VARIANT)) return undefined;
    if (lines[at]!.trim() !== "" && !lines[at]!.startsWith("#")) return at;
  }
}

function linesOf(playlist: string): readonly string[] {
  return playlist.replace(/^\ufeff/, "").split(/\r\n|\r|\n/);
}

const VARIANT = "#EXT-X-STREAM-INF:";
const MEDIA = "#EXT-X-MEDIA:";
const PICTURE = /^(avc[1-4]|h26[345]|hvc1|hev1|dvh1|dvhe|vp0?[89]|av01|mp4v|mp2v|mjpg|theora)$/i;
/** Codecs of sound and subtitles. */
const OTHER = /^(mp4a|mp3|ac-3|ec-3|dtsc|dtse|dtsh|dtsl|dtsx|opus|flac|fLaC|alac|vorbis|stpp|wvtt|tx3g)$/i;
