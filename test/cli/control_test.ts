/** `triggers`, `policies`, `feedback`, `webhooks` and `live`, run as a user runs them against a real server.
 */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import { CliUser } from "../support/cli/cli.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { eventsOf, FILM, kindsOf, startReason } from "../support/models/reason.ts";
import { newRun, startService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { prepare } from "../client/place.ts";
import { Receiver } from "../support/http/receiver.ts";

const SOURCE = "trigger entry version 1\nwhen motion_score >= 0.5\nemit entered\nend\n";

Deno.test("a trigger is compiled, validated and evaluated, and a fault names its place", async () => {
  await using test = await startService();
  using user = new CliUser(test.url);
  const [source, program, samples] = ["entry.trigger", "entry.json", "samples.json"].map((name) =>
    join(user.home, name)
  ) as [string, string, string];
  Deno.writeTextFileSync(source, SOURCE);
  const compiled = await user.run(["triggers", "compile", source, "--output", program]);
  assert.equal(compiled.code, 0, compiled.stderr);
  assert.equal(JSON.parse(Deno.readTextFileSync(program)).program_id, "entry");
  assert.equal((await user.json(["triggers", "validate", program])).valid, true);
  Deno.writeTextFileSync(
    samples,
    JSON.stringify([{ pts_ms: 0, motion_score: 0.1 }, { pts_ms: 40, motion_score: 0.9 }]),
  );
  const { results } = await user.json(["triggers", "evaluate", program, samples]);
  assert.deepEqual(results.map(({ fired }: { fired: boolean }) => fired), [false, true]);
  const run = await newRun(test);
  const before = await user.run(["triggers", "evaluate", program, "--run", run]);
  assert.match(before.stdout + before.stderr, /has decoded no frames/);
  await test.call("POST", `/v1/runs/${run}/ingest`, { source_uri: FILM });
  Deno.writeTextFileSync(source, SOURCE.replace("0.5", "0.0"));
  assert.equal((await user.run(["triggers", "compile", source, "--output", program])).code, 0);
  const measured = await user.json(["triggers", "evaluate", program, "--run", run, "--to-ms", "2000"]);
  assert.ok(measured.fired.length > 0);
  assert.ok(measured.frames > 10 && measured.fired.every(({ pts_ms }: { pts_ms: number }) => pts_ms <= 2000));
  const shown = await user.run(["triggers", "evaluate", program, "--run", run]);
  assert.match(shown.stderr, /^fired \d+ times in \d+ frames/m);
  for (const wrong of [[], [samples, "--run", run], [samples, "--from-ms", "0"]]) {
    assert.equal((await user.run(["triggers", "evaluate", program, ...wrong])).code, 2, wrong.join(" "));
  }
  Deno.writeTextFileSync(source, "trigger entry version 1\nwhen nonsense\n");
  const wrong = await user.run(["triggers", "compile", source]);
  assert.equal(wrong.code, 6);
  assert.match(wrong.stderr, /line 2/);
});

Deno.test("a policy goes from a draft to active and back to the one before", async () => {
  await using test = await startService();
  using user = new CliUser(test.url);
  const run = await newRun(test);
  const draft = async (prompt: string) => {
    const created = await user.json(["policies", "create", run, "--prompt", prompt]);
    const revision = String(created.policy?.revision ?? created.revision);
    for (const stage of ["shadow", "canary", "active"]) {
      const moved = await user.run(["policies", "activate", run, revision, "--stage", stage]);
      assert.equal(moved.code, 0, moved.stderr);
    }
    return revision;
  };
  const first = await draft("Look at the door.");
  await draft("Look at the gate.");
  assert.equal((await user.run(["policies", "rollback", run, first])).code, 0);
  const { policies } = (await test.call("GET", `/v1/runs/${run}/policies`)).json;
  assert.deepEqual(policies.map(({ status }: { status: string }) => status), ["active", "rolled_back"]);
  const listed = await user.run(["policies", "list", run]);
  assert.match(listed.stdout, /active/);
  const replayed = await user.json(["policies", "replay", run, first]);
  assert.deepEqual([replayed.evaluation.source, replayed.evaluation.accepted_events], ["local_wal", 0]);
  const evaluated = await user.run(["policies", "replay", run, first, "--from-seq", "1"]);
  assert.match(evaluated.stdout, /^evaluation_id +\d+$/m);
  const skipped = await user.run(["policies", "activate", run, "999999", "--stage", "active"]);
  assert.equal(skipped.code, 5);
});

Deno.test("feedback is submitted and listed", async () => {
  await using test = await startService();
  using user = new CliUser(test.url);
  const run = await newRun(test);
  const given = await user.run([
    "feedback",
    "submit",
    run,
    "--rating",
    "8",
    "--category",
    "accuracy",
    "--note",
    "good",
  ]);
  assert.equal(given.code, 0, given.stderr);
  const [item] = (await test.call("GET", "/v1/feedback")).json.feedback;
  assert.deepEqual([item.rating, item.category, item.feedback], [8, "accuracy", "good"]);
  assert.match((await user.run(["feedback", "list"])).stdout, /accuracy/);
  assert.equal((await user.run(["feedback", "submit", run, "--rating", "11", "--category", "x"])).code, 2);
});

Deno.test("the list of webhooks says which receiver is gone", async () => {
  await using receiver = await Receiver.start();
  receiver.answer = () => 410;
  await using test = await startService({
    SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
    SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
  });
  using user = new CliUser(test.url);
  const run = await newRun(test);
  await user.json(["webhooks", "add", run, receiver.url]);
  assert.match((await user.run(["webhooks", "list", run])).stdout, / active /);
  await test.call("POST", `/v1/runs/${run}/keepalive`);
  await until("it is gone", async () => {
    const { webhooks } = (await test.call("GET", `/v1/runs/${run}/webhooks`)).json;
    return webhooks[0].state === "gone";
  });
  assert.match((await user.run(["webhooks", "list", run])).stdout, / receiver gone .*HTTP 410/);
});

Deno.test("webhooks are added, listed and removed, and listen takes only what is signed", async () => {
  await using test = await startService({
    SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
  });
  using user = new CliUser(test.url);
  const run = await newRun(test);
  const added = await user.json([
    ...["webhooks", "add", run, "https://1.1.1.1/hook"],
    ...["--zones", "dock,gate", "--min-confidence", "0.6", "--cooldown", "60"],
  ]);
  assert.deepEqual(added.filter, { zones: ["dock", "gate"], min_confidence: 0.6 });
  assert.deepEqual(added.cooldown, { interval_ms: 60_000, per: ["kind", "source"] });
  assert.match(added.signing_secret, /^[0-9a-f]{64}$/);
  const listed = await user.run(["webhooks", "list", run]);
  assert.match(listed.stdout, new RegExp(added.webhook_id));
  assert.doesNotMatch(listed.stdout, new RegExp(added.signing_secret));
  const again = await user.json(["webhooks", "redeliver", run, added.webhook_id]);
  assert.deepEqual([again.webhook_id, again.scheduled], [added.webhook_id, 0]);
  assert.equal((await user.run(["webhooks", "redeliver", run, `wh_${"0".repeat(24)}`])).code, 5);
  assert.equal((await user.run(["webhooks", "rm", run, added.webhook_id])).code, 0);
  assert.deepEqual((await test.call("GET", `/v1/runs/${run}/webhooks`)).json.webhooks, []);

  const child = user.start(["webhooks", "listen", "--secret", added.signing_secret, "--json"]);
  await child.stdin.close();
  const notes = child.stderr.getReader();
  const note = new TextDecoder().decode((await notes.read()).value);
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(note)![0];
  const body = JSON.stringify({
    ...{ specversion: "1.0", id: `${run}:7`, source: `/v1/runs/${run}`, subject: "stream-0" },
    ...{ type: "dev.service.timeline.run_created", datacontenttype: "application/json" },
    ...{ sequence: 7, pts_ms: 1, data: {} },
  });
  const key = Uint8Array.fromHex(added.signing_secret);
  const seconds = String(Math.floor(Date.now() / 1000));
  const mac = (text: string) => createHmac("sha256", key).update(text);
  const deliver = async (signature: string) => {
    const answer = await fetch(url, {
      method: "POST",
      headers: {
        ...{ "content-type": "application/cloudevents+json", "x-service-event-id": `${run}:7` },
        ...{ "x-service-signature": signature, "webhook-id": `${run}:7`, "webhook-timestamp": seconds },
        "webhook-signature": `v1,${mac(`${run}:7.${seconds}.${body}`).digest("base64")}`,
      },
      body,
    });
    await answer.body?.cancel();
    return answer.status;
  };
  assert.ok(await deliver(`v1=${"0".repeat(64)}`) >= 400);
  assert.ok(await deliver(`v1=${mac(body).digest("hex")}`) < 300);
  const printed = child.stdout.getReader();
  const line = new TextDecoder().decode((await printed.read()).value);
  assert.match(line, /"run_created"|timeline\.run_created/);
  child.kill("SIGINT");
  notes.releaseLock();
  printed.releaseLock();
  const [{ code }] = await Promise.all([child.status, child.stdout.cancel(), child.stderr.cancel()]);
  assert.equal(code, 130);
});

Deno.test({
  name: "live publishes a file to its end, and its run completes",
  ...LONG_TEST,
  async fn() {
    await using reason = await startReason({}, { SERVICE_WEBRTC_STUN_SERVERS: "" });
    const { test } = reason;
    using user = new CliUser(test.url);
    const clip = join(user.home, "short.mp4");
    const cut = await new Deno.Command("ffmpeg", {
      args: ["-v", "error", "-ss", "8", "-i", FILM, "-t", "4", "-an", clip],
    }).output();
    assert.ok(cut.success);
    const done = await user.run(["live", clip, "--prompt", "What is there?"]);
    assert.equal(done.code, 0, done.stderr);
    const [run] = (await test.call("GET", "/v1/runs")).json;
    const events = await eventsOf(test, run.run_id);
    assert.equal(events.at(-1)!.kind, "run_completed", kindsOf(events).join(" "));
    assert.ok(kindsOf(events).some((kind) => kind.startsWith("keyframe_stored")), kindsOf(events).join(" "));
  },
});

Deno.test("live has the server watch a camera until Ctrl-C, and makes no run for a file that is not there", async () => {
  await using prepared = await prepare();
  const { test, place } = prepared;
  using user = new CliUser(test.url);
  const before = (await test.call("GET", "/v1/runs")).json.length;
  assert.match((await user.run(["sources"])).stdout, /source:dock +rtsp +disabled/);
  for (const verb of ["arm", "disarm"]) {
    assert.match((await user.run(["sources", verb, "nobody", "--for", "60"])).stderr, /name: not found/);
  }
  assert.match(
    (await user.run(["recordings", "list", "source:dock"])).stdout,
    /20261124T101500000Z .* avc1\.\w+ +none/,
  );
  const range = ["--from", "2026-11-24T10:15:00Z", "--to", "2026-11-24T10:16:00Z"];
  const recording = join(user.home, "dock.mp4");
  const exported = await user.run(["recordings", "export", "dock", recording, ...range, "--json"]);
  assert.equal(JSON.parse(exported.stdout).bytes, Deno.statSync(recording).size, exported.stderr);
  const nothing = await user.run([
    "recordings",
    "export",
    "dock",
    join(user.home, "x.mp4"),
    "--from",
    "1",
    "--to",
    "2",
  ]);
  assert.notEqual(nothing.code, 0);
  const unknown = await user.run(["live", "source:none"]);
  assert.match(unknown.stderr, /names no source that this caller may use/);
  const absent = await user.run(["live", "none.mp4"]);
  assert.equal(absent.code, 1);
  assert.match(absent.stderr, /^error: cannot read none\.mp4: /);
  assert.equal((await test.call("GET", "/v1/runs")).json.length, before);
  const child = user.start(["live", place.camera, "--json"]);
  await child.stdin.close();
  const printed = child.stdout.getReader();
  let text = "";
  await until("the camera is watched", async () => {
    text += new TextDecoder().decode((await printed.read()).value);
    return text.includes("live_source_opened");
  });
  printed.releaseLock();
  const { run_id } = (await test.call("GET", "/v1/runs")).json.at(-1);
  const picture = join(user.home, "now.jpg");
  await until(
    "a frame is there",
    async () => (await user.run(["runs", "snapshot", run_id, picture])).code === 0,
  );
  assert.deepEqual([...Deno.readFileSync(picture).subarray(0, 2)], [0xff, 0xd8]);
  const film = join(user.home, "camera.mp4");
  const written = await user.run(["runs", "video", run_id, "-o", film]);
  assert.equal(written.code, 0, written.stderr);
  const piped = await user.run(["runs", "video", run_id]);
  assert.deepEqual(new TextEncoder().encode(piped.stdout), Deno.readFileSync(film));
  assert.equal(piped.stdout.length, 16, "the first part and a fragment, then it ends");
  const refused = await user.run(["runs", "video", "source:none", "-o", film]);
  assert.match(refused.stderr, /^error: name: not found/);
  assert.equal(refused.code, 5);
  child.kill("SIGINT");
  const [{ code }] = await Promise.all([child.status, child.stdout.cancel(), child.stderr.cancel()]);
  assert.equal(code, 130);
  const run = (await test.call("GET", "/v1/runs")).json.at(-1);
  assert.deepEqual([run.status, run.source_uri], ["completed", place.camera]);
});
