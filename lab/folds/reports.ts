/** What ffmpeg's decoder says of each frame of a video. */

import { DecoderLog, REPORTING } from "../../src/media/jobs/decoder_log.ts";
import { newReports, ReportReader, ReportWriter } from "../../src/media/frame_reports.ts";

/** Bits of `REPORT` for each frame; nothing for a file of reduced frames. */
export async function reportsOf(path: string): Promise<Uint16Array> {
  if (path.endsWith(".yuv")) return new Uint16Array();
  const shared = newReports();
  const log = new DecoderLog(new ReportWriter(shared), { keepsInfo: false });
  const reader = new ReportReader(shared);
  const ffmpeg = new Deno.Command("ffmpeg", {
    args: [
      "-nostdin",
      ...REPORTING,
      "-i",
      path,
      "-map",
      "0:v:0",
      "-fps_mode",
      "passthrough",
      "-f",
      "null",
      "-",
    ],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  const reports: number[] = [];
  for await (const part of ffmpeg.stderr) {
    log.read(part);
    while (!reader.isAwaited) reports.push(reader.takeNow());
  }
  await ffmpeg.status;
  return Uint16Array.from(reports);
}
