/** Shared by the media tests: the real tools, clips made by ffmpeg, and a clock that the test moves. */

import { localRunner } from "./local_runner.ts";
import { join } from "node:path";
import type { Log } from "../../src/base/log.ts";
import type { DecodeBackend, Tools } from "../../src/base/program_paths.ts";
import { realWorld, type World } from "../../src/base/world.ts";
import { fileInput } from "../../src/media/input.ts";
import type { MediaInfo } from "../../src/media/media_info.ts";
import { Decoder } from "../../src/media/files/decoder.ts";
import { Hardware } from "../../src/media/files/hardware.ts";

export const NEVER = new AbortController().signal;

export function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

export function tools(): Tools {
  return {
    ffmpeg: which("ffmpeg")!,
    ffprobe: which("ffprobe")!,
    mkfifo: which("mkfifo")!,
    prlimit: which("prlimit"),
  };
}

export function world(): World {
  return realWorld(silentLog());
}

/** A world in which all sleeps end when the test calls `elapse`. */
export function steppedWorld(): World & { elapse(): void } {
  const waiting = new Set<() => void>();
  return {
    ...world(),
    sleep: (_ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        waiting.add(resolve);
        signal?.addEventListener("abort", () => {
          waiting.delete(resolve);
          reject(signal.reason);
        }, { once: true });
      }),
    elapse: () => waiting.forEach((resolve) => resolve()),
  };
}

/** A folder that is removed with its content. */
export class TempFolder implements Disposable {
  /** A real path. */
  readonly path = Deno.realPathSync(Deno.makeTempDirSync({ prefix: "media-test-" }));

  file(name: string, content: string | Uint8Array = ""): string {
    const path = join(this.path, name);
    if (typeof content === "string") Deno.writeTextFileSync(path, content);
    else Deno.writeFileSync(path, content);
    return path;
  }

  /** A program that runs these shell lines; end them with `exec` to have only one process. */
  script(name: string, lines: string): string {
    const path = this.file(name, `#!/bin/sh\n${lines}\n`);
    Deno.chmodSync(path, 0o755);
    return path;
  }

  names(): string[] {
    return [...Deno.readDirSync(this.path)].map((entry) => entry.name);
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}

/** A decoder with its pipes in the folder's `temp`; by default one decode at a time. */
export function openDecoder(
  folder: TempFolder,
  changed: {
    tools?: Partial<Tools>;
    world?: World;
    maxConcurrent?: number;
    /** What should decode; the CPU unless given. */
    backend?: "auto" | DecodeBackend;
  } = {},
): Decoder {
  const tempDir = join(folder.path, "temp");
  Deno.mkdirSync(tempDir, { recursive: true });
  const common = {
    world: changed.world ?? world(),
    runner: localRunner({ ...tools(), ...changed.tools }),
  };
  const asked = changed.backend ?? "cpu-ffmpeg";
  const hardware = new Hardware({ asked, devices: changed.tools?.devices ?? {}, ...common });
  return new Decoder({ ...common, tempDir, hardware, maxConcurrent: changed.maxConcurrent ?? 1 });
}

/** Makes a media file with the real ffmpeg. `args` come between the global options and the output path. */
export function make(path: string, ...args: string[]): string {
  const { success, stderr } = new Deno.Command(tools().ffmpeg, {
    args: ["-nostdin", "-v", "error", ...args, "-y", path],
    stdin: "null",
  }).outputSync();
  if (!success) throw new Error(`ffmpeg could not make ${path}: ${new TextDecoder().decode(stderr)}`);
  return path;
}

/** A video of `frames` frames with motion, encoded as MPEG-4, which every ffmpeg supports. */
export function makeClip(path: string, { frames = 25, fps = "25", size = "320x240" } = {}): string {
  return make(
    path,
    "-f",
    "lavfi",
    "-i",
    `testsrc2=s=${size}:r=${fps}`,
    "-frames:v",
    String(frames),
    "-c:v",
    "mpeg4",
  );
}

/**
 * A copy with a clockwise rotation for display. Newer versions of ffmpeg have an option for it, older ones a
 * tag.
 */
export function makeTurned(path: string, source: string, clockwise: 90 | 180 | 270): string {
  try {
    return make(path, `-display_rotation:v:0`, String(-clockwise), "-i", source, "-c", "copy");
  } catch {
    return make(path, "-i", source, "-c", "copy", "-metadata:s:v:0", `rotate=${360 - clockwise}`);
  }
}

/** Where the packets of its video stand in a file. */
export function packetsOf(path: string): { pos: number; size: number }[] {
  const { stdout } = new Deno.Command(tools().ffprobe, {
    args: [
      ...["-v", "error", "-select_streams", "v:0", "-show_packets", "-show_entries", "packet=pos,size"],
      ...["-of", "json", path],
    ],
  }).outputSync();
  const { packets } = JSON.parse(new TextDecoder().decode(stdout)) as {
    packets: { pos: string; size: string }[];
  };
  return packets.map(({ pos, size }) => ({ pos: Number(pos), size: Number(size) }));
}

/** Times of the frames that ffprobe decodes, milliseconds from the first. */
export function frameTimesMs(path: string, streamIndex: number): number[] {
  const args = ["-v", "quiet", "-select_streams", String(streamIndex), "-show_frames"];
  const { stdout } = new Deno.Command(tools().ffprobe, {
    args: [...args, "-show_entries", "frame=best_effort_timestamp_time", "-of", "json", path],
  }).outputSync();
  const { frames } = JSON.parse(new TextDecoder().decode(stdout)) as {
    frames: { best_effort_timestamp_time: string }[];
  };
  const times = frames.map((frame) => Number(frame.best_effort_timestamp_time) * 1000);
  return times.map((time) => time - times[0]!);
}

/** What is decoded of each frame of the video, as a hash. Throws where ffmpeg has anything to say. */
export function frameHashes(path: string): string[] {
  const args = [
    "-v",
    "error",
    "-i",
    path,
    "-map",
    "0:v:0",
    "-fps_mode",
    "passthrough",
    "-f",
    "framemd5",
    "-",
  ];
  const { stdout, stderr } = new Deno.Command(tools().ffmpeg, { args }).outputSync();
  if (stderr.length > 0) throw new Error(`ffmpeg on ${path}: ${new TextDecoder().decode(stderr)}`);
  return new TextDecoder().decode(stdout).split("\n").filter((line) => /^0,/.test(line))
    .map((line) => line.split(",").at(-1)!.trim());
}

function which(name: string): string | null {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    if (exists(join(folder, name))) return join(folder, name);
  }
  return null;
}

function silentLog(): Log {
  const silent = () => {};
  const log = { trace: silent, debug: silent, info: silent, warn: silent, error: silent, child: () => log };
  return log;
}

const probed = new Map<string, MediaInfo>();

/**
 * What the decoder finds out about a file; asked once as long as the file stays the same, as ffprobe starts
 * slowly.
 */
export async function probeOnce(decoder: Decoder, path: string, signal = NEVER): Promise<MediaInfo> {
  const { ino, size, mtime } = Deno.statSync(path);
  const key = `${path} ${ino} ${size} ${mtime?.getTime()}`;
  const info = probed.get(key) ?? await decoder.probe(fileInput(path), signal);
  probed.set(key, info);
  return info;
}
