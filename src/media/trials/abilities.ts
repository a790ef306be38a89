/** TABLE of what the service has ffmpeg and ffprobe do, and how each is tried: with the jobs of the service,
 * on tiny media.
 */

import { join } from "node:path";
import { timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { fullFrame } from "../../model/frames/coordinates.ts";
import { type AboutFfmpeg, isKnownVersion, KNOWN_VERSIONS } from "./ffmpeg_facts.ts";
import { Fifo } from "../jobs/fifo.ts";
import { fileInput } from "../input.ts";
import type { MediaInfo } from "../media_info.ts";
import { probeMedia } from "../files/probe.ts";
import type { Outcome } from "../process.ts";
import { newReports, REPORT, ReportReader } from "../frame_reports.ts";
import { subjectOf } from "../jobs/decode.ts";
import type { JobOf, RunJob, StreamJob } from "../jobs/jobs.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import { firstFrameMs } from "../files/first_frame.ts";
import { TRIAL_FILM, TRIAL_FRAMES, TRIAL_PICTURE, TRIAL_SOUND, TRIAL_UNITS } from "./trial_media.ts";

export type WriteFile = (path: string, bytes: Uint8Array<ArrayBuffer>) => Promise<void>;

/** What trials need. */
export interface TrialBench {
  readonly runner: ToolRunner;
  /** Folder for the film and what is made of it, which are removed again. */
  readonly tempDir: string;
  /** Makes a new file. */
  readonly writeFile: WriteFile;
  readonly world: World;
  readonly signal: AbortSignal;
  readonly ffmpeg: Pick<AboutFfmpeg, "facts">;
}

interface AbilityRow {
  /** What the ability does; completes "ffmpeg cannot …". */
  readonly does: string;
  /** Tries the ability. Throws {@link Unable} where it fails. */
  readonly attempt: (bench: TrialBench) => Promise<void>;
}

/**
 * Says that a program failed, or ended without what it should have made. The message is what it said last.
 */
export class Unable extends Error {
  override readonly name = "Unable";
}

const DEADLINE_MS = 60_000;
const ERROR_BYTES = 8 << 10;
const OUTPUT_BYTES_MAX = 1 << 20;
const MAX_FRAME = { width: 64, height: 64 };
const JPEG_BEGINS = [0xff, 0xd8] as const;

export const ABILITIES = {
  version: {
    does: "work with this service",
    attempt: async ({ ffmpeg }) => {
      const facts = await ffmpeg.facts();
      if (!facts) throw new Error("it does not tell its version");
      if (facts.version !== null && isKnownVersion(facts.version) === false) {
        throw new Unable(`it is version ${facts.version}, and the service knows ${KNOWN_VERSIONS}`);
      }
    },
  },
  probe: { does: "look into a film", attempt: (bench) => withFilm(bench, async () => {}) },
  decode: {
    does: "decode the frames of a film",
    attempt: (bench) =>
      withFilm(bench, async ({ input, info }) => {
        const options = { ...boundsOf(bench), deadlineMs: DEADLINE_MS };
        const first = await firstFrameMs(input, info, options, bench.runner);
        if (typeof first !== "number") throw failureOf(first, bench);
        await decode(bench, { input, info }, null);
      }),
  },
  jpegs: {
    does: "make JPEGs of the frames of a film",
    attempt: (bench) =>
      withFilm(bench, async (film) => {
        const { width, height } = film.info.video!;
        const jpegs = {
          ...{ maxFrames: 1, select: { by: "frames" as const, frames: [0] }, threads: 1 as const },
          size: { width, height, quantizer: 8 },
        };
        if (!hasJpeg(await decode(bench, film, jpegs))) throw new Unable("it makes none");
      }),
  },
  clip: {
    does: "make a clip of a film",
    attempt: (bench) =>
      withFilm(bench, async ({ input, info }) => {
        const file = join(bench.tempDir, `clip-${bench.world.randomBytes(12).toHex()}.mp4`);
        const { width, height } = info.video!;
        try {
          await run(bench, {
            ...{ kind: "encode_clip", input, info, coordinates: fullFrame(width, height), withAudio: true },
            ...{ seek: { seekMs: 0, beginMs: 0, counted: null }, durationMs: 120, deadlineMs: DEADLINE_MS },
            ...{ file, clipBytesMax: OUTPUT_BYTES_MAX },
          });
          if ((await Deno.stat(file)).size === 0) throw new Unable("the clip is empty");
        } finally {
          await removeIfThere(file);
        }
      }),
  },
  sound: {
    does: "take the sound of a film",
    attempt: (bench) =>
      withFilm(bench, async ({ input, info }) => {
        const seek = { seekMs: 0, beginMs: 0, counted: null };
        await made(bench, { kind: "wav", input, info, durationMs: 120, seek, deadlineMs: DEADLINE_MS });
      }),
  },
  picture: {
    does: "make a picture smaller",
    attempt: async (bench) => {
      const picture = await made(bench, { kind: "scale_picture", width: 16 }, TRIAL_PICTURE);
      if (!hasJpeg(picture)) throw new Unable("it makes no JPEG");
    },
  },
  live_video: {
    does: "decode live video",
    attempt: async (bench) => {
      await streamed(bench, { kind: "live_decode", codec: "vp8", maxFrame: MAX_FRAME }, TRIAL_UNITS);
    },
  },
  live_jpegs: {
    does: "make JPEGs of live video",
    attempt: async (bench) => {
      const frame = new Uint8Array(32 * 24 * 3 / 2);
      const shape = { width: 32, height: 24, isFullRange: false };
      const jpegs = await streamed(bench, { kind: "encode_jpegs", ...shape }, frame);
      if (!hasJpeg(jpegs)) throw new Unable("it makes none");
    },
  },
  live_sound: {
    does: "decode live sound",
    attempt: async (bench) => {
      await made(bench, { kind: "opus_samples" }, TRIAL_SOUND);
    },
  },
} as const satisfies Record<string, AbilityRow>;

export type Ability = keyof typeof ABILITIES;

/** What a live session needs. */
export function liveAbilities({ withSound }: { readonly withSound: boolean }): readonly Ability[] {
  return ["live_video", "live_jpegs", ...(withSound ? ["live_sound" as const] : [])];
}

interface Film {
  readonly input: ReturnType<typeof fileInput>;
  readonly info: MediaInfo;
}

/** Looks into the film, which is there while `use` runs. */
async function withFilm(bench: TrialBench, use: (film: Film) => Promise<void>): Promise<void> {
  const path = join(bench.tempDir, `trial-${bench.world.randomBytes(12).toHex()}.mp4`);
  const input = fileInput(path);
  try {
    await bench.writeFile(path, TRIAL_FILM);
    let outcome: Outcome | undefined;
    // Its refusal is about a caller's file; what ffprobe said is in the outcome.
    const runner: ToolRunner = {
      run: async (job, options) => outcome = await bench.runner.run(job, options),
      start: (job, options) => bench.runner.start(job, options),
    };
    const { world, signal } = bench;
    const info = await probeMedia(input, { runner, world, signal, deadlineMs: DEADLINE_MS }).catch(
      (error) => {
        throw outcome === undefined || signal.aborted ? error : failureOf(outcome, bench);
      },
    );
    if (info.video?.width !== 64 || info.audioStreams !== 1) {
      throw new Unable("it does not see what is in it");
    }
    await use({ input, info });
  } finally {
    await removeIfThere(path);
  }
}

/**
 * Decodes the film; gives the JPEGs, if any. The frames are read and dropped, as a pipe may be narrower than
 * one of them.
 */
async function decode(
  bench: TrialBench,
  { input, info }: Film,
  jpegs: JobOf<"decode">["jpegs"],
): Promise<Uint8Array> {
  const { runner, tempDir: directory, world, signal } = bench;
  const { width, height, averageFps } = info.video!;
  await using fifo = await Fifo.make({ runner, directory, world, signal });
  const reports = newReports();
  const plan = { policy: "source_fps_adaptive" as const, sampleFps: averageFps ?? 25, sourceFps: averageFps };
  const job = {
    kind: "decode" as const,
    subject: subjectOf({ input, info, plan, coordinates: fullFrame(width, height) }),
    ...{ seekS: 0, hardware: null, byOneThread: false, jpegs, cpuSeconds: DEADLINE_MS / 1000 },
    planes: { pipe: fifo.path, maxFrames: null, select: null },
  };
  const frames = (await Deno.open(fifo.path, { read: true })).readable.pipeTo(new WritableStream());
  const { stdout } = await run(bench, job, { reports, maxStdoutBytes: jpegs ? OUTPUT_BYTES_MAX : 0 })
    .finally(() => {
      fifo.closeGuard();
      return frames;
    });
  const reader = new ReportReader(reports);
  for (let frame = 0; frame < TRIAL_FRAMES; frame++) {
    if ((reader.takeNow() & REPORT.isReported) === 0) {
      throw new Unable(`it tells of ${frame} of ${TRIAL_FRAMES} frames`);
    }
  }
  return stdout;
}

function boundsOf({ world, signal }: TrialBench) {
  return { world, signal, deadlineMs: DEADLINE_MS, maxStderrBytes: ERROR_BYTES };
}

interface TrialOptions {
  readonly reports?: SharedArrayBuffer;
  readonly input?: Uint8Array<ArrayBuffer>;
  readonly maxStdoutBytes?: number;
}

async function run(bench: TrialBench, job: RunJob, options: TrialOptions = {}): Promise<Outcome> {
  const outcome = await bench.runner.run(job, { ...boundsOf(bench), maxStdoutBytes: 0, ...options });
  if (outcome.end !== "exited" || outcome.code !== 0) throw failureOf(outcome, bench);
  return outcome;
}

/** The output of a job, which must not be empty. */
async function made(
  bench: TrialBench,
  job: RunJob,
  input?: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const options = { maxStdoutBytes: OUTPUT_BYTES_MAX, ...(input && { input }) };
  const { stdout } = await run(bench, job, options);
  if (stdout.length === 0) throw new Unable("nothing comes out");
  return stdout;
}

/** The output of a job that is read while it runs, which must not be empty. */
async function streamed(
  bench: TrialBench,
  job: StreamJob,
  input: Uint8Array<ArrayBuffer>,
): Promise<Uint8Array> {
  const { runner, world, signal } = bench;
  const tool = runner.start(job, { signal, maxStderrBytes: ERROR_BYTES });
  using _deadline = timer(world, DEADLINE_MS, () => tool.kill("out_of_time"));
  const writer = tool.stdin!.getWriter();
  writer.closed.catch(() => {/* it has ended, and its end is looked at */});
  const written = writer.write(input).then(() => writer.close()).catch(() => {/* the same */});
  const output = new Response(tool.stdout).bytes().catch(() => new Uint8Array());
  const [bytes, ended] = await Promise.all([output, tool.ended, written]);
  signal.throwIfAborted();
  if (ended.end !== "exited" || ended.code !== 0) throw failureOf(ended, bench);
  if (bytes.length === 0) throw new Unable("nothing comes out");
  return bytes;
}

function hasJpeg(bytes: Uint8Array): boolean {
  return bytes.some((byte, at) => byte === JPEG_BEGINS[0] && bytes[at + 1] === JPEG_BEGINS[1]);
}

/**
 * The error of a program that failed. A machine that was too busy says nothing about its programs: then it is
 * no {@link Unable}.
 */
function failureOf(outcome: Omit<Outcome, "stdout">, { tempDir }: TrialBench): Error {
  const { end, code, stderr } = outcome;
  if (end === "out_of_time" || end === "out_of_cpu") return new Error(`no end after ${DEADLINE_MS / 1000} s`);
  const words = stderr.replaceAll(`${tempDir}/`, "").split("\n").map((line) => line.trim());
  const last = words.findLast((line) => line !== "" && !SAYS_NOTHING.test(line));
  const how = end === "killed" ? "it broke down" : `it ended with code ${code}`;
  return new Unable(last === undefined ? how : last.slice(0, WORDS_MAX));
}

/** Lines that come at the end of ffmpeg's log whatever went wrong. */
const SAYS_NOTHING =
  /^(\[[^\]]*\] )*(conversion failed!|nothing was written into output file|task finished with error|terminating thread|error opening (input|output) files)/i;
const WORDS_MAX = 300;

async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
