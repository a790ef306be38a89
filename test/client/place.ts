/** A real service with all that the methods of the client need: a model, a camera, a receiver of webhooks,
 * stored blobs.
 */

import { join } from "node:path";
import type { NewEvent } from "../../src/model/runs/run.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { Blobs } from "../../src/store/media/blobs.ts";
import { Receiver } from "../support/http/receiver.ts";
import { offerText } from "../support/live/fake_live_workers.ts";
import { type LiveTest, startLive } from "../support/live/live.ts";
import { recordSource } from "../support/live/recorded_source.ts";
import { serveRtsp } from "../support/live/rtsp_server.ts";
import { makeClip, TempFolder } from "../support/media.ts";
import { FILM, SEEN } from "../support/models/reason.ts";
import { startModelServer } from "../support/models/model_server.ts";
import { KEY_A, MODEL, newRun } from "../support/service.ts";
import type { Place } from "./every_method.ts";

export interface Prepared extends AsyncDisposable {
  readonly test: LiveTest;
  readonly place: Place;
}

export async function prepare(): Promise<Prepared> {
  await using opening = new AsyncDisposableStack();
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
  const camera = opening.use(serveRtsp(Deno.readFileSync(clip), { isEndless: true }));
  const model = opening.use(
    startModelServer({ answer: ({ prompt }) => prompt === "Fail." ? { status: 400 } : SEEN }),
  );
  const receiver = opening.use(await Receiver.start());
  const test = opening.use(
    await startLive({
      SERVICE_VLLM_BASE_URL: model.url,
      SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
      SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
      SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
      SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.0/8",
      SERVICE_WEBRTC_STUN_SERVERS: "stun:stun.example.org:3478",
    }, {
      sourcesFile:
        `[[sources]]\nname = "dock"\nuri = "rtsp://127.0.0.1:${camera.port}/dock"\nprincipals = ["*"]\n`,
    }),
  );
  await recordSource(test.dataDir, "dock");
  const small = makeClip(join(folder.path, "small.mp4"), { size: "64x48", frames: 12 });
  const place: Place = {
    url: test.url,
    key: KEY_A,
    clip: FILM,
    clipBytes: [...Deno.readFileSync(small)],
    model: MODEL,
    camera: `rtsp://127.0.0.1:${camera.port}/dock`,
    hook: receiver.url,
    offer: offerText(),
    stored: await storeBlobs(test),
  };
  const owned = opening.move();
  return { test, place, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

async function storeBlobs(test: LiveTest): Promise<Place["stored"]> {
  const blobs = Blobs.open(test.dataDir, realWorld(quietLog()));
  const put = (text: string, kind: "jpeg" | "mp4") => blobs.put(new TextEncoder().encode(text), kind);
  const [jpeg, mp4] = [await put("a picture", "jpeg"), await put("a clip", "mp4")];
  const runId = await newRun(test);
  const image = { image_ref: jpeg.ref, image_sha256: jpeg.sha256, image_media_type: jpeg.mediaType };
  const evidence = { media_ref: mp4.ref, media_sha256: mp4.sha256, media_type: mp4.mediaType };
  const events = [
    { kind: "keyframe_stored", runId, payload: { ...image, image_bytes: jpeg.sizeBytes } },
    {
      kind: "semantic_chunk_inferred",
      runId,
      payload: { evidence: { ...evidence, media_bytes: mp4.sizeBytes } },
    },
  ];
  test.service.timeline.commit(() => events as unknown as NewEvent[]);
  return { runId, jpeg: jpeg.sha256, mp4: mp4.sha256 };
}
