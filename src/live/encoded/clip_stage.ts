/** The evidence clips of a session in its Worker: keeps the newest encoded units, and makes an MP4 of those around a cause. */

import { timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { clipFile } from "../../media/live/clip_file.ts";
import type { CopiedUnit } from "../../media/live/copied_packets.ts";
import { UnitRing } from "../../media/live/unit_ring.ts";
import { LIMITS } from "../../model/limits.ts";
import { causeOf, type ClipCause } from "../../model/live/recording/causes.ts";
import type { ClipSoundState } from "../../model/live/recording/record_plan.ts";
import type { LivePicture, RecordedClip, SessionSettings } from "../messages.ts";
import type { Outbox } from "../outbox.ts";
import type { SessionCounts } from "../session_counts.ts";
import type { EncodedStreams, UnitTap } from "./unit_tap.ts";

export interface ClipStageOptions {
  readonly plan: NonNullable<SessionSettings["record"]>;
  readonly world: World;
  readonly outbox: Outbox;
  readonly counts: SessionCounts;
}

interface OpenClip {
  readonly cause: ClipCause;
  readonly frameIndex: number;
  readonly causePtsMs: number;
  readonly jpeg: Uint8Array<ArrayBuffer>;
  /** Times of the units. */
  readonly startMs: number;
  endMs: number;
  /** Ends the clip of a source that gives nothing more. */
  silence: Disposable;
}

/** A picture is a cause so long after its frame has come: a frame is decided late, and its JPEG may take two seconds. */
const DECISION_MS = 3_000;
/** How much later a picture may come than others that are shown after it. */
const REORDER_MS = 250;
/** The times of causes are whole milliseconds, those of units are not. */
const HALF_MS = 0.5;

/**
 * ```
 *   units ──▶ UnitRing ───────────────┐
 *   cause ──▶ open clip ──post-roll──▶ close ──[2 credits]──▶ clipFile ──▶ recorded
 *               ▲                      ▲
 *   cause ──────┘ prolongs it          └── gap, end of the session, no more room: with what there is
 * ```
 * One file is made at a time. Without credit the clip is lost and counted.
 */
export class ClipStage implements UnitTap, AsyncDisposable {
  readonly #options: ClipStageOptions;
  readonly #ring: UnitRing;
  #streams: EncodedStreams | null = null;
  /** Media time of the session minus the time of the units. */
  #offsetMs = 0;
  #newestMs = -Infinity;
  /** Whether pictures come in another order than they are shown. */
  #isReordered = false;
  #open: OpenClip | null = null;
  #making: Promise<void> = Promise.resolve();

  constructor(options: ClipStageOptions) {
    this.#options = options;
    const { bytesMax, preRollMs } = options.plan;
    this.#ring = new UnitRing({ bytesMax, keepMs: preRollMs + DECISION_MS });
  }

  /** So that a clip is stored soon after its post-roll. */
  get isUrgent(): boolean {
    return this.#open !== null;
  }

  begin(streams: EncodedStreams): void {
    this.#streams = streams;
  }

  end(): void {
    this.interrupt();
    this.#ring.clear();
    this.#streams = null;
    this.#newestMs = -Infinity;
    this.#isReordered = false;
  }

  setOffset(offsetMs: number): void {
    this.#offsetMs = offsetMs;
  }

  push(unit: CopiedUnit): void {
    if (this.#open && this.#ring.isFullFor(unit)) this.#close(this.#newestMs + 1);
    this.#ring.push(unit);
    if (!unit.isVideo) return;
    if (unit.ptsMs < this.#newestMs) this.#isReordered = true;
    this.#newestMs = Math.max(this.#newestMs, unit.ptsMs);
    this.#closeIfOver();
  }

  /** A picture that is reported: begins a clip, or prolongs the open one, if it is a cause. Call it before its JPEG is moved. */
  onPicture(picture: LivePicture): void {
    const { plan, world } = this.#options;
    const { frame: { frameIndex, ptsMs, gateReason }, jpeg } = picture;
    const cause = causeOf({ ...picture, isCut: gateReason === "scene_cut" }, plan.on);
    if (cause === null) return;
    const atMs = ptsMs - this.#offsetMs;
    const endMs = atMs + plan.postRollMs;
    const silence = timer(
      world,
      plan.postRollMs + LIMITS.evidence.silenceMs,
      () => this.#close(this.#newestMs + 1),
    );
    if (this.#open) {
      const latestMs = this.#open.startMs + LIMITS.evidence.clipMsMax;
      this.#open.endMs = Math.max(this.#open.endMs, Math.min(endMs, latestMs));
      this.#open.silence[Symbol.dispose]();
      this.#open.silence = silence;
    } else {
      const startMs = atMs - plan.preRollMs;
      this.#open = {
        ...{ cause, frameIndex, causePtsMs: ptsMs, startMs, endMs, silence },
        jpeg: new Uint8Array(jpeg),
      };
      this.#ring.hold(startMs);
    }
    this.#closeIfOver();
  }

  /** Its last pictures may still be causes, until `end`. */
  interrupt(): void {
    this.#close(this.#newestMs + 1);
  }

  /** Closes the open clip with what there is, and waits until it is made. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.interrupt();
    await this.#making;
  }

  #closeIfOver(): void {
    if (!this.#open) return;
    const { endMs } = this.#open;
    if (this.#newestMs >= endMs - HALF_MS + (this.#isReordered ? REORDER_MS : 0)) this.#close(endMs);
  }

  /** Ends the open clip, if there is one, before the first picture that is shown at `endMs` or later. */
  #close(endMs: number): void {
    const clip = this.#open;
    if (!clip) return;
    this.#open = null;
    clip.silence[Symbol.dispose]();
    this.#ring.release();
    const units = before(this.#ring.from(clip.startMs + HALF_MS), endMs - HALF_MS);
    const streams = this.#streams;
    const { outbox, counts } = this.#options;
    if (!streams || units.length === 0 || !outbox.take("recordings")) return counts.add("recordingsLost");
    const offsetMs = this.#offsetMs;
    this.#making = this.#making.then(() => this.#make(clip, { units, streams, offsetMs }));
  }

  async #make(
    { cause, frameIndex, causePtsMs, jpeg }: OpenClip,
    { units, streams, offsetMs }: {
      readonly units: readonly CopiedUnit[];
      readonly streams: EncodedStreams;
      readonly offsetMs: number;
    },
  ): Promise<void> {
    const { outbox, counts } = this.#options;
    // Units that are no video of this codec are the fault of the source.
    const file = await clipFile(units, streams).catch(() => null);
    if (!file) {
      outbox.giveBack({ recordings: 1 });
      return counts.add("recordingsLost");
    }
    const { mp4, codec, hasSound } = file;
    const clip: RecordedClip = {
      ...{ cause, frameIndex, causePtsMs, codec, mp4, jpeg },
      // The first pictures of a source may have times before 0.
      startPtsMs: Math.max(0, Math.round(file.startPtsMs + offsetMs)),
      endPtsMs: Math.round(file.endPtsMs + offsetMs),
      sound: soundState(streams, hasSound),
    };
    outbox.send({ kind: "recorded", clip }, [mp4.buffer, jpeg.buffer]);
  }
}

export function soundState({ hasOtherSound }: EncodedStreams, hasSound: boolean): ClipSoundState {
  if (hasSound) return "included";
  return hasOtherSound ? "not_supported" : "none";
}

/** Pictures in decoding order up to the last one that is shown before `endMs`, as others may refer to those between, and the sound until then. */
function before(units: readonly CopiedUnit[], endMs: number): CopiedUnit[] {
  const last = units.findLastIndex(({ isVideo, ptsMs }) => isVideo && ptsMs < endMs);
  return units.filter(({ isVideo, ptsMs }, index) => isVideo ? index <= last : ptsMs < endMs);
}
