/** A source with a picture that is too long to be kept: it is told, and files go on with the next key frame.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../src/base/bytes.ts";
import type { SessionReport } from "../../src/live/messages/messages.ts";
import type { SessionPort } from "../../src/live/worker_pool.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { pulled, Workers } from "../support/live/live_workers.ts";
import { playedFile } from "../support/live/played_file.ts";
import { make, TempFolder } from "../support/media.ts";

/** Pictures of each group, 40 ms apart. */
const GROUP = 10;
const [KEY_SLICE, OTHER_SLICE, FILLER] = [0x65, 0x41, 0x0c];

/** Six groups; before the slice of picture `at` stands data without meaning, longer than a picture may be. */
function camera(folder: TempFolder, at: number): string {
  const plain = make(
    join(folder.path, "plain.h264"),
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25", "-frames:v", String(6 * GROUP)],
    ...["-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", String(GROUP)],
    ...["-x264-params", "scenecut=0:slices=1:threads=1", "-bsf:v", "h264_metadata=aud=insert", "-f", "h264"],
  );
  const bytes = Deno.readFileSync(plain);
  const isSlice = (_: number, i: number) =>
    bytes[i] === 0 && bytes[i + 1] === 0 && bytes[i + 2] === 1 &&
    (bytes[i + 3] === KEY_SLICE || bytes[i + 3] === OTHER_SLICE);
  let slice = -1;
  for (let picture = 0; picture <= at; picture++) {
    slice = bytes.findIndex((b, i) => i > slice && isSlice(b, i));
  }
  const filler = new Uint8Array(LIMITS.live.videoUnitBytesMax).fill(0xff);
  const film = folder.file(
    "long.h264",
    joinedBytes(
      bytes.subarray(0, slice),
      Uint8Array.of(0, 0, 1, FILLER),
      filler,
      Uint8Array.of(0x80),
      bytes.subarray(slice),
    ),
  );
  return make(join(folder.path, "camera.ts"), "-r", "25", "-f", "h264", "-i", film, "-c", "copy");
}

for (
  const [what, at, expected] of [
    ["a picture", 2 * GROUP + 5, [25, 30]],
    ["a key frame", 2 * GROUP, [20, 30]],
    ["the first picture", 0, [50]],
  ] as const
) {
  Deno.test(`${what} that is too long to be kept is told once, and the recording goes on with the next key frame`, async () => {
    using folder = new TempFolder();
    await using workers = new Workers();
    const source = await pulled(camera(folder, at), { durationMs: 6 * GROUP * 40 });
    const onReport = ({ kind }: SessionReport, port: SessionPort) => {
      if (kind === "segment") port.send({ kind: "acknowledge", credit: "segments", count: 1 });
    };
    const recording = { segmentMs: 60_000, bytesMax: 2 ** 22 };
    const { port, reports, waitFor } = workers.open(source, { recording }, onReport);
    await waitFor("ended");
    await port.close();
    const told = reports.flatMap((report) => report.kind === "packets_lost" ? [report.reason] : []);
    assert.equal(told.length, 1);
    assert.match(told[0]!, /^a picture has 2\d{6} bytes, and at most 2097152 are kept$/);
    const lost = reports.flatMap((report) => report.kind === "counts" ? [report.counts.segmentsLost] : []);
    assert.equal(lost.reduce((sum, count) => sum + count, 0), 1);
    const segments = reports.flatMap((report) => report.kind === "segment" ? [report.segment] : []);
    const played = segments.map(({ mp4 }, n) => playedFile(folder.file(`${n}.mp4`, mp4)));
    assert.deepEqual(played.map(({ errors }) => errors), segments.map(() => ""));
    assert.deepEqual(played.map(({ pictures }) => pictures), expected);
  });
}
