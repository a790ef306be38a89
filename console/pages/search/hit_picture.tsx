/** The picture of a hit: the one that was stored with its event, else the film at its time. Asked for once it can be seen. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { SearchHit } from "../../../client/mod.ts";
import { filmOf } from "../../service/film.ts";
import { useLoaded } from "../../service/loaded.ts";
import { useMedia } from "../../service/media.ts";
import { client } from "../../service/session.ts";

export interface HitPictureProps {
  readonly hit: SearchHit;
  readonly sourceUri: string;
  /** Media time; null where it is not known. */
  readonly ms: number | null;
}

/** Twice its width on the page, for screens of many pixels. */
const PICTURE_WIDTH = 320;
/** These kinds of events name a stored picture. */
const WITH_PICTURE = /^(keyframe_stored|restricted_zone_activity_entered|trigger\..*)$/;

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
      {isSeen && (WITH_PICTURE.test(hit.kind)
        ? <StoredPicture hit={hit} />
        : "path" in film && ms !== null && <FilmPicture path={film.path} ms={ms} />)}
    </span>
  );
}

function StoredPicture({ hit: { run_id, seq } }: { hit: SearchHit }) {
  const sha256 = useLoaded((signal) => pictureOf(run_id, seq, signal), [
    run_id,
    seq,
  ]);
  const { url } = useMedia(
    sha256.value ? `/v1/runs/${run_id}/keyframes/${sha256.value}?width=${PICTURE_WIDTH}` : null,
  );
  return url === undefined ? null : <img src={url} alt="" />;
}

async function pictureOf(
  runId: string,
  seq: number,
  signal: AbortSignal,
): Promise<string | null> {
  for await (
    const event of client.value.streamEvents(runId, { from_seq: seq }, {
      signal,
    })
  ) {
    if (event.seq !== seq) return null;
    const evidence = event.payload.evidence as
      | { image_sha256?: unknown }
      | undefined;
    const name = event.payload.image_sha256 ?? evidence?.image_sha256;
    return typeof name === "string" ? name : null;
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
