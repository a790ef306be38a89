/** What the detectors of a live session have found: its markers, bounded in number, and its loops. */

import type { Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import type { FrameFacts } from "../../live/messages/messages.ts";
import { sessionEvent } from "../../model/events/event_table.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import type { Labels } from "../../model/frames/label_map.ts";
import { type MarkedRange, rangeMarker, rangeOfRows } from "../../model/frames/row_range.ts";
import { DEFAULT_STREAM_ID } from "../../model/identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import { unitScore } from "../../model/frames/live_frame.ts";
import { LOOP_CONFIDENCE, LOOP_DESCRIPTION, observationPayload } from "../../model/live/observation_event.ts";
import type { Enricher } from "./describing/enricher.ts";
import type { LiveJournal } from "./journal/journal.ts";

export interface SessionMarkersOptions {
  readonly sessionId: string;
  readonly journal: LiveJournal;
  /** Renames the types of markers for the principal. */
  readonly labels: Labels;
  /** Null where no event of the session is explained. */
  readonly enricher: Pick<Enricher, "announced"> | null;
  readonly metrics: Metrics;
  readonly world: Pick<World, "monotonicMs">;
}

/** See docs/live/events.md#live-markers. */
export class SessionMarkers {
  readonly #options: SessionMarkersOptions;
  /** How many were written; their ids count from 0. */
  #written = 0;
  #minute = { startMs: -Infinity, markers: 0 };

  constructor(options: SessionMarkersOptions) {
    this.#options = options;
  }

  onLoop(frame: FrameFacts): void {
    const { sessionId, journal, metrics } = this.#options;
    const observation = { sessionId, frame, confidence: LOOP_CONFIDENCE, description: LOOP_DESCRIPTION };
    metrics.add("service_pipeline_loop_detected_total");
    journal.append([sessionEvent("loop_detected", observationPayload(observation))]);
  }

  onRange(range: DetectedRange): void {
    this.#mark(rangeOfRows(range, range.startFrame, range.endFrame));
  }

  /**
   * Only a session that explains its cuts marks them, at once; every other one tells of them with their
   * description.
   */
  onCut({ frameIndex, ptsMs, gateConfidence }: FrameFacts): void {
    const announced = this.#options.enricher?.announced("scene_cut");
    if (announced?.enrichment_deadline_ms === undefined) return;
    const place = {
      type: "scene_cut",
      ...{ start_frame: frameIndex, end_frame: frameIndex, start_pts_ms: ptsMs, end_pts_ms: ptsMs },
      confidence: unitScore(gateConfidence),
    } as const;
    this.#mark(place, announced);
  }

  #mark(place: MarkedRange, announced: { readonly enrichment_deadline_ms?: number } = {}): void {
    const { sessionId, journal, labels, metrics } = this.#options;
    if (!this.#mayMark()) return metrics.add("service_pipeline_live_markers_dropped_total");
    const where = { runId: journal.runId, streamId: DEFAULT_STREAM_ID };
    const marker = rangeMarker(place, this.#written, where, labels);
    const payload = { ...marker, session_id: sessionId, ...announced };
    this.#written += journal.append([sessionEvent("marker_emitted", payload)]).length;
  }

  /** Counts a marker; false beyond the limit, which begins anew a minute after its first marker. */
  #mayMark(): boolean {
    const nowMs = this.#options.world.monotonicMs();
    if (nowMs - this.#minute.startMs >= 60_000) this.#minute = { startMs: nowMs, markers: 0 };
    return ++this.#minute.markers <= LIMITS.live.markersPerMinute;
  }
}
