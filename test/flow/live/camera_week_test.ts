/** A week of an always-on camera under a clock that the test moves: a run a day, gaps, a hold, a restart, and
 * what retention leaves of it.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { principalKeyOf } from "../../../src/model/identifiers.ts";
import { checkDirectory } from "../../../src/store/checks/directory_check.ts";
import { filesBelow } from "../../../src/store/files/folder.ts";
import { Receiver } from "../../support/http/receiver.ts";
import { type LiveTest, metric, startLive } from "../../support/live/live.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { makeClip, TempFolder } from "../../support/media.ts";
import { eventsOf, kindsOf, payloads } from "../../support/models/reason.ts";
import { KEY_A, PROJECT_ROOT } from "../../support/service.ts";
import { event } from "../../support/timeline.ts";
import { until } from "../../support/until.ts";

const HOUR_MS = 3_600_000;
const MIB = 2 ** 20;
/** The run that is on hold, by its day. */
const HELD = 1;
const VLM = JSON.parse(Deno.readTextFileSync(join(PROJECT_ROOT, "fixtures/events/vlm.json"))).valid[0];

/**
 * The hours pass one by one, each with a pass of retention: timers that are due in between end late, as on a
 * busy machine.
 */
async function pass(test: LiveTest, clock: ManualClock, hours: number): Promise<void> {
  const lastPassMs = async () => (await test.call("GET", "/v1/system/retention")).json.last_pass_at_ms;
  for (let hour = 0; hour < hours; hour++) {
    const before = await lastPassMs();
    clock.jump(HOUR_MS - 60_000);
    await clock.advance(60_000);
    let polls = 0;
    await until("a pass of retention", async () => {
      if (await lastPassMs() !== before) return true;
      // Its timer may have been set only after the jump, and is then due an hour behind that.
      if (++polls % 200 === 0) await clock.advance(HOUR_MS - 60_000);
      return false;
    });
  }
}

function cameraFilm(): Uint8Array {
  using folder = new TempFolder();
  return Deno.readFileSync(makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 }));
}

/** What must not grow with the days: memory and sessions of the camera, webhooks and timers. */
async function held(test: LiveTest, clock: ManualClock) {
  return {
    reserved: await metric(test, "service_media_capacity_memory_reserved_bytes"),
    threads: await metric(test, "service_media_capacity_worker_threads_reserved"),
    generations: await metric(test, "service_pipeline_generations_active"),
    webhooks: await metric(test, "service_webhooks_configured"),
    timers: clock.sleeping,
  };
}

function logBytes({ dataDir }: LiveTest): number {
  return [...filesBelow(dataDir, "timeline")].filter((path) => path.endsWith(".wal"))
    .reduce((sum, path) => sum + Deno.statSync(join(dataDir, path)).size, 0);
}

function pictures({ dataDir }: LiveTest): number {
  return [...filesBelow(dataDir, "keyframes")].length;
}

Deno.test("a week of an always-on camera: each day is a run that names the next, two days stay, and the one on hold stays whole", async () => {
  const clock = new ManualClock();
  await using camera = serveRtsp(cameraFilm(), { isEndless: true });
  await using receiver = await Receiver.start();
  const sourcesFile = `[[sources]]
name = "gate"
uri = "rtsp://camera.test:${camera.port}/gate"
principals = ["${principalKeyOf(KEY_A).slice("api-key:".length)}"]
live = true
rollover = "24h"
prompt = "Watch the gate."
retention = { hours = 48 }
webhooks = [{ name = "all", url = "${receiver.url}", secret = "${
    "ab".repeat(32)
  }", event_kinds = ["source_gap", "source_resumed"] }]
`;
  await using test = await startLive({
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
    SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
  }, {
    clock,
    sourcesFile,
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
  });
  const look = async () => (await test.call("GET", "/v1/sources")).json.sources[0];
  const runs: string[] = [];
  const newRun = async () => {
    let runId: string | null = null;
    await until("a new run", async () => (runId = (await look()).run_id) !== null && runId !== runs.at(-1));
    runs.push(runId!);
  };
  let shown = 0;
  let gaps = 0;
  /** Lives half a day with a gap, a picture and a MiB of events. */
  const live = async () => {
    const worker = test.workers.last;
    const pulls = () => worker.orders.filter(({ kind }) => kind === "pull").length;
    const before = pulls();
    worker.report({ kind: "gap", reason: "the connection was closed", lastPtsMs: 1, silentMs: 0 });
    assert.equal((await look()).state, "gap");
    await until("connected again", async () => {
      await clock.advance(20);
      return pulls() > before;
    });
    worker.report({ kind: "resumed" });
    gaps++;
    const seen = worker.acknowledged.pictures;
    worker.picture(shown++);
    await until("described", () => worker.acknowledged.pictures > seen);
    const large = { ...VLM, description: "x".repeat(MIB / 8) };
    for (let count = 0; count < 8; count++) {
      test.service.timeline.commit(() => [event("vlm", large, runs.at(-1)!)]);
    }
    await receiver.waitFor(() => receiver.received.length >= 2 * gaps);
  };

  await newRun();
  let afterOneDay: Awaited<ReturnType<typeof held>> | null = null;
  for (let day = 0; day < 7; day++) {
    await pass(test, clock, 6);
    await live();
    await pass(test, clock, 6);
    afterOneDay ??= await held(test, clock);
    if (day === 1) assert.equal((await test.call("POST", `/v1/runs/${runs[HELD]}/hold`)).status, 200);
    if (day === 3) {
      await test.restart();
      await newRun();
      await live();
    }
    await pass(test, clock, day === 3 ? 24 : 12);
    await newRun();
  }
  await pass(test, clock, 6);

  // The run before the restart and the one after it are the third and the fourth; two that have ended stay
  // for 48 hours.
  const isThere = [HELD, 6, 7, 8];
  const listed = async () => {
    const answer = (await test.call("GET", "/v1/runs")).json;
    return answer.map(({ run_id }: { run_id: string }) => runs.indexOf(run_id)).sort();
  };
  assert.equal(runs.length, 9);
  assert.deepEqual(await listed(), isThere);
  assert.equal(pictures(test), 3);
  assert.ok(logBytes(test) < 3.5 * MIB, `${logBytes(test)} bytes of the log`);
  assert.deepEqual(await held(test, clock), afterOneDay);
  assert.equal(receiver.received.length, 2 * gaps);
  const sentOf = new Set(receiver.received.map(({ event: { source } }) => source.slice("/v1/runs/".length)));
  assert.deepEqual([...sentOf], runs.slice(0, 8));
  const { findings } = await checkDirectory({ dataDir: test.dataDir, uploadRoot: test.uploadRoot });
  assert.deepEqual([...findings.damage, ...findings.notes], []);

  for (const from of ["memory", "the log"]) {
    if (from === "the log") {
      await test.restart(() => Deno.removeSync(join(test.dataDir, "timeline", "snapshot")));
      await newRun();
      assert.deepEqual(await listed(), [...isThere, 9]);
    }
    for (const [index, runId] of runs.slice(0, 8).entries()) {
      const { events_removed = false, source_uri } = (await test.call("GET", `/v1/runs/${runId}`)).json;
      assert.deepEqual([events_removed, source_uri], [!isThere.includes(index), "source:gate"], from);
      const events = await eventsOf(test, runId);
      if (events_removed) {
        assert.deepEqual(kindsOf(events), ["events_removed"]);
        continue;
      }
      assert.equal(events[0]!.payload.predecessor_run_id, runs[index - 1]);
      assert.equal(payloads(events, "run_completed")[0].successor_run_id, runs[index + 1]);
      assert.deepEqual(kindsOf(events), [
        ...["run_created", "webhook_registered", "live_source_opened", "source_gap", "source_resumed"],
        ...["keyframe_stored", "vlm*8", ...(index === HELD ? ["hold_placed"] : [])],
        ...["run_completed", "webhook_deleted"],
      ]);
      const { image_sha256 } = payloads(events, "keyframe_stored")[0];
      const picture = await test.call("GET", `/v1/runs/${runId}/keyframes/${image_sha256}`);
      assert.equal(picture.status, 200, `the picture of run ${index} from ${from}`);
    }
  }
});
