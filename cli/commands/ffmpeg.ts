/** The ffmpeg of this machine, which some commands use; most need none. */

import { CliError } from "../failure.ts";

/** The ffmpeg of this machine, or a failure that says what to do. */
export async function findFfmpeg(): Promise<string> {
  const ffmpeg = Deno.env.get("SERVICE_FFMPEG_PATH") || "ffmpeg";
  try {
    await new Deno.Command(ffmpeg, { args: ["-version"], stdout: "null", stderr: "null" }).output();
  } catch (error) {
    throw new CliError(
      "failed",
      `ffmpeg cannot be started on this machine: ${(error as Error).message}`,
      "install ffmpeg, or name it in SERVICE_FFMPEG_PATH",
    );
  }
  return ffmpeg;
}
