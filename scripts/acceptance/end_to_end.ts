/** The way of a film through a service of this checkout: upload, decode, marks, events, webhooks, search, a
 * crash, and deletion.
 */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, type TimelineEvent, verifyWebhook } from "../../client/mod.ts";
import { startServer } from "../server.ts";
import { done, expect, runSteps, until } from "./steps.ts";

const CLIP = join(fileURLToPath(new URL("../../", import.meta.url)), "fixtures", "clips", "intel_bottle.mp4");
/** Name of a model for the events; nothing asks it. */
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const apiKey = crypto.randomUUID();
const dataDir = Deno.makeTempDirSync({ prefix: "service-end-to-end-" });
const variables = {
  SERVICE_API_KEYS: apiKey,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_INGEST_FILE_ROOTS: dirname(CLIP),
  SERVICE_WEBHOOK_SECRET: crypto.randomUUID() + crypto.randomUUID(),
  SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
  SERVICE_ALLOW_INSECURE_HTTP: "true",
};
addEventListener("unload", () => Deno.removeSync(dataDir, { recursive: true }));

interface Delivery {
  readonly headers: Headers;
  readonly body: string;
}

await runSteps("end to end", async ({ step }) => {
  const deliveries: Delivery[] = [];
  await using receiver = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      deliveries.push({ headers: request.headers, body: await request.text() });
      return new Response(null, { status: 204 });
    },
  );
  let server = await startServer(variables);
  try {
    let client = new Client(server.url, { apiKey });
    const { run_id } = await client.createRun({ mode: "balanced" });
    const hook = await step("webhook", async (signal) => {
      const created = await client.createWebhook(
        run_id,
        { url: `http://127.0.0.1:${receiver.addr.port}/hook`, event_kinds: ["marker_emitted"] },
        { signal },
      );
      return done(created.webhook_id, created);
    });
    const following = new AbortController();
    const followed: TimelineEvent[] = [];
    const stream = (async () => {
      for await (const event of client.subscribeEvents(run_id, { signal: following.signal })) {
        followed.push(event);
      }
    })().catch((error) => {
      if (!following.signal.aborted) throw error;
    });
    await step("analysis", async (signal) => {
      const file = new File([await Deno.readFile(CLIP)], "film.mp4", { type: "video/mp4" });
      const { file_path } = await client.uploadFile(file, undefined, { signal });
      const { decoded_frames } = await client.ingestRun(run_id, { source_uri: file_path }, { signal });
      await client.analyzeRun(run_id, { model: MODEL }, { signal });
      return done(`${decoded_frames} frames`, null);
    });
    const markers = await step("marks", async (signal) => {
      const found = await client.getMarkers(run_id, {}, { signal });
      expect(found.length > 0, "there are none");
      const csv = await client.getMarkersText(run_id, "csv", {}, { signal });
      expect(csv.trim().split("\n").length === found.length + 1, "the CSV has another number of lines");
      return done(`${found.length}, and as many lines of CSV`, found);
    });
    await step("event stream", async (signal) => {
      const events = await client.getEvents(run_id, undefined, { signal });
      await until(signal, () => Promise.resolve(followed.length >= events.length ? followed : null));
      const numbers = (all: readonly TimelineEvent[]) => all.map(({ seq }) => seq).join();
      expect(numbers(followed) === numbers(events), "it gave other events than the log has");
      return done(`${events.length} events, in order and each once`, null);
    });
    await step("deliveries", async (signal) => {
      await until(signal, () => Promise.resolve(deliveries.length >= markers.length ? deliveries : null));
      for (const { headers, body } of deliveries) {
        expect(await verifyWebhook(headers, body, hook.signing_secret), "a signature is wrong");
      }
      return done(`${deliveries.length} markers, each signed`, null);
    });
    await step("crash", async (signal) => {
      const before = await client.getMarkersText(run_id, "json", {}, { signal });
      following.abort();
      await stream;
      await server.kill();
      server = await startServer(variables);
      client = new Client(server.url, { apiKey });
      const after = await client.getMarkersText(run_id, "json", {}, { signal });
      const markersIn = (text: string) => JSON.stringify(JSON.parse(text).markers);
      expect(markersIn(after) === markersIn(before), "it lost or changed markers");
      return done("the same markers after SIGKILL and a new start", null);
    });
    await step("delete", async (signal) => {
      await client.deleteRun(run_id, { signal });
      expect((await client.listRuns({ signal })).length === 0, "the run is still listed");
      return done("no run is left", null);
    });
  } finally {
    await server[Symbol.asyncDispose]();
  }
});
