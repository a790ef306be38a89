/** The stored pictures, clips and sounds that an event names. */

import type { TimelineEvent } from "../../../../client/mod.ts";
import { useEffect, useState } from "preact/hooks";
import { lossOf, useMedia } from "../../../service/media.ts";
import { type Clip, clipsOf, type Picture, pictureOf } from "./event_facts.ts";

export function Evidence(
  { runId, event }: { runId: string; event: TimelineEvent },
) {
  const picture = pictureOf(event);
  const clips = clipsOf(event);
  if (!picture && clips.length === 0) return null;
  return (
    <section class="evidence" aria-label="Evidence">
      {picture && <EvidencePicture key={picture.sha256} runId={runId} picture={picture} />}
      {clips.map((clip) => <EvidenceClip key={clip.sha256} runId={runId} clip={clip} />)}
    </section>
  );
}

function EvidencePicture(
  { runId, picture: { sha256, about } }: { runId: string; picture: Picture },
) {
  const { url, loss, onError } = useEvidence(`/v1/runs/${runId}/keyframes/${sha256}`);
  if (loss !== "") return <p class="hint">The picture {loss}.</p>;
  return (
    <div class="evidence-picture">
      {url !== undefined && <img src={url} alt={about} onError={onError} />}
    </div>
  );
}

function EvidenceClip(
  { runId, clip: { sha256, isSound, about } }: { runId: string; clip: Clip },
) {
  const { url, loss, onError } = useEvidence(`/v1/runs/${runId}/media/${sha256}`);
  if (loss !== "") return <p class="hint">The {isSound ? "sound" : "clip"} {loss}.</p>;
  return (
    <figure>
      {isSound ? <audio src={url} controls preload="metadata" aria-label={about} onError={onError} /> : (
        <video
          src={url}
          controls
          playsInline
          preload="metadata"
          aria-label={about}
          onError={onError}
        />
      )}
      <figcaption class="hint">{about}</figcaption>
    </figure>
  );
}

/** The address of a file, and where it cannot be shown, what became of it. */
function useEvidence(path: string) {
  const { url, failure } = useMedia(path);
  const [loss, setLoss] = useState("");
  const onError = () => void lossOf(path).then(setLoss);
  useEffect(() => {
    if (failure !== undefined) onError();
  }, [failure]);
  return { url, loss, onError };
}
