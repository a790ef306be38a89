/** What this computer captures, as it is. */

import { useEffect, useRef } from "preact/hooks";

export interface StreamVideoProps {
  readonly stream: MediaStream;
  /** Called with width over height, once known and when it changes. */
  readonly onAspect: (aspect: number) => void;
}

export function StreamVideo({ stream, onAspect }: StreamVideoProps) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    video.current!.srcObject = stream;
  }, [stream]);
  return (
    <video
      ref={video}
      muted
      autoPlay
      playsInline
      aria-label="What this computer sends"
      onResize={({ currentTarget: { videoWidth, videoHeight } }) => {
        if (videoHeight > 0) onAspect(videoWidth / videoHeight);
      }}
    />
  );
}
