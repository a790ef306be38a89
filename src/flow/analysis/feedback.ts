/** Feedback of operators: submitted to one run, listed over all runs of the caller. See
 * docs/api/reading.md#feedback.
 */

import { utf8Length } from "../../base/bytes.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { FeedbackBody } from "../../model/api/feedback.ts";
import { event } from "../../model/events/event_table.ts";
import { FieldRules } from "../../model/field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { StoredEvent } from "../../store/timeline/event_reader.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { cursorNumbers, PageEntries, pageOf, type PageQuery } from "../list_page.ts";
import type { Mirror } from "../system/mirror.ts";
import { ownedRun } from "../runs/ownership.ts";

const KIND = "operator_feedback_submitted";
/** Events in one batch of the list. */
const BATCH_EVENTS = 128;
/**
 * Characters of payloads in one batch, a last one added: what a client that does not read its answer keeps in
 * memory. Of the longest text, each control character written as six, a batch has one.
 */
const BATCH_CHARACTERS = 64 << 10;

/** One item of the list. */
export interface FeedbackItem {
  /** The sequence number of its event. */
  readonly id: number;
  readonly run_id: string;
  readonly session_id: string;
  readonly rating: number;
  readonly category: string;
  readonly feedback: string;
  /** When it was appended, epoch microseconds. */
  readonly timestamp_micros: number;
  readonly storage: "local_wal";
}

export class Feedback {
  readonly #timeline: Timeline;
  readonly #mirror: Pick<Mirror, "has"> | null;
  /** Sequence numbers of each principal's feedback, deleted runs included. Read from the log on first use. */
  #seqs: Map<string, number[]> | undefined;

  /** `mirror` is null where there is no mirror database. */
  constructor(timeline: Timeline, mirror: Pick<Mirror, "has"> | null) {
    this.#timeline = timeline;
    this.#mirror = mirror;
  }

  /** Keeps the list up to date until it is disposed. */
  observe(): Disposable {
    return this.#timeline.observe((run, seq, kind) => {
      if (kind === KIND && this.#seqs !== undefined) addSeq(this.#seqs, run.principalKey, seq);
    });
  }

  /**
   * Returns the feedback's id. A terminal run takes feedback like any other. Errors: 422 on `rating`,
   * `category` and `feedback`, checked before the run; then 422 and 404 on the run.
   */
  submit(caller: Caller, runId: string, body: FeedbackBody): number {
    check(body);
    const [committed] = this.#timeline.commit((view) => {
      const run = ownedRun(view, caller, runId);
      return [event("operator_feedback_submitted", run.runId, {
        session_id: "",
        rating: body.rating,
        category: body.category,
        feedback: body.feedback ?? "",
      })];
    });
    return committed!.seq;
  }

  /**
   * Whether the mirror database has the feedback with this id, as far as is known now; see {@link
   * Mirror.has}.
   */
  async isMirrored(feedbackId: number): Promise<boolean> {
    return await this.#mirror?.has(feedbackId) ?? false;
  }

  /**
   * Batches of the feedback on the caller's runs, deleted ones excluded, in sequence order: of all, or of one
   * page. Errors: 422 on `limit`, `cursor`.
   */
  list(caller: Caller, query: PageQuery = {}): AsyncIterable<readonly FeedbackItem[]> {
    const page = pageOf(query);
    const [afterSeq = 0] = cursorNumbers(page, 1) ?? [];
    const batches = this.#batches(caller, afterSeq);
    return page === null ? batches : new PageEntries(batches, page, ({ id }) => String(id));
  }

  async *#batches({ principalKey }: Caller, afterSeq: number): AsyncIterable<readonly FeedbackItem[]> {
    this.#seqs ??= this.#read();
    const seqs = this.#seqs.get(principalKey)?.filter((seq) => seq > afterSeq) ?? [];
    let batch: FeedbackItem[] = [];
    let characters = 0;
    for (const seq of seqs) {
      const stored = this.#timeline.readOne(seq);
      if (!stored || this.#timeline.view.run(stored.runId)?.deleted !== false) continue;
      batch.push(item(stored));
      characters += stored.payload.length;
      if (batch.length < BATCH_EVENTS && characters < BATCH_CHARACTERS) continue;
      yield batch;
      await yieldToEventLoop();
      batch = [];
      characters = 0;
    }
    if (batch.length > 0) yield batch;
  }

  /** Uses the timeline's index of kinds, so that only feedback is read from the disk. */
  #read(): Map<string, number[]> {
    const seqs = new Map<string, number[]>();
    for (const batch of this.#timeline.readAll({ kinds: new Set([KIND]) })) {
      for (const { runId, seq } of batch) {
        const run = this.#timeline.view.run(runId);
        if (run) addSeq(seqs, run.principalKey, seq);
      }
    }
    return seqs;
  }
}

function item({ seq, runId, payload, ptsMs }: StoredEvent): FeedbackItem {
  const { session_id, rating, category, feedback } = JSON.parse(payload);
  return {
    id: seq,
    run_id: runId,
    session_id,
    rating,
    category,
    feedback,
    timestamp_micros: ptsMs * 1000,
    storage: "local_wal",
  };
}

function addSeq(seqs: Map<string, number[]>, principalKey: string, seq: number): void {
  const own = seqs.get(principalKey);
  if (own === undefined) seqs.set(principalKey, [seq]);
  else own.push(seq);
}

function check({ rating, category, feedback }: FeedbackBody): void {
  const rules = new FieldRules();
  rules.range("rating", rating, LIMITS.feedback.rating);
  const { minimum, maximum } = LIMITS.feedback.categoryBytes;
  const categoryBytes = utf8Length(category);
  if (category.trim() === "" || categoryBytes < minimum || categoryBytes > maximum) {
    rules.fault(
      "category",
      `must have ${minimum} to ${maximum} bytes and not be blank: got ${categoryBytes}`,
    );
  }
  const textBytes = utf8Length(feedback ?? "");
  if (textBytes > LIMITS.feedback.textBytesMax) {
    rules.fault("feedback", `must have at most ${LIMITS.feedback.textBytesMax} bytes: got ${textBytes}`);
  }
  rules.check();
}
