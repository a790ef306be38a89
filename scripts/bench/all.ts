/** Runs every benchmark of docs/performance.md, one after the other: `./scripts/deno task bench`. */

import { fileURLToPath } from "node:url";

const SCRIPTS = [
  "filter.ts",
  "ingest.ts",
  "models/reason.ts",
  "frames.ts",
  "live/live_decode.ts",
  "live/live.ts",
  "live/live_churn.ts",
  "extract.ts",
  "rtsp_tunnel.ts",
  "commit.ts",
  "start.ts",
  "restart.ts",
  "http.ts",
  "search.ts",
  "sse.ts",
  "upload.ts",
  "webhook.ts",
  "shares.ts",
  "models/infer.ts",
  "trigger.ts",
];

for (const script of SCRIPTS) {
  console.log(`\n== ${script}`);
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", fileURLToPath(new URL(script, import.meta.url))],
    stdout: "inherit",
    stderr: "inherit",
  }).output();
  if (!success) throw new Error(`${script} failed`);
}
