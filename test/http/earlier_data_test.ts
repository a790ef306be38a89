/** Data directories of earlier versions are read as those versions read them. See docs/upgrading.md. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { PROJECT_ROOT, startService, type TestService } from "../support/service.ts";

const FOLDER = join(PROJECT_ROOT, "fixtures", "data_directories");
const KEY = "key-of-the-past";
// deno-lint-ignore no-explicit-any -- the answers of several routes
type Json = any;

function answerOf(version: string, name: string): Json {
  return JSON.parse(Deno.readTextFileSync(join(FOLDER, version, "answers", `${name}.json`)));
}

function withoutRequest({ request_id: _, ...answer }: Json): Json {
  return answer;
}

/** The status follows the clock: an idle run expires. */
function withoutStatus({ status: _, ...run }: Json): Json {
  return run;
}

/** Starts the service on a copy of the data directory. */
async function openVersion(version: string): Promise<TestService> {
  const test = await startService();
  await test.restart(() => {
    const data = join(FOLDER, version, "data");
    Deno.removeSync(test.dataDir, { recursive: true });
    copyFolder(data, test.dataDir);
    if (hasUploads(version)) copyFolder(join(data, "uploads"), test.uploadRoot);
  }, {
    SERVICE_API_KEYS: KEY,
    SERVICE_WEBHOOK_SECRET: "0123456789abcdef0123456789abcdef",
    SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
  });
  return test;
}

/** The first versions kept them elsewhere. */
function hasUploads(version: string): boolean {
  return [...Deno.readDirSync(join(FOLDER, version, "data"))].some(({ name }) => name === "uploads");
}

function copyFolder(from: string, to: string): void {
  Deno.mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const { name, isDirectory } of Deno.readDirSync(from)) {
    if (isDirectory) copyFolder(join(from, name), join(to, name));
    else Deno.copyFileSync(join(from, name), join(to, name));
  }
}

for (const { name: version } of [...Deno.readDirSync(FOLDER)].filter(({ isDirectory }) => isDirectory)) {
  Deno.test(`a data directory of ${version} is read as its own version read it`, async () => {
    await using test = await openVersion(version);
    const get = async (path: string) => {
      const answer = await test.call("GET", path, undefined, KEY);
      assert.equal(answer.status, 200, answer.text);
      return answer.json;
    };
    const runs = answerOf(version, "runs");
    assert.equal(runs.length, 2);
    const fields = Object.keys(runs[0]); // later versions have more
    const known = (run: Json) => Object.fromEntries(fields.map((name) => [name, run[name]]));
    assert.deepEqual((await get("/v1/runs")).map(known).map(withoutStatus), runs.map(withoutStatus));
    const [analyzed, stopped] = runs;
    assert.equal((await get(`/v1/runs/${stopped.run_id}`)).status, "cancelled");
    for (const name of ["events", "markers"]) {
      const answer = withoutRequest(answerOf(version, name));
      assert.ok(answer[name].length > 1, `${answer[name].length} ${name}`);
      assert.deepEqual(withoutRequest(await get(`/v1/runs/${analyzed.run_id}/${name}`)), answer);
    }
    assert.deepEqual((await get("/v1/feedback")).feedback, answerOf(version, "feedback").feedback);
    const [hook] = (await get(`/v1/runs/${analyzed.run_id}/webhooks`)).webhooks;
    const [{ webhook_id, url, event_kinds, dead_letters, last_terminal_seq }] =
      answerOf(version, "webhooks").webhooks;
    assert.deepEqual(
      [hook.webhook_id, hook.url, hook.event_kinds, hook.dead_letters, hook.last_terminal_seq],
      [webhook_id, url, event_kinds, dead_letters, last_terminal_seq],
    );
    if (hasUploads(version)) {
      const name = analyzed.source_uri.split("/").at(-1);
      const file = await fetch(`${test.url}/v1/files/${name}`, { headers: { "x-api-key": KEY } });
      assert.deepEqual(await file.bytes(), Deno.readFileSync(join(FOLDER, version, "data", "uploads", name)));
    }
    assert.equal(Deno.readTextFileSync(join(test.dataDir, "format")), "3\n"); // names of principals

    // It goes on from there.
    const added = await test.call("POST", "/v1/runs", {}, KEY);
    assert.equal(added.status, 200, added.text);
    const [created] = (await get(`/v1/runs/${added.json.run_id}/events`)).events;
    assert.ok(created.seq > answerOf(version, "events").events.at(-1).seq);
  });
}
