import { ownerPrefix } from "../../../src/model/identifiers.ts";
import assert from "node:assert/strict";
import { join } from "node:path";
import { make, TempFolder } from "../../support/media.ts";
import { newRun, startService } from "../../support/service.ts";

Deno.test("of a source with several pictures the largest is taken, said, and another one can be asked for", async () => {
  using folder = new TempFolder();
  await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "50" });
  const { events } = (await test.call("GET", `/v1/runs/${await newRun(test)}/events`)).json;
  const owner = ownerPrefix(events[0].payload.principal_key);
  for (const end of ["mkv", "mp4"]) {
    const film = make(
      join(folder.path, `two.${end}`),
      ...["-f", "lavfi", "-i", "testsrc2=s=64x36:r=10:d=1"],
      ...["-f", "lavfi", "-i", "testsrc2=s=320x240:r=10:d=1", "-map", "0", "-map", "1"],
      ...["-c:v", "mpeg4", "-disposition:v", "default"],
    );
    const uploaded = join(test.uploadRoot, `${owner}two.${end}`);
    Deno.copyFileSync(film, uploaded);
    const call = async (body: object) => {
      const run = `/v1/runs/${await newRun(test)}`;
      const answer = await test.call("POST", `${run}/ingest`, { source_uri: uploaded, ...body });
      if (answer.status !== 200) return answer.json.error.details;
      const { events } = (await test.call("GET", `${run}/events`)).json;
      const decoded = events.find(({ kind }: { kind: string }) => kind === "frames_decoded");
      const { width, height, video_stream, video_streams } = decoded.payload;
      return [width, height, video_stream, video_streams];
    };
    assert.deepEqual(await call({}), [320, 240, 1, 2], end);
    assert.deepEqual(await call({ video_stream: 0 }), [64, 36, 0, 2], end);
    assert.deepEqual(await call({ video_stream: null }), [320, 240, 1, 2], end);
    assert.deepEqual(await call({ video_stream: 2 }), [
      { field: "video_stream", message: "must be the index of a video stream of the source: 0, 1" },
    ]);
    assert.equal((await call({ video_stream: -1 }))[0].field, "video_stream");
  }
});
