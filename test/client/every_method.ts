/** Calls every method of the client against a real service. Runs in Deno, Node.js and Bun, so it uses nothing
 * of any of them.
 */

import type * as library from "../../client/mod.ts";

/** What the program needs to know of the service and of what was prepared for it. */
export interface Place {
  readonly url: string;
  readonly key: string;
  readonly clip: string;
  readonly clipBytes: number[];
  readonly model: string;
  readonly camera: string;
  readonly hook: string;
  readonly offer: string;
  /** A run that names these two blobs. */
  readonly stored: { readonly runId: string; readonly jpeg: string; readonly mp4: string };
}

/** The names of the methods that were called; throws at the first that does not do what it says. */
export async function callEveryMethod(
  { Client, HttpError }: typeof library,
  place: Place,
): Promise<string[]> {
  const called = new Set<string>();
  const client = new Proxy(new Client(`${place.url}/`, { apiKey: place.key }), {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      called.add(String(name));
      return value.bind(target);
    },
  });

  same(client.baseUrl, place.url);
  same(await client.waitUntilHealthy(10, 5000), true);
  same(await client.health(), { status: "ok" });
  holds((await client.metrics()).includes("# HELP "));
  holds((await client.getSystem()).settings.some(({ name }) => name === "SERVICE_DATA_DIR"));
  same((await client.getSystemHealth()).result, "idle");
  same((await client.getRetention()).is_on, true);
  holds((await client.listModels()).some(({ id }) => id === place.model));
  holds(String((await client.openapi()).openapi).startsWith("3.1"));
  holds("$schema" in await client.getSchema("event_envelope.schema.json"));

  // Runs.
  const { run_id, mode } = await client.createRun({ mode: "detailed" });
  same(mode, "detailed");
  holds((await client.listRuns()).some((run) => run.run_id === run_id));
  const newest = await client.listRunsPage({ limit: 1, order: "newest" });
  same(newest.runs.map((run) => run.run_id), [run_id]);
  same((await client.getRun(run_id)).status, "pending");
  same(await client.keepaliveRun(run_id), undefined);
  same(await client.getRunState(run_id), "processing");
  same(await client.getRunProgress(run_id), null);
  const ingested = await client.ingestRun(run_id, { source_uri: place.clip, max_frames: 60 });
  same(ingested.decoded_frames, 60);
  const analyzed = await client.analyzeRun(run_id, { model: place.model });
  same(analyzed.generated, 60);

  // Reads.
  const events = await client.getEvents(run_id);
  same(events.map(({ kind }) => kind).slice(0, 4), [
    "run_created",
    "keepalive_refreshed",
    "ingest_received",
    "frames_decoded",
  ]);
  const markers = await client.getMarkers(run_id);
  same((await client.getMarkers(run_id, { event_type: "no such type" })).length, 0);
  const first = await client.getEventsPage(run_id, { limit: 2 });
  const rest = await client.getEventsPage(run_id, { limit: 1000, cursor: first.next_cursor! });
  same([...first.events, ...rest.events], events);
  same([first.events.length, rest.next_cursor], [2, null]);
  same((await client.getMarkersPage(run_id, { limit: 1000 })).markers, markers);
  same((await client.getMarkersText(run_id, "ndjson")).split("\n").filter(Boolean).length, markers.length);
  holds((await client.getMarkersText(run_id, "vtt")).startsWith("WEBVTT"));
  holds((await client.getMarkersText(run_id, "edl")).startsWith("TITLE: "));
  holds((await client.getMarkersText(run_id, "csv", { status: "exact" })).startsWith("marker_id,"));
  holds((await client.getEventsText(run_id, "csv")).startsWith("seq,pts_ms,kind,payload"));
  same((await client.getEventsText(run_id, "ndjson", "no such index")).length, 0);
  same((await collected(client.streamEvents(run_id))).length, events.length);
  const later = await collected(client.streamEvents(run_id, { from_seq: 3, without_kind: "frames_decoded" }));
  same(later, events.filter(({ seq, kind }) => seq >= 3 && kind !== "frames_decoded"));
  holds(later.length > 0);
  same((await collected(client.streamEvents(run_id, "no such index"))).length, 0);
  same((await collected(client.streamMarkers(run_id))).length, markers.length);
  same((await client.query({ run_id, kind: "run_created" })).matches.length, 1);
  const signals = await client.getSignals(run_id, { points: 2 });
  same([signals.source_seq !== null, signals.pts_ms.length], [true, 2]);
  same((await client.getInteractions(run_id)).length, 0);
  for await (const event of client.subscribeEvents(run_id, { kind: "frames_decoded" })) {
    same(event, events[3]);
    break;
  }

  // Feedback, policies, webhooks.
  const { feedback_id } = await client.submitFeedback(run_id, { rating: 8, category: "accuracy" });
  holds((await client.listFeedback()).some(({ id }) => id === feedback_id));
  same((await client.listFeedbackPage()).next_cursor, null);
  const { policy: { revision } } = await client.createPolicy(run_id, { prompt: "Describe the dock" });
  same((await client.listPolicies(run_id)).policies.length, 1);
  same((await client.getPolicy(run_id, revision)).policy.status, "draft");
  for (const stage of ["shadow", "canary", "active"] as const) {
    same((await client.activatePolicy(run_id, revision, { stage })).policy.status, stage);
  }
  await refused(409, client.rollbackPolicy(run_id, revision));
  await refused(422, client.replayPolicy(run_id, revision, { from_seq: 2, to_seq: 1 }));
  const { webhook_id, signing_secret } = await client.createWebhook(run_id, {
    url: place.hook,
    event_kinds: ["keepalive_refreshed"],
  });
  same(signing_secret.length, 64);
  same((await client.listWebhooks(run_id)).map((hook) => hook.webhook_id), [webhook_id]);
  same((await client.listWebhooksPage(run_id)).webhooks.length, 1);
  same((await client.listAllWebhooksPage({ limit: 1 })).webhooks.length, 1);
  same((await client.listAllWebhooks()).map((hook) => [hook.run_id, hook.webhook_id]), [[
    run_id,
    webhook_id,
  ]]);
  same((await client.redeliverWebhook(run_id, webhook_id)).scheduled, 0);
  same(await client.listDeliveries(run_id, webhook_id), []);
  await refused(404, client.getDelivery(run_id, webhook_id, 1));
  same(await client.deleteWebhook(run_id, webhook_id), undefined);

  // Files and analysis in one call.
  const bytes = Uint8Array.from(place.clipBytes);
  const progress: [number, number | null][] = [];
  const file = Object.assign(new Blob([bytes]), { name: "Übung 1.mp4" });
  const { file_path } = await client.uploadFile(file, (...now) => void progress.push(now));
  holds(file_path.endsWith("__Übung 1.mp4"), file_path);
  same(progress.at(-1), [bytes.length, bytes.length]);
  const served = await client.getFile(file_path.split("/").at(-1)!);
  same([...new Uint8Array(await served.arrayBuffer())], place.clipBytes);
  same(await client.deleteFile(file_path.split("/").at(-1)!), undefined);
  await refused(404, client.getFile(file_path.split("/").at(-1)!));
  const { stream, name } = { stream: file.stream(), name: "stream.mp4" };
  const analysis = await client.analyze({ stream, name }, { maxFrames: 10 });
  same(analysis.analyzeResponse.generated, 10);
  same((await analysis.events())[0]!.kind, "run_created");
  holds(Array.isArray(await analysis.markers()));

  // Blobs.
  const { stored } = place;
  const jpeg = await client.getKeyframe(stored.runId, stored.jpeg);
  same([jpeg.type, await jpeg.text()], ["image/jpeg", "a picture"]);
  same(await (await client.getMedia(stored.runId, stored.mp4)).text(), "a clip");

  // Models.
  const inferred = await client.infer({ prompt: "What is there?", model: place.model });
  same([inferred.ok, inferred.error, inferred.model_name, inferred.provider], [
    true,
    null,
    place.model,
    "vllm",
  ]);
  holds(inferred.result !== null && inferred.total_latency_ms >= 0);
  const batch = await client.inferBatch([
    { prompt: "One?", model: place.model },
    { prompt: "Fail.", model: place.model },
  ], { max_parallel: 2 });
  same(batch.map(({ prompt, ok }) => [prompt, ok]), [["One?", true], ["Fail.", false]]);
  const { run_id: reasoned } = await client.createRun();
  const watched = collected(client.watch(reasoned));
  await client.reason(reasoned, {
    source_uri: place.clip,
    model: place.model,
    max_frames: 24,
    chunk_size: 12,
  });
  same((await watched).at(-1)!.kind, "run_completed");
  holds((await client.search("rabbit", { run_id: reasoned })).total_hits > 0);

  // Triggers.
  const source = "trigger dock version 1\nwhen motion_score > 0.5\nemit dock\ncapture keyframe\nend";
  const { program } = await client.compileTrigger(source);
  same((await client.validateTrigger(program)).valid, true);
  const { results } = await client.evaluateTrigger(program, [{ pts_ms: 0, motion_score: 0.9 }]);
  holds((await client.evaluateTriggerOnRun(run_id, { program, from_ms: 0 })).frames > 0);
  same(results.map(({ fired }) => fired), [true]);

  // Live sessions.
  const live = await client.whipOffer(place.offer, { prompt: "Wörter ÿ" });
  same(live.resourceUrl, `${place.url}/v1/stream/whip/${live.sessionId}`);
  holds(live.answerSdp.startsWith("v=0") && live.runId !== undefined);
  same(live.iceServers.map(({ urls }) => urls), ["stun:stun.example.org:3478"]);
  same(await client.whipIce(live.sessionId, "", { ifMatch: live.etag! }), undefined);
  await refused(412, client.whipIce(live.sessionId, "", { ifMatch: '"another"' }));
  same(await client.whipUpdatePrompt(live.sessionId, { prompt: "Look." }), undefined);
  same(await client.whipTerminate(live.sessionId), undefined);
  same(await client.getRunState(live.runId!), "completed");
  const { run_id: filmed } = await client.createRun();
  same((await client.openLiveSource(filmed, { source_uri: place.camera })).status, "processing");
  await refused(404, client.armSource("nobody", { for_seconds: 60 }));
  await refused(404, client.disarmSource("nobody"));
  same((await client.listSources()).map(({ name, recording }) => [name, recording]), [["dock", null]]);
  const recorded = await client.listRecordings("dock", { from: "2026-11-24T00:00:00Z", limit: 1 });
  same([recorded.segments.length, recorded.next_cursor], [1, null]);
  const [segment] = recorded.segments;
  same((await client.getRecording("dock", segment!.segment_id)).size, segment!.bytes);
  const exported = await client.exportRecording("dock", {
    from: segment!.start_at_ms,
    to: segment!.end_at_ms,
  });
  same([exported.type, await exported.slice(4, 8).text()], ["video/mp4", "ftyp"]);
  same((await client.listLiveSessions()).map(({ run_id }) => run_id), [filmed]);
  const session = await client.getLiveSession(filmed, { after_ms: 1_000_000 });
  same([session.source_uri, session.signals.pts_ms], [place.camera, []]);
  const snapshot = await client.getSnapshot(filmed);
  same([snapshot.type, ...new Uint8Array(await snapshot.slice(0, 2).arrayBuffer())], [
    "image/jpeg",
    0xff,
    0xd8,
  ]);
  const video = await client.watchLiveVideo(filmed);
  same(video.mediaType, 'video/mp4; codecs="avc1.42e01f"');
  same((await new Response(video.stream).arrayBuffer()).byteLength, 16);
  await refused(404, client.watchSourceVideo("nowhere"));
  same((await client.closeLiveSource(filmed)).status, "completed");
  await refused(404, client.getSnapshot(filmed));
  await refused(404, client.watchLiveVideo(filmed));

  // Ends.
  same(await client.stopRun(run_id), undefined);
  same(await client.holdRun(run_id), undefined);
  same((await client.getRun(run_id)).on_hold, true);
  same(await client.releaseRun(run_id), undefined);
  same(await client.deleteRun(run_id), undefined);
  await refused(404, client.getRun(run_id));
  return [...called];

  async function refused(status: number, call: Promise<unknown>): Promise<void> {
    const error = await call.then(() => undefined, (error) => error);
    if (!(error instanceof HttpError)) throw new Error(`expected ${status}, got ${error}`);
    same(error.status, status);
  }
}

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

function same(value: unknown, expected: unknown): void {
  const [got, wanted] = [value, expected].map((item) => JSON.stringify(item));
  if (got !== wanted) throw new Error(`expected ${wanted}, got ${got}`);
}

function holds(isTrue: boolean, about = ""): void {
  if (!isTrue) throw new Error(`does not hold: ${about}`);
}
