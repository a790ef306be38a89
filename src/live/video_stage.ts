/** The video of a session in its Worker: analyses each decoded frame and reports the frames that matter, as
 * JPEGs.
 */

import type { World } from "../base/world.ts";
import type { JpegEncoderPool } from "../media/live/jpeg_encoder.ts";
import type { DecodedFrame } from "../media/live/live_decoder.ts";
import { type FrameDecision, LiveAnalysis } from "../media/live/live_analysis.ts";
import type { Region } from "../model/frames/coordinates.ts";
import { ClipWindow } from "../model/live/clip.ts";
import type { SessionCounts } from "./messages/session_counts.ts";
import type { SignalSamples } from "./signal_samples.ts";
import type { FrameFacts, LivePicture, SessionSettings } from "./messages/messages.ts";
import type { Outbox } from "./messages/outbox.ts";

export interface VideoStageOptions {
  readonly settings: SessionSettings;
  readonly world: World;
  readonly encoders: JpegEncoderPool;
  readonly outbox: Outbox;
  readonly counts: SessionCounts;
  readonly samples: SignalSamples;
  readonly isArmed: () => boolean | null;
  /** Called with each picture before it is reported and moved. */
  readonly onPicture?: (picture: LivePicture) => void;
  /** Called at an error that no frame of a publisher can cause: a bug. */
  readonly onFault: (stage: "analysis" | "clip_accumulator", error: unknown) => void;
}

/** Why a frame is reported. */
type Reasons = Pick<LivePicture, "isKeyframe" | "zone" | "trigger" | "isArmed">;

/**
 * ```
 *   frame ─▶ LiveAnalysis ─▶ decision ─┬─ enters a loop ──▶ loop_detected
 *                                      ├─ kept, zone or trigger, with credit ─▶ JPEG ─▶ picture
 *                      │               └─ at a sampling time of clips ─▶ JPEG ─▶ ClipWindow ─[credit]▶ clip
 *                      └─▶ freeze, black, flash ─▶ range
 * ```
 * A kept frame becomes the gate's reference when its JPEG was made. Without credit no JPEG is made, but the
 * frame becomes the reference as well, as if its JPEG had been made and then dropped. See
 * docs/live.md#stages-and-queues.
 */
export class VideoStage implements AsyncDisposable {
  readonly #options: VideoStageOptions;
  readonly #analysis: LiveAnalysis;
  readonly #clips: ClipWindow<ClipFrame> | null;
  /** JPEGs that are being made. */
  readonly #making = new Set<Promise<void>>();
  /**
   * The adding of the last frame to a clip's window: frames are added in order, however long each JPEG takes.
   */
  #clipTurn: Promise<void> = Promise.resolve();
  #clipFramesWaiting = 0;
  #framesTooSmall = 0;
  #lastPtsMs: number | null = null;
  /** Whether the next frame is wanted as a picture whatever is in it. */
  #isSnapshotWanted = false;
  /** The region that the encoder was started for; null before. */
  #prepared: Region | null = null;

  static async load(options: VideoStageOptions): Promise<VideoStage> {
    const { settings: { gateThresholds, windowSize, crop, zone, trigger }, world } = options;
    const stage: VideoStage = new VideoStage(
      options,
      await LiveAnalysis.load({
        world,
        gateThresholds,
        windowSize,
        crop,
        zone,
        trigger,
        onDecision: (decision) => stage.#onDecision(decision),
        onRange: (range) => options.outbox.send({ kind: "range", range }),
      }),
    );
    return stage;
  }

  private constructor(options: VideoStageOptions, analysis: LiveAnalysis) {
    this.#options = options;
    this.#analysis = analysis;
    this.#clips = options.settings.clip && new ClipWindow(options.settings.clip);
  }

  /** Media time of the newest frame; null before the first. */
  get lastPtsMs(): number | null {
    return this.#lastPtsMs;
  }

  /** Reports the next frame as a JPEG; nothing where that fails. */
  wantSnapshot(): void {
    this.#isSnapshotWanted = true;
  }

  /** Takes the next frame of the decoder. */
  take(frame: DecodedFrame): void {
    const { world, counts } = this.#options;
    const startedMs = world.monotonicMs();
    const sinceArrivalMs = world.now() - frame.arrivedMs;
    this.#lastPtsMs = frame.ptsMs;
    this.#analysis.push(frame);
    this.#prepareEncoder(frame.pixels.isFullRange);
    if (this.#isSnapshotWanted) this.#snapshot(frame);
    const gateMs = world.monotonicMs() - startedMs;
    counts.observeFrame((sinceArrivalMs + gateMs) * 1_000, gateMs * 1_000);
    const tooSmall = this.#analysis.framesTooSmall - this.#framesTooSmall;
    this.#framesTooSmall += tooSmall;
    counts.add("framesDropped", tooSmall);
  }

  /** Lets zone and trigger begin anew: what goes on in the picture is found again. */
  beginAgain(): void {
    this.#analysis.beginAgain();
  }

  /**
   * To be called where the stream was interrupted: no clip and no range may contain frames from before and
   * after.
   */
  interrupt(): void {
    this.#clips?.clear();
    this.#analysis.interrupt();
  }

  /** Decides the last frames, and waits for the JPEGs that are being made. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      this.#analysis.finish();
    } catch (error) {
      this.#options.onFault("analysis", error);
    }
    this.#analysis[Symbol.dispose]();
    while (this.#making.size > 0) await Promise.all(this.#making);
  }

  /** Starts the ffmpeg of the first frame's JPEG, as the frame is decided some frames later. */
  #prepareEncoder(isFullRange: boolean): void {
    const { region } = this.#analysis;
    if (region === null || region === this.#prepared) return;
    this.#prepared = region;
    this.#options.encoders.prepare(region, isFullRange);
  }

  /** Reports a frame as a JPEG at once: it does not wait for its decision, which comes some frames later. */
  #snapshot({ pixels, ptsMs, arrivedMs }: DecodedFrame): void {
    const { region } = this.#analysis;
    if (region === null) return;
    this.#isSnapshotWanted = false;
    const { encoders, outbox } = this.#options;
    const sent = encoders.encode(pixels, region).then((jpeg) => {
      if (jpeg) outbox.send({ kind: "snapshot", snapshot: { ptsMs, arrivedMs, jpeg } }, [jpeg.buffer]);
    }, () => {/* whoever wanted it asks again */});
    this.#track(sent);
  }

  #onDecision(decision: FrameDecision): void {
    const { counts, samples, outbox } = this.#options;
    counts.add("gateFramesAnalyzed");
    const { motion, novelty, frame: { ptsMs } } = decision;
    samples.observe({ ptsMs, motion, novelty });
    if (decision.isKept) counts.add("gateKeyframesSelected");
    if (decision.isTriggerSignalMissing) counts.add("triggerMissingSignal");
    if (decision.hasEnteredLoop) outbox.send({ kind: "loop_detected", frame: factsOf(decision) });
    const reasons = this.#reasonsOf(decision);
    if (reasons) this.#track(this.#report(decision, reasons));
    else if (decision.isKept) this.#analysis.keep(decision.frame.frameIndex);
    if (this.#clips?.wants(decision.frame.ptsMs)) this.#queueForClip(decision);
  }

  /** The reasons for which there are credits, which are taken; null when there is nothing to report. */
  #reasonsOf({ isKept, isLooping, zone, trigger }: FrameDecision): Reasons | null {
    const { settings, outbox, counts } = this.#options;
    const isWanted = isKept && settings.wantsKeyframes;
    const isKeyframe = isWanted && !isLooping && outbox.take("pictures");
    const hasEvidence = (zone !== null || trigger !== null) && outbox.take("evidence");
    if (isWanted && !isKeyframe && !hasEvidence) {
      counts.add(isLooping ? "keyframesLooping" : "keyframesWithoutCredit");
    }
    const isArmed = this.#options.isArmed();
    if (hasEvidence) return { isKeyframe, zone, trigger, isArmed };
    this.#countLostEvidence({ zone, trigger });
    return isKeyframe ? { isKeyframe, zone: null, trigger: null, isArmed } : null;
  }

  async #report(decision: FrameDecision, reasons: Reasons): Promise<void> {
    const { outbox, counts } = this.#options;
    const { frame: { frameIndex }, isKept } = decision;
    const jpeg = await this.#jpegOf(decision);
    if (jpeg) {
      if (isKept) this.#analysis.keep(frameIndex);
      const picture = { frame: factsOf(decision), jpeg, ...reasons };
      this.#options.onPicture?.(picture);
      return outbox.send({ kind: "picture", picture }, [jpeg.buffer]);
    }
    if (isKept) this.#analysis.discard(frameIndex);
    if (reasons.isKeyframe) counts.add("keyframesNotEncoded");
    this.#countLostEvidence(reasons);
    const hasEvidence = reasons.zone !== null || reasons.trigger !== null;
    outbox.giveBack("pictures", reasons.isKeyframe ? 1 : 0);
    outbox.giveBack("evidence", hasEvidence ? 1 : 0);
  }

  #countLostEvidence({ zone, trigger }: Pick<Reasons, "zone" | "trigger">): void {
    if (zone) this.#options.counts.add("zoneQueueDropped");
    if (trigger) this.#options.counts.add("triggerQueueDropped");
  }

  /** Makes a frame a part of a clip; drops it when too many wait for their JPEG. */
  #queueForClip(decision: FrameDecision): void {
    if (this.#clipFramesWaiting >= CLIP_FRAMES_WAITING_MAX) {
      this.#options.counts.add("framesDropped");
      return;
    }
    this.#clipFramesWaiting++;
    const made = this.#jpegOf(decision);
    this.#clipTurn = this.#clipTurn.then(() => this.#addToClip(decision, made))
      .catch((error) => this.#options.onFault("clip_accumulator", error))
      .finally(() => this.#clipFramesWaiting--);
    this.#track(this.#clipTurn);
  }

  async #addToClip(decision: FrameDecision, made: Promise<Uint8Array<ArrayBuffer> | null>): Promise<void> {
    const { outbox, counts } = this.#options;
    const clips = this.#clips!;
    const jpeg = await made;
    if (!jpeg) return counts.add("framesDropped");
    const frame = factsOf(decision);
    // Asked again, because earlier frames may have been added since this one was queued.
    if (!clips.wants(frame.ptsMs)) return;
    clips.push(frame.ptsMs, { frame, jpeg });
    if (!outbox.hasCredit("pictures")) return;
    const clip = clips.take();
    if (!clip) return;
    outbox.take("pictures");
    // Clips may overlap, so the JPEGs are copied and not moved.
    const startPtsMs = clip[0]!.frame.ptsMs;
    outbox.send({ kind: "clip", frame, startPtsMs, jpegs: clip.map((shown) => shown.jpeg) });
  }

  /** A JPEG of a frame; null when it could not be made, for whatever reason. */
  #jpegOf({ frame, region }: FrameDecision): Promise<Uint8Array<ArrayBuffer> | null> {
    return this.#options.encoders.encode(frame.pixels, region).catch(() => null);
  }

  #track(work: Promise<void>): void {
    const watched = work.catch((error) => this.#options.onFault("analysis", error)).finally(() =>
      this.#making.delete(watched)
    );
    this.#making.add(watched);
  }
}

interface ClipFrame {
  readonly frame: FrameFacts;
  readonly jpeg: Uint8Array<ArrayBuffer>;
}

/**
 * Most frames of clips that wait for their JPEG. One takes milliseconds: if more than a few are being made,
 * the encoder hangs.
 */
const CLIP_FRAMES_WAITING_MAX = 8;

function factsOf(decision: FrameDecision): FrameFacts {
  const { frame: { frameIndex, ptsMs, arrivedMs }, coordinates, gateReason, gateConfidence } = decision;
  const { novelty, motion, stability, confidence } = decision;
  return {
    frameIndex,
    ptsMs,
    coordinates,
    gateReason,
    gateConfidence,
    novelty,
    motion,
    stability,
    confidence,
    arrivedMs,
  };
}
