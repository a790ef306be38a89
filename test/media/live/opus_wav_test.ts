import { localRunner } from "../../support/local_runner.ts";
import assert from "node:assert/strict";
import { oggOpus, packetSamples } from "../../../src/media/containers/ogg_opus.ts";
import { opusWav, OpusWavFailed } from "../../../src/media/live/opus_wav.ts";
import { readWav, wavSamples } from "../../../src/model/sidecars/wav.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { children, fastWorld } from "../../support/live/live_units.ts";
import { make, NEVER, TempFolder, tools, world } from "../../support/media.ts";

const options = { runner: localRunner(tools()), world: world(), signal: NEVER };

/** Opus packets of a tone of 440 Hz, as ffmpeg encodes it. */
function packets({ seconds = 4, channels = 2, frameMs = 20 } = {}): Uint8Array[] {
  using folder = new TempFolder();
  const path = make(
    `${folder.path}/tone.ogg`,
    ...[
      "-f",
      "lavfi",
      "-i",
      `sine=frequency=440:sample_rate=48000:duration=${seconds}`,
      "-ac",
      String(channels),
    ],
    ...["-c:a", "libopus", "-b:a", "48k", "-frame_duration", String(frameMs)],
  );
  return oggPackets(Deno.readFileSync(path)).slice(2);
}

function oggPackets(file: Uint8Array): Uint8Array[] {
  const found: number[][] = [[]];
  for (let at = 0; at < file.length;) {
    const segments = file.subarray(at + 27, at + 27 + file[at + 26]!);
    at += 27 + segments.length;
    for (const length of segments) {
      found.at(-1)!.push(...file.subarray(at, at + length));
      at += length;
      if (length < 255) found.push([]);
    }
  }
  return found.slice(0, -1).map((packet) => Uint8Array.from(packet));
}

/** Frequency in hertz, from the number of rising zero crossings. */
function pitch(samples: Int16Array): number {
  let rises = 0;
  for (let at = 1; at < samples.length; at++) if (samples[at - 1]! < 0 && samples[at]! >= 0) rises++;
  return rises / (samples.length / 16_000);
}

Deno.test("a window of packets becomes a mono WAV of 16 kHz with their sound", async () => {
  const check = async (shape: { seconds?: number; channels?: number; frameMs?: number }) => {
    const all = packets(shape);
    // From the middle of the stream, like real windows; the last packets contain silence.
    const units = all.slice(Math.floor(all.length / 4), -2);
    const { wav, durationMs, decodeMs, unitsDropped } = await opusWav(units, options);
    const expectedMs = units.reduce((sum, unit) => sum + packetSamples(unit) / 48, 0);
    assert.ok(Math.abs(durationMs - expectedMs) < 1, `${durationMs} of ${expectedMs} ms`);
    assert.ok(decodeMs > 0);
    assert.equal(unitsDropped, 0);
    const wave = readWav(wav);
    assert.ok(typeof wave !== "string");
    assert.deepEqual([wave.sampleRateHz, wave.channels], [16_000, 1]);
    assert.equal(wave.durationMs, durationMs);
    const samples = wavSamples(wav, wave);
    assert.ok(Math.abs(pitch(samples.subarray(1600)) - 440) < 4, String(pitch(samples)));
  };
  await check({ channels: 1 });
  await check({ channels: 2 });
  await check({ seconds: 1, frameMs: 60 });
  await check({ seconds: 1, frameMs: 2.5 });
});

Deno.test("ffprobe accepts the Ogg file without a warning", () => {
  using folder = new TempFolder();
  const { bytes, durationMs } = oggOpus(packets({ seconds: 1 }))!;
  const path = folder.file("window.opus", bytes);
  const { stdout, stderr } = new Deno.Command(tools().ffprobe, {
    args: [
      "-v",
      "warning",
      "-show_entries",
      "stream=codec_name,channels:format=duration",
      "-of",
      "csv=p=0",
      path,
    ],
  }).outputSync();
  assert.equal(new TextDecoder().decode(stderr), "");
  const [stream, duration] = new TextDecoder().decode(stdout).trim().split("\n");
  assert.equal(stream, "opus,2");
  assert.ok(Math.abs(Number(duration) * 1000 - durationMs) < 1);
});

Deno.test("the duration of a packet is read from its header", () => {
  const check = (packet: number[], ms: number) =>
    assert.equal(packetSamples(Uint8Array.from(packet)), ms * 48, packet.join());
  check([], 0);
  check([0b00000_0_00], 10);
  check([0b00011_0_00], 60);
  check([0b01101_0_00], 20);
  check([0b10000_0_00], 2.5);
  check([0b11111_1_01], 40);
  check([0b11111_1_10], 40);
  check([0b11111_1_11, 6], 120);
  check([0b11111_1_11, 7], 0);
  check([0b11111_1_11, 0], 0);
  check([0b11111_1_11], 0);
  assert.equal(packetSamples(new Uint8Array(61_441).fill(0xfc)), 0);
  // Lengths around multiples of a segment of the container.
  for (const length of [254, 255, 256, 510, 61_440]) {
    const packet = new Uint8Array(length).fill(0xfc);
    assert.deepEqual(oggPackets(oggOpus([packet])!.bytes)[2], packet, String(length));
  }
});

Deno.test("units that are no packets are left out, and a window without any packet fails", async () => {
  const good = packets({ seconds: 1 });
  const bad = [new Uint8Array(0), new Uint8Array(64 * 1024).fill(7), Uint8Array.from([0xff])];
  const { unitsDropped, durationMs } = await opusWav([...bad, ...good], options);
  assert.equal(unitsDropped, 3);
  assert.ok(durationMs > 900);
  await assert.rejects(opusWav([], options), /no unit is an Opus packet/);
  await assert.rejects(opusWav(bad, options), OpusWavFailed);
  const random = seededRandom(8);
  const noise = Array.from({ length: 50 }, () => Uint8Array.from({ length: 80 }, () => random() * 256));
  await opusWav(noise, options).catch((error) => assert.ok(error instanceof OpusWavFailed));
});

Deno.test("decoding ends by its deadline or its signal, and leaves nothing behind", async () => {
  using folder = new TempFolder();
  const units = packets({ seconds: 1 });
  const hanging = { ffmpeg: folder.script("ffmpeg", "exec sleep 60"), prlimit: null };
  await assert.rejects(
    opusWav(units, { ...options, runner: localRunner({ ...tools(), ...hanging }), world: fastWorld(100) }),
    /took too long/,
  );
  const stopped = new AbortController();
  const decoding = opusWav(units, {
    ...options,
    runner: localRunner({ ...tools(), ...hanging }),
    signal: stopped.signal,
  });
  stopped.abort(new Error("the session is over"));
  await assert.rejects(decoding, /the session is over/);
  const failing = { ffmpeg: folder.script("fails", "exit 1"), prlimit: null };
  await assert.rejects(
    opusWav(units, { ...options, runner: localRunner({ ...tools(), ...failing }) }),
    /cannot be decoded/,
  );
  const flooding = { ffmpeg: folder.script("floods", "exec cat /dev/zero"), prlimit: null };
  await assert.rejects(
    opusWav(units, { ...options, runner: localRunner({ ...tools(), ...flooding }) }),
    /more than 4194304 bytes/,
  );
  assert.deepEqual(children(), []);
});
