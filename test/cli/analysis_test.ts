/** `analyze`, `upload`, `runs export`, `watch` and `doctor`, run as a user runs them against a real server.
 */

import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { laneOf, marksOf } from "../../cli/contact_sheet/marks.ts";
import { CliUser } from "../support/cli/cli.ts";
import { prepare } from "../client/place.ts";
import { eventsOf, FILM, kindsOf, SEEN, seen, startReason } from "../support/models/reason.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { TempFolder, tools } from "../support/media.ts";
import { CLIPS, KEY_A, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { startModelProgram } from "../support/models/model_programs.ts";
import { held, startModelServer } from "../support/models/model_server.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { until } from "../support/until.ts";

const BOTTLE = join(CLIPS, "intel_bottle.mp4");

async function textOf({ url }: TestService, key: string, path: string, accept: string): Promise<string> {
  return await (await fetch(`${url}${path}`, { headers: { "x-api-key": key, accept } })).text();
}

/** The files below a folder with their lengths, sorted. */
function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesIn(join(folder, name)).map((path) => `${name}/${path}`) : [name]
  ).toSorted();
}

Deno.test({
  name: "analyze uploads a file, prints its marks and writes their pictures",
  ...LONG_TEST,
  async fn() {
    await using test = await startService();
    using user = new CliUser(test.url);
    const sheet = join(user.home, "sheet.html");
    const done = await user.run(["analyze", FILM, "--sheet", sheet]);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /^0:11\.875 +0:11\.875 +285 +0\.\d\d +scene_cut$/m);
    const [run] = (await test.call("GET", "/v1/runs")).json;
    assert.match(done.stdout + done.stderr, new RegExp(run.run_id));
    assert.equal(run.status, "completed", "it holds no place among the active runs");
    assert.equal(run.model, "", "no model was asked");
    const html = Deno.readTextFileSync(sheet);
    assert.match(html, /<img[^>]+src="data:image\/jpeg;base64,/);
    assert.doesNotMatch(html, /https?:\/\/(?!127\.0\.0\.1)/);

    const missing = await user.run(["analyze", join(user.home, "none.mp4")]);
    assert.equal(missing.code, 1, missing.stderr);
    assert.match(missing.stderr, /none\.mp4/);
    const folder = await user.run(["analyze", user.home]);
    assert.notEqual(folder.code, 0);
    assert.equal((await test.call("GET", "/v1/runs")).json.length, 1, "no run is left of what failed");
  },
});

Deno.test("analyze with a prompt asks a model, and watch prints the same events", async () => {
  await using reason = await startReason();
  const { test } = reason;
  using user = new CliUser(test.url);
  const answered = await user.json([
    ...[
      "analyze",
      BOTTLE,
      "--prompt",
      "What is there?",
      "--model",
      MODEL,
      "--fixed-fps",
      "1",
      "--max-frames",
      "5",
    ],
  ]);
  assert.equal(reason.model.requests.length > 0, true);
  assert.match(reason.model.requests[0]!.prompt, /What is there\?/);
  const events = await eventsOf(test, answered.run_id);
  assert.ok(
    kindsOf(events).some((kind) => kind.startsWith("semantic_chunk_inferred")),
    kindsOf(events).join(" "),
  );
  const watched = await user.run(["watch", answered.run_id, "--json"]);
  assert.equal(watched.code, 0, watched.stderr);
  const printed = watched.stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(printed.map(({ seq, kind }) => [seq, kind]), events.map(({ seq, kind }) => [seq, kind]));
});

Deno.test("analyze says how many questions got no answer, and the first reason", async () => {
  await using reason = await startReason({
    answer: ({ index }) => index === 0 ? "I see a bottle." : SEEN,
  });
  using user = new CliUser(reason.test.url);
  const asked = [BOTTLE, "--prompt", "What is there?", "--model", MODEL];
  const done = await user.run([
    ...["analyze", ...asked, "--fixed-fps", "1", "--max-frames", "10", "--chunk-size", "5"],
  ]);
  assert.equal(done.code, 0, done.stderr);
  assert.match(
    done.stderr,
    /1 of 2 questions got no answer: semantic parse failed:json object not found/,
  );
});

Deno.test("what a model calls a cut has a lane of its own, and the measured cuts are those of an analysis without a question", async () => {
  await using reason = await startReason({
    answer: () => seen({ event_type: "scene_cut", confidence: 0.9 }),
  });
  using user = new CliUser(reason.test.url);
  const cuts = (text: string) =>
    text.split("\n").filter((line) => / scene_cut$/.test(line)).map((line) => line.slice(0, 24));
  const alone = await user.run(["analyze", FILM]);
  const asked = await user.run(["analyze", FILM, "--prompt", "What is there?", "--model", MODEL]);
  assert.deepEqual([alone.code, asked.code], [0, 0], alone.stderr + asked.stderr);
  assert.equal(cuts(alone.stdout).length, 3, alone.stdout);
  assert.deepEqual(cuts(asked.stdout), cuts(alone.stdout));
  assert.match(asked.stdout, /^scene_cut +·+┃·+┃·+┃·+$/m);
  assert.match(asked.stdout, /^model:scene_cut +━+$/m);
  const run = asked.stdout.match(/run-[\w-]+/)![0];
  const list = (await user.run(["markers", run, "--event-type", "scene_cut"])).stdout;
  assert.equal(list.match(/exact +scene_cut$/gm)?.length, 3, list);
  assert.equal(list.match(/not measured +model:scene_cut$/gm)?.length, 1, list);
  const sheet = marksOf(
    (await user.json(["markers", run])).filter(({ event_type }: { event_type: string }) =>
      event_type === "scene_cut"
    ),
    () => "",
  );
  assert.deepEqual(new Set(sheet.map(laneOf)), new Set(["scene_cut", "model:scene_cut"]));
});

Deno.test("watch ends with Ctrl-C, and a run that is over ends it by itself", async () => {
  await using test = await startService();
  using user = new CliUser(test.url);
  const run = await newRun(test);
  const child = user.start(["watch", run]);
  await child.stdin.close();
  const reader = child.stdout.getReader();
  const first = new TextDecoder().decode((await reader.read()).value);
  assert.match(first, /run_created/);
  child.kill("SIGINT");
  reader.releaseLock();
  const [{ code }] = await Promise.all([child.status, child.stdout.cancel(), child.stderr.cancel()]);
  assert.equal(code, 130);
  await test.call("POST", `/v1/runs/${run}/stop`);
  const ended = await user.run(["watch", run]);
  assert.equal(ended.code, 0);
  assert.match(ended.stderr, new RegExp(`${run} has ended`));
});

Deno.test("an export has what the API has, and leaves nothing where it fails", async () => {
  await using reason = await startReason();
  const { test } = reason;
  using user = new CliUser(test.url);
  const { runId } = await reason.reason();
  const folder = join(user.home, "exported");
  const done = await user.run(["runs", "export", runId, folder]);
  assert.equal(done.code, 0, done.stderr);
  const formats = {
    "events.ndjson": ["events", "application/x-ndjson"],
    "markers.csv": ["markers", "text/csv"],
    "markers.vtt": ["markers", "text/vtt"],
    "markers.edl": ["markers", "text/x-edl"],
  };
  for (const [name, [list, accept]] of Object.entries(formats)) {
    const expected = await textOf(test, user.key!, `/v1/runs/${runId}/${list}`, accept!);
    assert.equal(Deno.readTextFileSync(join(folder, name)), expected, name);
  }
  assert.deepEqual(
    JSON.parse(Deno.readTextFileSync(join(folder, "run.json"))),
    (await test.call("GET", `/v1/runs/${runId}`)).json,
  );
  const before = filesIn(folder);
  const linked = join(user.home, "linked");
  Deno.mkdirSync(join(user.home, "behind"));
  Deno.symlinkSync("behind", linked);
  const behind = await user.run(["runs", "export", runId, linked]);
  assert.equal(behind.code, 0, behind.stderr);
  assert.deepEqual(filesIn(join(user.home, "behind")), before, "a link to an empty folder is that folder");
  const again = await user.run(["runs", "export", runId, folder]);
  assert.notEqual(again.code, 0, "a folder that is there is not written into");
  assert.deepEqual(filesIn(folder), before);
  const nothing = await user.run(["runs", "export", `run-${"0".repeat(32)}`, join(user.home, "none")]);
  assert.equal(nothing.code, 5);
  assert.deepEqual(
    filesIn(user.home).filter((path) => !path.startsWith("exported/") && /none|part|tmp/.test(path)),
    [],
  );
});

Deno.test("an export has the pictures and clips that the events name, and tells of those that are gone", async () => {
  await using prepared = await prepare();
  const { test, place: { stored } } = prepared;
  using user = new CliUser(test.url);
  const folder = join(user.home, "exported");
  const done = await user.json(["runs", "export", stored.runId, folder]);
  assert.deepEqual([done.keyframes, done.clips, done.missing], [1, 1, []]);
  const read = (path: string) => Deno.readTextFileSync(join(folder, path));
  assert.equal(read(`keyframes/${stored.jpeg}.jpg`), "a picture");
  assert.equal(read(`clips/${stored.mp4}.mp4`), "a clip");
  const blob = filesIn(test.dataDir).find((path) => path.includes(stored.mp4))!;
  Deno.removeSync(join(test.dataDir, blob));
  const less = await user.run(["runs", "export", stored.runId, join(user.home, "less")]);
  assert.equal(less.code, 0, less.stderr);
  assert.match(less.stderr, new RegExp(`media/${stored.mp4} is gone from the server`));
  assert.match(less.stdout, /1 keyframes, 0 clips/);
  Deno.writeTextFileSync(
    join(test.dataDir, filesIn(test.dataDir).find((path) => path.includes(stored.jpeg))!),
    "an other",
  );
  const wrong = await user.run(["runs", "export", stored.runId, join(user.home, "wrong")]);
  assert.equal(wrong.code, 7, wrong.stderr);
  assert.match(wrong.stderr, /arrived with other bytes than its name says/);
  assert.throws(() => Deno.lstatSync(join(user.home, "wrong")), Deno.errors.NotFound);
});

Deno.test("upload prints the source_uri, and doctor says what is at fault and what to do", async () => {
  await using test = await startService({ SERVICE_ACTIVE_STREAM_LIMIT: "1" });
  using user = new CliUser(test.url);
  const uri = (await user.run(["-q", "upload", BOTTLE])).stdout.trim();
  assert.ok(uri.startsWith(test.uploadRoot), uri);
  const { findings, failures } = await user.json(["doctor", "--no-model-call"]);
  assert.equal(failures, 0, JSON.stringify(findings));
  const verdictOf = (name: string) =>
    findings.find(({ check }: { check: string }) => check === name)?.verdict;
  for (const check of ["server", "key", "version", "sources", "server's ffmpeg", "decoding", "WebRTC"]) {
    assert.equal(verdictOf(check), "ok", check);
  }
  assert.match(
    findings.find(({ check }: { check: string }) => check === "server's disk").detail,
    /^\d+\.\d GB of \d+\.\d GB are free$/,
  );
  const left = filesIn(test.uploadRoot).filter((name) => name !== ".names"); // the names of uploads
  assert.deepEqual(left, [basename(uri)], "nothing of the doctor is left");
  assert.deepEqual((await test.call("GET", "/v1/runs")).json, []);
  await newRun(test);
  const full = await user.run(["doctor", "--no-model-call"]);
  assert.equal(full.code, 1, full.stderr);
  assert.match(full.stdout, /^FAILURE +decoding .*limit of active runs.*\n +-> `runs stop RUN` ends one/m);
  assert.match(full.stdout, /^ok +event log/m, "it goes on to the end");
  const analyzed = await user.run(["analyze", BOTTLE]);
  assert.equal(analyzed.code, 6);
  assert.match(analyzed.stderr, /\nhint: `runs stop RUN` ends one/);
  assert.equal((await user.run(["files", "rm", uri])).code, 0);
  assert.equal((await user.run(["files", "rm", uri])).code, 5);
  using stranger = new CliUser(test.url, "no-such-key");
  const refused = await stranger.run(["doctor", "--no-model-call"]);
  assert.notEqual(refused.code, 0);
  assert.match(refused.stdout, /^FAILURE +key /m);
  assert.doesNotMatch(refused.stdout + refused.stderr, /no-such-key/);
});

Deno.test("doctor names what the server's ffmpeg cannot do, with its words", async () => {
  using folder = new TempFolder();
  const fails = `case " $* " in *" -c:v rawvideo "*) echo "Unknown encoder 'rawvideo'" >&2; exit 1;; esac`;
  const ffmpeg = folder.script("ffmpeg", `${fails}\nexec ${tools().ffmpeg} "$@"`);
  await using test = await startService({ SERVICE_FFMPEG_PATH: ffmpeg });
  const body = { source_uri: BOTTLE };
  assert.equal((await test.call("POST", `/v1/runs/${await newRun(test)}/ingest`, body)).status, 503);
  using user = new CliUser(test.url);
  const { stdout, code } = await user.run(["doctor", "--no-model-call"]);
  assert.equal(code, 1);
  assert.match(
    stdout,
    /^FAILURE +server's ffmpeg +it cannot decode the frames of a film: Unknown encoder 'rawvideo'\n +-> install another ffmpeg/m,
  );
  assert.match(stdout, /^FAILURE +decoding .*decode the frames of a film \(Unknown encoder 'rawvideo'\)/m);
});

/** The findings of a doctor about models, as `check: verdict: detail`. */
async function modelFindings(user: CliUser, ...flags: readonly string[]): Promise<string[]> {
  const { stdout } = await user.run(["doctor", "--json", ...flags]);
  const { findings } = JSON.parse(stdout) as {
    findings: { check: string; verdict: string; detail: string }[];
  };
  return findings.filter(({ check }) => check.includes("model"))
    .map(({ check, verdict, detail }) => `${check}: ${verdict}: ${detail}`);
}

Deno.test("doctor names a model that its server does not know with those that there are, and tries one of these", async () => {
  await using server = startModelProgram("ollama", { models: ["llava:13b", "qwen2.5vl:7b"] });
  await using test = await startService({
    SERVICE_VLLM_BASE_URL: `${server.origin}/v1`,
    SERVICE_API_KEYS: KEY_A,
  });
  using user = new CliUser(test.url);
  const [models, live, tried, ...more] = await modelFindings(user);
  assert.match(models!, /^models: ok: 2 of 18 can be asked, such as llava:13b$/);
  assert.equal(
    live,
    "live model: failure: The model server does not know the model Qwen/Qwen3-VL-8B-Instruct; it has: llava:13b, qwen2.5vl:7b",
  );
  assert.match(tried!, /^model llava:13b: /);
  assert.deepEqual(more, []);
  assert.ok(server.asked.every(({ model }) => model === "llava:13b"));
});

Deno.test("a slow model server is one finding of the doctor, not one for each model", async () => {
  const answers = held();
  await using model = startModelServer({ answer: answers.answer });
  const clock = new ManualClock();
  await using test = await startService(
    { SERVICE_VLLM_BASE_URL: model.url, SERVICE_API_KEYS: KEY_A, SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: "8" },
    { clock },
  );
  const ask = () => test.call("POST", "/v1/infer", { model: MODEL, prompt: "What?", timeout_ms: 60_000 });
  const asked = Array.from({ length: 8 }, ask);
  await until("all are asked", () => model.inFlight === 8);
  await clock.advance(6_000);
  answers.release();
  await Promise.all(asked);
  model.answer = async () => {
    await clock.advance(6_000);
    return "A forklift waits.";
  };
  for (let times = 0; times < 2; times++) assert.equal((await ask()).status, 200);
  using user = new CliUser(test.url);
  assert.deepEqual(await modelFindings(user, "--no-model-call"), [
    "models: ok: 16 of 16 can be asked, such as Qwen/Qwen3.5-35B-A3B-FP8",
    "live model: ok: Qwen/Qwen3-VL-8B-Instruct",
    "model server vllm: warning: too many of its answers took longer than 5 s",
  ]);
});
