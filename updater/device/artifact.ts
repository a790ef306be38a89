/** Gets the artifact of a release into its part file: bounded, resumed where a part is there already, verified at the end. A part
 * that cannot become the artifact is removed.
 */

import { createHash } from "node:crypto";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { CliError } from "../../cli/failure.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import type { Manifest } from "../release/manifest.ts";
import { clientOf, fetchError, request, type Trust } from "./fetching.ts";
import { statOf } from "./keys.ts";
import type { Machine } from "./machine.ts";

const READ_BYTES = 2 ** 20;
const PARTIAL_CONTENT = 206;
const RANGE_NOT_SATISFIABLE = 416;

type Artifact = Manifest["artifact"];

/** Returns how many bytes came anew. Afterwards the part file has exactly the bytes that the manifest names, on the disk. */
export async function obtainArtifact(
  { artifact }: Manifest,
  partPath: string,
  trust: Trust,
  machine: Machine,
): Promise<number> {
  using file = Deno.openSync(partPath, { read: true, write: true, create: true, mode: 0o600 });
  let there = file.statSync().size;
  if (there > artifact.size_bytes) {
    file.truncateSync(0);
    there = 0;
  }
  await checkRoom(artifact.size_bytes - there, dirname(partPath), machine);
  if (there < artifact.size_bytes) await receive(artifact, file, there, trust, machine);
  const sha256 = await sha256Of(file, trust.signal);
  if (sha256 !== artifact.sha256) {
    file.truncateSync(0);
    throw new CliError(
      "server",
      `the artifact is refused: artifact.sha256: must be ${artifact.sha256}, got ${sha256} from ${artifact.uri}`,
    );
  }
  file.syncSync();
  return artifact.size_bytes - there;
}

/** Whether a file is the artifact. */
export async function isArtifact(
  { sha256, size_bytes }: Artifact,
  path: string,
  signal: AbortSignal,
): Promise<boolean> {
  let file: Deno.FsFile;
  try {
    file = Deno.openSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
  using opened = file;
  return opened.statSync().size === size_bytes && await sha256Of(opened, signal) === sha256;
}

/** The SHA-256 of a whole file. */
export async function sha256Of(file: Deno.FsFile, signal: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  const chunk = new Uint8Array(READ_BYTES);
  file.seekSync(0, Deno.SeekMode.Start);
  for (;;) {
    signal.throwIfAborted();
    const count = await file.read(chunk);
    if (count === null) return hash.digest("hex");
    hash.update(chunk.subarray(0, count));
  }
}

async function checkRoom(neededBytes: number, folder: string, machine: Machine): Promise<void> {
  const wanted = neededBytes + LIMITS.edge.headroomBytes;
  const free = await machine.freeBytes(folder);
  if (free < wanted) {
    throw new CliError(
      "failed",
      `the disk has too little room: ${neededBytes} bytes are to come and ${LIMITS.edge.headroomBytes} are to stay free, got ${free}`,
    );
  }
}

async function receive(
  artifact: Artifact,
  file: Deno.FsFile,
  there: number,
  trust: Trust,
  machine: Machine,
): Promise<void> {
  const { uri, size_bytes } = artifact;
  if (uri.startsWith("file:")) {
    const path = fileURLToPath(uri);
    const { isFile, size } = statOf(path);
    if (!isFile || size !== size_bytes) throw wrongSize(artifact, isFile ? `${size}` : "no file");
    file.truncateSync(0);
    using source = await Deno.open(path);
    return await append(source.readable, file, 0, artifact, trust.signal);
  }
  using idle = new IdleTimer(machine.idleMs);
  const deadline = AbortSignal.timeout(LIMITS.edge.artifactTimeoutMs);
  const signal = AbortSignal.any([trust.signal, deadline, idle.signal]);
  using client = clientOf(trust);
  try {
    const answer = await request(uri, there > 0 ? { range: `bytes=${there}-` } : {}, client, signal);
    const start = startOf(answer, there, size_bytes);
    if (start === null) {
      await answer.body?.cancel();
      if (answer.status === RANGE_NOT_SATISFIABLE) file.truncateSync(0);
      throw new CliError("unreachable", `${uri} answers with HTTP ${answer.status}`);
    }
    const length = Number(answer.headers.get("content-length") ?? size_bytes - start);
    if (start + length !== size_bytes) {
      await answer.body?.cancel();
      file.truncateSync(0);
      throw wrongSize(artifact, `${start + length}`);
    }
    file.truncateSync(start);
    await append(answer.body ?? new ReadableStream(), file, start, artifact, signal, () => idle.restart());
  } catch (error) {
    if (idle.signal.aborted) {
      throw new CliError("unreachable", `${uri} sent nothing for ${machine.idleMs} ms`);
    }
    throw fetchError(uri, error, trust.signal);
  }
}

/** Where the bytes of an answer belong; null where it has none of the artifact. */
function startOf(answer: Response, there: number, sizeBytes: number): number | null {
  if (answer.status === 200) return 0;
  const range = answer.headers.get("content-range");
  return answer.status === PARTIAL_CONTENT && range === `bytes ${there}-${sizeBytes - 1}/${sizeBytes}`
    ? there
    : null;
}

/** Never writes a byte more than the manifest allows. */
async function append(
  source: ReadableStream<Uint8Array>,
  file: Deno.FsFile,
  start: number,
  artifact: Artifact,
  signal: AbortSignal,
  arrived?: () => void,
): Promise<void> {
  let at = start;
  file.seekSync(start, Deno.SeekMode.Start);
  for await (const chunk of source) {
    signal.throwIfAborted();
    arrived?.();
    if (at + chunk.byteLength > artifact.size_bytes) {
      file.truncateSync(0);
      throw wrongSize(artifact, "more");
    }
    for (let done = 0; done < chunk.byteLength;) done += file.writeSync(chunk.subarray(done));
    at += chunk.byteLength;
  }
  if (at < artifact.size_bytes) {
    throw new CliError("unreachable", `${artifact.uri} ended after ${at} of ${artifact.size_bytes} bytes`);
  }
}

function wrongSize({ size_bytes, uri }: Artifact, got: string): CliError {
  return new CliError(
    "server",
    `the artifact is refused: artifact.size_bytes: must be ${size_bytes}, got ${got} from ${uri}`,
  );
}

/** Aborts its signal when it is not restarted in time. */
class IdleTimer implements Disposable {
  readonly #controller = new AbortController();
  readonly #ms: number;
  #timer: ReturnType<typeof setTimeout>;

  constructor(ms: number) {
    this.#ms = ms;
    this.#timer = this.#start();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  restart(): void {
    clearTimeout(this.#timer);
    this.#timer = this.#start();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #start(): ReturnType<typeof setTimeout> {
    return setTimeout(() => this.#controller.abort(), this.#ms);
  }
}
