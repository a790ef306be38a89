/** Requests that a fuzzer makes of the API description: every answer must be one that the description has,
 * and none a fault.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { eventsOf, SAMPLED, startReason } from "../support/models/reason.ts";
import { openAudioDouble } from "../support/sidecars/audio_sidecar.ts";
import { TempFolder } from "../support/media.ts";
import { KEY_A, newRun } from "../support/service.ts";

const SECONDS = Number(Deno.env.get("FUZZ_SECS") ?? 600);
const SEED = Deno.env.get("FUZZ_SEED") ?? "1";
const ROUTE = Deno.env.get("FUZZ_ROUTE");

/** What each answer is held to. */
const CHECKS = [
  ...["not_a_server_error", "status_code_conformance", "content_type_conformance"],
  ...["response_headers_conformance", "response_schema_conformance", "unsupported_method"],
  ...["missing_required_header", "use_after_free", "ignored_auth"],
];

/**
 * Refusals of 500 and more that are meant: an offer that cannot be read is 500, see docs/live/whip.md; a
 * webhook beyond the share of one caller is 503, and the run goes on long enough to register that many; a
 * question with a deadline of a millisecond is 503.
 */
const CONFIG = `
[[operations]]
include-name = "POST /v1/stream/whip"

[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", 500]

[[operations]]
include-name = ["POST /v1/runs/{id}/webhooks", "POST /v1/infer"]

[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", 503]
`;

Deno.test({
  name: `${SECONDS} seconds of requests, seed ${SEED}`,
  timeout: (SECONDS + 240) * 1000,
  async fn() {
    await using sidecar = openAudioDouble();
    await using service = await startReason({}, {
      SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address,
      SERVICE_ACTIVE_STREAM_LIMIT: "1024",
      SERVICE_WEBHOOK_SECRET: "0".repeat(64),
      SERVICE_WEBRTC_STUN_SERVERS: "",
    });
    const { test } = service;
    // Something to find: a run with frames, markers, chunks, keyframes.
    const { runId } = await service.reason(SAMPLED);
    assert.ok((await eventsOf(test, runId)).length > 10);
    await newRun(test);
    using folder = new TempFolder();
    const config = folder.file("schemathesis.toml", CONFIG);
    const { code, stdout, stderr } = await new Deno.Command(Deno.env.get("SCHEMATHESIS")!, {
      args: [
        ...["--config-file", config, "run", `${test.url}/openapi.json`],
        ...["--header", `x-api-key: ${KEY_A}`, "--checks", CHECKS.join(",")],
        ...["--seed", SEED, "--max-time", String(SECONDS), "--request-timeout", "60"],
        ...["--continue-on-failure", "--no-color", "--warnings", "off"],
        ...(ROUTE ? ["--include-path", ROUTE] : []),
      ],
      cwd: folder.path,
      env: { HYPOTHESIS_STORAGE_DIRECTORY: join(folder.path, "examples") },
    }).output();
    const text = new TextDecoder().decode(stdout) + new TextDecoder().decode(stderr);
    assert.equal(code, 0, text.slice(-20_000));
    console.log(text.split("\n").filter((line) => line.trim() !== "").slice(-12).join("\n"));
  },
});
