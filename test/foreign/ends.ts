/** How sessions of publishers that are not ours end: on purpose, in silence, in a crash, and that the next
 * one starts.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { BusyMachine, type ForeignName, ForeignProgram } from "../support/foreign/foreign_program.ts";
import {
  endOf,
  type ForeignService,
  MEDIA_IDLE_SECS,
  startForeignService,
} from "../support/foreign/foreign_service.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { payloads } from "../support/models/reason.ts";
import { CLIPS, KEY_A } from "../support/service.ts";
import { until } from "../support/until.ts";

const CLIP = join(CLIPS, "bbb120.mp4");
const PUBLISHERS: readonly ForeignName[] = ["aiortc_publisher", "gstreamer_publisher"];
const ENDS = 30;

function publish(client: ForeignProgram, { url }: ForeignService) {
  const session = { codec: "VP8", sound: false, trickle: false };
  return client.order("publish", { server: url, key: KEY_A, clip: CLIP, ...session });
}

async function untilDescribed(service: ForeignService, runId: string, pictures = 1): Promise<void> {
  await until(
    "a picture is described",
    async () => payloads(await service.events(runId), "vlm").length >= pictures,
  );
}

for (const name of PUBLISHERS) {
  for (const isBusy of [false, true]) {
    const where = isBusy ? "busy" : "quiet";
    Deno.test(
      `${name} closes its peer and then sends DELETE: ${ENDS / 2} of ${
        ENDS / 2
      } runs are completed, on a ${where} machine`,
      LONG_TEST,
      async () => {
        await using service = await startForeignService();
        await using client = new ForeignProgram(name);
        await using _load = isBusy ? new BusyMachine() : undefined;
        const ends: Record<string, number> = {};
        for (let at = 0; at < ENDS / 2; at++) {
          const { run_id: runId } = await publish(client, service);
          if (at % 3 === 0) await untilDescribed(service, runId);
          assert.equal((await client.order("close_and_delete")).status, 200);
          const end = endOf(await service.terminal(runId));
          ends[end] = (ends[end] ?? 0) + 1;
        }
        assert.deepEqual(ends, { "run_completed whip_terminated": ENDS / 2 });
      },
    );
  }

  Deno.test(`${name} may pause, and ends by media_idle when it sends nothing more`, LONG_TEST, async () => {
    await using service = await startForeignService();
    await using client = new ForeignProgram(name);
    const { run_id: runId } = await publish(client, service);
    await untilDescribed(service, runId);
    await client.order("pause");
    await new Promise((resolve) => setTimeout(resolve, MEDIA_IDLE_SECS * 500));
    await client.order("resume");
    const { length } = payloads(await service.events(runId), "vlm");
    await untilDescribed(service, runId, length + 2);
    await client.order("pause");
    assert.equal(endOf(await service.terminal(runId)), "run_failed media_idle");
    assert.equal((await service.call("GET", `/v1/runs/${runId}`)).json.status, "failed");
    assert.equal((await client.order("close_and_delete")).status, 200);
    assert.equal(await service.metric("service_pipeline_worker_faults_total"), 0);
  });

  Deno.test(
    `${name} that crashes is noticed, and started again it is described in a run of its own`,
    LONG_TEST,
    async () => {
      await using service = await startForeignService();
      await using crashing = new ForeignProgram(name);
      const first = await publish(crashing, service);
      await untilDescribed(service, first.run_id);
      await crashing.kill();
      await using client = new ForeignProgram(name);
      const second = await publish(client, service);
      await untilDescribed(service, second.run_id, 2);
      assert.match(
        endOf(await service.terminal(first.run_id)),
        /^run_failed (peer_disconnected|media_idle)$/,
      );
      assert.equal((await client.order("close_and_delete")).status, 200);
      assert.equal(endOf(await service.terminal(second.run_id)), "run_completed whip_terminated");
    },
  );

  Deno.test(
    `${name} that closes its peer and sends no DELETE fails its run, and one that sends only DELETE completes it`,
    LONG_TEST,
    async () => {
      await using service = await startForeignService();
      await using client = new ForeignProgram(name);
      const closed = await publish(client, service);
      await untilDescribed(service, closed.run_id);
      await client.order("close");
      assert.match(
        endOf(await service.terminal(closed.run_id)),
        /^run_failed (peer_closed|peer_disconnected|media_idle)$/,
      );
      const deleted = await publish(client, service);
      await untilDescribed(service, deleted.run_id);
      assert.equal((await client.order("delete")).status, 200);
      assert.equal(endOf(await service.terminal(deleted.run_id)), "run_completed whip_terminated");
      await client.order("close");
    },
  );
}
