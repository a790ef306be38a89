/** Reads encoded frames from files that ffmpeg wrote: IVF, Annex B and Ogg, as far as the tests need it. */

export interface EncodedVideo {
  readonly codec: "vp8" | "vp9" | "h264";
  /** Frames or access units, in the order of the file. */
  readonly frames: Uint8Array[];
}

/** Reads encoded video: `.h264` is Annex B; everything else is IVF. */
export async function readVideo(path: string): Promise<EncodedVideo> {
  const bytes = await Deno.readFile(path);
  if (path.endsWith(".h264")) return { codec: "h264", frames: accessUnits(bytes) };
  const codec = new TextDecoder().decode(bytes.subarray(8, 12)) === "VP90" ? "vp9" : "vp8";
  return { codec, frames: ivfFrames(bytes) };
}

/** The packets of an Ogg file without its two headers. */
export async function readOpus(path: string): Promise<Uint8Array[]> {
  const bytes = await Deno.readFile(path);
  const packets: Uint8Array[] = [];
  let pieces: number[] = [];
  for (let page = 0; page + 27 <= bytes.length;) {
    const segments = bytes[page + 26]!;
    let place = page + 27 + segments;
    for (let segment = 0; segment < segments; segment++) {
      const length = bytes[page + 27 + segment]!;
      pieces.push(...bytes.subarray(place, place + length));
      place += length;
      if (length === 255) continue;
      packets.push(Uint8Array.from(pieces));
      pieces = [];
    }
    page = place;
  }
  return packets.slice(2);
}

export function ivfFrames(bytes: Uint8Array): Uint8Array[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const frames: Uint8Array[] = [];
  for (let place = view.getUint16(6, true); place + 12 <= bytes.length;) {
    const length = view.getUint32(place, true);
    frames.push(bytes.subarray(place + 12, place + 12 + length));
    place += 12 + length;
  }
  return frames;
}

/** H.264: a unit begins with the first slice of a frame, or with a NAL unit before it that is no slice. */
function accessUnits(bytes: Uint8Array): Uint8Array[] {
  const starts: number[] = [];
  let hasSlice = true;
  for (let place = 0; place + 4 < bytes.length; place++) {
    if (bytes[place] !== 0 || bytes[place + 1] !== 0 || bytes[place + 2] !== 1) continue;
    const type = bytes[place + 3]! & 0x1f;
    const isSlice = type === 1 || type === 5;
    const beginsPicture = isSlice ? (bytes[place + 4]! & 0x80) !== 0 : true;
    if (hasSlice && beginsPicture) {
      starts.push(place > 0 && bytes[place - 1] === 0 ? place - 1 : place);
      hasSlice = false;
    }
    hasSlice ||= isSlice;
  }
  return starts.map((start, index) => bytes.subarray(start, starts[index + 1] ?? bytes.length));
}
