/** Which event each of the last pictures caused, so that an evidence clip can name it. */

import type { ClipCause } from "../../../model/live/recording/causes.ts";
import type { NewEvent } from "../../../model/runs/run.ts";

/** The place of an event in the timeline. */
export interface EventPlace {
  readonly runId: string;
  readonly seq: number;
}

type EventCause = "zone" | "trigger" | "keyframe";

/** There are many, nearly all of them settled: then it is little more than its places. */
interface Picture {
  readonly places: Partial<Record<EventCause, EventPlace>>;
  /** Whether nothing more is written of it. */
  isSettled: boolean;
  /** To be called when something was written, or it is settled; null for nobody. */
  waiting: (() => void)[] | null;
}

/** Pictures that are remembered: more than wait for a model, and for the end of the longest clip. */
const PICTURES_MAX = 1_024;

export class CauseEvents {
  readonly #pictures = new Map<number, Picture>();
  #isClosed = false;

  /** A picture has come, and events about it may follow until `settle`. */
  expect(frameIndex: number): void {
    if (this.#isClosed) return;
    this.#pictures.set(frameIndex, { places: {}, isSettled: false, waiting: null });
    const [oldest] = this.#pictures.keys();
    if (this.#pictures.size > PICTURES_MAX && oldest !== undefined) this.#forget(oldest);
  }

  /** An event was written. */
  note({ kind, payload, runId }: NewEvent, seq: number): void {
    const cause = causeOfKind(kind);
    const frameIndex = (payload as { readonly frame_index?: unknown }).frame_index;
    const picture = typeof frameIndex === "number" ? this.#pictures.get(frameIndex) : undefined;
    if (cause === null || !picture) return;
    picture.places[cause] = { runId, seq };
    for (const wake of picture.waiting ?? []) wake();
  }

  /** No more events follow about the picture. */
  settle(frameIndex: number): void {
    const picture = this.#pictures.get(frameIndex);
    if (picture) settle(picture);
  }

  /** No more events follow at all. */
  close(): void {
    this.#isClosed = true;
    for (const picture of this.#pictures.values()) settle(picture);
  }

  /** The event of this cause, once it is written; null where none is. */
  async of(frameIndex: number, cause: ClipCause): Promise<EventPlace | null> {
    const picture = this.#pictures.get(frameIndex);
    if (!picture) return null;
    const kind = cause === "scene_cut" ? "keyframe" : cause;
    if (!picture.places[kind] && !picture.isSettled) {
      const known = Promise.withResolvers<void>();
      (picture.waiting ??= []).push(() => {
        if (picture.places[kind] || picture.isSettled) known.resolve();
      });
      await known.promise;
    }
    return picture.places[kind] ?? null;
  }

  #forget(frameIndex: number): void {
    this.settle(frameIndex);
    this.#pictures.delete(frameIndex);
  }
}

function settle(picture: Picture): void {
  picture.isSettled = true;
  for (const wake of picture.waiting ?? []) wake();
  picture.waiting = null;
}

function causeOfKind(kind: string): EventCause | null {
  if (kind === "restricted_zone_activity_entered") return "zone";
  if (kind.startsWith("trigger.")) return "trigger";
  return kind === "keyframe_stored" ? "keyframe" : null;
}
