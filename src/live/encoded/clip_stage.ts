/** The evidence clips of a session in its Worker: keeps the newest encoded units, and makes an MP4 of those
 * around a cause.
 */

import { timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { neededPictures } from "../../media/containers/needed_pictures.ts";
import { clipFile } from "../../media/containers/clip_file.ts";
import type { CopiedUnit } from "../../media/containers/copied_packets.ts";
import { UnitRing } from "../../media/live/unit_ring.ts";
import { LIMITS } from "../../contract/limits.ts";
import { causeOf, type ClipCause } from "../../model/live/recording/causes.ts";
import type { ClipSoundState } from "../../model/live/recording/record_plan.ts";
import type { LivePicture, RecordedClip, SessionSettings } from "../messages/messages.ts";
import type { Outbox } from "../messages/outbox.ts";
import type { SessionCounts } from "../messages/session_counts.ts";
import { LateSound, SOUND_LATE_MS } from "./late_sound.ts";
import type { EncodedStreams, FormatTap } from "./unit_tap.ts";

export interface ClipStageOptions {
  readonly plan: NonNullable<SessionSettings["record"]>;
  readonly world: World;
  readonly outbox: Outbox;
  readonly counts: SessionCounts;
}

interface WantedClip {
  readonly cause: ClipCause;
  readonly frameIndex: number;
  readonly causePtsMs: number;
  readonly jpeg: Uint8Array<ArrayBuffer>;
  /** Time of the unit of the cause, milliseconds; `startMs` is that of the begin of the clip. */
  readonly atMs: number;
  readonly startMs: number;
}

interface OpenClip extends WantedClip {
  endMs: number;
  /** Ends the clip of a source that gives nothing more. */
  silence: Disposable;
}

/**
 * How long after its frame a picture may still be a cause, milliseconds: a frame is decided late, and its
 * JPEG may take two seconds.
 */
const DECISION_MS = 3_000;
/** Milliseconds by which a picture may come later than others that are shown after it. */
const REORDER_MS = 250;
/** Tolerance of times, milliseconds: those of causes are whole numbers, those of units are not. */
const HALF_MS = 0.5;

/**
 * ```
 *   units ──▶ UnitRing ───────────────┐
 *   cause ──▶ open clip ──post-roll──▶ close ──[2 credits]──▶ clipFile ──▶ recorded
 *               ▲                      ▲
 *   cause ──────┘ prolongs it          └── gap, other format, end of the session, no more room: with what there is
 * ```
 * One file is made at a time. Without credit the clip is lost and counted.
 */
export class ClipStage implements FormatTap, AsyncDisposable {
  readonly #options: ClipStageOptions;
  readonly #ring: UnitRing;
  #streams: EncodedStreams | null = null;
  /** Media time of the session minus the time of the units. */
  #offsetMs = 0;
  #newestMs = -Infinity;
  readonly #sound = new LateSound();
  /** Media time up to which streams have ended, of which nothing is kept. */
  #endedPtsMs = -Infinity;
  /** Whether pictures come in another order than they are shown. */
  #isReordered = false;
  #open: OpenClip | null = null;
  /** Clips whose pictures have all come and whose sound has not, the oldest first. */
  #unheard: OpenClip[] = [];
  #making: Promise<void> = Promise.resolve();

  constructor(options: ClipStageOptions) {
    this.#options = options;
    const { bytesMax, preRollMs } = options.plan;
    this.#ring = new UnitRing({ bytesMax, keepMs: preRollMs + DECISION_MS });
  }

  /** The most encoded bytes that are kept from here on. */
  limit(bytesMax: number): void {
    this.#ring.limit(bytesMax);
  }

  /** Whether a unit is waited for, so that a clip is stored soon after its post-roll. */
  get isUrgent(): boolean {
    return this.#open !== null;
  }

  begin(streams: EncodedStreams): void {
    this.#streams = streams;
  }

  /**
   * Begins a part of pictures with another format. A picture from before may still be a cause, and one from
   * behind may have been one: it is decoded beside the copy.
   */
  changeFormat(keyMs: number): void {
    this.#finishUnheard(Infinity);
    if (this.#open && this.#open.atMs < keyMs - HALF_MS) this.interrupt();
    this.#ring.cut();
    this.#isReordered = false;
  }

  /** Ends the clip at missing pictures: no clip has pictures from both sides of the gap. */
  miss(): void {
    this.interrupt();
    this.#ring.cut();
  }

  end(): void {
    this.interrupt();
    this.#endedPtsMs = Math.max(this.#endedPtsMs, this.#newestMs + this.#offsetMs);
    this.#ring.clear();
    this.#streams = null;
    this.#newestMs = -Infinity;
    this.#sound.clear();
    this.#isReordered = false;
  }

  setOffset(offsetMs: number): void {
    this.#offsetMs = offsetMs;
  }

  push(unit: CopiedUnit): void {
    if (this.#ring.isFullFor(unit)) this.interrupt();
    this.#ring.push(unit);
    this.#sound.push(unit);
    if (unit.isVideo && unit.ptsMs < this.#newestMs) this.#isReordered = true;
    if (unit.isVideo) this.#newestMs = Math.max(this.#newestMs, unit.ptsMs);
    this.#closeIfOver();
  }

  /**
   * Takes a picture that is reported: it begins a clip, or prolongs the open one, if it is a cause. Call it
   * before its JPEG is moved.
   */
  onPicture(picture: LivePicture): void {
    const { plan, world, counts } = this.#options;
    const { frame: { frameIndex, ptsMs, gateReason }, jpeg } = picture;
    const cause = causeOf({ ...picture, isCut: gateReason === "scene_cut" }, plan.on);
    if (cause === null) return;
    if (ptsMs <= this.#endedPtsMs + HALF_MS) return counts.add("recordingsLost");
    const atMs = ptsMs - this.#offsetMs;
    // Without a post-roll, too, the picture of the cause is in the clip.
    const endMs = atMs + Math.max(1, plan.postRollMs);
    const startMs = atMs - plan.preRollMs;
    const wanted = () => ({
      cause,
      frameIndex,
      causePtsMs: ptsMs,
      atMs,
      startMs,
      jpeg: new Uint8Array(jpeg),
    });
    const partEndMs = this.#ring.partEndMs(atMs + HALF_MS);
    if (partEndMs < Infinity) return this.#finish(wanted(), Math.min(endMs, partEndMs));
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
      this.#open = { ...wanted(), endMs, silence };
    }
    this.#hold();
    this.#closeIfOver();
  }

  /** To be called where the stream gives nothing more: its last pictures may still be causes, until `end`. */
  interrupt(): void {
    this.#finishUnheard(Infinity);
    this.#close(this.#newestMs + 1);
  }

  /** Closes the open clip with what there is, and waits until it is made. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.interrupt();
    await this.#making;
  }

  /**
   * Closes the open clip where it is over. A clip whose sound is still to come waits for it, and the next
   * cause begins another one.
   */
  #closeIfOver(): void {
    const reorderMs = this.#isReordered ? REORDER_MS : 0;
    const isOver = this.#open !== null && this.#newestMs >= this.#open.endMs - HALF_MS + reorderMs;
    if (this.#open && isOver) {
      const clip = this.#open;
      clip.silence[Symbol.dispose]();
      const finish = () => this.#finishUnheard(this.#unheard.indexOf(clip) + 1);
      clip.silence = timer(this.#options.world, SOUND_LATE_MS, finish);
      this.#unheard.push(clip);
      this.#open = null;
    }
    const isHeard = ({ endMs }: OpenClip) => !this.#streams?.sound || !this.#sound.isAwaited(endMs);
    const awaited = this.#unheard.findIndex((clip) => !isHeard(clip));
    this.#finishUnheard(awaited === -1 ? Infinity : awaited);
  }

  /** Makes the first `count` clips of those that wait for sound. */
  #finishUnheard(count: number): void {
    for (const clip of this.#unheard.splice(0, count)) {
      clip.silence[Symbol.dispose]();
      this.#finish(clip, clip.endMs);
      this.#hold();
    }
  }

  /** Ends the open clip, if there is one, before the first picture that is shown at `endMs` or later. */
  #close(endMs: number): void {
    const clip = this.#open;
    if (!clip) return;
    this.#open = null;
    clip.silence[Symbol.dispose]();
    this.#finish(clip, endMs);
    this.#hold();
  }

  /** Keeps what is needed by the clips that are not made yet. */
  #hold(): void {
    const first = this.#unheard[0] ?? this.#open;
    if (first) this.#ring.hold(first.startMs);
    else this.#ring.release();
  }

  #finish(clip: WantedClip, endMs: number): void {
    const units = before(
      this.#ring.partFrom(clip.startMs + HALF_MS, clip.atMs + HALF_MS),
      endMs - HALF_MS,
    );
    const streams = this.#streams;
    const { outbox, counts } = this.#options;
    if (!streams || units.length === 0 || !outbox.take("recordings")) return counts.add("recordingsLost");
    const offsetMs = this.#offsetMs;
    this.#making = this.#making.then(() => this.#make(clip, { units, streams, offsetMs }));
  }

  async #make(
    { cause, frameIndex, causePtsMs, jpeg }: WantedClip,
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
      outbox.giveBack("recordings");
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

/**
 * The pictures that a clip that ends at `endMs` needs, and the sound until then, or until the latest of these
 * pictures.
 */
function before(units: readonly CopiedUnit[], endMs: number): CopiedUnit[] {
  const video = units.filter(({ isVideo }) => isVideo);
  const { last, latest } = neededPictures(Float64Array.from(video, ({ ptsMs }) => ptsMs), 0, endMs);
  const needed = new Set(video.slice(0, last + 1));
  return units.filter((unit) => unit.isVideo ? needed.has(unit) : unit.ptsMs < Math.max(endMs, latest));
}
