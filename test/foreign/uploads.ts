/** Uploads by HTTP clients that are not ours, curl and aiohttp, under names that people give to files. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { ForeignProgram } from "../support/foreign/foreign_program.ts";
import { type ForeignService, startForeignService } from "../support/foreign/foreign_service.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { CLIPS, KEY_A, MODEL } from "../support/service.ts";

const CLIP = join(CLIPS, "bbb120.mp4");
const NAMES = ["動画.mp4", "Café à 8h.mp4", "фильм (1).mp4", "ÜBER.MP4", "한국어.mp4"];

for (const client of ["curl", "aiohttp"]) {
  Deno.test(
    `${client} uploads files whose names are of every script, and they are ingested`,
    LONG_TEST,
    async () => {
      await using service = await startForeignService();
      await using python = client === "aiohttp" ? new ForeignProgram("upload") : undefined;
      for (const name of NAMES) {
        const { status, body } = python
          ? await python.order("upload", { server: service.url, key: KEY_A, path: CLIP, name })
          : await curl(service, name);
        assert.equal(status, 200, `${name}: ${JSON.stringify(body)}`);
        const stored = body.file_path.split("__").at(-1);
        assert.equal(stored, name.normalize("NFC").replaceAll(/[()]/g, "_"));
        const run = await service.call("POST", "/v1/runs", { mode: "balanced", model: MODEL });
        const ingested = await service.call("POST", `/v1/runs/${run.json.run_id}/ingest`, {
          source_uri: body.file_path,
          max_frames: 8,
        });
        assert.equal(ingested.status, 200, ingested.text);
      }
    },
  );
}

async function curl({ url }: ForeignService, name: string) {
  const { code, stdout } = await new Deno.Command("curl", {
    args: [
      ...["-s", "-w", "\n%{http_code}", "-H", `Authorization: Bearer ${KEY_A}`],
      ...["-F", `file=@${CLIP};filename=${name}`, `${url}/v1/upload`],
    ],
  }).output();
  assert.equal(code, 0);
  const [body, status] = new TextDecoder().decode(stdout).split("\n");
  return { status: Number(status), body: JSON.parse(body!) };
}
