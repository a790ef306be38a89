/** What is started for each kind of job: nothing of its texts becomes an option, and all that it opens is
 * named.
 */

import assert from "node:assert/strict";
import { runJob, streamJob, type ToolJob } from "../../../src/media/jobs/jobs.ts";
import { invocationOf, socketEnds, STANDARD_ENDS } from "../../../src/media/jobs/invocation.ts";
import { tools } from "../../support/media.ts";

/** Stands in every text of a job that is neither a path nor an address. */
const TEXT = "TEXT,movie=/etc/passwd;-i";
const FILE = "/media/film,movie=x.mp4";
const FILM = { kind: "file", path: FILE, url: null, socket: null } as const;
const ADDRESS = "http://127.0.0.1:8000/relay/list.m3u8";
const RELAY = { kind: "hls", path: null, url: ADDRESS, socket: null } as const;
const DEVICE = "/dev/dri/renderD128";
const PIPE = "/tmp/media-0123.fifo";
const SOUND = "/tmp/m-0123.s";
const CLIP = "/tmp/clip-0123.mp4";
const FRAME = { width: 320, height: 240 };
const INFO = {
  ...{
    formatName: TEXT,
    durationMs: 1000,
    sizeBytes: 1000,
    videoStreams: 1,
    audioStreams: 2,
    audioChannels: 2,
  },
  video: {
    streamIndex: 0,
    codec: TEXT,
    pixelFormat: TEXT,
    ...FRAME,
    rotation: 90,
    averageFps: 25,
    timeBase: "1/1000",
  },
};
const REGION = { x: 2, y: 2, width: 100, height: 100 };
const COORDINATES = {
  ...{ source_extent: FRAME, analysis_extent: FRAME, resolved_region: REGION },
  requested_region: { x: 0.1, y: 0.1, width: 0.5, height: 0.5 },
};
const SEEK = { seekMs: 100, beginMs: 200, counted: null };
const SIZE = { ...FRAME, quantizer: 5 };
const DECODE = {
  kind: "decode",
  ...{ seekS: 1.5, cpuSeconds: 5, hardware: null, byOneThread: true },
  subject: {
    ...{ info: INFO, coordinates: COORDINATES, input: FILM },
    plan: { policy: "fixed", sampleFps: 2.5, sourceFps: null },
  },
  planes: { pipe: PIPE, maxFrames: 5, select: { by: "times", timesS: [0, 1e-7] } },
  jpegs: { maxFrames: 5, size: SIZE, threads: 2, select: { by: "frames", frames: [0, 4] } },
} as const;
const CLIP_JOB = { input: FILM, info: INFO, deadlineMs: 1000, file: CLIP, clipBytesMax: 5000 } as const;

/** A job of each kind, with the files and sockets that it may open: reads, writes, makes in, loopback. */
const JOBS: { readonly [Kind in ToolJob["kind"]]: readonly [Extract<ToolJob, { kind: Kind }>, string] } = {
  make_pipe: [{ kind: "make_pipe", path: PIPE }, "makes in /tmp"],
  probe: [{ kind: "probe", input: RELAY }, "loopback"],
  list_decoders: [{ kind: "list_decoders" }, ""],
  list_gpus: [{ kind: "list_gpus" }, ""],
  open_device: [{ kind: "open_device", hardware: "vaapi" }, `uses ${DEVICE}`],
  first_frame: [
    { kind: "first_frame", input: FILM, streamIndex: 1, timeBase: "1/90000", deadlineMs: 1000 },
    `reads ${FILE}`,
  ],
  wav: [
    { kind: "wav", input: FILM, info: INFO, durationMs: 1000, seek: SEEK, deadlineMs: 1000 },
    `reads ${FILE}`,
  ],
  encode_clip: [
    {
      ...{ ...CLIP_JOB, kind: "encode_clip", coordinates: COORDINATES, withAudio: true },
      ...{ seek: SEEK, durationMs: 1000 },
    },
    `reads ${FILE}; writes ${CLIP}`,
  ],
  list_packets: [
    {
      kind: "list_packets",
      ...{ input: FILM, streamIndex: 1, deadlineMs: 1000, part: { fromMs: 5, toMs: 60_005 } },
    },
    `reads ${FILE}`,
  ],
  copy_clip: [
    { ...CLIP_JOB, kind: "copy_clip", range: { seekMs: 5, packets: 25 } },
    `reads ${FILE}; writes ${CLIP}`,
  ],
  scale_picture: [{ kind: "scale_picture", width: 160 }, ""],
  opus_samples: [{ kind: "opus_samples" }, ""],
  decode: [DECODE, `reads ${FILE}; writes out ${PIPE}`],
  live_decode: [{ kind: "live_decode", codec: "h265", maxFrame: FRAME }, "writes in out"],
  live_pull: [
    { kind: "live_pull", input: RELAY, streamIndex: 1, isPaced: true, maxFrame: FRAME, soundSocket: SOUND },
    `writes out ${SOUND}; loopback`,
  ],
  encode_jpegs: [{ kind: "encode_jpegs", ...FRAME, isFullRange: false }, "writes in out"],
};

Deno.test("every kind of job is in the table of docs/security/sandbox.md", () => {
  const page = Deno.readTextFileSync(new URL("../../../docs/security/sandbox.md", import.meta.url));
  const [table] = /\| Job .*?\n\n/s.exec(page)!;
  const named = [...table.matchAll(/`(\w+)`/g)].map(([, kind]) => kind);
  assert.deepEqual(named.sort(), Object.keys(JOBS).sort());
});

/** What they read is the service's own: a picture without content, frames of a known size, sound. */
const WITHOUT_MEDIA = ["open_device", "encode_jpegs", "opus_samples"];

Deno.test("whatever reads media takes no larger picture and no more streams than are allowed", () => {
  for (const [kind, [job]] of Object.entries(JOBS)) {
    const { args } = invocationOf(job, tools(), { ends: socketEnds("/tmp/in", "/tmp/out") });
    const input = args.indexOf("-i");
    if (input < 0 || WITHOUT_MEDIA.includes(kind)) continue;
    const before = args.slice(0, input).join(" ");
    assert.match(before, /-max_pixels 35651584 -max_streams 129 /, kind);
  }
});

for (const [kind, [job, opened]] of Object.entries(JOBS)) {
  Deno.test(`${kind}: its arguments have none of its texts, and what it opens is named`, () => {
    const isStream = streamJob.safeParse(job).success;
    assert.deepEqual((isStream ? streamJob : runJob).parse(job), job);
    const ends = isStream ? socketEnds("/tmp/in", "/tmp/out") : STANDARD_ENDS;
    const installed = { ...tools(), nvidiaSmi: "/usr/bin/nvidia-smi", devices: { vaapi: [DEVICE] } };
    const { program, args, touches } = invocationOf(job, installed, { ends });
    assert.ok(Object.values(installed).includes(program));
    for (const arg of args) assert.doesNotMatch(arg, /TEXT|passwd|NaN|Infinity|undefined|null|\[object/);
    const { reads, writes, devices, makesIn, usesLoopback } = touches;
    const all = [
      ...(reads.length > 0 ? [`reads ${reads.join(" ")}`] : []),
      ...(writes.length > 0
        ? [`writes ${writes.map((path) => path.replace(/^\/tmp\/(in|out)$/, "$1")).join(" ")}`]
        : []),
      ...(devices.length > 0 ? [`uses ${devices.join(" ")}`] : []),
      ...(makesIn !== null ? [`makes in ${makesIn}`] : []),
      ...(usesLoopback ? ["loopback"] : []),
    ];
    assert.equal(all.join("; "), opened);
    // Each name has a protocol of ours before it, but for an address, and the path of mkfifo, which comes
    // after `--`.
    const names = [
      ...reads.map((path) => `file:${path}`),
      ...writes.map((path) => /^\/tmp\/(in|out|m-0123\.s)$/.test(path) ? `unix:${path}` : `file:${path}`),
      ...(makesIn !== null ? [PIPE] : []),
      ...(usesLoopback ? [ADDRESS] : []),
    ];
    assert.deepEqual(args.filter((arg) => /\/tmp\/|\/media\/|:\/\//.test(arg)).sort(), names.sort());
  });
}
