/** The live view of a session: its video when it is asked for, and whatever stands in its place until it
 * plays.
 */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { LivePlayback } from "../../service/live_video.ts";

export interface LiveViewProps {
  readonly runId: string;
  /** Shown until the video plays. */
  readonly children: ComponentChildren;
  /** Drawn over the video, which is the whole picture. */
  readonly over?: ComponentChildren;
  /** Called with width over height, once known and when it changes. */
  readonly onAspect: (aspect: number) => void;
  /** Called when the video begins to be shown, and when it no longer is. */
  readonly onPlaying?: (isPlaying: boolean) => void;
}

/** Lies in an element that has the size of the picture. */
export function LiveView(props: LiveViewProps) {
  const { runId, children } = props;
  const [isWatched, setWatched] = useState(false);
  useEffect(() => setWatched(false), [runId]);
  if (isWatched) return <LiveVideoView {...props} onStop={() => setWatched(false)} />;
  return (
    <>
      {children}
      <div class="live-view-bar">
        <button type="button" onClick={() => setWatched(true)}>Watch live</button>
      </div>
    </>
  );
}

function LiveVideoView(
  { runId, children, over, onAspect, onPlaying, onStop }: LiveViewProps & { onStop: () => void },
) {
  const video = useRef<HTMLVideoElement>(null);
  const [playback, setPlayback] = useState<LivePlayback | null>(null);
  const [isMuted, setMuted] = useState(true);
  useEffect(() => {
    const opened = new LivePlayback(video.current!, runId);
    setPlayback(opened);
    return () => opened.close();
  }, [runId]);
  const state = playback?.state.value;
  const isPlaying = state?.kind === "playing";
  useEffect(() => {
    if (!isPlaying) return;
    onPlaying?.(true);
    return () => onPlaying?.(false);
  }, [isPlaying]);
  return (
    <>
      <video
        ref={video}
        muted={isMuted}
        playsInline
        aria-label="Live view"
        style={{ display: isPlaying ? "" : "none" }}
        onResize={({ currentTarget: { videoWidth, videoHeight } }) => {
          if (videoHeight > 0) onAspect(videoWidth / videoHeight);
        }}
      />
      {isPlaying ? over : children}
      <div class="live-view-bar">
        <button type="button" onClick={onStop}>Stop watching</button>
        {isPlaying && state.hasSound && (
          <button
            type="button"
            aria-pressed={!isMuted}
            onClick={() => setMuted(!isMuted)}
          >
            Sound
          </button>
        )}
        <span role="status">{isPlaying ? "Live" : state?.sentence ?? ""}</span>
      </div>
    </>
  );
}
