/** From a signed manifest over https to the place of the current release and back: what a device does, takes and refuses. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { CliError } from "../../cli/failure.ts";
import { pauseAfter } from "../../updater/commands/apply.ts";
import type { Manifest } from "../../updater/release/manifest.ts";
import { artifactBytes, EdgeDevice } from "../support/updater/edge_device.ts";
import { halted } from "../support/updater/release_server.ts";
import { needing, OPENSSL } from "../support/needs.ts";

const HEADROOM = 256 * 2 ** 20;

/** What a device refuses leaves everything as it was. */
async function refuses(
  device: EdgeDevice,
  manifestText: string,
  exit: string,
  message: RegExp,
): Promise<void> {
  const stateOf = () => [JSON.stringify(device.state.readState()), device.models(), device.calls()];
  const before = stateOf();
  await assert.rejects(device.updater().apply(manifestText), (error: CliError) => {
    assert.match(error.message, message);
    assert.equal(error.exit, exit, error.message);
    return true;
  });
  assert.deepEqual(stateOf(), before);
}

Deno.test({
  ...needing(
    OPENSSL,
    "a release goes from shadow over canary to current, and back to the one before it when it fails there",
  ),
  async fn() {
    await using device = await EdgeDevice.open();
    const { updater } = { updater: () => device.updater() };
    const first = await device.manifest(1, "r-1");
    assert.equal(await updater().apply(first), true);
    assert.deepEqual(device.releases(), {
      incoming: null,
      candidate: "r-1 in shadow",
      current: null,
      previous: null,
    });
    assert.equal(await updater().apply(first), false, "the newest manifest again changes nothing");
    await device.report("r-1", "shadow", { samples: 99, success_rate: 0 });
    assert.equal(device.releases().candidate, "r-1 in shadow");
    await assert.rejects(
      device.report("r-1", "canary"),
      /stage: must be shadow, where r-1 is now, got canary/,
    );
    await assert.rejects(device.report("r-0", "shadow"), /release_id: r-0 is neither candidate nor current/);
    await device.report("r-1", "shadow");
    await device.report("r-1", "canary");
    await assert.rejects(
      device.report("r-1", "active", { p95_ms: 81 }),
      /stays current as no previous release is there/,
    );
    await device.bringToCurrent(2, "r-2");
    await device.bringToCurrent(3, "r-3");
    assert.deepEqual(device.releases(), { incoming: null, candidate: null, current: "r-3", previous: "r-2" });
    assert.deepEqual(
      device.models(),
      ["r-2/model.onnx", "r-3/model.onnx"],
      "the files of current and previous are kept alone",
    );
    await device.report("r-3", "active");
    // A candidate begins again when the current release is rolled back.
    await updater().apply(await device.manifest(4, "r-4"));
    await device.report("r-4", "shadow");
    await device.report("r-3", "active", { success_rate: 0.98, p95_ms: 81, rss_bytes: 1_000_001 });
    assert.deepEqual(device.releases(), { incoming: "r-4", candidate: null, current: "r-2", previous: null });
    assert.equal(await updater().apply(await device.manifest(4, "r-4")), false);
    assert.deepEqual(device.releases(), {
      incoming: null,
      candidate: "r-4 in shadow",
      current: "r-2",
      previous: null,
    });
    assert.deepEqual(device.models(), ["r-2/model.onnx", "r-4/model.onnx"]);
    assert.deepEqual(device.calls(), [
      ...[
        "stage_shadow r-1/model.onnx r-1",
        "stage_canary r-1/model.onnx r-1",
        "activate r-1/model.onnx r-1",
      ],
      ...[
        "stage_shadow r-2/model.onnx r-2",
        "stage_canary r-2/model.onnx r-2",
        "activate r-2/model.onnx r-2",
      ],
      ...[
        "stage_shadow r-3/model.onnx r-3",
        "stage_canary r-3/model.onnx r-3",
        "activate r-3/model.onnx r-3",
      ],
      ...[
        "stage_shadow r-4/model.onnx r-4",
        "stage_canary r-4/model.onnx r-4",
        "rollback r-2/model.onnx r-2",
      ],
      "stage_shadow r-4/model.onnx r-4",
    ]);
    assert.ok(device.said.includes(
      "r-3: rejected, as it failed in active: success_rate: 0.98 is below 0.99, p95_ms: 81 is above 80, rss_bytes: 1000001 is above 1000000",
    ));
    assert.equal(device.server.requests.length, 4, "no artifact came twice");
    // A newer manifest of the current release takes back what is on its way.
    await device.updater().apply(await device.manifest(5, "r-2"));
    assert.deepEqual(device.releases(), { incoming: null, candidate: null, current: "r-2", previous: null });
    assert.equal(device.calls().at(-1), "rollback r-2/model.onnx r-2");
    assert.deepEqual(device.models(), ["r-2/model.onnx"]);
    await refuses(
      device,
      await device.manifest(6, "r-3"),
      "invalid",
      /release_id: r-3 was rejected on this device/,
    );
  },
});

Deno.test({
  ...needing(
    OPENSSL,
    "a manifest decides how far a release may go, and the next one of the same release lets it go on",
  ),
  async fn() {
    await using device = await EdgeDevice.open();
    await device.updater().apply(await device.manifest(1, "r-1", { stage: "shadow" }));
    await device.report("r-1", "shadow");
    assert.equal(device.releases().candidate, "r-1 in shadow");
    assert.equal(
      device.said.at(-1),
      "r-1: passed in shadow, and its manifest lets it go no further than shadow",
    );
    await device.updater().apply(await device.manifest(2, "r-1", { stage: "canary" }));
    assert.equal(device.releases().candidate, "r-1 in canary", "it has passed already");
    // Another release takes the place of one that was on its way; the hook is told to leave it.
    await device.updater().apply(await device.manifest(3, "r-2"));
    assert.equal(device.releases().candidate, "r-2 in shadow");
    assert.deepEqual(device.calls().slice(-2), ["rollback  ", "stage_shadow r-2/model.onnx r-2"]);
    assert.deepEqual(device.models(), ["r-2/model.onnx"]);
    await device.updater().apply(await device.manifest(4, "r-1"));
    assert.equal(device.releases().candidate, "r-1 in shadow", "it was not rejected, and begins again");
    await device.report("r-1", "shadow", { samples: 1000, success_rate: 0.5 });
    assert.equal(device.releases().candidate, null);
    await refuses(
      device,
      await device.manifest(5, "r-1"),
      "invalid",
      /was rejected .*success_rate: 0.5 is below 0.99/,
    );
  },
});

Deno.test({
  ...needing(
    OPENSSL,
    "a manifest that breaks a rule is refused with the field and the rule, and nothing changes",
  ),
  async fn() {
    await using device = await EdgeDevice.open();
    await device.updater().apply(await device.manifest(7, "r-7"));
    const good = device.draft(8, "r-8");
    const signed = JSON.parse(await device.sign(good));
    const refused = async (changes: Partial<Manifest>, message: RegExp) =>
      await refuses(device, await device.sign({ ...good, ...changes }), "invalid", message);
    const tampered = async (changes: object, exit: string, message: RegExp) =>
      await refuses(device, JSON.stringify({ ...signed, ...changes }), exit, message);

    await tampered({ sequence: 9 }, "refused", /signature: no key of this device made it/);
    await tampered({ artifact: { ...good.artifact, uri: "https://evil.example/x" } }, "refused", /signature/);
    await tampered({ acceptance: { ...good.acceptance, minimum_samples: 1 } }, "refused", /signature/);
    await tampered({ signature: "0".repeat(128) }, "refused", /signature/);
    await tampered(
      { signature: "xyz" },
      "invalid",
      /signature: must be 128 lower-case hexadecimal digits, got "xyz"/,
    );
    await tampered({ schema_version: 1 }, "invalid", /schema_version: must be 2, got 1/);
    await tampered({ more: 1 }, "invalid", /more: is not a field of it/);
    await tampered(
      { artifact: { ...good.artifact, path: "x" } },
      "invalid",
      /artifact.path: is not a field of it/,
    );
    await tampered({ release_id: "../x" }, "invalid", /release_id: must be a name/);
    await tampered({ release_id: "-x" }, "invalid", /release_id: must be a name/);
    await tampered(
      { sequence: 1.5 },
      "invalid",
      /sequence: must be an integer from 1 to 9007199254740991, got 1.5/,
    );
    await tampered(
      { stage: "current" },
      "invalid",
      /stage: must be one of shadow, canary, active, got "current"/,
    );
    await tampered(
      { artifact: { ...good.artifact, uri: "http://a/b" } },
      "invalid",
      /artifact.uri: must be an https or file/,
    );
    await tampered({ acceptance: undefined }, "invalid", /acceptance/);
    await tampered(
      { acceptance: { ...good.acceptance, minimum_success_rate: 2 } },
      "invalid",
      /minimum_success_rate/,
    );
    await refuses(device, "{", "invalid", /the manifest is not JSON/);
    await refuses(device, "[]", "invalid", /must be an object/);

    await refused(
      { sequence: 6 },
      /sequence: must be above 7, the highest that this device has accepted, got 6/,
    );
    await refused({ sequence: 7 }, /sequence: must be above 7/);
    await refused(
      { hardware_cohort: "other" },
      /hardware_cohort: must be jetson as this device is enrolled, got other/,
    );
    await refused({ model_id: "other" }, /model_id: must be detector/);
    await refused(
      { artifact: { ...good.artifact, size_bytes: 34359738369 } },
      /size_bytes: must be at most 34359738368/,
    );
    await refused({ release_id: "r-7" }, /release_id: r-7 belongs to its first manifest/);
    await refuses(device, await device.manifest(7, "r-7", { stage: "canary" }), "invalid", /sequence/);

    Deno.env.set("SERVICE_EDGE_MAX_ARTIFACT_BYTES", "299999");
    try {
      await refused(
        {},
        /artifact.size_bytes: must be at most 299999 \(SERVICE_EDGE_MAX_ARTIFACT_BYTES\), got 300000/,
      );
      Deno.env.set("SERVICE_EDGE_MAX_ARTIFACT_BYTES", "many");
      await refuses(
        device,
        await device.sign(good),
        "usage",
        /SERVICE_EDGE_MAX_ARTIFACT_BYTES must be an integer/,
      );
    } finally {
      Deno.env.delete("SERVICE_EDGE_MAX_ARTIFACT_BYTES");
    }
    assert.equal(
      await device.updater().apply(JSON.stringify(signed, null, 2)),
      true,
      "its spaces are not signed",
    );
  },
});

Deno.test({
  ...needing(
    OPENSSL,
    "an artifact that is not the one of the manifest is refused, and one that breaks off goes on where it was",
  ),
  async fn() {
    await using device = await EdgeDevice.open();
    const { files, requests } = device.server;
    const path = "/r-1.onnx";
    const bytes = artifactBytes(1);
    const manifest = await device.manifest(1, "r-1");
    const partBytes = () => Deno.statSync(join(device.state.path, "download/r-1.part")).size;
    const refused = async (served: Parameters<typeof files.set>[1] | null, message: RegExp, left: number) => {
      if (served) files.set(path, served);
      else files.delete(path);
      await assert.rejects(device.updater({ idleMs: 200 }).apply(manifest), message);
      assert.deepEqual([device.models(), device.calls(), device.releases().incoming], [[], [], "r-1"]);
      assert.equal(partBytes(), left, String(message));
    };
    const ofType = (status: number, location: string) => () =>
      new Response(null, { status, headers: { location } });
    const flipped = bytes.slice();
    flipped[150_000]! ^= 1;

    await refused(flipped, /artifact.sha256: must be [0-9a-f]{64}, got [0-9a-f]{64}/, 0);
    await refused(artifactBytes(1, 300_001), /artifact.size_bytes: must be 300000, got 300001/, 0);
    await refused(artifactBytes(1, 299_999), /artifact.size_bytes: must be 300000, got 299999/, 0);
    // Without a declared length.
    await refused(
      () => new Response(new Blob([bytes, bytes]).stream()),
      /size_bytes: must be 300000, got more/,
      0,
    );
    await refused(null, /answers with HTTP 404/, 0);
    await refused(ofType(302, "http://localhost:1/x"), /leads to an address that is not https/, 0);
    await refused(ofType(302, path), /leads on more than 5 times/, 0);
    const halt = halted(bytes, 100_000);
    await refused(halt.served, /sent nothing for 200 ms/, 100_000);
    halt.go();
    requests.length = 0;
    await refused(flipped, /artifact.sha256/, 0);
    assert.deepEqual(requests, ["GET /r-1.onnx bytes=100000-"]);
    await assert.rejects(
      device.updater({}, { ca: null }).apply(manifest),
      /cannot fetch https:.*certificate/i,
    );

    const room = (free: number) => device.updater({ freeBytes: () => Promise.resolve(free) }).apply(manifest);
    files.set(path, bytes);
    requests.length = 0;
    await assert.rejects(
      room(HEADROOM + bytes.byteLength - 1),
      /the disk has too little room: 300000 bytes are to come and 268435456 are to stay free, got 268735455/,
    );
    assert.deepEqual(requests, []);
    await room(HEADROOM + bytes.byteLength);
    assert.deepEqual([device.models(), device.parts()], [["r-1/model.onnx"], []]);
    assert.deepEqual(Deno.readFileSync(join(device.state.path, "models/r-1/model.onnx")), bytes);

    // From a file, under the same rules.
    const { artifact } = device.draft(2, "r-2");
    const uri = `file://${device.folder.file("model.bin", flipped)}`;
    const ofFile = await device.manifest(2, "r-2", { artifact: { ...artifact, uri } });
    await assert.rejects(device.updater().apply(ofFile), /artifact.sha256/);
    device.folder.file("model.bin", artifactBytes(2));
    await device.updater().apply(ofFile);
    assert.deepEqual(device.models(), ["r-2/model.bin"]);
  },
});

Deno.test({
  ...needing(
    OPENSSL,
    "a hook that fails or hangs takes the release back out, and a rollback that fails is made again first",
  ),
  async fn() {
    await using device = await EdgeDevice.open();
    await device.bringToCurrent(1, "r-1");
    device.hook(`[ $1 != stage_canary ] || exit 3`);
    await device.updater().apply(await device.manifest(2, "r-2"));
    await assert.rejects(
      device.report("r-2", "shadow"),
      /r-2 is rejected, as the hook failed at stage_canary: it ended with exit code 3/,
    );
    assert.deepEqual(device.releases(), { incoming: null, candidate: null, current: "r-1", previous: null });
    assert.deepEqual(device.calls().slice(-2), [
      "stage_canary r-2/model.onnx r-2",
      "rollback r-1/model.onnx r-1",
    ]);
    assert.deepEqual(device.models(), ["r-1/model.onnx"]);

    device.hook(
      `[ $1 != stage_shadow ] || { sleep 60 & echo $! >"${device.folder.path}/pids"; echo $$ >>"${device.folder.path}/pids"; wait; }`,
    );
    const hanging = device.updater({ hookTimeoutMs: 400 }).apply(await device.manifest(3, "r-3"));
    await assert.rejects(
      hanging,
      /r-3 is rejected, as the hook failed at stage_shadow: it was killed after 0.4 s/,
    );
    for (const pid of Deno.readTextFileSync(join(device.folder.path, "pids")).trim().split("\n")) {
      assert.ok(isGone(pid), `process ${pid} of the hook's group is still there`);
    }

    device.hook(`[ $1 = activate ] || exit 1`);
    await assert.rejects(
      device.updater().apply(await device.manifest(4, "r-4")),
      /the hook failed at rollback: .* it will be called again/,
    );
    const calls = device.calls().length;
    await assert.rejects(
      device.updater().apply(await device.manifest(5, "r-5")),
      /the hook failed at rollback/,
    );
    assert.deepEqual(device.calls().slice(calls), ["rollback r-1/model.onnx r-1"]);
    device.hook("");
    await device.updater().apply(await device.manifest(5, "r-5"));
    assert.deepEqual(device.calls().slice(-2), [
      "rollback r-1/model.onnx r-1",
      "stage_shadow r-5/model.onnx r-5",
    ]);
    assert.deepEqual(device.state.readState().rejected.map(({ release_id }) => release_id), [
      "r-2",
      "r-3",
      "r-4",
    ]);
  },
});

Deno.test("the pause doubles with each failure, up to an hour or to the pause that was asked for", () => {
  assert.deepEqual([0, 1, 2, 6, 7, 2000].map((failures) => pauseAfter(failures, 60_000) / 1000), [
    60,
    120,
    240,
    3600,
    3600,
    3600,
  ]);
  assert.equal(pauseAfter(3, 7_200_000), 7_200_000);
});

/** A process that has ended and was not waited for counts as gone. */
function isGone(pid: string): boolean {
  try {
    return /^State:\s+Z/m.test(Deno.readTextFileSync(`/proc/${pid}/status`));
  } catch {
    return true;
  }
}
