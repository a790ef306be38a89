/** Viewers of a live session, without the rest of the service: waiting, being slow, a session that goes on in
 * another run.
 */

import assert from "node:assert/strict";
import { Metrics } from "../../../../src/contract/metrics.ts";
import { LiveView } from "../../../../src/flow/live/viewing/live_view.ts";
import type { Viewer } from "../../../../src/flow/live/viewing/viewer.ts";
import { LIMITS } from "../../../../src/contract/limits.ts";
import { ManualClock } from "../../../support/manual_clock.ts";
import { world } from "../../../support/media.ts";
import { NEVER } from "../../../support/media.ts";

const KIND = { kind: "fragment", viewId: 1 } as const;
const RUN = { followsSource: false };
const SOURCE = { followsSource: true };

class Watched {
  readonly clock = new ManualClock();
  readonly metrics = new Metrics();
  readonly orders: (number | null)[] = [];
  acknowledged = 0;
  readonly view = new LiveView({
    world: {
      ...world(),
      monotonicMs: () => this.clock.monotonicMs(),
      sleep: (ms, signal) => this.clock.sleep(ms, signal),
    },
    metrics: this.metrics,
    order: (viewId) => this.orders.push(viewId),
    acknowledge: () => this.acknowledged++,
  });

  begin(): void {
    this.view.onReport({ kind: "began", viewId: 1, init: Uint8Array.of(0), codecs: "avc1.42e01f" });
  }

  show(number: number, { isKeyframe = false, bytes = 1 } = {}): void {
    this.view.onReport({ ...KIND, bytes: new Uint8Array(bytes).fill(number), isKeyframe });
  }

  async dropped(): Promise<string[]> {
    const text = await this.metrics.text();
    return text.split("\n").filter((line) => line.startsWith("service_live_view_fragments_dropped_total{"));
  }
}

/** The first byte of each part that waits. */
async function taken(viewer: Viewer, count: number): Promise<number[]> {
  const firsts: number[] = [];
  for (let part = 0; part < count; part++) firsts.push((await viewer.next())![0]!);
  return firsts;
}

Deno.test("a viewer that is too slow goes on with the next key frame, and the others miss nothing", async () => {
  const watched = new Watched();
  const { view } = watched;
  const joining = [view.join(NEVER, RUN), view.join(NEVER, RUN)];
  watched.begin();
  watched.show(1, { isKeyframe: true });
  const [slow, quick] = await Promise.all(joining);
  assert.deepEqual(await taken(quick!, 2), [0, 1]);
  const bytes = LIMITS.view.viewerBytesMax / 2;
  for (const number of [2, 3, 4]) {
    watched.show(number, { bytes });
    assert.deepEqual(await taken(quick!, 1), [number]);
  }
  watched.show(5, { isKeyframe: true });
  watched.show(6);
  assert.deepEqual(await taken(quick!, 2), [5, 6]);
  assert.deepEqual(await taken(slow!, 3), [0, 5, 6], "what was before is gone");
  // 1 and 2, then 3 and 4, which nothing could follow on.
  assert.deepEqual(await watched.dropped(), [
    'service_live_view_fragments_dropped_total{queue="worker"} 0',
    'service_live_view_fragments_dropped_total{queue="viewer"} 4',
  ]);
  for (let number = 0; number < LIMITS.view.viewerFragmentsMax; number++) watched.show(7);
  watched.show(8);
  await watched.clock.advance(LIMITS.view.silenceMs - 1);
  assert.equal(view.viewers, 2);
  // It takes nothing for half a minute: its place is free for another one.
  watched.show(9, { isKeyframe: true });
  await watched.clock.advance(2);
  await taken(quick!, 1);
  watched.show(9);
  assert.equal(view.viewers, 1);
  assert.equal(watched.acknowledged, 73);
  quick!.leave();
  assert.deepEqual(watched.orders, [1, 1, null]);
});

Deno.test("where the last viewer takes nothing any more, nobody watches, and whoever comes then waits as long as anybody", async () => {
  const watched = new Watched();
  const { view, clock } = watched;
  const joining = view.join(NEVER, RUN);
  watched.begin();
  watched.show(1, { isKeyframe: true });
  await joining;
  await clock.advance(LIMITS.view.silenceMs - 1);
  watched.show(2);
  await clock.advance(2);
  watched.show(3);
  assert.deepEqual([view.viewers, watched.orders, clock.sleeping], [0, [1, null], 0]);
});

Deno.test("who watches a run sees its end at the roll-over, who watches the source goes on; silence ends both", async () => {
  const watched = new Watched();
  const { view } = watched;
  const joining = [view.join(NEVER, RUN), view.join(NEVER, SOURCE)];
  watched.begin();
  watched.show(1, { isKeyframe: true });
  const [ofRun, ofSource] = await Promise.all(joining);
  view.endOfRun();
  watched.show(2);
  assert.deepEqual(await taken(ofRun!, 2), [0, 1]);
  assert.equal(await ofRun!.next(), null);
  assert.deepEqual(await taken(ofSource!, 3), [0, 1, 2]);
  await watched.clock.advance(LIMITS.view.silenceMs);
  assert.equal(await ofSource!.next(), null);
  assert.deepEqual(watched.orders, [1, 1, null]);
});

Deno.test("a viewer waits for a key frame as long as the limit says, and nobody watches afterwards", async () => {
  const watched = new Watched();
  const { view } = watched;
  const waiting = assert.rejects(view.join(NEVER, SOURCE), /Frame of the live session not found/);
  watched.begin();
  watched.show(1);
  await watched.clock.advance(LIMITS.view.startMs);
  await waiting;
  assert.deepEqual([view.viewers, watched.orders, watched.clock.sleeping], [0, [1, null], 0]);
  view.close();
  await assert.rejects(view.join(NEVER, SOURCE), /Frame of the live session not found/);
});
