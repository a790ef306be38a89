/** Checks the recordings of a data directory: that each segment has the size that its name says, and begins
 * as an MP4 does.
 */

import { join } from "node:path";
import { errorText } from "../../base/log.ts";
import { segmentDay, segmentOfName } from "../../model/sources/recorded_segment.ts";
import { SOURCE_NAME } from "../../model/source_name.ts";
import type { Findings } from "./findings.ts";
import { filesBelowLinks, RECORDINGS_FOLDER } from "../files/folder.ts";
import { openRegular, readAt } from "../files/file_bytes.ts";
import { PARTIAL_PREFIX } from "../files/partial_file.ts";

export interface CheckedRecordings {
  readonly segments: number;
  readonly bytes: number;
}

const HEAD_BYTES = 8;

/** Checks the segments of all sources. No hash is recorded of a segment, so its media are not read. */
export function checkRecordings(dataDir: string, findings: Findings): CheckedRecordings {
  let [segments, bytes] = [0, 0];
  for (const path of filesBelowLinks(dataDir, RECORDINGS_FOLDER)) {
    const [, source = "", day = "", name = "", ...others] = path.split("/");
    const segment = others.length === 0 && SOURCE_NAME.test(source) ? segmentOfName(name) : null;
    if (!segment || day !== segmentDay(segment.startMs)) {
      const isLeftover = path.split("/").at(-1)!.startsWith(PARTIAL_PREFIX);
      if (isLeftover) {
        findings.note("leftover_file", path, "it is being written, or a process was killed meanwhile");
      } else findings.note("strange_file", path, "it is no segment of a recording");
      continue;
    }
    try {
      using file = openRegular(join(dataDir, path));
      const { size } = file.statSync();
      const box = new TextDecoder("latin1").decode(readAt(file, 0, HEAD_BYTES)).slice(4);
      [segments, bytes] = [segments + 1, bytes + size];
      const isWhole = size === segment.sizeBytes && box === "ftyp";
      if (!isWhole) findings.damaged("damaged_recording", path, `it has ${size} bytes, or is no MP4`);
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue; // it was removed meanwhile
      findings.damaged("unreadable_file", path, `it cannot be read: ${errorText(error)}`);
    }
  }
  return { segments, bytes };
}
