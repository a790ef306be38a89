import assert from "node:assert/strict";
import type { TimelineEvent } from "../../client/mod.ts";
import { eventSentence } from "../../console/pages/run/details/event_text.ts";
import { ALL_MARKS, lookOfMark, markOf, USUAL_MARKS } from "../../console/timeline/mark.ts";
import { MarkStore } from "../../console/timeline/mark_store.ts";

function marker(seq: number, event_type: string, origin?: "model"): TimelineEvent {
  const payload = {
    ...{ event_type, status: "exact", confidence: 0.9, start_frame: 3, start_pts_ms: 100, end_pts_ms: 100 },
    ...(origin && { origin }),
  };
  return { seq, pts_ms: 0, kind: "marker_emitted", payload } as unknown as TimelineEvent;
}

Deno.test("what a model says stands in lanes of its own, and is hidden and exported by itself", () => {
  const store = new MarkStore();
  const events = [
    marker(1, "scene_cut"),
    marker(2, "scene_cut", "model"),
    marker(3, "artifact_suspected", "model"),
    marker(4, "context_observation"),
    marker(5, "context_observation", "model"),
    marker(6, "a_label", "model"),
  ];
  for (const event of events) store.add(markOf(event)!);
  const marks = events.map((_, index) => store.at(index));
  assert.deepEqual(marks, events.map((event) => markOf(event)));
  assert.deepEqual(marks.map(({ lane }) => lane), [
    "scene_cut",
    "model_scene_cut",
    "model_artifact_suspected",
    "context",
    "model_context",
    "model_other",
  ]);
  assert.deepEqual(marks.map((mark) => lookOfMark(mark).name), [
    "cut",
    "cut (model)",
    "artifact (model)",
    "nothing new",
    "nothing new (model)",
    "a label (model)",
  ]);
  const shows = (lanes: Iterable<string>) => store.typesShown({ ...ALL_MARKS, lanes: new Set(lanes) });
  assert.equal(shows(["scene_cut"]), "measured:scene_cut");
  assert.equal(shows(["model_scene_cut", "context"]), "model:scene_cut,measured:context_observation");
  assert.equal(
    store.typesShown(USUAL_MARKS),
    "measured:scene_cut,model:scene_cut,model:artifact_suspected,model:a_label",
  );
  assert.equal(store.typesShown(ALL_MARKS), undefined);
  assert.equal(eventSentence(events[0]!), "A new shot begins with this frame.");
  assert.equal(eventSentence(events[1]!), 'A model calls this stretch "scene cut"; it was not measured.');
});
