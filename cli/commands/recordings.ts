/** `recordings list` and `recordings export`: what is recorded of a source, by time. */

import type { RecordedSegment } from "../../client/mod.ts";
import { megabytes, Progress } from "../output/progress.ts";
import type { Handler } from "../session.ts";
import { saveStream } from "./export/saved_stream.ts";
import { saveWhole } from "./whole_file.ts";

/** Of one answer. */
const PAGE = 1_000;

export const listRecordings: Handler = async (
  { client, out, signal },
  [source],
  { from, to, limit = PAGE },
) => {
  const reads = await client();
  const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const segments: RecordedSegment[] = [];
  for (let cursor: string | null = null; segments.length < limit;) {
    const wishes = {
      ...range,
      limit: Math.min(PAGE, limit - segments.length),
      ...(cursor !== null && { cursor }),
    };
    const page = await reads.listRecordings(nameOf(source!), wishes, { signal });
    segments.push(...page.segments);
    cursor = page.next_cursor;
    if (cursor === null) break;
  }
  await out.list(
    segments,
    [
      ...[{ title: "SEGMENT" }, { title: "FROM" }, { title: "TO" }, { title: "BYTES", isRight: true }],
      ...[{ title: "CODEC" }, { title: "SOUND" }, { title: "GAP BEFORE", isRight: true }],
    ],
    segments.map((segment, at) => [
      ...[segment.segment_id, timeOf(segment.start_at_ms), timeOf(segment.end_at_ms), segment.bytes],
      ...[segment.codec, segment.sound, gapOf(segment.start_at_ms, segments[at - 1]?.end_at_ms)],
    ]),
    "nothing is recorded of that time",
  );
};

/** The file has its name when it is whole. */
export const exportRecording: Handler = async (session, [source, file], { from, to }) => {
  const { out, settings, signal } = session;
  const path = `/v1/sources/${encodeURIComponent(nameOf(source!))}/recordings/export?${new URLSearchParams({
    from,
    to,
  })}`;
  using progress = new Progress(out, { what: "recording", amount: megabytes });
  let bytes = 0;
  const onPiece = (piece: Uint8Array) => progress.update(bytes += piece.length);
  const saved = await saveWhole(
    file!,
    (temporary) => saveStream(settings, { path, accept: "video/mp4", file: temporary, signal, onPiece }),
  );
  out.record({ source: nameOf(source!), file, bytes: saved }, [["file", file!], ["bytes", saved]], file!);
};

/** Both `dock` and `source:dock` are taken. */
function nameOf(source: string): string {
  return source.replace(/^source:/, "");
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}

function gapOf(startMs: number, endMs: number | undefined): string {
  if (endMs === undefined || startMs === endMs) return "";
  return `${((startMs - endMs) / 1000).toFixed(1)} s`;
}
