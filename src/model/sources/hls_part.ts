/** What a part of an HLS source may be, judged by its first bytes: media, and nothing that names other
 * addresses.
 */

/**
 * ffmpeg reads the parts of a source as one stream, and takes what follows an ID3 tag for the beginning. So
 * `#EXTM3U` cut in two, or behind a tag, would be a playlist whose addresses nobody has replaced. A part must
 * therefore begin with what media begins with, and a tag must end in the part itself, before sound:
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

/** The longest tag in bytes. A tag has the time of the part, sometimes a picture. */
const TAG_BYTES_MAX = 256 * 1024;

function isStream(head: Uint8Array, at: number): boolean {
  const [first, second] = [head[at], head[at + 1] ?? 0];
  if (first === 0x47) return (head[at + TS_PACKET_BYTES] ?? first) === first;
  return (first === 0xff && (second & 0xe0) === 0xe0) || (first === 0x0b && second === 0x77);
}

const TS_PACKET_BYTES = 188;

/**
 * Whether a part has a picture, by its first bytes, or by those of the part before all others that MP4 has;
 * null where they do not tell. In MPEG-TS the tables tell, in MP4 the handlers of its tracks; all else is
 * sound or text.
 */
export function hasPicture(head: Uint8Array): boolean | null {
  if (head.length === 0) return null;
  if (head[0] === 0x47) return typesOf(head)?.some((type) => PICTURES.has(type)) ?? null;
  const text = new TextDecoder("latin1").decode(head);
  if (!BOXES.has(text.slice(4, 8))) return false;
  const handlers = [...text.matchAll(/hdlr.{8}(vide|soun)/gs)].map(([, handler]) => handler);
  return handlers.length === 0 ? null : handlers.includes("vide");
}

/** Types of streams that are video (ISO/IEC 13818-1). */
const PICTURES: ReadonlySet<number> = new Set([
  0x01,
  0x02,
  0x10,
  0x1b,
  0x20,
  0x21,
  0x24,
  0x33,
  0x42,
  0xd1,
  0xd2,
  0xea,
]);

/**
 * What the tables at the beginning of a part of MPEG-TS say that its video is; null where they say neither of
 * these, or are not there.
 *
 *     program association table, PID 0    names the PID of the program map table
 *     program map table                   names the type of each stream
 */
export function videoOfPart(head: Uint8Array): "h264" | "hevc" | null {
  const video = typesOf(head)?.find((type) => type === 0x1b || type === 0x24);
  return video === undefined ? null : video === 0x1b ? "h264" : "hevc";
}

/** The types of the streams of the first program; null where the tables are not there. */
function typesOf(head: Uint8Array): readonly number[] | null {
  let mapPid = -1;
  for (let at = 0; at + TS_PACKET_BYTES <= head.length && head[at] === 0x47; at += TS_PACKET_BYTES) {
    const packet = head.subarray(at, at + TS_PACKET_BYTES);
    const pid = (packet[1]! & 0x1f) << 8 | packet[2]!;
    if (pid !== 0 && pid !== mapPid) continue;
    const section = sectionIn(packet);
    if (section === null) continue;
    if (pid === mapPid) return typesOfMap(section);
    mapPid = mapPidOf(section) ?? mapPid;
  }
  return null;
}

/**
 * The section that begins in the packet, without its checksum; null where none does, or it is longer than the
 * packet.
 */
function sectionIn(packet: Uint8Array): Uint8Array | null {
  const isBegin = (packet[1]! & 0x40) !== 0;
  const payload = 4 + ((packet[3]! & 0x20) === 0 ? 0 : packet[4]! + 1);
  const start = payload + 1 + (packet[payload] ?? 0);
  const end = start + 3 + (((packet[start + 1] ?? 0) & 0x0f) << 8 | (packet[start + 2] ?? 0)) - 4;
  return isBegin && start < end && end <= packet.length ? packet.subarray(start, end) : null;
}

/** The PID of the map of the first program; program 0 is the network. */
function mapPidOf(association: Uint8Array): number | null {
  for (let at = 8; at + 4 <= association.length; at += 4) {
    const isProgram = association[at] !== 0 || association[at + 1] !== 0;
    if (isProgram) return (association[at + 2]! & 0x1f) << 8 | association[at + 3]!;
  }
  return null;
}

function typesOfMap(map: Uint8Array): readonly number[] {
  const types: number[] = [];
  const lengthAt = (at: number) => ((map[at] ?? 0) & 0x0f) << 8 | (map[at + 1] ?? 0);
  for (let at = 12 + lengthAt(10); at + 5 <= map.length; at += 5 + lengthAt(at + 3)) types.push(map[at]!);
  return types;
}

/** The boxes that a fragment or the beginning of a file may begin with (ISO/IEC 14496-12). */
const BOXES: ReadonlySet<string> = new Set(
  "ftyp styp moov moof mdat sidx ssix emsg prft free skip uuid pdin meta".split(" "),
);

function hasTag(head: Uint8Array): boolean {
  return head[0] === 0x49 && head[1] === 0x44 && head[2] === 0x33;
}

/**
 * Where a tag of ID3v2 ends; undefined for one on whose end programs do not agree: without a version, with a
 * footer.
 */
function tagEnd(head: Uint8Array): number | undefined {
  const [version = 0, revision = 0, flags = 0, ...size] = head.subarray(3, 10);
  const isPlain = version >= 2 && version <= 4 && revision === 0 && (flags & 0x10) === 0 &&
    size.length === 4 && size.every((byte) => byte < 0x80);
  return isPlain ? 10 + size.reduce((sum, byte) => sum * 128 + byte, 0) : undefined;
}
