/** The stored pictures of the window, each above its time. */

import { useEffect, useState } from "preact/hooks";
import { useMedia } from "../service/media.ts";
import { mediaTime } from "../text/time.ts";
import type { RunMarks } from "./run_marks.ts";
import type { Stretch } from "./view.ts";

export interface ThumbnailsProps {
  readonly runId: string;
  readonly marks: RunMarks;
  readonly window: Stretch;
  /** Of the canvas, and of the names before its lanes. */
  readonly width: number;
  readonly gutter: number;
  readonly onChoose: (seq: number) => void;
}

const THUMB_WIDTH = 96;
/** So long after the last movement the pictures are chosen. */
const REST_MS = 150;

interface Thumb {
  readonly seq: number;
  readonly sha256: string;
  readonly startMs: number;
}

/** Nothing for a run without pictures. */
export function Thumbnails(
  { runId, marks, window, width, gutter, onChoose }: ThumbnailsProps,
) {
  const slots = Math.max(1, Math.floor((width - gutter) / THUMB_WIDTH));
  const [thumbs, setThumbs] = useState<readonly (Thumb | null)[] | null>(null);
  const count = marks.count.value;
  useEffect(() => {
    const timer = setTimeout(
      () => setThumbs(chosen(marks, window, slots)),
      thumbs === null ? 0 : REST_MS,
    );
    return () => clearTimeout(timer);
  }, [count, window.fromMs, window.toMs, slots]);
  if (thumbs === null || marks.pictures().count === 0) return null;
  return (
    <div class="thumbs" style={{ marginLeft: `${gutter}px` }}>
      {thumbs.map((thumb, slot) => (
        <div key={slot} class="thumb">
          {thumb && (
            <ThumbButton
              key={thumb.sha256}
              runId={runId}
              thumb={thumb}
              onChoose={onChoose}
            />
          )}
        </div>
      ))}
    </div>
  );
}

function ThumbButton(
  { runId, thumb: { seq, sha256, startMs }, onChoose }: {
    runId: string;
    thumb: Thumb;
    onChoose: (seq: number) => void;
  },
) {
  const { url } = useMedia(`/v1/runs/${runId}/keyframes/${sha256}?width=${2 * THUMB_WIDTH}`);
  return (
    <button
      type="button"
      aria-label={`The picture at ${mediaTime(startMs)}`}
      onClick={() => onChoose(seq)}
    >
      {url !== undefined && <img src={url} alt="" loading="lazy" />}
    </button>
  );
}

/** The first picture of each part of the window. */
function chosen(
  marks: RunMarks,
  { fromMs, toMs }: Stretch,
  slots: number,
): (Thumb | null)[] {
  const pictures = marks.pictures();
  const stepMs = (toMs - fromMs) / slots;
  return Array.from({ length: slots }, (_, slot) => {
    const position = pictures.positionAt(fromMs + slot * stepMs);
    if (position >= pictures.count) return null;
    const { seq, sha256, startMs } = marks.at(pictures.at(position));
    return startMs < fromMs + (slot + 1) * stepMs ? { seq, sha256: sha256!, startMs } : null;
  });
}
