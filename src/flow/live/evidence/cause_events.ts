/** Which event each of the last pictures caused, so that an evidence clip can name it. */

import type { ClipCause } from "../../../model/live/recording/causes.ts";
import type { NewEvent } from "../../../model/runs/run.ts";

/** The place of an event in the timeline. */
export interface EventPlace {
  readonly runId: string;
  readonly seq: number;
}

interface Picture {
  readonly places: Map<"zone" | "trigger" | "keyframe", EventPlace>;
  /** Resolves when nothing more is written of it. */
  readonly settled: PromiseWithResolvers<void>;
  readonly waiting: Set<() => void>;
}

/** Pictures that are remembered: more than wait for a model, and for the end of the longest clip. */
const PICTURES_MAX = 1_024;

export class CauseEvents {
  readonly #pictures = new Map<number, Picture>();
  #isClosed = false;

  /** A picture has come, and events about it may follow until `settle`. */
  expect(frameIndex: number): void {
    if (this.#isClosed) return;
    const settled = Promise.withResolvers<void>();
    this.#pictures.set(frameIndex, { places: new Map(), settled, waiting: new Set() });
    const [oldest] = this.#pictures.keys();
    if (this.#pictures.size > PICTURES_MAX && oldest !== undefined) this.#forget(oldest);
  }

  /** An event was written. */
  note({ kind, payload, runId }: NewEvent, seq: number): void {
    const cause = causeOfKind(kind);
    const frameIndex = (payload as { readonly frame_index?: unknown }).frame_index;
    const picture = typeof frameIndex === "number" ? this.#pictures.get(frameIndex) : undefined;
    if (cause === null || !picture) return;
    picture.places.set(cause, { runId, seq });
    for (const wake of picture.waiting) wake();
  }

  /** No more events follow about the picture. */
  settle(frameIndex: number): void {
    this.#pictures.get(frameIndex)?.settled.resolve();
  }

  /** No more events follow at all. */
  close(): void {
    this.#isClosed = true;
    for (const { settled } of this.#pictures.values()) settled.resolve();
  }

  /** The event of this cause, once it is written; null where none is. */
  async of(frameIndex: number, cause: ClipCause): Promise<EventPlace | null> {
    const picture = this.#pictures.get(frameIndex);
    if (!picture) return null;
    const kind = cause === "scene_cut" ? "keyframe" : cause;
    if (!picture.places.has(kind)) {
      const written = Promise.withResolvers<void>();
      const wake = () => picture.places.has(kind) && written.resolve();
      picture.waiting.add(wake);
      await Promise.race([written.promise, picture.settled.promise]);
      picture.waiting.delete(wake);
    }
    return picture.places.get(kind) ?? null;
  }

  #forget(frameIndex: number): void {
    this.settle(frameIndex);
    this.#pictures.delete(frameIndex);
  }
}

function causeOfKind(kind: string): "zone" | "trigger" | "keyframe" | null {
  if (kind === "restricted_zone_activity_entered") return "zone";
  if (kind.startsWith("trigger.")) return "trigger";
  return kind === "keyframe_stored" ? "keyframe" : null;
}
