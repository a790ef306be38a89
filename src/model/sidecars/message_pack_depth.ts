/** How deep lists and maps lie in each other in MessagePack, found without building any of it. */

/**
 * A form of value: how many bytes behind the type say how long it is, or how many parts it has; and how many
 * bytes of fixed length follow the type.
 */
interface Form {
  readonly lengthBytes?: 1 | 2 | 4;
  readonly bytes?: number;
  /** How often the length counts as parts, where it counts any: once for a list, twice for a map. */
  readonly parts?: 1 | 2;
}

/** The forms of the types from 0xc0 to 0xdf, in their order. */
const FORMS: readonly Form[] = [
  ...[{}, {}, {}, {}],
  ...[{ lengthBytes: 1 }, { lengthBytes: 2 }, { lengthBytes: 4 }] as const,
  ...[{ lengthBytes: 1, bytes: 1 }, { lengthBytes: 2, bytes: 1 }, { lengthBytes: 4, bytes: 1 }] as const,
  ...[{ bytes: 4 }, { bytes: 8 }],
  ...[{ bytes: 1 }, { bytes: 2 }, { bytes: 4 }, { bytes: 8 }],
  ...[{ bytes: 1 }, { bytes: 2 }, { bytes: 4 }, { bytes: 8 }],
  ...[{ bytes: 2 }, { bytes: 3 }, { bytes: 5 }, { bytes: 9 }, { bytes: 17 }],
  ...[{ lengthBytes: 1 }, { lengthBytes: 2 }, { lengthBytes: 4 }] as const,
  ...[{ lengthBytes: 2, parts: 1 }, { lengthBytes: 4, parts: 1 }] as const,
  ...[{ lengthBytes: 2, parts: 2 }, { lengthBytes: 4, parts: 2 }] as const,
];

/**
 * Whether lists and maps lie at most `levelsMax` deep in each other. A decoder makes room for all parts of
 * each before it sees one, so a message of half a megabyte that opens a list in each byte takes hundreds of
 * megabytes. Nothing is said of bytes that break off.
 */
export function isWithinLevels(bytes: Uint8Array, levelsMax: number): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  /** Parts that are still to come, of each level. */
  const missing: number[] = [];
  for (let at = 0; at < bytes.length;) {
    const type = bytes[at++]!;
    let parts = 0;
    if (type >= 0xc0 && type <= 0xdf) {
      const form = FORMS[type - 0xc0]!;
      let length = 0;
      if (form.lengthBytes !== undefined) {
        if (at + form.lengthBytes > bytes.length) return true;
        length = lengthAt(view, at, form.lengthBytes);
        at += form.lengthBytes;
      }
      if (form.parts === undefined) at += length + (form.bytes ?? 0);
      else parts = length * form.parts;
    } else if (type >= 0xa0 && type < 0xc0) at += type & 0x1f;
    else if (type >= 0x90 && type < 0xa0) parts = type & 0x0f;
    else if (type >= 0x80 && type < 0x90) parts = (type & 0x0f) * 2;
    if (missing.length > 0) missing[missing.length - 1]! -= 1;
    if (parts > 0) {
      if (missing.length === levelsMax) return false;
      missing.push(parts);
    }
    while (missing.at(-1) === 0) missing.pop();
  }
  return true;
}

function lengthAt(view: DataView, at: number, bytes: 1 | 2 | 4): number {
  return bytes === 1 ? view.getUint8(at) : bytes === 2 ? view.getUint16(at) : view.getUint32(at);
}
