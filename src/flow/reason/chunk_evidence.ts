/** Stores the clip and the spoken feedback of a chunk as blobs, before any event names them. */

import type { Metrics } from "../../contract/metrics.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { PayloadOf } from "../../model/events/event_table.ts";
import type { Speech } from "../../remote/sidecars/audio_sidecar.ts";
import type { BlobKind, BlobRef, Blobs } from "../../store/media/blobs.ts";

type Moment = PayloadOf<"multimodal_moment">;
/** `evidence` of an event. */
export type Evidence = NonNullable<Moment["evidence"]>;
/** `feedback_audio` of an event. */
export type FeedbackAudio = NonNullable<Moment["feedback_audio"]>;

export interface EvidenceStoreOptions {
  readonly blobs: Blobs;
  readonly metrics: Metrics;
  /** Who stores it. */
  readonly principalKey: string;
}

export class EvidenceStore {
  readonly #options: EvidenceStoreOptions;

  constructor(options: EvidenceStoreOptions) {
    this.#options = options;
  }

  /**
   * Null where the disk refuses it: the result of the chunk is complete without its evidence. Refuses with
   * `storage_quota` beyond the quota of the principal, whose events would be refused soon, too.
   */
  async clip(mp4: Uint8Array): Promise<Evidence | null> {
    const ref = await this.#put(mp4, "mp4");
    return ref && { ...mediaOf(ref), media_type: "video/mp4" };
  }

  async speech(speech: Speech): Promise<FeedbackAudio | null> {
    const ref = await this.#put(speech.wav, "wav");
    return ref && {
      ...mediaOf(ref),
      media_type: "audio/wav",
      model: speech.model,
      sample_rate_hz: speech.sampleRateHz,
      processing_ms: Math.round(speech.processingMs),
    };
  }

  async #put(bytes: Uint8Array, kind: BlobKind): Promise<BlobRef | null> {
    const { blobs, metrics, principalKey } = this.#options;
    try {
      const ref = await blobs.put(bytes, kind, principalKey);
      metrics.add(
        ref.created
          ? "service_pipeline_media_blobs_written_total"
          : "service_pipeline_media_blobs_reused_total",
      );
      return ref;
    } catch (error) {
      if (!(error instanceof Refusal) || error.kind === "storage_quota") throw error;
      metrics.add("service_pipeline_media_blob_failures_total");
      return null;
    }
  }
}

function mediaOf({ ref, sizeBytes, sha256, created }: BlobRef) {
  return { media_ref: ref, media_bytes: sizeBytes, media_sha256: sha256, created };
}
