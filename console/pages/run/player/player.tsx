/** The film beside the marks: what is shown at the playhead, the places that an event names in it, and its
 * buttons.
 */

import { useComputed, useSignal } from "@preact/signals";
import type { Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { filmFault, useMedia } from "../../../service/media.ts";
import { mediaTime } from "../../../text/time.ts";
import { LiveView } from "../../../ui/live/live_view.tsx";
import { Waiting } from "../../../ui/states.tsx";
import type { Region } from "../details/event_facts.ts";
import type { Film } from "../../../service/film.ts";
import type { Playback } from "./playback.ts";
import { Still, type StillSource } from "./still.tsx";

export interface PlayerProps {
  readonly film: Film;
  readonly playback: Playback;
  readonly playheadMs: Signal<number>;
  readonly durationMs: Signal<number>;
  readonly regions: readonly Region[];
  /** Width over height, where it is known before the film is. */
  readonly aspect: number;
  /** What is shown where there is no film. */
  readonly still: StillSource;
  /** The run whose open live session can be watched; null for none. */
  readonly liveRunId: string | null;
  /** To the mark before (-1) or after (1) the playhead. */
  readonly onMark: (direction: 1 | -1) => void;
  readonly frameMs: number;
}

const FAULTS = {
  missing: "The film is no longer on the service: its upload was removed, or its folder is not served.",
  unplayable: "This browser cannot play the film's format. The analysis is complete all the same.",
} as const;

export function Player(props: PlayerProps) {
  const { film, playback, regions, aspect, still, liveRunId } = props;
  const fault = useSignal<string | null>(null);
  const size = useSignal<number | null>(null);
  const isMuted = useSignal(true);
  const video = useRef<HTMLVideoElement>(null);
  const path = "path" in film ? film.path : null;
  const media = useMedia(path);
  useEffect(() => {
    fault.value = null;
    size.value = null;
  }, [path]);
  useEffect(() => playback.attach(video.current), [
    media.url,
    playback,
    fault.value,
  ]);
  const noFilm = "missing" in film
    ? film.missing
    : media.failure !== undefined
    ? FAULTS.missing
    : fault.value;
  return (
    <section class="player" aria-label="Film">
      <div class="screen" style={{ aspectRatio: String(size.value ?? aspect) }}>
        {noFilm !== null && liveRunId !== null
          ? (
            <LiveView runId={liveRunId} onAspect={(aspect) => size.value = aspect}>
              <Still of={still} />
            </LiveView>
          )
          : noFilm !== null
          ? <Still of={still} />
          : media.url === undefined
          ? <Waiting />
          : (
            <video
              ref={video}
              src={media.url}
              muted={isMuted.value}
              playsInline
              preload="auto"
              aria-label="The film; space plays and pauses"
              onClick={() => playback.toggle()}
              onLoadedMetadata={(
                { currentTarget: { videoWidth, videoHeight } },
              ) => {
                if (videoHeight > 0) size.value = videoWidth / videoHeight;
              }}
              onError={() => void filmFault(path!).then((kind) => fault.value = FAULTS[kind])}
            />
          )}
        {regions.map((region) => <RegionBox key={region.name} {...region} />)}
      </div>
      {noFilm !== null && <p class="hint" role="status">{noFilm}</p>}
      <PlayerBar {...props} hasFilm={noFilm === null} isMuted={isMuted} />
    </section>
  );
}

function RegionBox({ x, y, width, height, name }: Region) {
  const percent = (share: number) => `${Math.round(share * 10_000) / 100}%`;
  const place = {
    left: percent(x),
    top: percent(y),
    width: percent(width),
    height: percent(height),
  };
  return (
    <div class="region" style={place}>
      <span>{name}</span>
    </div>
  );
}

function PlayerBar(
  props: PlayerProps & { hasFilm: boolean; isMuted: Signal<boolean> },
) {
  const { playback, hasFilm, isMuted, onMark, frameMs } = props;
  const isPlaying = playback.isPlaying.value;
  return (
    <div class="player-bar" role="group" aria-label="Playback">
      <BarButton does="Previous mark" shape="|◂" run={() => onMark(-1)} />
      <BarButton
        does="One frame back"
        shape="◂"
        run={() => playback.step(-frameMs)}
      />
      {hasFilm && (
        <BarButton
          does={isPlaying ? "Pause" : "Play"}
          shape={isPlaying ? "❚❚" : "▶"}
          run={() => playback.toggle()}
        />
      )}
      <BarButton
        does="One frame on"
        shape="▸"
        run={() => playback.step(frameMs)}
      />
      <BarButton does="Next mark" shape="▸|" run={() => onMark(1)} />
      {hasFilm && (
        <>
          <span class="number speed" title="Speed">
            {playback.speed.value}×
          </span>
          <button
            type="button"
            class="quiet"
            aria-pressed={!isMuted.value}
            onClick={() => isMuted.value = !isMuted.value}
          >
            sound
          </button>
        </>
      )}
      <Clock playheadMs={props.playheadMs} durationMs={props.durationMs} />
    </div>
  );
}

function BarButton(
  { does, shape, run }: { does: string; shape: string; run: () => void },
) {
  return (
    <button
      type="button"
      class="quiet"
      aria-label={does}
      title={does}
      onClick={run}
    >
      <span aria-hidden="true">{shape}</span>
    </button>
  );
}

/** Alone, so that it alone is drawn anew with each frame. */
function Clock(
  { playheadMs, durationMs }: Pick<PlayerProps, "playheadMs" | "durationMs">,
) {
  const text = useComputed(() => mediaTime(playheadMs.value));
  const end = useComputed(() => mediaTime(durationMs.value));
  return (
    <span class="number clock">
      <span data-part="playhead">{text}</span> <span class="dim">/ {end}</span>
    </span>
  );
}
