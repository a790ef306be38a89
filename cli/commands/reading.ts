/** `events`, `markers` and `search`: what is in runs. */

import { linesOf, openStream, piecesOf } from "../http.ts";
import { clock, laneOf } from "../contact_sheet/marks.ts";
import { visible, visibleJson } from "../output/visible.ts";
import type { Flags, Handler, Session } from "../session.ts";

const NDJSON = "application/x-ndjson";
const MEDIA_TYPES: Readonly<Record<string, string>> = {
  csv: "text/csv",
  vtt: "text/vtt",
  edl: "text/x-edl",
  ndjson: NDJSON,
};
/** Of a payload so much is shown in the list for people. */
const PAYLOAD_CHARACTERS = 160;
/** In place of the status of what a model says. */
const NOT_MEASURED = "not measured";

/**
 * The lines of the server as they are, so that integers keep all their digits; read one at a time, however
 * many there are.
 */
export const printEvents: Handler = async (session, [id], { kind, index, fromSeq = 0, csv }) => {
  const path = `/v1/runs/${encodeURIComponent(id!)}/events${queryOf({ index })}`;
  if (csv) return await copyText(session, path, MEDIA_TYPES.csv!);
  const { out, settings, signal } = session;
  const response = await openStream(settings, { path, accept: NDJSON, signal });
  let count = 0;
  for await (const line of linesOf(response, { url: settings.url, signal })) {
    // The fields stand in this order, so that most lines need not be parsed.
    const [, seq, eventKind] = /^\{"seq":(\d+),"pts_ms":\d+,"kind":"([^"\\]*)"/.exec(line) ?? [];
    const head = eventKind === undefined ? JSON.parse(line) : { seq: Number(seq), kind: eventKind };
    if (head.seq < fromSeq || (kind !== undefined && head.kind !== kind)) continue;
    count++;
    if (out.isJson) out.line(visibleJson(line));
    else if (out.isQuiet) out.line(String(head.seq));
    else out.line(eventLine(session, JSON.parse(line)));
  }
  if (count === 0 && !out.isJson) out.note("no events");
};

/** One event for people: number, time, kind, and the beginning of its payload. */
export function eventLine(
  { out }: Session,
  event: { seq: number; pts_ms: number; kind: string; payload: unknown },
): string {
  const { seq, pts_ms, kind, payload } = event;
  const time = new Date(pts_ms).toISOString().replace("T", " ").replace("Z", "");
  const text = textOf(payload);
  const shown = text.length > PAYLOAD_CHARACTERS ? `${text.slice(0, PAYLOAD_CHARACTERS)}…` : text;
  return `${out.paint.dim(String(seq).padStart(6))}  ${out.paint.dim(time)}  ` +
    `${out.paint.cyan(visible(kind).padEnd(24))}  ${visible(shown)}`;
}

/** What of a payload says most: its description, what a marker says, else the JSON. */
function textOf(payload: unknown): string {
  // deno-lint-ignore no-explicit-any -- payloads have many shapes
  const { description, summary, event_type, start_pts_ms, end_pts_ms, status, origin } = payload as any;
  if (typeof start_pts_ms === "number" && typeof event_type === "string") {
    const word = origin === undefined ? status ?? "" : NOT_MEASURED;
    return `${laneOf({ event_type, origin })} ${clock(start_pts_ms)} – ${clock(end_pts_ms)} ${word}`
      .trimEnd();
  }
  const text = description || summary;
  return typeof text === "string" ? text : JSON.stringify(payload) ?? "";
}

export const printMarkers: Handler = async (session, [id], flags) => {
  const { client, out, signal } = session;
  const filter = markerFilter(flags);
  const { format } = flags;
  if (format !== undefined) {
    const path = `/v1/runs/${encodeURIComponent(id!)}/markers${queryOf(filter)}`;
    return await copyText(session, path, MEDIA_TYPES[format]!);
  }
  const markers = await (await client()).getMarkers(id!, filter, { signal });
  await out.list(
    markers,
    [
      { title: "MARKER" },
      { title: "FROM", isRight: true },
      { title: "TO", isRight: true },
      { title: "FRAMES", isRight: true },
      { title: "CONFIDENCE", isRight: true },
      { title: "STATUS" },
      { title: "TYPE" },
    ],
    markers.map((marker) => [
      marker.marker_id,
      clock(marker.start_pts_ms),
      clock(marker.end_pts_ms),
      marker.start_frame === marker.end_frame
        ? marker.start_frame
        : `${marker.start_frame}-${marker.end_frame}`,
      marker.confidence.toFixed(2),
      marker.origin === undefined ? marker.status : NOT_MEASURED,
      laneOf(marker),
    ]),
    "no markers",
  );
};

function markerFilter({ status, eventType, fromFrame, toFrame }: Flags) {
  return {
    ...(status !== undefined && { status }),
    ...(eventType !== undefined && { event_type: eventType }),
    ...(fromFrame !== undefined && { from_frame: fromFrame }),
    ...(toFrame !== undefined && { to_frame: toFrame }),
  };
}

export const search: Handler = async ({ client, out, signal }, [text], { run, limit }) => {
  const wishes = { limit, ...(run !== undefined && { run_id: run }) };
  const answer = await (await client()).search(text!, wishes, { signal });
  const { hits, total_hits } = answer;
  await out.list(
    answer,
    [{ title: "RUN" }, { title: "SEQ", isRight: true }, { title: "TIME", isRight: true }, { title: "KIND" }, {
      title: "SCORE",
      isRight: true,
    }, { title: "DESCRIPTION" }],
    hits.map((
      hit,
    ) => [hit.run_id, hit.seq, timeOf(hit.pts_ms), hit.kind, hit.score.toFixed(2), hit.description]),
    "nothing was found",
  );
  if (!out.isJson && total_hits > hits.length) {
    out.note(`${hits.length} of ${total_hits} hits; --limit shows more`);
  }
};

/** Media times are shown as such; what is no media time is the time of the append. */
function timeOf(ms: number): string {
  const YEAR_2000_MS = 946_684_800_000;
  return ms < YEAR_2000_MS ? clock(ms) : new Date(ms).toISOString();
}

/** Copies an answer to stdout piece by piece, as it is; a terminal gets nothing that acts on it. */
async function copyText({ out, settings, signal }: Session, path: string, accept: string): Promise<void> {
  const response = await openStream(settings, { path, accept, signal });
  if (out.isTerminal) {
    for await (const line of linesOf(response, { url: settings.url, signal })) {
      out.line(visible(line.replace(/\r$/, "")));
    }
  } else for await (const bytes of piecesOf(response, { url: settings.url, signal })) out.bytes(bytes);
}

function queryOf(values: Readonly<Record<string, string | number | undefined>>): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined);
  return pairs.length === 0
    ? ""
    : `?${new URLSearchParams(pairs.map(([name, value]) => [name, String(value)]))}`;
}
