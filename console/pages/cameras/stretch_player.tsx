/** Plays a recording from a moment to the end of its stretch, in films of some minutes. */

import { useEffect, useRef, useState } from "preact/hooks";
import { useMedia } from "../../service/media.ts";
import { clock, dateAndClock } from "../../text/time.ts";
import { FailureNote } from "../../ui/states.tsx";
import type { RecordedStretch, WallRange } from "./stretches.ts";

export interface StretchPlayerProps {
  readonly source: string;
  /** Of the day, without the gaps; the last one may grow. */
  readonly stretches: readonly RecordedStretch[];
  readonly fromMs: number;
  /** Called with the wall time of the picture that is shown. */
  readonly onTime: (ms: number) => void;
  /** Begins anew from a moment. */
  readonly onAgain: (ms: number) => void;
}

/** Where a page has no service worker, a film is held in memory. */
const FILM_MS = 600_000;

export function StretchPlayer({ source, stretches, fromMs, onTime, onAgain }: StretchPlayerProps) {
  const video = useRef<HTMLVideoElement>(null);
  const [film, setFilm] = useState(() => filmFrom(stretches, fromMs));
  const [atMs, setAtMs] = useState(film?.fromMs ?? fromMs);
  const [end, setEnd] = useState<string | null>(null);
  const media = useMedia(
    film === null
      ? null
      : `/v1/sources/${encodeURIComponent(source)}/recordings/export?from=${film.fromMs}&to=${film.toMs}`,
  );
  useEffect(() => void video.current?.scrollIntoView({ block: "nearest" }), []);
  if (film === null) return <p role="status">Nothing was recorded from {clock(fromMs)} on.</p>;
  const codec = stretchAt(stretches, film.fromMs)?.segments[0]?.codec ?? "";
  const onEnded = () => {
    const next = filmFrom(stretches, film.toMs);
    if (next?.fromMs === film.toMs) setFilm(next);
    else setEnd(`The stretch ends at ${clock(film.toMs)}.`);
  };
  const onError = ({ currentTarget }: { currentTarget: HTMLVideoElement }) =>
    setEnd(
      currentTarget.canPlayType(`video/mp4; codecs="${codec}"`) === ""
        ? `This browser cannot play ${codec}. An export has the film as the camera sent it.`
        : "The film was interrupted.",
    );
  return (
    <figure class="stretch-player">
      {media.failure !== undefined && <FailureNote failure={media.failure} />}
      <video
        ref={video}
        src={media.url}
        controls
        autoplay
        muted
        playsInline
        aria-label={`Recording from ${dateAndClock(fromMs)}`}
        onEnded={onEnded}
        onError={onError}
        onTimeUpdate={({ currentTarget: { currentTime } }) => {
          const ms = film.fromMs + currentTime * 1000;
          setEnd(null);
          setAtMs(ms);
          onTime(ms);
        }}
      />
      <figcaption class="row">
        <time>{dateAndClock(atMs)}</time>
        <span role="status">{end}</span>
        {end !== null && (
          <button
            type="button"
            onClick={() => onAgain(atMs >= film.toMs - 1000 ? fromMs : atMs)}
          >
            Play again from {clock(atMs >= film.toMs - 1000 ? fromMs : atMs)}
          </button>
        )}
      </figcaption>
    </figure>
  );
}

function stretchAt(stretches: readonly RecordedStretch[], ms: number): RecordedStretch | undefined {
  return stretches.find(({ endMs }) => endMs > ms);
}

/** Whole segments, as each begins with a key frame: so the wall time of the first picture is known. */
function filmFrom(stretches: readonly RecordedStretch[], ms: number): WallRange | null {
  const segments = stretchAt(stretches, ms)?.segments.filter(({ end_at_ms }) => end_at_ms > ms) ?? [];
  if (segments.length === 0) return null;
  const fromMs = segments[0]!.start_at_ms;
  const last = segments.findLast(({ end_at_ms }) => end_at_ms <= fromMs + FILM_MS) ?? segments[0]!;
  return { fromMs, toMs: last.end_at_ms };
}
