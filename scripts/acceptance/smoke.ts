/** A look at a service that runs: does it answer, refuse strangers, decode, find marks, and leave nothing? */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, isHttpError } from "../../client/mod.ts";
import { done, expect, needed, runSteps } from "./steps.ts";

const CLIP = join(fileURLToPath(new URL("../../", import.meta.url)), "fixtures", "clips", "intel_bottle.mp4");
/** Name of a model for the events; nothing asks it. */
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const url = needed("SERVICE_URL", "the address of the service, such as http://127.0.0.1:8080");
const apiKey = needed("SERVICE_API_KEY", "a key of the service");

await runSteps("smoke", async ({ step }) => {
  const client = new Client(url, { apiKey });
  await step("health", async (signal) => {
    const { status } = await client.health({ signal });
    expect(status === "ok", `it says ${status}`);
    return done("it answers", null);
  });
  await step("key", async (signal) => {
    const stranger = new Client(url, { apiKey: "a-key-that-no-service-has" });
    const refused = await stranger.listRuns({ signal }).then(() => null, (error) => error);
    expect(
      isHttpError(refused) && refused.status === 401,
      "a request with a wrong key is not refused with 401",
    );
    await client.listRuns({ signal });
    return done("the right one is taken, a wrong one is refused", null);
  });
  await step("system", async (signal) => {
    const { version, ffmpeg, disk } = await client.getSystem({ signal });
    expect(ffmpeg !== null, "its ffmpeg does not answer");
    const free = disk === null
      ? "an unknown part of the disk is"
      : `${(disk.free_bytes / 1e9).toFixed(1)} GB are`;
    return done(
      `version ${version}, ffmpeg ${ffmpeg?.version ?? "of an unknown version"}, ${free} free`,
      null,
    );
  });
  const file = new File([await Deno.readFile(CLIP)], "smoke.mp4", { type: "video/mp4" });
  const uploaded = await step("upload", async (signal) => {
    const { file_path } = await client.uploadFile(file, undefined, { signal });
    return done(`${file.size} bytes`, file_path);
  });
  const { run_id } = await step("run", async (signal) => {
    const run = await client.createRun({ mode: "balanced" }, { signal });
    return done(run.run_id, run);
  });
  try {
    await step("decode", async (signal) => {
      const { decoded_frames } = await client.ingestRun(run_id, { source_uri: uploaded }, { signal });
      expect(decoded_frames > 0, "no frame was decoded");
      return done(`${decoded_frames} frames`, null);
    });
    await step("marks", async (signal) => {
      await client.analyzeRun(run_id, { model: MODEL }, { signal });
      const markers = await client.getMarkers(run_id, {}, { signal });
      expect(markers.length > 0, "the analysis gave no marker");
      return done(`${markers.length} markers`, null);
    });
  } finally {
    await step("delete", async (signal) => {
      await client.deleteRun(run_id, { signal });
      await client.deleteFile(uploaded.split("/").pop()!, { signal });
      const gone = await client.getRun(run_id, { signal }).then(() => null, (error) => error);
      expect(isHttpError(gone) && gone.status === 404, "the run is still there");
      return done("the run and the upload are gone", null);
    });
  }
});
