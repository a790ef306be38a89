/** What an open session sees now, drawn anew again and again; the last picture that was kept where it gives
 * no frames.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { LiveSession } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { fetchedPicture } from "../../service/media.ts";
import { client } from "../../service/session.ts";
import { liveStateText } from "../../text/live_state.ts";

export interface LivePictureProps {
  readonly session: Pick<LiveSession, "run_id" | "picture"> & Parameters<typeof liveStateText>[0];
  readonly everyMs: number;
  /** Whether it is named for those who cannot see it; false where a link around it has a name. */
  readonly isNamed?: boolean;
  readonly onAspect?: (aspect: number) => void;
}

/** Whether the session gives frames, so that a picture of now can be had. */
export function seesNow(session: LivePictureProps["session"]): boolean {
  return liveStateText(session, Date.now()).tone === "good";
}

/**
 * Drawn on a canvas, so that the decoded copy can be given back as soon as it was drawn: of a picture in an
 * element a browser keeps it for longer.
 */
export function LivePicture({ session, everyMs, isNamed = false, onAspect }: LivePictureProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [isDrawn, setDrawn] = useState(false);
  const isNow = seesNow(session);
  const { run_id, picture } = session;
  const path = isNow
    ? `/v1/runs/${run_id}/snapshot.jpg`
    : picture && `/v1/runs/${run_id}/keyframes/${picture.sha256}`;
  const { value } = useLoaded(
    async (signal) => path === null ? null : await fetchedPicture(path, signal),
    [path, client.value],
    isNow ? everyMs : undefined,
  );
  useEffect(() => {
    if (!value || !canvas.current) return;
    const { width, height } = value;
    Object.assign(canvas.current, { width, height });
    canvas.current.getContext("2d")?.drawImage(value, 0, 0);
    value.close();
    setDrawn(true);
    onAspect?.(width / height);
  }, [value]);
  const name = isNow ? "What the session sees now" : "The last picture that was kept";
  return (
    <>
      <canvas
        ref={canvas}
        style={{ display: isDrawn ? "" : "none" }}
        {...(isNamed ? { role: "img", "aria-label": name } : { "aria-hidden": true })}
      />
      {!isDrawn && <span>No picture has come yet.</span>}
    </>
  );
}
