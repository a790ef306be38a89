import assert from "node:assert/strict";
import {
  frameRow,
  type RowColumns,
  type RowContext,
  type RowOverlay,
  saidFrames,
  typedFrames,
} from "../../../src/model/frames/frame_row.ts";
import { type LabelMaps, labelsOf } from "../../../src/model/frames/label_map.ts";
import { deriveMarkers } from "../../../src/model/frames/marker.ts";
import { GATE_REASONS, type GateReason } from "../../../src/model/frames/signals.ts";

const MAPS: LabelMaps = {
  tenants: { "api-key:a": { events: { scene_cut: "shot_change" }, objects: { forklift: "vehicle" } } },
};

function columns(...reasons: GateReason[]): RowColumns {
  const count = reasons.length;
  return {
    frameIndex: Float64Array.from(reasons, (_, row) => row),
    signals: { ptsMs: Float64Array.from(reasons, (_, row) => row * 300) },
    gate: {
      count,
      reason: Uint8Array.from(reasons, (reason) => GATE_REASONS.indexOf(reason)),
      novelty: new Float64Array(count).fill(0.875),
      temporalStability: new Float64Array(count).fill(0.96),
      motion: new Float64Array(count).fill(0.5),
      confidence: new Float64Array(count).fill(0.58275),
    },
  };
}

function context(maps: LabelMaps | null = null, principal = "public"): RowContext {
  return {
    runId: "run-1",
    streamId: "stream-0",
    mode: "balanced",
    model: "m",
    samplingPolicy: "fixed",
    sampleFps: 2,
    segmentMs: 250,
    requestId: "req-1",
    traceId: "trace-1",
    labels: labelsOf(maps, principal),
  };
}

const OVERLAY: RowOverlay = {
  eventType: "scene_cut",
  objectLabel: "forklift",
  summary: "A forklift",
  description: "A forklift comes in.",
  confidence: 0.9,
};

Deno.test("a model's result replaces event type, label, texts and confidence, and of nothing else", () => {
  const frames = columns("no_trigger", "initial_frame");
  const plain = frameRow(context(), frames, 1);
  const row = frameRow(context(), frames, 1, { overlay: OVERLAY, isFallback: false, finishReason: "stop" });
  assert.deepEqual(row, {
    ...plain,
    annotations: {
      summary: "A forklift",
      objects: [{ label: "forklift", score: 0.9 }],
      events: [{ type: "scene_cut", score: 0.9, description: "A forklift comes in." }],
    },
    confidence: 0.9,
    finish_reason: "stop",
  });
  assert.deepEqual(Object.keys(row), Object.keys(plain));
  assert.deepEqual(plain.annotations, {
    summary: "novelty=0.875, stability=0.960, motion=0.500",
    objects: [{ label: "keyframe_candidate", score: 0.58275 }],
    events: [{
      type: "keyframe_keep",
      score: 0.58275,
      description: "first frame of the stream, kept as the reference",
    }],
  });
});

Deno.test("a chunk that fell back keeps its deterministic values and is marked", () => {
  const frames = columns("no_trigger");
  const failed = frameRow(context(), frames, 0, { overlay: null, isFallback: true, finishReason: null });
  assert.deepEqual(failed, { ...frameRow(context(), frames, 0), fallback: { used: true } });
});

Deno.test("the operator's labels rename the labels of a model, and a label that the map lacks is a fallback", () => {
  const frames = columns("no_trigger");
  const row = (overlay: RowOverlay) =>
    frameRow(context(MAPS, "api-key:a"), frames, 0, { overlay, isFallback: false, finishReason: null });
  const mapped = row(OVERLAY) as { annotations: { objects: unknown; events: unknown[] }; fallback: unknown };
  assert.deepEqual(mapped.annotations.objects, [{ label: "vehicle", score: 0.9 }]);
  assert.deepEqual((mapped.annotations.events[0] as { type: string }).type, "shot_change");
  assert.deepEqual(mapped.fallback, { used: false });
  assert.deepEqual(row({ ...OVERLAY, objectLabel: "dog" }).fallback, { used: true });
});

Deno.test("markers of a model are derived from the frames of which it said something", () => {
  const overlayOf = (row: number) => row === 1 ? OVERLAY : null;
  const typed = [...saidFrames(columns("no_trigger", "no_trigger"), labelsOf(MAPS, "api-key:a"), overlayOf)];
  assert.deepEqual(typed.map(({ eventType, confidence }) => [eventType, confidence]), [
    ["shot_change", 0.9],
  ]);
});

Deno.test("each cut between two rows is a frame at its own time, and a row without a list of them has its one", () => {
  const frames = columns("no_trigger", "scene_cut", "scene_cut");
  const ptsMs = Float64Array.of(0, 500, 1000), cutPtsMs = Float64Array.of(NaN, 240, 1040);
  const measured = { ...frames, signals: { ...frames.signals, ptsMs, cutPtsMs } };
  const times = (cutsMs?: number[]) => {
    const typed = typedFrames(measured, labelsOf(null, "api-key:a"), cutsMs);
    return deriveMarkers(typed, { runId: "run", streamId: "stream" })
      .map(({ start_frame, start_pts_ms, end_pts_ms }) => [start_frame, start_pts_ms, end_pts_ms]);
  };
  assert.deepEqual(times(), [[0, 0, 0], [1, 240, 240], [2, 1040, 1040]]);
  assert.deepEqual(times([120, 240, 500, 1040]), [
    [0, 0, 0],
    [1, 120, 120],
    [1, 240, 240],
    [1, 500, 500],
    [2, 1040, 1040],
  ]);
});
