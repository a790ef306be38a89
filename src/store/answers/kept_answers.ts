/** The idempotency keys in use and the answers to them, each key in a file of its own. See
 * docs/api.md#idempotency-keys.
 */

import { join } from "node:path";
import { RateLimited } from "../../sharing/rate_limit.ts";
import { refuse } from "../../contract/refusal.ts";
import { TaskGroup } from "../../base/tasks.ts";
import { pause } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { PrincipalNames } from "../../model/principal_names.ts";
import { isGone } from "../../model/runs/run.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";
import {
  type AnswerEnd,
  answerPieces,
  AnswerWriter,
  createAnswerFile,
  dropAnswer,
  type KeyUse,
  readAnswerFile,
} from "./answer_file.ts";
import { onDisk } from "../files/partial_file.ts";
import type { StoredBytes } from "../space/stored_bytes.ts";

export interface KeptAnswersOptions {
  /** The data directory. The caller must own its lock. */
  readonly dataDir: string;
  /** Whether a key and its answer must be on the disk itself, as SERVICE_WAL_SYNC asks. */
  readonly syncs: boolean;
  readonly view: Pick<TimelineView, "run" | "lastSeq">;
  /** The names of principals as they are now, whatever the files call them. */
  readonly names: Pick<PrincipalNames, "current">;
  readonly stored: Pick<StoredBytes, "requireRoom" | "addAnswer">;
  readonly world: World;
  /** Bounds for tests; those of the table of limits unless given. */
  readonly bounds?: AnswerBounds;
}

/** What one principal may have. */
type AnswerBounds = Readonly<Record<"keysMax" | "answerBytesMax" | "bytesMax", number>>;

/** A key that was used within the last 24 hours; changes with its request. */
export interface KeptKey {
  readonly use: KeyUse;
  readonly state: KeyState;
}

export type KeyState =
  | { readonly kind: "running" }
  | { readonly kind: "answered"; readonly status: number; readonly bytes: number; readonly crc32: number }
  /** The request succeeded, and its answer is not kept. */
  | { readonly kind: "dropped" }
  /** How far the request came is not known. Its events, if any, have this number or an earlier one. */
  | { readonly kind: "interrupted"; readonly toSeq: number };

interface OwnKey extends KeptKey {
  state: KeyState;
  headBytes: number;
  sizeBytes: number;
}

type Pieces = AsyncIterable<Uint8Array<ArrayBuffer>>;

/** What one principal has. */
interface KeptShare {
  /** The keys of the principal, the oldest first. */
  readonly keys: Set<OwnKey>;
  bytes: number;
}

const BOUNDS: AnswerBounds = {
  keysMax: LIMITS.idempotency.keysMax,
  answerBytesMax: LIMITS.idempotency.answerBytesMax,
  bytesMax: LIMITS.idempotency.bytesMax,
};
const FOLDER = "idempotency";
/** How often old keys are removed while no request brings a new one. */
const SWEEP_MS = 10 * 60_000;
/** The longest answer in bytes that is sent from memory and not read again. */
const HELD_BYTES_MAX = 256 * 1024;

/**
 * Each step is in the file before the caller goes on, so that a process that is killed leaves a key whose
 * state is known:
 *
 *     begin ─→ running ─keep→ answered ─room for others→ dropped
 *                 │ └─the process stops→ interrupted
 *                 └─remove→ gone, and so is every key after 24 hours
 */
export class KeptAnswers implements AsyncDisposable {
  readonly #options: KeptAnswersOptions;
  readonly #bounds: AnswerBounds;
  readonly #folder: string;
  /** All keys by scope, the oldest first. */
  readonly #keys = new Map<string, OwnKey>();
  readonly #ofRun = new Map<string, Set<OwnKey>>();
  readonly #shares = new Map<string, KeptShare>();
  readonly #sweeping = new TaskGroup();

  /** Reads the keys. Removes those that are old, that never began, and that are of deleted runs. */
  static open(options: KeptAnswersOptions): KeptAnswers {
    const folder = join(options.dataDir, FOLDER);
    Deno.mkdirSync(folder, { recursive: true, mode: 0o700 });
    return new KeptAnswers(options, folder);
  }

  private constructor(options: KeptAnswersOptions, folder: string) {
    this.#options = options;
    this.#bounds = options.bounds ?? BOUNDS;
    this.#folder = folder;
    const found = Array.from(Deno.readDirSync(folder), ({ name }) => this.#read(name))
      .filter((key) => key !== undefined)
      .sort((left, right) => left.use.begunMs - right.use.begunMs);
    for (const key of found) this.#add(key);
    for (const key of found) if (this.#isOfDeletedRun(key)) this.remove(key);
    this.#sweep();
    this.#sweeping.start(async (signal) => {
      while (await pause(options.world, SWEEP_MS, signal)) this.#sweep();
    });
  }

  get count(): number {
    return this.#keys.size;
  }

  find(scope: string): KeptKey | undefined {
    this.#sweep();
    return this.#keys.get(scope);
  }

  /**
   * Begins a new key, which is then running. From the call on, `find` finds it. Where the principal has as
   * many keys as it may, its oldest one is forgotten. Errors: 429 when that is too young, 507
   * `storage_quota`, 503 `storage_unavailable`.
   */
  async begin(use: KeyUse): Promise<KeptKey> {
    this.#requireShare(use.principalKey);
    this.#options.stored.requireRoom(use.principalKey);
    const key: OwnKey = { use, state: { kind: "running" }, headBytes: 0, sizeBytes: 0 };
    this.#add(key);
    try {
      await onDisk(this.#options.world, async () => {
        key.headBytes = createAnswerFile(this.#pathOf(key), use);
        if (this.#options.syncs) await this.#syncNew(key);
      });
    } catch (error) {
      this.remove(key);
      throw error;
    }
    this.#grow(key, key.headBytes);
    return key;
  }

  /**
   * Keeps the answer to a running key, unless its run was deleted meanwhile. Resolves when it is kept, with
   * the body to be sent. An answer that is too long, or that the disk or the quota refuses, is sent all the
   * same, and the key is dropped. What `body` throws is rethrown, and the key is interrupted.
   */
  async keep(running: KeptKey, status: number, body: Pieces): Promise<Pieces> {
    const key = this.#own(running);
    if (this.#isOfDeletedRun(key)) {
      this.remove(key);
      return body;
    }
    const reader = body[Symbol.asyncIterator]();
    const held: Uint8Array<ArrayBuffer>[] = [];
    let pending: Uint8Array<ArrayBuffer> | undefined;
    let written = 0;
    let sourceFault: { readonly reason: unknown } | undefined;
    try {
      using writer = new AnswerWriter(this.#pathOf(key));
      for (;;) {
        const next = await reader.next().catch((reason) => {
          throw (sourceFault = { reason });
        });
        if (next.done) break;
        pending = next.value;
        this.#requireRoom(key, writer.bytes, pending.length);
        await writer.add(pending);
        this.#grow(key, pending.length);
        written = writer.bytes;
        if (written <= HELD_BYTES_MAX) held.push(pending);
        pending = undefined;
      }
      const end = { bytes: writer.bytes, crc32: writer.crc32 };
      this.#grow(key, await writer.end(status, this.#options.syncs));
      key.state = { kind: "answered", status, ...end };
      return written <= HELD_BYTES_MAX ? inOrder(held) : answerPieces(this.#pathOf(key), key.headBytes, end);
    } catch (error) {
      if (sourceFault !== undefined) {
        this.interrupt(key);
        throw sourceFault.reason;
      }
      this.#options.world.log.warn("the answer to an idempotency key is not kept", { error: String(error) });
      key.state = { kind: "dropped" };
      return this.#unkept(key, { written, pending, reader });
    }
  }

  /** The body of a kept answer. Undefined for a file that is damaged or missing; the key is dropped then. */
  async read(answered: KeptKey): Promise<Pieces | undefined> {
    const key = this.#own(answered);
    if (key.state.kind !== "answered") return undefined;
    const pieces = answerPieces(this.#pathOf(key), key.headBytes, key.state)[Symbol.asyncIterator]();
    try {
      const first = await pieces.next();
      return first.done ? inOrder([]) : inOrder([first.value], pieces);
    } catch (error) {
      this.#options.world.log.error("cannot read a kept answer", { error: String(error) });
      this.#drop(key);
      return undefined;
    }
  }

  /** Makes an interrupted key a running one, so that its answer can be kept after all. */
  resume(interrupted: KeptKey): Promise<void> {
    const key = this.#own(interrupted);
    // Without `await`, so that no second request takes up the same key meanwhile.
    // deno-lint-ignore require-await
    return onDisk(this.#options.world, async () => {
      Deno.truncateSync(this.#pathOf(key), key.headBytes); // the first part of an answer may follow the head
      this.#grow(key, key.headBytes - key.sizeBytes);
      key.state = { kind: "running" };
    });
  }

  /** Notes that the request ended in a way that leaves it unknown how far it came. */
  interrupt(running: KeptKey): void {
    this.#own(running).state = { kind: "interrupted", toSeq: this.#options.view.lastSeq };
  }

  /** Frees the key. */
  remove(kept: KeptKey): void {
    const key = this.#own(kept);
    if (this.#keys.get(key.use.scope) !== key) return;
    this.#keys.delete(key.use.scope);
    for (const runId of key.use.runIds) {
      const ofRun = this.#ofRun.get(runId);
      ofRun?.delete(key);
      if (ofRun?.size === 0) this.#ofRun.delete(runId);
    }
    this.#grow(key, -key.sizeBytes);
    const share = this.#shareOf(key.use.principalKey);
    share.keys.delete(key);
    if (share.keys.size === 0) this.#shares.delete(key.use.principalKey);
    this.#removeFile(this.#pathOf(key));
  }

  /**
   * Removes the answers that concern a deleted run. One whose request is still running is removed at its end.
   */
  forgetRun(runId: string): void {
    for (const key of [...this.#ofRun.get(runId) ?? []]) if (key.state.kind !== "running") this.remove(key);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#sweeping.close();
  }

  #read(name: string): OwnKey | undefined {
    const path = join(this.#folder, name);
    const file = readAnswerFile(path);
    if (file === undefined || file.use.scope !== name) {
      this.#options.world.log.warn("removed an idempotency key that was not written in full", { name });
      this.#removeFile(path);
      return undefined;
    }
    const use = { ...file.use, principalKey: this.#options.names.current(file.use.principalKey) };
    return { ...file, use, state: stateAfter(file.end, this.#options.view.lastSeq) };
  }

  #add(key: OwnKey): void {
    const { scope, principalKey, runIds } = key.use;
    this.#keys.set(scope, key);
    for (const runId of runIds) {
      const ofRun = this.#ofRun.get(runId);
      if (ofRun === undefined) this.#ofRun.set(runId, new Set([key]));
      else ofRun.add(key);
    }
    const share = this.#shareOf(principalKey);
    share.keys.add(key);
    share.bytes += key.sizeBytes;
    this.#options.stored.addAnswer(principalKey, key.sizeBytes);
  }

  #grow(key: OwnKey, bytes: number): void {
    key.sizeBytes += bytes;
    this.#shareOf(key.use.principalKey).bytes += bytes;
    this.#options.stored.addAnswer(key.use.principalKey, bytes);
  }

  #shareOf(principalKey: string): KeptShare {
    let share = this.#shares.get(principalKey);
    if (share === undefined) this.#shares.set(principalKey, share = { keys: new Set(), bytes: 0 });
    return share;
  }

  #requireShare(principalKey: string): void {
    const keys = this.#shares.get(principalKey)?.keys;
    if (keys === undefined || keys.size < this.#bounds.keysMax) return;
    const [oldest] = keys;
    const keptMsMin = LIMITS.idempotency.keptMsMin;
    const leftMs = oldest!.use.begunMs + keptMsMin - this.#options.world.now();
    if (leftMs <= 0 && oldest!.state.kind !== "running") return this.remove(oldest!);
    throw new RateLimited(
      Math.max(1, Math.ceil(leftMs / 1000)),
      `Cannot take another idempotency key now: ${this.#bounds.keysMax} of yours were used within ${
        keptMsMin / 60_000
      } minutes`,
    );
  }

  /** Makes room by dropping the oldest answers of the same principal. */
  #requireRoom({ use: { principalKey } }: OwnKey, written: number, bytes: number): void {
    const { answerBytesMax, bytesMax } = this.#bounds;
    if (written + bytes > answerBytesMax) {
      throw refuse.because("storage_quota", `the answer is longer than ${answerBytesMax} bytes`);
    }
    this.#options.stored.requireRoom(principalKey, bytes);
    const share = this.#shareOf(principalKey);
    if (share.bytes + bytes <= bytesMax) return;
    for (const key of share.keys) {
      if (key.state.kind !== "answered") continue;
      this.#drop(key);
      if (share.bytes + bytes <= bytesMax) return;
    }
    throw refuse.because("storage_quota", `the answers under way are longer than ${bytesMax} bytes`);
  }

  #drop(key: OwnKey): void {
    key.state = { kind: "dropped" };
    try {
      this.#grow(key, dropAnswer(this.#pathOf(key), key.headBytes) - key.sizeBytes);
    } catch (error) {
      this.#options.world.log.error("cannot drop a kept answer", { error: String(error) });
    }
  }

  /**
   * The pieces of an answer that could not be kept: what is in the file, what the file did not take, and what
   * comes after that.
   */
  async *#unkept(key: OwnKey, { written, pending, reader }: {
    readonly written: number;
    readonly pending: Uint8Array<ArrayBuffer> | undefined;
    readonly reader: AsyncIterator<Uint8Array<ArrayBuffer>>;
  }): Pieces {
    try {
      if (written > 0) yield* answerPieces(this.#pathOf(key), key.headBytes, { bytes: written });
      if (pending !== undefined) yield pending;
      yield* inOrder([], reader);
    } finally {
      await reader.return?.();
      if (this.#keys.get(key.use.scope) === key) this.#drop(key);
    }
  }

  async #syncNew(key: OwnKey): Promise<void> {
    using file = await Deno.open(this.#pathOf(key), { write: true });
    await file.syncData();
    using folder = await Deno.open(this.#folder, { read: true });
    await folder.sync(); // without it a power failure could lose the name
  }

  #sweep(): void {
    const untilMs = this.#options.world.now() - LIMITS.idempotency.keptMs;
    for (const key of this.#keys.values()) {
      if (key.use.begunMs > untilMs) return;
      if (key.state.kind !== "running") this.remove(key);
    }
  }

  #isOfDeletedRun({ use }: OwnKey): boolean {
    return use.runIds.map((runId) => this.#options.view.run(runId)).some((run) =>
      run !== undefined && isGone(run)
    );
  }

  #own(key: KeptKey): OwnKey {
    return key as OwnKey;
  }

  #pathOf({ use }: OwnKey): string {
    return join(this.#folder, use.scope);
  }

  #removeFile(path: string): void {
    try {
      Deno.removeSync(path);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return;
      this.#options.world.log.error("cannot remove an idempotency key", { path, error: String(error) });
    }
  }
}

function stateAfter(end: AnswerEnd | undefined, lastSeq: number): KeyState {
  if (end === undefined) return { kind: "interrupted", toSeq: lastSeq };
  return "isDropped" in end ? { kind: "dropped" } : { kind: "answered", ...end };
}

async function* inOrder<T>(held: readonly T[], rest?: AsyncIterator<T>): AsyncIterable<T> {
  try {
    yield* held;
    if (rest === undefined) return;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest?.return?.();
  }
}
