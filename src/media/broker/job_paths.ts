/** Which paths and addresses a job may name: files inside the granted roots, pipes and sockets in their
 * folders.
 */

import { basename } from "node:path";
import type { Places } from "../../base/program_paths.ts";
import type { MediaInput } from "../input.ts";
import { inputOf, writesOf } from "../jobs/invocation.ts";
import type { ToolJob } from "../jobs/jobs.ts";
import type { StreamsBy } from "./cage.ts";

/** Says that a job or a message breaks a rule. The message of the error is for the log. */
export class JobRefused extends Error {
  override readonly name = "JobRefused";
}

/** The folders in which jobs may name files; all are real paths. */
export type JobPlaces = Pick<Places, "ingestRoots" | "uploadRoot" | "tempDir" | "socketDir">;

/** The names that media code gives to what it makes in the temporary folder. */
const NAMES = {
  pipe: /^media-[0-9a-f]{24}\.fifo$/,
  clip: /^clip-[0-9a-f]{24}\.mp4$/,
  socket: /^m-[0-9a-f]{16}\.s$/,
} as const;

/** The name of a new socket, from 8 random bytes. */
export function socketName(random: Uint8Array): string {
  return `m-${random.toHex()}.s`;
}

/** Longest path of a socket; Linux allows 107 bytes. */
export const SOCKET_PATH_BYTES_MAX = 107;

/** The bytes of a socket's name, with the slash before it. */
export const SOCKET_NAME_BYTES = 21;

/**
 * The job with the real paths of its files. Throws {@link JobRefused} for a path or address that it must not
 * name.
 */
export async function checkedJob<Job extends ToolJob>(
  job: Job,
  places: JobPlaces,
  streams: StreamsBy,
): Promise<Job> {
  for (const { path, what, madeBy } of writesOf(job)) {
    if (madeBy === "caller") checkThere(path, what, places);
    else checkNew(path, what, places);
  }
  const given = inputOf(job);
  if (given === null) return job;
  const input = await checkedInput(given, places, streams);
  return "subject" in job ? { ...job, subject: { ...job.subject, input } } : { ...job, input };
}

/** Refuses what is no socket in the folder of the sockets. */
export function checkSocket(path: string, places: JobPlaces): void {
  checkThere(path, "socket", places);
}

async function checkedInput(
  input: MediaInput,
  places: JobPlaces,
  streams: StreamsBy,
): Promise<MediaInput> {
  const isFile = input.kind === "file" || input.kind === "fetched";
  if (isFile !== (input.path !== null) || isFile === (input.url !== null)) {
    throw new JobRefused(`an input of kind ${input.kind} has a path or an address that it must not have`);
  }
  if (!isFile) {
    if (!RELAYED[input.kind as "hls" | "rtsp" | "mjpeg"].test(input.url!)) {
      throw new JobRefused("a stream is read from a relay on loopback only");
    }
    if (streams === "none") throw new JobRefused("this cage has no network for streams");
    if ((streams === "forwarder") !== (input.socket !== null)) {
      throw new JobRefused("a stream is read through the forwarder where there is one, and only there");
    }
    if (input.socket !== null) checkSocket(input.socket, places);
    return input;
  }
  if (input.socket !== null) throw new JobRefused("a file has no socket");
  if (!input.path!.startsWith("/")) throw new JobRefused("a path is not absolute");
  // Without waiting in this isolate, as the folders of an operator may be on a server that does not answer.
  const real = await Deno.realPath(input.path!).catch(() => null);
  const roots = [...places.ingestRoots, places.uploadRoot, places.tempDir];
  const isInside = real !== null &&
    roots.some((root) => real.startsWith(root.endsWith("/") ? root : `${root}/`));
  if (!isInside || !factsOf(real)?.isFile) {
    throw new JobRefused("an input is not a file inside the granted roots");
  }
  return { ...input, path: real };
}

/**
 * Addresses of the relays of `remote/sources/`: without a fragment, user name, space or control character.
 */
const RELAYED = {
  hls: /^http:\/\/127\.0\.0\.1:\d{1,5}\/[\w.\/-]*$/,
  mjpeg: /^http:\/\/127\.0\.0\.1:\d{1,5}\/[\w.\/-]*$/,
  rtsp: /^rtsp:\/\/127\.0\.0\.1:\d{1,5}\/[^\s\p{Cc}#@\\]*$/u,
} as const;

type Made = keyof typeof NAMES;

function checkName(path: string, made: Made, { tempDir, socketDir }: JobPlaces): void {
  const folder = made === "socket" ? socketDir : tempDir;
  const name = basename(path);
  // The name has no slash or dot-dot, so the path is what it says.
  if (path !== `${folder}/${name}` || !NAMES[made].test(name)) {
    throw new JobRefused(`a ${made} must be in the folder for it, under a name that media code makes`);
  }
}

function checkNew(path: string, made: Made, places: JobPlaces): void {
  checkName(path, made, places);
  if (factsOf(path) !== null) throw new JobRefused(`a ${made} is there already`);
}

function checkThere(path: string, made: Made, places: JobPlaces): void {
  checkName(path, made, places);
  const facts = factsOf(path);
  const isRight = made === "pipe" ? facts?.isFifo : made === "socket" ? facts?.isSocket : facts?.isFile;
  if (!isRight) throw new JobRefused(`there is no such ${made}`);
}

/**
 * What the file system says of a file; null for what is not there. Asked at once, as on a busy machine each
 * turn to another thread costs milliseconds.
 */
function factsOf(path: string): Deno.FileInfo | null {
  try {
    return Deno.lstatSync(path);
  } catch {
    return null;
  }
}
