/** The continuous recording of a session in its Worker: cuts the encoded units into segments at key frames,
 * and makes an MP4 of each.
 */

import type { World } from "../../base/world.ts";
import { VIDEO_TICKS_PER_MS } from "../../media/containers/clock.ts";
import { clipFile, type SegmentPlace } from "../../media/containers/clip_file.ts";
import type { CopiedUnit } from "../../media/containers/copied_packets.ts";
import { SegmentClock } from "../../model/live/recording/segment_clock.ts";
import type { SessionSettings } from "../messages/messages.ts";
import type { Outbox } from "../messages/outbox.ts";
import type { SessionCounts } from "../messages/session_counts.ts";
import { LateSound } from "./late_sound.ts";
import { soundState } from "./clip_stage.ts";
import type { EncodedStreams, FormatTap } from "./unit_tap.ts";

export interface RecordingStageOptions {
  readonly plan: NonNullable<SessionSettings["recording"]>;
  readonly world: World;
  readonly outbox: Outbox;
  readonly counts: SessionCounts;
}

/** A key frame at which the segment under way ends. */
interface SegmentCut {
  /** Place of the key frame among the units. */
  readonly at: number;
  readonly keyMs: number;
  /** Whether the pictures from there on are others, so that they cannot be in one file with those before. */
  readonly isOther: boolean;
}

/** Share of the bytes that may be kept which a segment that waits for its sound may have. */
const WAITING_SHARE = 3 / 4;

/** The units of one segment, and what they are. */
interface ClosedSegment {
  readonly units: readonly CopiedUnit[];
  readonly streams: EncodedStreams;
  readonly offsetMs: number;
  readonly lagMs: number;
  readonly place: SegmentPlace;
}

/**
 * ```
 *   units     K · · · · K · · · · K · · · · K ·
 *   segment   [ at least segmentMs )[ …             each begins with a key frame, and the next one touches it
 * ```
 * A picture that is shown before the key frame it comes behind belongs to the segment of that key frame. One
 * file is made at a time; without credit the segment is lost and counted.
 */
export class RecordingStage implements FormatTap, AsyncDisposable {
  readonly isUrgent = false;
  readonly #options: RecordingStageOptions;
  readonly #clock = new SegmentClock();
  #streams: EncodedStreams | null = null;
  /** Media time of the session minus the time of the units; null before it is known. */
  #offsetMs: number | null = null;
  #units: CopiedUnit[] = [];
  #bytes = 0;
  #bytesMax: number;
  #cut: SegmentCut | null = null;
  /** Whether the segment under way goes on from another one. */
  #isContinued = false;
  #newestVideoMs = -Infinity;
  readonly #sound = new LateSound();
  /** The least of arrival minus time over the units of this segment, milliseconds. */
  #lagMs = Infinity;
  /** Arrival minus time of the newest picture, milliseconds. */
  #newestLagMs = Infinity;
  #making: Promise<void> = Promise.resolve();

  constructor(options: RecordingStageOptions) {
    this.#options = options;
    this.#bytesMax = options.plan.bytesMax;
  }

  /** The most encoded bytes of a segment from here on. */
  limit(bytesMax: number): void {
    this.#bytesMax = bytesMax;
  }

  begin(streams: EncodedStreams): void {
    this.#streams = streams;
  }

  setOffset(offsetMs: number): void {
    this.#offsetMs = offsetMs;
  }

  push(unit: CopiedUnit): void {
    this.#sound.push(unit);
    const isKeyframe = unit.isVideo && unit.isKeyframe;
    const { segmentMs } = this.#options.plan;
    const bytesMax = this.#bytesMax;
    if (this.#units.length > 0 && this.#bytes + unit.data.length > bytesMax) this.miss();
    if (this.#units.length === 0 && !isKeyframe) return;
    if (isKeyframe && this.#units.length > 0 && !this.#cut) {
      const isLong = unit.ptsMs - this.#units[0]!.ptsMs >= segmentMs;
      if (isLong || this.#bytes >= bytesMax / 2) {
        this.#cut = { at: this.#units.length, keyMs: unit.ptsMs, isOther: false };
      }
    }
    this.#units.push(unit);
    this.#bytes += unit.data.length;
    if (unit.isVideo) {
      this.#newestVideoMs = Math.max(this.#newestVideoMs, unit.ptsMs);
      this.#newestLagMs = this.#options.world.now() - unit.ptsMs;
      this.#lagMs = Math.min(this.#lagMs, this.#newestLagMs);
    }
    if (this.#cut) this.#cutIfKnown(this.#cut);
  }

  /** Ends the segment under way where the pictures change their format, and the next one touches it. */
  changeFormat(keyMs: number): void {
    if (this.#cut) this.#cutAt(this.#cut);
    if (this.#units.length > 0) this.#cut = { at: this.#units.length, keyMs, isOther: true };
  }

  /**
   * To be called where a picture is missing, or no key frame came in time: what there is becomes a segment,
   * and what comes before the next key frame is lost.
   */
  miss(): void {
    this.interrupt();
    this.#options.counts.add("segmentsLost");
  }

  /** Ends the segment under way with what there is. */
  interrupt(): void {
    if (this.#cut?.isOther) this.#cutAt(this.#cut);
    if (this.#units.length === 0) return;
    this.#close(this.#units, null);
    this.#keep([], false);
  }

  end(): void {
    this.interrupt();
    this.#streams = null;
    this.#offsetMs = null;
    this.#newestVideoMs = -Infinity;
    this.#sound.clear();
  }

  /** Ends the last segment, and waits until it is made. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.interrupt();
    await this.#making;
  }

  /** Cuts when every unit has come that is shown or heard before the next segment. */
  #cutIfKnown(cut: SegmentCut): void {
    if (this.#newestVideoMs <= cut.keyMs) return;
    // What waits must not become so much that a key frame is missed.
    const hasRoom = this.#bytes < this.#bytesMax * WAITING_SHARE;
    const isAwaited = this.#streams?.sound && hasRoom &&
      this.#sound.isAwaited(this.#startBehind(cut));
    if (!isAwaited) this.#cutAt(cut);
  }

  /** When the first picture behind the cut is shown. */
  #startBehind({ at, keyMs }: SegmentCut): number {
    const shown = this.#units.slice(at).filter(({ isVideo }) => isVideo);
    return shown.reduce((least, { ptsMs }) => Math.min(least, ptsMs), keyMs);
  }

  #cutAt(cut: SegmentCut): void {
    const startMs = this.#startBehind(cut);
    const [before, rest] = [this.#units.slice(0, cut.at), this.#units.slice(cut.at)];
    const belongsBefore = ({ isVideo, ptsMs }: CopiedUnit) => !isVideo && ptsMs < startMs;
    this.#close([...before, ...rest.filter(belongsBefore)], startMs);
    this.#keep(rest.filter((unit) => !belongsBefore(unit)), !cut.isOther);
  }

  #keep(units: CopiedUnit[], isContinued: boolean): void {
    this.#units = units;
    this.#isContinued = isContinued;
    this.#bytes = units.reduce((sum, { data }) => sum + data.length, 0);
    this.#cut = null;
    // Of those that are kept, the last one is the newest picture.
    this.#lagMs = units.length > 0 ? this.#newestLagMs : Infinity;
  }

  #close(units: readonly CopiedUnit[], endMs: number | null): void {
    const { outbox, counts } = this.#options;
    const [streams, offsetMs, lagMs] = [this.#streams, this.#offsetMs, this.#lagMs];
    const place = { endMs, isContinued: this.#isContinued };
    if (!streams || offsetMs === null || !outbox.take("segments")) return counts.add("segmentsLost");
    this.#making = this.#making.then(() => this.#make({ units, streams, offsetMs, lagMs, place }));
  }

  async #make({ units, streams, offsetMs, lagMs, place }: ClosedSegment): Promise<void> {
    const { outbox, counts } = this.#options;
    // Units that are no video of this codec are the fault of the source.
    const file = await clipFile(units, streams, place).catch(() => null);
    if (!file) {
      outbox.giveBack("segments");
      return counts.add("segmentsLost");
    }
    const { mp4, codec, hasSound, formats, startPtsMs, endPtsMs } = file;
    const segment = {
      ...this.#clock.place({
        startMs: startPtsMs + offsetMs,
        endMs: endPtsMs + offsetMs,
        lagMs: lagMs - offsetMs,
      }),
      startTicks: Math.round((startPtsMs + offsetMs) * VIDEO_TICKS_PER_MS),
      endTicks: Math.round((endPtsMs + offsetMs) * VIDEO_TICKS_PER_MS),
      ...{ codec, formats, mp4 },
      sound: soundState(streams, hasSound),
    };
    outbox.send({ kind: "segment", segment }, [mp4.buffer]);
  }
}
