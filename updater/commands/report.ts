/** `report`: what was measured of a release decides whether it goes on. */

import { CliError } from "../../cli/failure.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { readText } from "../device/keys.ts";
import { readReport } from "../release/report.ts";
import type { Command } from "../session.ts";

export const report: Command = async ({ updater }, [path]) => {
  await updater.report(readReport(path === "-" ? await readInput() : readText(path!)));
};

async function readInput(): Promise<string> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const part of Deno.stdin.readable) {
    size += part.byteLength;
    if (size > LIMITS.edge.manifestBytesMax) {
      throw new CliError(
        "invalid",
        `the report is refused: it has more than ${LIMITS.edge.manifestBytesMax} bytes`,
      );
    }
    parts.push(part);
  }
  return await new Blob(parts).text();
}
