/** Media that would take more memory than there is, over HTTP: a clear refusal, and the next film is decoded.
 */

import { ownerPrefix } from "../../../src/model/identifiers.ts";
import assert from "node:assert/strict";
import { join } from "node:path";
import { makeClip, TempFolder } from "../../support/media.ts";
import { tinyGif } from "../../support/media_bombs.ts";
import { newRun, startService } from "../../support/service.ts";

Deno.test("pictures and memory are bounded for a caller, who is told of the field and the rule", async () => {
  using folder = new TempFolder();
  await using test = await startService({ SERVICE_DECODE_MEMORY_BUDGET_BYTES: String(2 ** 30) });
  const { events } = (await test.call("GET", `/v1/runs/${await newRun(test)}/events`)).json;
  const owner = ownerPrefix(events[0].payload.principal_key);
  const ingest = async (name: string, path: string) => {
    const uploaded = join(test.uploadRoot, `${owner}${name}`);
    Deno.copyFileSync(path, uploaded);
    return await test.call("POST", `/v1/runs/${await newRun(test)}/ingest`, { source_uri: uploaded });
  };
  const large = await ingest("large.gif", folder.file("large.gif", tinyGif(16_000, 16_000)));
  assert.deepEqual([large.status, large.json.error.details], [422, [{
    field: "source_uri",
    message: "its pictures of 16000x16000 have more than the 35651584 pixels that are allowed",
  }]]);
  const heavy = await ingest("heavy.gif", folder.file("heavy.gif", tinyGif(8192, 4320)));
  assert.equal(heavy.status, 422);
  assert.match(
    heavy.json.error.details[0].message,
    /^decoding it may take \d+ bytes of memory, and SERVICE_/,
  );
  const fine = await ingest("fine.mp4", makeClip(join(folder.path, "fine.mp4")));
  assert.equal(fine.status, 200);
});
