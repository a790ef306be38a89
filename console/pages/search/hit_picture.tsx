/** The picture of a hit: the one that was stored with its event, else the film at its time. Asked for once it
 * can be seen.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { SearchHit } from "../../../client/mod.ts";
import { filmOf } from "../../service/film.ts";
import { useLoaded } from "../../service/loaded.ts";
import { useMedia } from "../../service/media.ts";
import { client } from "../../service/session.ts";
import { lookOfEvent } from "../../text/event_types.ts";

export interface HitPictureProps {
  readonly hit: SearchHit;
  readonly sourceUri: string;
  /** Media time; null where it is not known. */
  readonly ms: number | null;
}

/** Twice its width on the page, for screens of many pixels. */
const PICTURE_WIDTH = 320;
/** Where there is no film, one of so many events from the hit on may name the picture that was described. */
const EVENTS_READ = 12;

export function HitPicture(props: HitPictureProps) {
  const place = useRef<HTMLSpanElement>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry!.isIntersecting) return;
      setSeen(true);
      observer.disconnect();
    }, { rootMargin: "200px" });
    observer.observe(place.current!);
    return () => observer.disconnect();
  }, []);
  const { hit, sourceUri, ms } = props;
  const film = filmOf(sourceUri, false);
  return (
    <span ref={place} class="hit-picture">
      {isSeen && ("path" in film && ms !== null
        ? <FilmPicture path={film.path} ms={ms} />
        : <StoredPicture hit={hit} />)}
    </span>
  );
}

function StoredPicture({ hit: { run_id, seq, kind } }: { hit: SearchHit }) {
  const sha256 = useLoaded((signal) => pictureOf(run_id, seq, signal), [
    run_id,
    seq,
  ]);
  const { url } = useMedia(
    sha256.value ? `/v1/runs/${run_id}/keyframes/${sha256.value}?width=${PICTURE_WIDTH}` : null,
  );
  if (url !== undefined) return <img src={url} alt="" />;
  if (sha256.value !== null && sha256.failure === undefined) return null;
  const { shape } = lookOfEvent(kind);
  return <span class="hit-no-picture" title="No picture was kept" aria-hidden="true">{shape}</span>;
}

/**
 * The description of a keyframe is written before the event that names its picture. Null where none was kept.
 */
async function pictureOf(
  runId: string,
  seq: number,
  signal: AbortSignal,
): Promise<string | null> {
  const events = client.value.streamEvents(
    runId,
    { from_seq: seq, without_kind: "frames_decoded" },
    { signal },
  );
  let count = 0;
  let described: unknown;
  for await (const { payload } of events) {
    if (count === 0) described = payload.pts_ms;
    const evidence = payload.evidence as
      | { image_sha256?: unknown }
      | undefined;
    const name = payload.image_sha256 ?? evidence?.image_sha256;
    if (typeof name === "string" && payload.pts_ms === described) return name;
    if (++count === EVENTS_READ) break;
  }
  return null;
}

/** A film that is not played shows the frame that its address names. */
function FilmPicture({ path, ms }: { path: string; ms: number }) {
  const { url } = useMedia(path);
  const [isFaulty, setFaulty] = useState(false);
  if (url === undefined || isFaulty) return null;
  return (
    <video
      src={`${url}#t=${ms / 1000}`}
      muted
      playsInline
      preload="metadata"
      tabIndex={-1}
      aria-hidden="true"
      onError={() => setFaulty(true)}
    />
  );
}
