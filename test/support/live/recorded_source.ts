/** The recording of a source in a data directory, as a camera has left it. */

import { join } from "node:path";
import { clipFile } from "../../../src/media/containers/clip_file.ts";
import { Recordings } from "../../../src/store/recordings/recordings.ts";
import { make, TempFolder, world } from "../media.ts";
import { unitsOf } from "./copied_units.ts";

/** The wall time of the first frame, unless others are given. */
export const RECORDED_MS = Date.parse("2026-11-24T10:15:00.000Z");

/** Segments of a second each that begin at these wall times. */
export async function recordSource(
  dataDir: string,
  source: string,
  beginsMs: readonly number[] = [RECORDED_MS],
): Promise<void> {
  using folder = new TempFolder();
  const pictures = [
    "-f",
    "lavfi",
    "-i",
    "testsrc2=s=64x48:r=25:d=1",
    "-pix_fmt",
    "yuv420p",
    "-c:v",
    "libx264",
  ];
  const { units, streams } = unitsOf(Deno.readFileSync(make(join(folder.path, "camera.nut"), ...pictures)));
  const { codecData } = streams[0]!;
  const { mp4, codec, formats } = (await clipFile(units, { codec: "h264", codecData, sound: null }))!;
  const recordings = Recordings.open(dataDir, world());
  for (const [index, startMs] of beginsMs.entries()) {
    const startTicks = 90_000 * index;
    await recordings.write(source, {
      ...{ startMs, endMs: startMs + 1_000, startTicks, endTicks: startTicks + 90_000 },
      ...{ runId: `run-${"0".repeat(32)}`, sizeBytes: mp4.length, codec, sound: "none", formats, hours: 48 },
    }, mp4);
  }
}
