/** Decoding on hardware: what is tried, what is said of it, and that the CPU decodes whatever the hardware
 * does not.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import type { DecodeBackend, DecodeDevices } from "../../../src/base/program_paths.ts";
import { openLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import type { DecodedSignals } from "../../../src/media/files/decoder.ts";
import { planSampling } from "../../../src/model/frames/sampling.ts";
import { fileInput } from "../../../src/media/input.ts";
import { openDecoder, TempFolder, tools } from "../../support/media.ts";
import { CLIPS } from "../../support/service.ts";

const CLIP = join(CLIPS, "intel_bottle.mp4");
const DEVICES: DecodeDevices = { vaapi: ["/dev/dri/renderD128"], "nvdec-cuda": ["/dev/nvidia0"] };

/**
 * Stands for an ffmpeg with a device: opens it where `opens` is a shell condition that holds, and decodes on
 * the CPU what it is to decode there. `decoding` comes before such a decode.
 */
function ffmpegWithDevice(folder: TempFolder, { opens = "true", decoding = ":" } = {}): string {
  return folder.script(
    "ffmpeg",
    `words="$*"
case "$words" in
  *-init_hw_device*color=size*) echo 'no such card' >&2; ${opens}; exit $? ;;
  *-hwaccel*) ${decoding} ;;
esac
for word do
  shift
  case "$word" in
    -init_hw_device|-hwaccel|-hwaccel_device|-hwaccel_output_format) skip=1; continue ;;
  esac
  if [ "\${skip:-}" = 1 ]; then skip=; continue; fi
  set -- "$@" "\${word#hwdownload,format=nv12,format=yuv420p,}"
done
exec ${tools().ffmpeg} "$@"`,
  );
}

interface Decoding {
  readonly backend?: "auto" | DecodeBackend;
  readonly devices?: DecodeDevices;
  readonly opens?: string;
  readonly decoding?: string;
  readonly nvidiaSmi?: string | null;
  /** How often the clip is decoded. */
  readonly times?: number;
}

async function decode(
  { backend = "auto", devices = DEVICES, nvidiaSmi = null, times = 1, ...device }: Decoding,
): Promise<{ decoded: DecodedSignals[]; lines: string[] }> {
  using folder = new TempFolder();
  const lines: string[] = [];
  const stream = {
    writeSync(bytes: Uint8Array) {
      lines.push(new TextDecoder().decode(bytes));
      return bytes.length;
    },
  };
  const log = openLog("info", { stdout: { writeSync: ({ length }) => length }, stderr: stream });
  const changed = { ffmpeg: ffmpegWithDevice(folder, device), devices, nvidiaSmi };
  await using decoder = openDecoder(folder, { tools: changed, world: realWorld(log), backend });
  const decoded: DecodedSignals[] = [];
  for (let time = 0; time < times; time++) {
    const input = fileInput(CLIP);
    const info = await decoder.probe(input, NEVER_ABORTED);
    const plan = planSampling({ policy: "fixed", fixedFps: 5 }, info.video!.averageFps, "ingest");
    decoded.push(await decoder.decodeSignals({ input, info, plan, maxFrames: 20, signal: NEVER_ABORTED }));
  }
  return { decoded, lines };
}

const backendsOf = (decoded: readonly DecodedSignals[]) => decoded.map(({ decodeBackend }) => decodeBackend);

Deno.test("a card that works decodes, and the signals are those of the CPU", async () => {
  const onCard = await decode({ backend: "vaapi" });
  assert.deepEqual(backendsOf(onCard.decoded), ["vaapi"]);
  assert.match(onCard.lines.join(), /recorded media are decoded by vaapi/);
  const onCpu = await decode({ backend: "cpu-ffmpeg" });
  assert.deepEqual(backendsOf(onCpu.decoded), ["cpu-ffmpeg"]);
  assert.deepEqual(onCpu.lines, []);
  assert.deepEqual(onCard.decoded[0]!.signals, onCpu.decoded[0]!.signals);
});

Deno.test("auto asks for NVIDIA's cards first, then tries the others, and says once why it took the CPU", async () => {
  using folder = new TempFolder();
  const nvidiaSmi = folder.script("nvidia-smi", "exit 0");
  assert.deepEqual(backendsOf((await decode({ nvidiaSmi })).decoded), ["nvdec-cuda"]);
  assert.deepEqual(backendsOf((await decode({})).decoded), ["vaapi"]);
  const none = await decode({ opens: "false", times: 2 });
  assert.deepEqual(backendsOf(none.decoded), ["cpu-ffmpeg", "cpu-ffmpeg"]);
  assert.equal(none.lines.length, 1, none.lines.join("\n"));
  assert.match(
    none.lines[0]!,
    /on the CPU; nvdec-cuda: nvidia-smi lists no card \(.*nvidia-smi: No such file or directory\); vaapi: ffmpeg does not open it \(no such card\)/,
  );
  const nothing = await decode({ devices: {} });
  assert.deepEqual([...backendsOf(nothing.decoded), ...nothing.lines], ["cpu-ffmpeg"]);
});

Deno.test("hardware that was asked for by name and is not there is one line in the log", async () => {
  const { decoded, lines } = await decode({ backend: "videotoolbox", times: 2 });
  assert.deepEqual(backendsOf(decoded), ["cpu-ffmpeg", "cpu-ffmpeg"]);
  assert.equal(lines.length, 1);
  assert.match(lines[0]!, /this machine has no device for videotoolbox/);
});

Deno.test("what the card fails on is decoded by the CPU from the beginning, and a card that always fails is given up", async () => {
  const { decoded, lines } = await decode({ backend: "vaapi", decoding: "exit 1", times: 4 });
  const onCpu = await decode({ backend: "cpu-ffmpeg" });
  assert.deepEqual(backendsOf(decoded), Array(4).fill("cpu-ffmpeg"));
  for (const { signals } of decoded) assert.deepEqual(signals, onCpu.decoded[0]!.signals);
  const failures = lines.filter((line) => line.includes("could not decode"));
  assert.equal(failures.length, 3, lines.join("\n"));
  assert.match(failures[2]!, /and all further ones/);
});
