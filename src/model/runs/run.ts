/** A run: the fold of its events in sequence order, and the status that follows from it. */

import { freeMemory } from "../../base/bytes.ts";
import { NONE_REMOVED, type RemovedMedia, withRemoved } from "../files/media_kind.ts";
import { PUBLIC_PRINCIPAL } from "../identifiers.ts";

/** An event to be written; the timeline adds the sequence number and the time. */
export interface NewEvent {
  readonly kind: string;
  readonly runId: string;
  /** The payload: a JSON value, or JSON text that is already made, which can hold integers beyond 2^53. */
  readonly payload: unknown | PreparedPayload;
  /** The stream of the event; `stream-0` without it. */
  readonly streamId?: string;
}

/**
 * A payload that is already JSON text in UTF-8, for records of many megabytes. It must be on one line, as
 * JSON.stringify writes it: the log refuses a text with a line break or a tab between its tokens.
 */
export class PreparedPayload implements Disposable {
  readonly #pieces: Uint8Array[] = [];
  #sizeBytes = 0;
  #isOneLine = true;
  #isReleased = false;

  /**
   * Takes the text, in one piece or in several. A long one is added piece by piece, with turns for others in
   * between.
   */
  constructor(...pieces: readonly Uint8Array[]) {
    for (const piece of pieces) this.add(piece);
  }

  /**
   * The text in order. A piece may change when the next one is taken, and one reading ends before another
   * begins.
   */
  get pieces(): Iterable<Uint8Array> {
    if (this.#isReleased) throw new TypeError("Cannot read a payload that was released");
    return this.#pieces;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Whether the text has no raw tab and no line break, as the format of the log requires. */
  get isOneLine(): boolean {
    return this.#isOneLine;
  }

  /** Looks through the piece at once, so that a commit need not. */
  add(piece: Uint8Array): void {
    this.#isOneLine &&= !piece.includes(LINE_BREAK) && !piece.includes(TAB);
    this.#sizeBytes += piece.length;
    this.keep(piece);
  }

  /** Keeps the next piece of the text. */
  protected keep(piece: Uint8Array): void {
    this.#pieces.push(piece);
  }

  /** Gives back the memory of the pieces that were kept. */
  protected release(): void {
    freeMemory(this.#pieces.splice(0));
  }

  /** Gives back all memory. Nothing can be read afterwards. */
  [Symbol.dispose](): void {
    this.#isReleased = true;
    this.release();
  }

  get text(): string {
    const decoder = new TextDecoder();
    let text = "";
    for (const piece of this.pieces) text += decoder.decode(piece, { stream: true });
    return text + decoder.decode();
  }
}

const [TAB, LINE_BREAK] = [0x09, 0x0a];

export type FoldedState = "pending" | "processing" | "completed" | "failed" | "cancelled";
export type RunStatus = FoldedState | "expired";

/**
 * A run as it follows from its events. The object is live: it changes with the next commit, so a value that
 * was read before an `await` may be outdated after it. A text that no event gave is the empty string.
 */
export interface RunView {
  readonly runId: string;
  readonly principalKey: string;
  readonly mode: string;
  readonly model: string;
  /** The `source_uri` of the first `ingest_received`, or of the live source that was opened before it. */
  readonly sourceUri: string;
  /** The name that the upload of the run had; empty for other sources. */
  readonly sourceName: string;
  readonly state: FoldedState;
  /** When the run was created: the pts of `run_created`, epoch milliseconds. */
  readonly createdMs: number;
  /** The last activity: the highest pts of its events but those about a hold, epoch milliseconds. */
  readonly lastActivityMs: number;
  readonly deleted: boolean;
  /**
   * The event up to which retention has removed those of the run; 0 where it has all of them. See
   * docs/retention.md.
   */
  readonly removedSeq: number;
  /** Media that went before the events that name them. */
  readonly removedMedia: RemovedMedia;
  /** Whether the run is on hold: then nothing of it is deleted. See docs/api/runs.md#hold. */
  readonly onHold: boolean;
  /** How many events of the run are left; the two numbers below are also about these. */
  readonly eventCount: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  /**
   * Where the media of the run's live session come from: a publisher, or a source that the service pulls.
   * Empty without one.
   */
  readonly source: "whip" | "live" | "";
  /** The live session of the run; empty for every run without one. */
  readonly sessionId: string;
  /** Sequence number of the last `frames_decoded`, 0 when there is none. */
  readonly latestFramesDecodedSeq: number;
  /** The bytes of the run's records in the log. */
  readonly logBytes: number;
}

/**
 * The status of a run. One that was idle for longer than the TTL is expired; that is decided on reading. See
 * docs/api/runs.md#run-status.
 */
export function statusOf(
  run: Pick<RunView, "state" | "lastActivityMs">,
  nowMs: number,
  ttlMs: number,
): RunStatus {
  if (isTerminal(run.state)) return run.state;
  return nowMs - run.lastActivityMs > ttlMs ? "expired" : run.state;
}

export function isTerminal(status: RunStatus): boolean {
  return status !== "pending" && status !== "processing";
}

/** The state after an event, by its kind. A kind that is not listed leaves the state as it is. */
const STATE_AFTER: ReadonlyMap<string, FoldedState> = new Map([
  ["run_created", "pending"],
  ["ingest_received", "processing"],
  ["analysis_generated", "processing"],
  ["inference_completed", "processing"],
  ["keepalive_refreshed", "processing"],
  ["live_source_opened", "processing"],
  ["publisher_connected", "processing"],
  ["run_completed", "completed"],
  ["run_failed", "failed"],
  ["stop_requested", "cancelled"],
]);

/**
 * Kinds that say what may be deleted, not that somebody works on the run: a hold does not wake an expired
 * one.
 */
const HOLD_KINDS: ReadonlySet<string> = new Set(["hold_placed", "hold_released"]);

/**
 * The kind which says that every earlier event of the run was removed, and what of them the run needs. See
 * docs/retention.md.
 */
export const EVENTS_REMOVED = "events_removed";

/**
 * The kind which says that media which earlier events of the run name were removed; the events stay. See
 * docs/retention.md#media.
 */
export const MEDIA_REMOVED = "media_removed";

/** Kinds that say nothing about work on the run. */
const PASSIVE_KINDS: ReadonlySet<string> = new Set([...HOLD_KINDS, EVENTS_REMOVED, MEDIA_REMOVED]);

/** What of a run follows from its removed events, as `events_removed` has it. */
export interface RunSummaryPayload {
  readonly principal_key: string;
  readonly mode: string;
  readonly model: string;
  readonly source_uri: string;
  readonly source_name?: string;
  readonly source: RunView["source"];
  readonly session_id: string;
  readonly state: FoldedState;
  readonly created_ms: number;
  readonly last_activity_ms: number;
  readonly deleted: boolean;
}

export function summaryOf(run: RunView): RunSummaryPayload {
  return {
    principal_key: run.principalKey,
    mode: run.mode,
    model: run.model,
    source_uri: run.sourceUri,
    ...(run.sourceName !== "" && { source_name: run.sourceName }),
    source: run.source,
    session_id: run.sessionId,
    state: run.state,
    created_ms: run.createdMs,
    last_activity_ms: run.lastActivityMs,
    deleted: run.deleted,
  };
}

/** Whether the run is no longer listed, counted or searched. */
export function isGone(run: Pick<RunView, "deleted" | "removedSeq">): boolean {
  return run.deleted || run.removedSeq > 0;
}

/** The run that the fold writes to; all other code gets it as a RunView. */
export class Run implements RunView {
  principalKey = "";
  mode = "";
  model = "";
  sourceUri = "";
  sourceName = "";
  state: FoldedState = "pending";
  createdMs = 0;
  lastActivityMs = 0;
  deleted = false;
  removedSeq = 0;
  removedMedia = NONE_REMOVED;
  onHold = false;
  eventCount = 0;
  firstSeq = 0;
  lastSeq = 0;
  source: "whip" | "live" | "" = "";
  sessionId = "";
  latestFramesDecodedSeq = 0;
  logBytes = 0;
  /** Whether `run_created` was folded: without it the run has no owner and is not listed. */
  isCreated = false;
  hasIngest = false;

  constructor(readonly runId: string) {}

  /**
   * Whether `fold` reads the payload of an event of this kind; for other kinds the payload need not be
   * parsed.
   */
  needsPayloadOf(kind: string): boolean {
    return (kind === "run_created" && !this.isCreated) || (kind === "ingest_received" && !this.hasIngest) ||
      kind === "live_source_opened" || kind === EVENTS_REMOVED || kind === MEDIA_REMOVED;
  }

  /** Folds one event into the run. `payload` is read only when `needsPayloadOf` is true for the kind. */
  fold(seq: number, ptsMs: number, kind: string, payload: unknown): void {
    if (this.eventCount === 0) this.firstSeq = seq;
    this.eventCount++;
    this.lastSeq = seq;
    if (ptsMs > this.lastActivityMs && !PASSIVE_KINDS.has(kind)) this.lastActivityMs = ptsMs;
    this.state = STATE_AFTER.get(kind) ?? this.state;
    if (kind === "run_created") this.#create(ptsMs, payload);
    else if (kind === "ingest_received") this.#ingest(payload);
    else if (kind === "live_source_opened") this.#openLive(payload);
    else if (kind === "frames_decoded") this.latestFramesDecodedSeq = seq;
    else if (kind === "run_deleted") this.deleted = true;
    else if (HOLD_KINDS.has(kind)) this.onHold = kind === "hold_placed";
    else if (kind === EVENTS_REMOVED) this.#remove(seq, payload);
    else if (kind === MEDIA_REMOVED) this.removedMedia = withRemoved(this.removedMedia, payload);
  }

  /**
   * Makes the event the first one of the run. Where the events before it are not in the log any more, it has
   * what followed from them.
   */
  #remove(seq: number, payload: unknown): void {
    const { run, through_seq: throughSeq = seq - 1 } = (payload ?? {}) as {
      readonly run?: RunSummaryPayload;
      readonly through_seq?: number;
    };
    this.removedSeq = throughSeq;
    this.eventCount = 1;
    this.firstSeq = seq;
    this.latestFramesDecodedSeq = 0;
    this.hasIngest = true; // the source of a run that has ended does not change
    if (this.isCreated || run === undefined) return;
    this.isCreated = true;
    this.principalKey = run.principal_key;
    this.mode = run.mode;
    this.model = run.model;
    this.sourceUri = run.source_uri;
    this.sourceName = run.source_name ?? "";
    this.source = run.source;
    this.sessionId = run.session_id;
    this.state = run.state;
    this.createdMs = run.created_ms;
    this.lastActivityMs = run.last_activity_ms;
    this.deleted = run.deleted;
  }

  /** Folds the creation of the run. Only the first one counts: no later event changes the owner. */
  #create(ptsMs: number, payload: unknown): void {
    if (this.isCreated) return;
    this.isCreated = true;
    this.createdMs = ptsMs;
    // Without a principal_key the run belongs to the principal of callers without a key.
    this.principalKey = text(payload, "principal_key") || PUBLIC_PRINCIPAL;
    this.mode = text(payload, "mode");
    this.model = text(payload, "model");
    const source = text(payload, "source");
    this.source = source === "whip" || source === "live" ? source : "";
    this.sessionId = text(payload, "session_id");
  }

  #openLive(payload: unknown): void {
    this.source = "live";
    this.sessionId = text(payload, "session_id");
    this.#ingest(payload);
  }

  #ingest(payload: unknown): void {
    if (this.hasIngest) return;
    this.hasIngest = true;
    this.sourceUri = text(payload, "source_uri");
    this.sourceName = text(payload, "source_name");
  }
}

function text(payload: unknown, key: string): string {
  if (typeof payload !== "object" || payload === null) return "";
  const value = (payload as Record<string, unknown>)[key];
  return typeof value === "string" ? value : "";
}
