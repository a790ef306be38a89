import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import type { Caller } from "../../../src/flow/caller.ts";
import { Files } from "../../../src/flow/files/files.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { PrincipalNames } from "../../../src/model/principal_names.ts";
import { Uploads } from "../../../src/store/media/uploads.ts";
import { TemporaryFolder } from "../../support/folders.ts";

function caller(signal: AbortSignal): Caller {
  return {
    principalKey: "public",
    tenantId: null,
    requestId: "req-1",
    isOnLoopback: true,
    signal,
    holdUntilAnswered: () => {},
  };
}

Deno.test("more uploads than may run and wait are refused, and a client that disconnects frees its place", async () => {
  using folder = new TemporaryFolder();
  using files = new Files({
    world: realWorld(quietLog()),
    uploads: Uploads.open(folder.path, realWorld(quietLog())),
    decoder: { probe: () => Promise.reject(new Error("no upload gets that far")) },
    sources: { uploadRoot: folder.path, ingestRoots: [], names: new PrincipalNames(null) },
    isShared: false,
  });
  const client = new AbortController();
  /** Sends one chunk, and then nothing until the client disconnects. */
  async function* stalled(): AsyncGenerator<Uint8Array> {
    yield new Uint8Array(10);
    client.signal.throwIfAborted();
    await new Promise((_, reject) =>
      client.signal.addEventListener("abort", () => reject(client.signal.reason))
    );
  }
  const { concurrentMax, waitingMax } = LIMITS.upload;
  const uploads = Array.from(
    { length: concurrentMax + waitingMax + 1 },
    () => files.upload(caller(client.signal), "a.mp4", stalled()),
  );
  await assert.rejects(Promise.race(uploads), { code: "storage_unavailable", status: 503 });
  client.abort(new Error("gone"));
  const ends = await Promise.allSettled(uploads);
  assert.equal(
    ends.filter((end) => end.status === "rejected" && end.reason.message === "gone").length,
    uploads.length - 1,
  );
  assert.deepEqual([...Deno.readDirSync(folder.path)], []);
});
