/** An ffmpeg that is removed or exchanged while the service runs is no fault of a caller's film. */

import { equal, rejects } from "node:assert/strict";
import { join } from "node:path";
import { Refusal } from "../../src/contract/refusal.ts";
import { fileInput } from "../../src/media/input.ts";
import { probeMedia } from "../../src/media/files/probe.ts";
import type { Cage } from "../../src/media/broker/cage.ts";
import { NO_CAGE } from "../../src/media/broker/cage.ts";
import { BUBBLEWRAP, cageOf } from "../support/cages.ts";
import { make, NEVER, TempFolder, tools, world } from "../support/media.ts";
import { needing } from "../support/needs.ts";
import { TestBroker } from "../support/test_broker.ts";

async function check(cage: Cage): Promise<void> {
  using folder = new TempFolder();
  const film = make(join(folder.path, "f.mp4"), "-f", "lavfi", "-i", "testsrc2=d=1", "-c:v", "mpeg4");
  const ffprobe = folder.script("ffprobe", `exec ${tools().ffprobe} "$@"`);
  const places = { tempDir: folder.path, uploadRoot: folder.path, ingestRoots: [] };
  await using broker = new TestBroker({ ...tools(), ffprobe }, places, cage);
  const probed = () => probeMedia(fileInput(film), { runner: broker.client, world: world(), signal: NEVER });
  Deno.removeSync(ffprobe);
  await rejects(probed, (error) => {
    equal((error as Refusal).code, "decoder_unusable", String(error));
    return error instanceof Refusal;
  });
}

Deno.test("a program that is gone is a fault of the machine", () => check(NO_CAGE));

Deno.test({
  ...needing(BUBBLEWRAP, "the same in the strongest cage"),
  fn: async () => await check(await cageOf("bubblewrap", tools())),
});
