/** Encoded units as a source sends them, out of files that ffmpeg has written. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { NutReader, type NutStream } from "../../../src/media/containers/nut.ts";
import type { CopiedUnit } from "../../../src/media/containers/copied_packets.ts";
import { make, type TempFolder } from "../media.ts";

const PICTURES = ["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=1", "-pix_fmt", "yuv420p", "-g", "10"];
const TONE = ["-f", "lavfi", "-i", "sine=duration=1"];

/** The packets of a NUT file, as a source sends them. */
export function unitsOf(file: Uint8Array): { units: CopiedUnit[]; streams: readonly NutStream[] } {
  const reader = new NutReader({ streamsMax: 2 });
  const units: CopiedUnit[] = [];
  for (let at = 0; at < file.length;) {
    at = reader.read(file, at, file.length);
    assert.notEqual(at, -1);
    if (!reader.hasFrame) continue;
    const { numerator, denominator, isVideo, width, height } = reader.streams[reader.frameStream]!;
    const body = file.subarray(reader.frameOffset, reader.frameOffset + reader.frameBytes);
    units.push({
      isVideo,
      isKeyframe: reader.isKeyframe,
      data: Uint8Array.from([...reader.frameHead, ...body]),
      ptsMs: reader.framePts * numerator * 1000 / denominator,
      size: isVideo && reader.isKeyframe ? { width, height } : null,
    });
  }
  return { units, streams: reader.streams };
}

/**
 * A second, of 25 pictures with a key frame every ten and a tone: two tracks of a NUT file, made by these
 * encoders.
 */
export function recorded(folder: TempFolder, ...encoders: string[]) {
  const path = join(folder.path, "source.nut");
  const input = [...PICTURES.slice(0, 4), ...TONE, ...PICTURES.slice(4)];
  return unitsOf(Deno.readFileSync(make(path, ...input, ...encoders, "-shortest", "-f", "nut")));
}

/**
 * Records a film as MPEG-TS has it: with parameter sets in each key frame, and AAC with a header before each
 * frame.
 */
export function recordedAsTs(folder: TempFolder, ...encoders: string[]) {
  const [ts, nut] = [join(folder.path, "source.ts"), join(folder.path, "copied.nut")];
  const input = [...PICTURES.slice(0, 4), ...TONE, ...PICTURES.slice(4)];
  make(ts, ...input, ...encoders, "-c:a", "aac", "-shortest", "-f", "mpegts");
  return unitsOf(Deno.readFileSync(make(nut, "-i", ts, "-c", "copy", "-f", "nut")));
}
