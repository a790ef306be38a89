import assert from "node:assert/strict";
import { deriveMarkers, type Marker, type TypedFrame } from "../../../src/model/frames/marker.ts";

const TYPE_OF: Record<string, string> = {
  k: "keyframe_keep",
  o: "context_observation",
  a: "artifact_suspected",
  s: "scene_cut",
};

/**
 * "k6 k6 _ o9" is a keyframe_keep at .6 twice, a frame number that is missing, a context_observation at .9.
 */
function frames(text: string): TypedFrame[] {
  return text.split(" ").flatMap((word, frameIndex) =>
    word === "_" ? [] : [{
      frameIndex,
      ptsMs: frameIndex * 40,
      eventType: TYPE_OF[word[0]!]!,
      confidence: Number(word.slice(1)) / 10,
    }]
  );
}

function shortly(marker: Marker): string {
  const type = Object.keys(TYPE_OF).find((letter) => TYPE_OF[letter] === marker.event_type) ??
    marker.event_type;
  const supersedes = marker.supersedes_marker_id ? ` over ${marker.supersedes_marker_id.slice(-1)}` : "";
  return `${type} ${marker.start_frame}-${marker.end_frame} ${marker.status}${supersedes}`;
}

function check(input: string, expected: string, correctionWindowFrames?: number): void {
  const markers = deriveMarkers(input === "" ? [] : frames(input), {
    runId: "run-1",
    streamId: "stream-0",
    ...(correctionWindowFrames !== undefined && { correctionWindowFrames }),
  });
  assert.equal(markers.map(shortly).join(" | "), expected, input);
}

Deno.test("consecutive frames of one type are one marker, whose confidence is their mean", () => {
  check("", "");
  check("k6", "k 0-0 provisional");
  check("k7", "k 0-0 exact");
  check("k6 k6 o9 k8 k8", "k 0-1 provisional | o 2-2 exact | k 3-4 exact");
  check("o9 o5", "o 0-1 exact");
  check("o9 o4", "o 0-1 provisional");
  check("s0 s0 a0", "s 0-1 exact | a 2-2 provisional");
});

Deno.test("a gap in the frame numbers ends a segment, and a provisional one before it is corrected in the window", () => {
  check("o1 o1 _ _ o1 o1", "o 0-1 provisional | o 0-5 finalized over 0 | o 4-5 provisional");
  check("o1 _ o1", "o 0-0 provisional | o 0-2 finalized over 0 | o 2-2 provisional");
  check("o1 _ _ _ o1", "o 0-0 provisional | o 4-4 provisional");
  check("o1 _ _ _ o1", "o 0-0 provisional | o 0-4 finalized over 0 | o 4-4 provisional", 4);
  check("o1 _ o1", "o 0-0 provisional | o 2-2 provisional", 0);
  check("o9 _ o1", "o 0-0 exact | o 2-2 provisional");
  check("o1 _ k1", "o 0-0 provisional | k 2-2 provisional");
  check("s1 _ s1", "s 0-0 exact | s 2-2 exact");
  check(
    "o1 _ o1 _ o1",
    "o 0-0 provisional | o 0-2 finalized over 0 | o 2-2 provisional | o 2-4 finalized over 1 | o 4-4 provisional",
  );
});

Deno.test("a marker has exactly its eleven fields, times of its frames, and a confidence within [0,1]", () => {
  const [marker] = deriveMarkers(frames("_ _ o20"), { runId: "run-1", streamId: "s" });
  assert.deepEqual(marker, {
    marker_id: "mk-00000000",
    run_id: "run-1",
    stream_id: "s",
    event_type: "context_observation",
    status: "exact",
    start_frame: 2,
    end_frame: 2,
    start_pts_ms: 80,
    end_pts_ms: 80,
    confidence: 1,
    supersedes_marker_id: null,
  });
});

Deno.test("a correction carries the mean of the two segments, not of their frames", () => {
  const markers = deriveMarkers(frames("o1 o1 o1 _ o5"), { runId: "r", streamId: "s" });
  assert.deepEqual(markers.map(({ marker_id }) => marker_id), ["mk-00000000", "mkf-00000000", "mk-00000001"]);
  assert.ok(Math.abs(markers[1]!.confidence - 0.3) < 1e-9);
});
