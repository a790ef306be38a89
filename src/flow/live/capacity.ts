/** The memory and threads that all live sessions may hold together: reserved before a session starts, or it
 * never starts.
 */

import { SharedBudget } from "../../sharing/fair_share.ts";
import { type Refusal, refuse } from "../../contract/refusal.ts";
import type { Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import { liveMemoryBytes } from "../../media/live/live_decoder.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { AttachConfig } from "../../model/live/attach.ts";
import { framesOf } from "../../model/live/clip.ts";
import { keptBytesMax } from "../../model/live/recording/record_plan.ts";
import { segmentBytesMax } from "../../model/sources/recording_plan.ts";

export interface Reservation {
  readonly memoryBytes: number;
  readonly threads: number;
}

export interface MediaCapacityOptions {
  /** SERVICE_MEDIA_MEMORY_BUDGET_BYTES. */
  readonly memoryBudgetBytes: number;
  /** SERVICE_MEDIA_WORKER_THREAD_BUDGET. */
  readonly threadBudget: number;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
  readonly metrics: Metrics;
  readonly world: Pick<World, "now">;
}

export interface HeldCapacity extends Disposable {
  /** See `HeldShare.resize`. */
  resizeMemory(bytes: number): boolean;
}

/** See docs/live.md#capacity. */
export class MediaCapacity {
  readonly #options: MediaCapacityOptions;
  readonly #memory: SharedBudget;
  readonly #threads: SharedBudget;

  constructor(options: MediaCapacityOptions) {
    this.#options = options;
    const { metrics, memoryBudgetBytes, threadBudget, isShared } = options;
    this.#memory = new SharedBudget({ limit: memoryBudgetBytes, isShared });
    this.#threads = new SharedBudget({ limit: threadBudget, isShared });
    metrics.set("service_media_capacity_memory_limit_bytes", memoryBudgetBytes);
    metrics.set("service_media_capacity_worker_thread_limit", threadBudget);
    metrics.observeValue("service_media_capacity_memory_reserved_bytes", () => this.#memory.used);
    metrics.observeValue("service_media_capacity_worker_threads_reserved", () => this.#threads.used);
  }

  /**
   * Reserves both for the principal, or refuses (`provider_saturated`) and reserves neither. Disposing the
   * result frees the reservation; disposing it again does nothing. `SessionEnding` frees it when the Worker
   * has released everything, `LiveSessionFactory.open` where it makes no session.
   */
  reserve(principalKey: string, { memoryBytes, threads }: Reservation): HeldCapacity {
    this.#check(this.#memory, principalKey, memoryBytes, "bytes");
    this.#check(this.#threads, principalKey, threads, "threads");
    const memory = this.#memory.take(principalKey, memoryBytes);
    const heldThreads = this.#threads.take(principalKey, threads);
    return {
      resizeMemory: (bytes) => memory.resize(bytes),
      [Symbol.dispose]() {
        memory[Symbol.dispose]();
        heldThreads[Symbol.dispose]();
      },
    };
  }

  #check(budget: SharedBudget, principalKey: string, wanted: number, unit: string): void {
    const fault = budget.faultOf(principalKey, wanted);
    if (fault === "exhausted") {
      throw this.#exhausted(`it needs ${wanted} ${unit} and ${budget.limit - budget.used} are left`);
    }
    if (fault !== null) {
      throw this.#exhausted(`it needs ${wanted} ${unit}, and what is left is kept for other callers`);
    }
  }

  #exhausted(why: string): Refusal {
    const { metrics, world } = this.#options;
    metrics.add("service_media_capacity_rejections_total");
    metrics.set("service_media_capacity_last_rejection_timestamp_seconds", Math.floor(world.now() / 1000));
    return refuse.because("provider_saturated", `Cannot start a live generation: ${why}`);
  }
}

/**
 * What one session may hold at most, by its negotiated picture size and its attach configuration. Counts
 * every queue at its bound, with items of the largest size that it takes. A JPEG has at most 2 MiB, and not
 * more bytes than its picture has in 4:2:0. For keyframes without a zone or a trigger:
 *
 * | Held                                        | Items  | 1280x720    | 1920x1080   |
 * | ------------------------------------------- | ------ | ----------- | ----------- |
 * | access units and decoded pictures           |        |  25_276_416 |  42_556_416 |
 * | the decoder's process, and the kernels      | 1      |  71_303_168 |  71_303_168 |
 * | reference pictures of the decoder           | 16     |  22_118_400 |  49_766_400 |
 * | JPEGs: queued, being made, being described  | 32 + 2 |  47_001_600 |  71_303_168 |
 * | live view: kept in the Worker, and here     | 1 + 2  |  12_582_912 |  12_582_912 |
 */
export function reservationOf(
  picture: Extent,
  attach: AttachConfig,
  { isRecorded = false }: { readonly isRecorded?: boolean } = {},
): Reservation {
  const pictureBytes = Math.ceil(picture.width * picture.height * BYTES_PER_PIXEL);
  const hasVideo = pictureBytes > 0;
  const hasEvidence = attach.zone !== null || attach.trigger !== null;
  const decoding = liveMemoryBytes(picture.width, picture.height) + PROCESS_BYTES +
    REFERENCE_PICTURES_MAX * pictureBytes;
  const jpegs = jpegsHeld(attach, hasEvidence) * Math.min(LIMITS.live.jpegBytesMax, pictureBytes);
  return {
    memoryBytes: (hasVideo ? decoding + jpegs + VIEW_BYTES : 0) + (attach.localAudio ? AUDIO_BYTES : 0) +
      recordingBytes(picture, attach) + (isRecorded ? segmentBytes(picture) : 0),
    threads: hasVideo ? threadsOf(attach, hasEvidence) : AUDIO_THREADS,
  };
}

/**
 * What is kept, clips that are made or stored, and the file of the one that is being made; with the picture
 * of each.
 */
function recordingBytes(picture: Extent, { record }: AttachConfig): number {
  if (!record) return 0;
  const { clipsHeld } = LIMITS.evidence;
  return (1 + clipsHeld + 1) * keptBytesMax(picture, record) + (1 + clipsHeld) * LIMITS.live.jpegBytesMax;
}

/** The segment under way, those that are made or stored, and the file of the one that is being made. */
function segmentBytes(picture: Extent): number {
  return (1 + LIMITS.recording.segmentsHeld + 1) * segmentBytesMax(picture);
}

/** 4:2:0. */
const BYTES_PER_PIXEL = 1.5;
/** ffmpeg besides its pictures, and the WebAssembly memory of the kernels. */
const PROCESS_BYTES = (64 + 4) * 2 ** 20;
/** The largest decoded picture buffer of H.264 and its successors. */
const REFERENCE_PICTURES_MAX = 16;
/**
 * What the next viewer gets, in the Worker and here, and what the slowest one has not taken: all viewers
 * share the same bytes.
 */
const VIEW_BYTES = LIMITS.view.keptBytesMax + 2 * LIMITS.view.viewerBytesMax;
/** One that is being made and one that is being described. */
const IN_WORK = 2;
/** The one that is being filled, the one that is queued and the one that the model describes. */
const CLIPS_HELD = 3;
/** Access units that are queued, windows of them as WAV, and the process that makes those. */
const AUDIO_BYTES = LIMITS.live.audioUnitsQueued * LIMITS.live.audioUnitBytesMax +
  (LIMITS.live.audioWindowsQueued + IN_WORK) * LIMITS.localAudio.wavBytesMax + 64 * 2 ** 20;
/** Receiving and decoding sound. */
const AUDIO_THREADS = 2;

/**
 * What a session of 1280x720 needs that shows the model keyframes: with less than this left, capacity counts
 * as full.
 */
export const LEAST_RESERVATION: Reservation = reservationOf({ width: 1280, height: 720 }, {
  ...{ prompt: null, tokensPerSecond: 0, crop: null },
  ...{ clip: null, zone: null, trigger: null, localAudio: null, record: null, enrich: null },
});

function jpegsHeld({ clip }: AttachConfig, hasEvidence: boolean): number {
  if (clip) {
    return CLIPS_HELD * Math.min(LIMITS.live.clipFramesMax, framesOf(clip.targetFps, clip.clipSeconds));
  }
  const evidence = hasEvidence ? LIMITS.live.evidenceQueued + IN_WORK : 0;
  return LIMITS.live.decodedFramesQueuedKeyframe + IN_WORK + evidence;
}

/** Three for decoding, for reading the decoded frames and for asking the model; then what the mode adds. */
function threadsOf({ clip }: AttachConfig, hasEvidence: boolean): number {
  return 3 + (clip || hasEvidence ? 2 : 1);
}
