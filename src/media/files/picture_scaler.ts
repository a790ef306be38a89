/** Makes smaller JPEGs of stored ones on demand, and keeps the last of them in memory. */

import { PermitQueue } from "../../sharing/permit_queue.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { MemoryBudget } from "../memory_budget.ts";
import { niced, type ToolRunner } from "../jobs/runner.ts";
import type { NeededAbilities } from "./needed_abilities.ts";

export interface PictureScalerOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  readonly memory: MemoryBudget;
  readonly trials: Pick<NeededAbilities, "require">;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
}

export interface PictureRequest {
  readonly principalKey: string;
  /** Hash of the bytes that `read` gives. */
  readonly sha256: string;
  /** Pixels; a picture that is narrower stays as wide as it is. */
  readonly width: number;
  readonly read: () => Promise<Uint8Array<ArrayBuffer>>;
}

const WORKERS_MAX = 2;
const WAITING_MAX = 256;
const ERROR_BYTES = 4 << 10;
/** Priority of the programs: callers only look at a page meanwhile, so live sessions and decodes go first. */
const NICE = 10;

export class PictureScaler implements AsyncDisposable {
  readonly #options: PictureScalerOptions;
  readonly #permits: PermitQueue;
  readonly #closing = new AbortController();
  /** Pictures by hash and width; the one that was asked for last is at the end. */
  readonly #kept = new Map<string, Uint8Array<ArrayBuffer>>();
  #keptBytes = 0;
  /** Pictures that are being made, so that two callers share one. */
  readonly #running = new Map<string, Promise<Uint8Array<ArrayBuffer>>>();

  constructor(options: PictureScalerOptions) {
    this.#options = options;
    this.#permits = new PermitQueue({
      limit: WORKERS_MAX,
      waiterLimit: WAITING_MAX,
      what: "smaller pictures",
      refusal: "storage_unavailable",
      isShared: options.isShared,
    });
  }

  /**
   * Errors: 503 where too many wait, it waits too long, or ffmpeg cannot do it; throws for bytes that are no
   * picture.
   */
  smaller(request: PictureRequest): Promise<Uint8Array<ArrayBuffer>> {
    const key = `${request.sha256} ${request.width}`;
    const kept = this.#kept.get(key);
    if (kept) {
      this.#kept.delete(key);
      this.#kept.set(key, kept);
      return Promise.resolve(kept);
    }
    const running = this.#running.get(key);
    if (running) return running;
    // A caller that leaves does not end it, as another one may wait for the same; the deadline does.
    const made = this.#make(request).then((picture) => this.#keep(key, picture))
      .finally(() => this.#running.delete(key));
    this.#running.set(key, made);
    return made;
  }

  async #make({ principalKey, width, read }: PictureRequest): Promise<Uint8Array<ArrayBuffer>> {
    const { runner, world, memory, trials } = this.#options;
    await trials.require("picture");
    using _permit = await this.#permits.acquire({
      principalKey,
      within: { world, timeoutMs: LIMITS.picture.scaleTimeoutMs },
    });
    using _memory = await memory.reserve({
      ...{ principalKey, signal: this.#closing.signal, work: "jpeg", size: null },
    });
    const { end, code, stdout, stderr } = await niced(runner, NICE).run({ kind: "scale_picture", width }, {
      world,
      signal: this.#closing.signal,
      deadlineMs: LIMITS.picture.scaleTimeoutMs,
      maxStdoutBytes: LIMITS.picture.pictureBytesMax,
      maxStderrBytes: ERROR_BYTES,
      input: await read(),
    });
    if (end === "exited" && code === 0 && stdout.length > 0) return stdout.slice();
    throw new Error(`Cannot make a stored picture smaller: ${end}, code ${code}, ${stderr.slice(0, 500)}`);
  }

  #keep(key: string, picture: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
    this.#kept.set(key, picture);
    this.#keptBytes += picture.length;
    for (const [oldest, { length }] of this.#kept) {
      if (this.#keptBytes <= LIMITS.picture.keptBytesMax) break;
      this.#kept.delete(oldest);
      this.#keptBytes -= length;
    }
    return picture;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the service is closing"));
    this.#permits.close();
    await Promise.allSettled(this.#running.values());
  }
}
