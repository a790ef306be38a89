/** The `metadata[]` row of one analyzed frame, and the event type that follows from its gate reason. */

import { type ArtifactKind, artifactKindOf } from "./detected_range.ts";
import { COORDINATE_SCHEMA, type ImageCoordinates } from "./coordinates.ts";
import { hex8, spanId } from "../identifiers.ts";
import type { Labels } from "./label_map.ts";
import { roundScore, type TypedFrame } from "./marker.ts";
import type { Mode } from "../mode.ts";
import type { SamplingPolicy } from "./sampling.ts";
import { GATE_REASONS, type GateColumns, type GateReason, type SignalColumns } from "./signals.ts";

/** The event types of frames, before an operator's label map renames them. See docs/frames.md#rows. */
export const FRAME_EVENT_TYPES = [
  "scene_cut",
  "artifact_suspected",
  "keyframe_keep",
  "context_observation",
] as const;
export type FrameEventType = typeof FRAME_EVENT_TYPES[number];

/** The event type of each reason: a hard cut, an artifact, another kept frame, or no trigger. */
const EVENT_TYPE_OF: Record<GateReason, FrameEventType> = {
  initial_frame: "keyframe_keep",
  scene_cut: "scene_cut",
  temporal_fault: "artifact_suspected",
  periodic_keepalive: "keyframe_keep",
  exposure_shift: "artifact_suspected",
  flicker_suspected: "artifact_suspected",
  ghosting_suspected: "artifact_suspected",
  noise_variance_spike: "artifact_suspected",
  no_trigger: "context_observation",
};

const DESCRIPTION_OF: Record<GateReason, string> = {
  initial_frame: "first frame of the stream, kept as the reference",
  scene_cut: "hard cut: first frame of a new shot",
  temporal_fault: "fault of the picture that its neighbours do not have",
  periodic_keepalive: "kept because no frame was kept for a while",
  exposure_shift: "brightness differs from the last kept frame",
  flicker_suspected: "brightness jumped from one frame to the next",
  ghosting_suspected: "picture differs strongly from the frame before",
  noise_variance_spike: "unusually high luma variance",
  no_trigger: "no hard trigger fired",
};

/** What a viewer sees of each kind of artifact. See docs/frames.md#rows. */
const DESCRIPTION_OF_ARTIFACT: Record<ArtifactKind, string> = {
  decode_damage: "decode damage: blocks, gray or smeared parts that the camera did not see",
  flicker: "flicker: brightness jumps and comes back",
  foreign_frame: "foreign frame: it belongs to another shot or to another moment of this one",
  combing: "combing: the two fields of the frame show different moments",
  chroma_fault: "chroma fault: colours are missing, shifted or wrong",
  noise_burst: "noise burst: noise that the frames around do not have",
};

/** The fields that all rows of one analysis have in common. */
export interface RowContext {
  readonly runId: string;
  readonly streamId: string;
  readonly mode: Mode;
  readonly model: string;
  readonly samplingPolicy: SamplingPolicy;
  readonly sampleFps: number;
  readonly segmentMs: number;
  readonly requestId: string;
  readonly traceId: string;
  /** Renames the labels for this caller. */
  readonly labels: Labels;
  /** What the picture was; absent for frames that the caller supplied, of whose pictures nothing is known. */
  readonly coordinates?: ImageCoordinates;
}

/** The columns that rows and markers need: frame numbers, times and decisions of the gate. */
export interface RowColumns {
  readonly frameIndex: Float64Array;
  readonly signals: Pick<SignalColumns, "ptsMs" | "cutPtsMs" | "artifactKind">;
  readonly gate: Omit<GateColumns, "gateConfidence">;
}

/** Consecutive analyzed frames: their signals and the decisions of the gate, row by row. */
export interface AnalyzedFrames extends RowColumns {
  readonly signals: SignalColumns;
  readonly gate: GateColumns;
}

/** A model's result for a frame; it replaces that of the gate. */
export interface RowOverlay {
  readonly eventType: string;
  readonly objectLabel: string;
  readonly summary: string;
  readonly description: string;
  readonly confidence: number;
}

/** The result of the semantic path for a frame. */
export interface RowSemantics {
  /** The model's result; null when the frame keeps its deterministic values. */
  readonly overlay: RowOverlay | null;
  readonly isFallback: boolean;
  readonly finishReason: string | null;
}

/**
 * What was measured of the frames, as `deriveMarkers` takes it. The event types are those after the label
 * map. `cutsMs` are the rounded times of all cuts, rising: of several since the row before, each is a frame
 * with the number of the row.
 */
export function* typedFrames(
  { frameIndex, signals, gate }: RowColumns,
  labels: Labels,
  cutsMs: readonly number[] = [],
): Iterable<TypedFrame> {
  let next = 0;
  for (let row = 0; row < gate.count; row++) {
    const reason = reasonOf(gate, row);
    const frame = {
      frameIndex: frameIndex[row]!,
      ptsMs: signals.ptsMs[row]!,
      eventType: labels.event(EVENT_TYPE_OF[reason]).label,
      confidence: gate.confidence[row]!,
    };
    const first = next;
    const isLast = row + 1 === gate.count;
    while (next < cutsMs.length && (isLast || cutsMs[next]! <= frame.ptsMs)) next++;
    const cutMs = signals.cutPtsMs?.[row] ?? NaN;
    const isCut = reason === "scene_cut" && !Number.isNaN(cutMs);
    if (!isCut) yield frame;
    // The first row has a cut where no other row follows it.
    if (!isCut && !(reason === "initial_frame" && cutMs > frame.ptsMs)) continue;
    const eventType = labels.event(EVENT_TYPE_OF.scene_cut).label;
    const times = next > first ? cutsMs.slice(first, next) : [cutMs];
    for (const ptsMs of times) yield { ...frame, ptsMs, eventType, isCut: true };
  }
}

/** What a model said of the frames, as `deriveMarkers` takes it; without those of which it said nothing. */
export function* saidFrames(
  { frameIndex, signals, gate }: RowColumns,
  labels: Labels,
  overlayOf: (row: number) => Pick<RowOverlay, "eventType" | "confidence"> | null,
): Iterable<TypedFrame> {
  for (let row = 0; row < gate.count; row++) {
    const overlay = overlayOf(row);
    if (overlay === null) continue;
    yield {
      frameIndex: frameIndex[row]!,
      ptsMs: signals.ptsMs[row]!,
      eventType: labels.event(overlay.eventType).label,
      confidence: overlay.confidence,
    };
  }
}

/**
 * Row number `row` of the response. The order of the keys is fixed, so the same input gives the same bytes.
 */
export function frameRow(
  context: RowContext,
  frames: RowColumns,
  row: number,
  semantics: RowSemantics = DETERMINISTIC,
): Record<string, unknown> {
  const { gate, signals } = frames;
  const { overlay, isFallback, finishReason } = semantics;
  const frameIndex = frames.frameIndex[row]!;
  const ptsMs = signals.ptsMs[row]!;
  const reason = reasonOf(gate, row);
  const event = context.labels.event(overlay?.eventType ?? EVENT_TYPE_OF[reason]);
  const object = context.labels.object(
    overlay?.objectLabel ?? (isKept(reason) ? "keyframe_candidate" : "frame_context"),
  );
  const confidence = roundScore(overlay?.confidence ?? gate.confidence[row]!);
  const segment = Math.floor(ptsMs / context.segmentMs);
  return {
    run_id: context.runId,
    stream_id: context.streamId,
    frame_index: frameIndex,
    pts_ms: ptsMs,
    ...(context.coordinates && {
      coordinate_schema: COORDINATE_SCHEMA,
      coordinates: context.coordinates,
    }),
    mode: context.mode,
    model: context.model,
    sampling_policy: context.samplingPolicy,
    sample_fps: context.sampleFps,
    window: {
      start_ms: segment * context.segmentMs,
      end_ms: (segment + 1) * context.segmentMs,
      segment_id: `seg-${hex8(segment)}`,
      source: "frame",
    },
    annotations: {
      summary: overlay?.summary ?? contextSummary(gate, row),
      objects: [{ label: object.label, score: confidence }],
      events: [{
        type: event.label,
        score: confidence,
        description: overlay?.description ?? describe(reason, signals, row),
      }],
    },
    confidence,
    fallback: { used: isFallback || event.isMissed || object.isMissed },
    trace: { request_id: context.requestId, trace_id: context.traceId, span_id: spanId(frameIndex) },
    ordering_key: `${context.runId}:${ptsMs}:${frameIndex}`,
    finish_reason: finishReason,
  };
}

/** The semantics of a frame without a result of a model. */
const DETERMINISTIC: RowSemantics = { overlay: null, isFallback: false, finishReason: null };

/** Whether the gate keeps a frame for this reason. */
export function isKept(reason: GateReason): boolean {
  return EVENT_TYPE_OF[reason] === "scene_cut" || EVENT_TYPE_OF[reason] === "keyframe_keep";
}

function reasonOf(gate: RowColumns["gate"], row: number): GateReason {
  return GATE_REASONS[gate.reason[row]!]!;
}

/**
 * The description of a row: it says the kind of an artifact, and the time of a cut that lies between the row
 * before and this one.
 */
function describe(reason: GateReason, signals: RowColumns["signals"], row: number): string {
  const kind = artifactKindOf(signals.artifactKind?.[row]);
  if (kind && EVENT_TYPE_OF[reason] === "artifact_suspected") return DESCRIPTION_OF_ARTIFACT[kind];
  const cutPtsMs = signals.cutPtsMs?.[row] ?? NaN;
  if (reason === "scene_cut" && cutPtsMs < signals.ptsMs[row]!) {
    return `hard cut at ${cutPtsMs} ms: first row of a new shot`;
  }
  return DESCRIPTION_OF[reason];
}

/** The scores of a frame as text: `novelty=0.875, stability=0.960, motion=0.875`. */
function contextSummary(gate: RowColumns["gate"], row: number): string {
  const [novelty, stability, motion] = [gate.novelty[row]!, gate.temporalStability[row]!, gate.motion[row]!];
  return `novelty=${novelty.toFixed(3)}, stability=${stability.toFixed(3)}, motion=${motion.toFixed(3)}`;
}
