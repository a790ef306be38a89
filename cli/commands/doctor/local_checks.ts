/** What can be seen of this machine: ffmpeg with its encoders, and the disk. */

import { statfs } from "node:fs/promises";
import { findFfmpeg } from "../ffmpeg.ts";
import { type Finding, gigabytes, ok, unseen, warning } from "./finding.ts";

/** What `live FILE` encodes with. */
const ENCODERS = ["libvpx", "libopus"];
const FREE_BYTES_MIN = 1e9;

export async function localFfmpeg(): Promise<{ finding: Finding; ffmpeg: string | undefined }> {
  let ffmpeg: string;
  try {
    ffmpeg = await findFfmpeg();
  } catch (error) {
    const detail = (error as Error).message;
    return {
      ffmpeg: undefined,
      finding: warning(
        "ffmpeg here",
        detail,
        "`analyze --sheet`, `live FILE` and the model check need it, nothing else",
      ),
    };
  }
  const said = async (argument: string) => {
    const { stdout } = await new Deno.Command(ffmpeg, { args: ["-v", "error", argument], stdin: "null" })
      .output();
    return new TextDecoder().decode(stdout);
  };
  const version = /ffmpeg version (\S+)/.exec(await said("-version"))?.[1] ?? "of an unknown version";
  const encoders = await said("-encoders");
  const missing = ENCODERS.filter((name) => !new RegExp(`^ \\S+ ${name} `, "m").test(encoders));
  const finding = missing.length > 0
    ? warning("ffmpeg here", `${version}, without ${missing.join(" and ")}`, "`live FILE` needs them")
    : ok("ffmpeg here", `${version}, with what \`live FILE\` and \`analyze --sheet\` need`);
  return { finding, ffmpeg };
}

export async function localDisk(): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(Deno.cwd());
    const free = bavail * bsize;
    const detail = `${gigabytes(free)} are free in this folder`;
    return free < FREE_BYTES_MIN
      ? warning("disk here", detail, "make room before a large export")
      : ok("disk here", detail);
  } catch {
    return unseen("disk here", "this system does not tell how much is free");
  }
}
