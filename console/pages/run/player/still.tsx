/** The picture that was kept nearest to the playhead, where there is no film. */

import { useSignal } from "@preact/signals";
import type { Signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { RunMarks } from "../../../timeline/run_marks.ts";
import { useMedia } from "../../../service/media.ts";
import { mediaTime } from "../../../text/time.ts";
import { pictureOf } from "../details/event_facts.ts";

export interface StillSource {
  readonly runId: string;
  readonly marks: RunMarks;
  readonly playheadMs: Signal<number>;
}

/** Marks of these lanes may have a picture. */
const WITH_PICTURES = {
  lanes: new Set(["keyframe", "zone", "trigger"]),
  text: "",
  minConfidence: 0,
};
/** Many are passed while the playhead is dragged; the one where it rests is asked for. */
const REST_MS = 120;

export function Still(
  { of: { runId, marks, playheadMs } }: { of: StillSource },
) {
  const found = useSignal<
    { readonly sha256: string; readonly ms: number } | null
  >(null);
  const ms = playheadMs.value;
  const count = marks.count.value;
  useEffect(() => {
    const mark = marks.near(ms + 1, -1, WITH_PICTURES) ??
      marks.near(ms, 1, WITH_PICTURES);
    if (!mark || mark.startMs === found.peek()?.ms) return;
    const ending = new AbortController();
    const timer = setTimeout(async () => {
      const event = await marks.event(mark.seq, ending.signal).catch(() => null);
      const picture = event && pictureOf(event);
      if (picture && !ending.signal.aborted) {
        found.value = { sha256: picture.sha256, ms: mark.startMs };
      }
    }, REST_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [ms, count]);
  const media = useMedia(
    found.value && `/v1/runs/${runId}/keyframes/${found.value.sha256}`,
  );
  if (!found.value || media.url === undefined) {
    return <p class="screen-note">{found.value ? "" : "No picture was kept."}</p>;
  }
  return (
    <img
      src={media.url}
      alt={`The picture that was kept at ${mediaTime(found.value.ms)}`}
    />
  );
}
