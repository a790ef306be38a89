/** The updater as a program: killed at any moment it goes on afterwards, its files are its owner's alone, and it says what is at fault. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { artifactBytes, EdgeDevice, GOOD } from "../support/updater/edge_device.ts";
import { halted } from "../support/updater/release_server.ts";
import { needing, OPENSSL } from "../support/needs.ts";
import { until } from "../support/until.ts";

const NOTHING = { incoming: null, candidate: null, current: null, previous: null };

Deno.test({
  ...needing(
    OPENSSL,
    "killed while an artifact arrives, before it is staged, or in the hook, it goes on where it was",
  ),
  async fn() {
    await using device = await EdgeDevice.open();
    const { files, requests } = device.server;
    const bytes = artifactBytes(1);
    const manifest = await device.manifest(1, "r-1");
    device.publish(manifest);
    const part = join(device.state.path, "download/r-1.part");
    const partBytes = () => {
      try {
        return Deno.statSync(part).size;
      } catch {
        return -1;
      }
    };
    const kill = async (child: Deno.ChildProcess) => {
      child.kill("SIGKILL");
      // What the hook inherits of its output stays open.
      await Promise.all([child.status, child.stdout.cancel(), child.stderr.cancel()]);
    };

    // While the artifact arrives.
    const halt = halted(bytes, 100_000);
    files.set("/r-1.onnx", halt.served);
    const first = device.spawn(["watch", "--once"]);
    await until("the first part", () => partBytes() === 100_000);
    const second = await device.run("watch", "--once");
    assert.match(second.stderr, /^error: another updater is getting an artifact\n/);
    assert.equal(second.code, 1);
    await kill(first);
    halt.go();
    assert.deepEqual([device.releases(), device.calls()], [{ ...NOTHING, incoming: "r-1" }, []]);

    // When it is here: the test has the lock that the updater waits for.
    requests.length = 0;
    const rest = halted(bytes.slice(100_000), 1);
    files.set("/r-1.onnx", () => {
      const { body } = (rest.served as () => Response)();
      return new Response(body, { status: 206, headers: { "content-range": "bytes 100000-299999/300000" } });
    });
    const waiting = device.spawn(["watch", "--once"]);
    await until("the second part", () => partBytes() === 100_001);
    {
      using _lock = await device.state.lockState(new AbortController().signal);
      rest.go();
      await until("the whole artifact", () => partBytes() === bytes.byteLength);
      await kill(waiting);
    }
    assert.deepEqual(requests, ["GET /manifest.json", "GET /r-1.onnx bytes=100000-"]);

    // In the hook, which its journal names: it is called again, when the first call is over.
    const log = join(device.folder.path, "log");
    const end = join(device.folder.path, "end");
    device.hook(`echo begin >>"${log}"; until [ -e "${end}" ]; do sleep 0.02; done; echo end >>"${log}"`);
    const calling = device.spawn(["watch", "--once"]);
    await until("the hook", () => device.calls().length === 1);
    await kill(calling);
    assert.deepEqual(device.state.readState().pending, {
      action: "stage_shadow",
      release_id: "r-1",
      withdraws: null,
    });
    const again = device.spawn(["watch", "--once"]);
    const lines = again.stdout.pipeThrough(new TextDecoderStream()).getReader();
    assert.equal((await lines.read()).value, "hook: stage_shadow r-1\n");
    assert.equal(device.calls().length, 1);
    Deno.writeTextFileSync(end, "");
    assert.equal((await lines.read()).value, "r-1: in shadow\n");
    assert.equal((await lines.read()).done, true);
    await again.stderr.cancel();
    assert.equal((await again.status).code, 0);
    assert.deepEqual(device.calls(), ["stage_shadow r-1/model.onnx r-1", "stage_shadow r-1/model.onnx r-1"]);
    assert.equal(Deno.readTextFileSync(log), "begin\nend\nbegin\nend\n");
    assert.deepEqual(device.releases(), { ...NOTHING, candidate: "r-1 in shadow" });
    assert.equal(
      requests.filter((line) => line.includes(".onnx")).length,
      1,
      "the artifact did not come again",
    );
    assert.deepEqual([device.models(), device.parts()], [["r-1/model.onnx"], []]);
  },
});

Deno.test({
  ...needing(
    OPENSSL,
    "`watch` takes each new manifest until it is told to end, and reports come in meanwhile",
  ),
  async fn() {
    await using device = await EdgeDevice.open();
    device.publish(await device.manifest(1, "r-1"));
    const watching = device.spawn(["watch", "--interval-secs", "1", "--json"]);
    await until("shadow", () => device.releases().candidate === "r-1 in shadow");
    const reporting = device.spawn(["report", "-"], "piped");
    const input = reporting.stdin.getWriter();
    await input.write(
      new TextEncoder().encode(JSON.stringify({ release_id: "r-1", stage: "shadow", ...GOOD })),
    );
    await input.close();
    assert.equal((await reporting.output()).code, 0);
    assert.equal(device.releases().candidate, "r-1 in canary");
    // It ends when a call of the hook that has begun is over.
    const end = join(device.folder.path, "end");
    device.hook(`[ $1 != stage_shadow ] || until [ -e "${end}" ]; do sleep 0.02; done`);
    device.publish(await device.manifest(2, "r-2"));
    await until("the hook", () => device.calls().at(-1) === "stage_shadow r-2/model.onnx r-2");
    watching.kill("SIGTERM");
    assert.equal(device.releases().incoming, "r-2");
    Deno.writeTextFileSync(end, "");
    const { code, stdout } = await watching.output();
    assert.equal(code, 0);
    assert.equal(device.releases().candidate, "r-2 in shadow");
    const lines = new TextDecoder().decode(stdout).trim().split("\n").map((line) => JSON.parse(line).message);
    assert.deepEqual([lines[0], lines.at(-1)], ["r-1: accepted with sequence 1", "r-2: in shadow"]);
  },
});

Deno.test({
  ...needing(OPENSSL, "keys, enrollment, signing and status, in files that nobody else may read"),
  async fn() {
    await using device = await EdgeDevice.open();
    const { folder } = device;
    const modeOf = (path: string) => (Deno.statSync(path).mode! & 0o777).toString(8);
    const key = join(folder.path, "team");
    const made = await device.runScript("keygen", key);
    assert.equal(made.code, 0, made.stderr);
    const secret = Deno.readTextFileSync(`${key}.key`);
    assert.ok(!(made.stdout + made.stderr).includes(secret.split("\n")[1]!));
    assert.equal(modeOf(`${key}.key`), "600");
    const replaced = await device.runScript("keygen", key);
    assert.deepEqual([replaced.code, Deno.readTextFileSync(`${key}.key`)], [2, secret]);
    assert.match(replaced.stderr, /team\.key is there already, and no key is replaced/);

    const enrollment = [
      ...["enroll", "--public-key", `${key}.pub`, "--cohort", "jetson", "--model-id", "detector"],
      ...["--hook", join(folder.path, "hook"), "--manifest-uri", device.server.url("/manifest.json")],
      ...["--ca", folder.file("ca.crt", device.server.ca)],
    ];
    assert.match(
      (await device.run(...enrollment)).stderr,
      /is enrolled already\nhint: --replace changes the enrollment/,
    );
    const secretGiven = enrollment.map((word) => word === `${key}.pub` ? `${key}.key` : word);
    assert.match(
      (await device.run(...secretGiven, "--replace")).stderr,
      /--public-key must be a file with an Ed25519 public key/,
    );
    const enrolled = await device.run(...enrollment, "--replace");
    assert.equal(enrolled.code, 0, enrolled.stderr);

    const model = folder.file("model.onnx", artifactBytes(5));
    const { signature: _, ...draft } = device.draft(5, "r-5", {
      artifact: { uri: device.server.url("/r-5.onnx"), sha256: "", size_bytes: 0 },
    });
    const draftPath = folder.file("draft.json", JSON.stringify(draft));
    device.server.files.set("/r-5.onnx", artifactBytes(5));
    const signing = ["sign", draftPath, "--private-key", `${key}.key`];
    assert.match(
      (await device.run(...signing)).stderr,
      /artifact.sha256: must be 64 lower-case hexadecimal digits, got ""/,
    );
    const signed = await device.run(...signing, "--artifact", model);
    Deno.chmodSync(`${key}.key`, 0o644);
    assert.match(
      (await device.run(...signing)).stderr,
      /others may read the private key .* \(mode 0644\)\nhint: chmod 600/,
    );
    const applied = await device.run("apply", folder.file("manifest.json", signed.stdout));
    assert.equal(applied.code, 0, applied.stderr);

    for (
      const [name, mode] of [["", "700"], ["state.json", "600"], ["enrollment.json", "600"], [
        "download",
        "700",
      ]] as const
    ) {
      assert.equal(modeOf(join(device.state.path, name)), mode, name);
    }
    assert.deepEqual([
      modeOf(join(device.state.path, "models")),
      modeOf(join(device.state.path, "models/r-5/model.onnx")),
    ], ["755", "444"]);
    const shown = await device.run("status");
    assert.match(shown.stdout, /^candidate {2}r-5 \(sequence 5\) in shadow, goes as far as active$/m);
    const { candidate, highest_sequence, current } = JSON.parse(
      (await device.run("status", "--json")).stdout,
    );
    assert.deepEqual([candidate.release_id, candidate.stage, highest_sequence, current], [
      "r-5",
      "shadow",
      5,
      null,
    ]);

    Deno.chmodSync(device.state.path, 0o750);
    const open = await device.run("status");
    assert.deepEqual([open.code, /must be its owner's alone \(mode 0700\), got 0750/.test(open.stderr)], [
      2,
      true,
    ]);
    Deno.chmodSync(device.state.path, 0o700);
    Deno.writeTextFileSync(join(device.state.path, "state.json"), "{");
    assert.match(
      (await device.run("status")).stderr,
      /state\.json is damaged or of another version: nothing is changed/,
    );
    Deno.removeSync(join(device.state.path, "state.json"));
    assert.match((await device.run("status")).stderr, /state\.json is missing: nothing is changed/);
    assert.equal((await device.run("watch", "--interval-secs", "0")).code, 2);
  },
});
