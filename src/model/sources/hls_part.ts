/** What a part of an HLS source may be, judged by its first bytes: media, and nothing that names other addresses. */

/**
 * ffmpeg reads the parts of a source as one stream, and takes what follows an ID3 tag for the beginning. So `#EXTM3U` cut in
 * two, or behind a tag, would be a playlist whose addresses nobody has replaced. A part must therefore begin with what media
 * begins with, and a tag must end in the part itself, before sound:
 *
 *     G…             MPEG-TS                     ID3 + tag + FF E0, 0B 77 or G    sound with its time
 *     ....moof       MP4, and its other boxes    FF E0, 0B 77                     bare sound: MP3, AAC, AC-3
 *     WEBVTT         subtitles                   (nothing)                        an empty part
 */
export function isMediaPart(head: Uint8Array): boolean {
  if (head.length === 0) return true;
  if (hasTag(head)) {
    const end = tagEnd(head);
    return end !== undefined && end + 2 <= head.length && isStream(head, end);
  }
  const text = new TextDecoder("latin1").decode(head.subarray(0, 9));
  return isStream(head, 0) || BOXES.has(text.slice(4, 8)) || /^(\u00ef\u00bb\u00bf)?WEBVTT/.test(text);
}

/** How many bytes `isMediaPart` needs at least, as far as the beginning says; at most TAG_BYTES_MAX. */
export function neededBytes(head: Uint8Array): number {
  const end = hasTag(head) ? tagEnd(head) : undefined;
  return end === undefined ? 16 : Math.min(end + 16, TAG_BYTES_MAX);
}

/** A tag has the time of the part, sometimes a picture. */
const TAG_BYTES_MAX = 256 * 1024;

function isStream(head: Uint8Array, at: number): boolean {
  const [first, second] = [head[at], head[at + 1] ?? 0];
  if (first === 0x47) return (head[at + TS_PACKET_BYTES] ?? first) === first;
  return (first === 0xff && (second & 0xe0) === 0xe0) || (first === 0x0b && second === 0x77);
}

const TS_PACKET_BYTES = 188;

/** ISO/IEC 14496-12: the boxes that a fragment or the beginning of a file may begin with. */
const BOXES: ReadonlySet<string> = new Set(
  "ftyp styp moov moof mdat sidx ssix emsg prft free skip uuid pdin meta".split(" "),
);

function hasTag(head: Uint8Array): boolean {
  return head[0] === 0x49 && head[1] === 0x44 && head[2] === 0x33;
}

/** Where a tag of ID3v2 ends; undefined for one on whose end programs do not agree: without a version, with a footer. */
function tagEnd(head: Uint8Array): number | undefined {
  const [version = 0, revision = 0, flags = 0, ...size] = head.subarray(3, 10);
  const isPlain = version >= 2 && version <= 4 && revision === 0 && (flags & 0x10) === 0 &&
    size.length === 4 && size.every((byte) => byte < 0x80);
  return isPlain ? 10 + size.reduce((sum, byte) => sum * 128 + byte, 0) : undefined;
}
