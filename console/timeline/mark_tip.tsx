/** What the mark under the pointer is. */

import { scoreText } from "../text/numbers.ts";
import { mediaTime } from "../text/time.ts";
import { lookOfMark, type Mark } from "./mark.ts";

export interface MarkTipProps {
  readonly mark: Mark;
  readonly place: { readonly x: number; readonly y: number };
}

export function MarkTip({ mark, place }: MarkTipProps) {
  const { name, shape, colour } = lookOfMark(mark);
  const isPlain = mark.label === mark.eventType || mark.label === mark.kind;
  return (
    <div
      class="mark-tip"
      aria-hidden="true"
      style={{ left: `${place.x}px`, bottom: `calc(100% - ${place.y - 14}px)` }}
    >
      <span class="mark" style={{ color: colour }}>{shape}</span> {name}{" "}
      <span class="number">
        {mediaTime(mark.startMs)}
        {mark.endMs > mark.startMs && ` – ${mediaTime(mark.endMs)}`}
      </span>
      {mark.confidence !== null && <span class="number dim">{scoreText(mark.confidence)}</span>}
      {!isPlain && <p dir="auto">{mark.label}</p>}
    </div>
  );
}
