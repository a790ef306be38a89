/** Events and markers as CSV, JSON lines, WebVTT and EDL, each read back and compared with the JSON answer.
 */

import assert from "node:assert/strict";
import { preferredType } from "../../../src/http/answers/accept.ts";
import type { Marker } from "../../../src/model/frames/marker.ts";
import { PreparedPayload } from "../../../src/model/runs/run.ts";
import { needing, OPENTIMELINEIO, OPENTIMELINEIO_PYTHON } from "../../support/needs.ts";
import { seen, startReason } from "../../support/models/reason.ts";
import { UNKNOWN_RUN } from "../../support/policy_fixtures.ts";
import { KEY_A, newRun, REACHES_IN, startService, type TestService } from "../../support/service.ts";

const CSV = "text/csv";
const LINES = "application/x-ndjson";
const VTT = "text/vtt";
const EDL = "text/x-edl";

/** Texts that end, quote or run something in one of the formats. */
const AWKWARD = [
  'he said "cut", then\r\nleft',
  "=HYPERLINK(1)",
  "-1+2",
  "@sum",
  "＝1",
  "'already quoted",
  "\ttab",
  "a --> b",
  "<b>&amp;</b>",
  "line\n\nbreak",
  "\u2028日本語 🎬 ü",
  " ",
];

function marker(index: number, more: Partial<Marker> & { index_name?: string } = {}) {
  return {
    marker_id: `mk-${index.toString(16).padStart(8, "0")}`,
    run_id: "run",
    stream_id: "stream-0",
    event_type: "scene_cut",
    status: "exact",
    start_frame: index,
    end_frame: index,
    start_pts_ms: index * 33,
    end_pts_ms: index * 33,
    confidence: 0.58275,
    supersedes_marker_id: null,
    ...more,
  };
}

function putMarkers(test: TestService, runId: string, markers: readonly object[]): void {
  test.service.timeline.commit(() =>
    markers.map((payload) => ({ kind: "marker_emitted", runId, payload: { ...payload, run_id: runId } }))
  );
}

/** A decode of a source with this rate, with so many bytes behind it. */
function putDecode(test: TestService, runId: string, source_fps: number | null, bytes = 0): void {
  const head = { source_uri: '"source_fps":1', source_fps, signals: "x".repeat(bytes) };
  const payload = new PreparedPayload(new TextEncoder().encode(JSON.stringify(head)));
  test.service.timeline.commit(() => [{ kind: "frames_decoded", runId, payload }]);
}

async function read(test: TestService, path: string, accept: string, method = "GET") {
  return await test.send(path, { method, headers: { "x-api-key": KEY_A, accept } });
}

/** RFC 4180, without mercy: every line ends with CRLF, and quotes stand around a whole cell only. */
function parseCsv(text: string): Record<string, string>[] {
  const rows: string[][] = [];
  for (let at = 0; at < text.length;) {
    const row: string[] = [];
    for (let isOpen = true; isOpen;) {
      const found = /"((?:[^"]|"")*)"(,|\r\n)|([^",\r\n]*)(,|\r\n)/y;
      found.lastIndex = at;
      const cell = found.exec(text);
      assert.ok(cell, `no cell at ${at}: ${text.slice(at, at + 40)}`);
      row.push(cell[1]?.replaceAll('""', '"') ?? cell[3]!);
      at = found.lastIndex;
      isOpen = (cell[2] ?? cell[4]) === ",";
    }
    rows.push(row);
  }
  const [names, ...lines] = rows;
  return lines.map((line) => {
    assert.equal(line.length, names!.length);
    return Object.fromEntries(line.map((cell, index) => [names![index]!, cell]));
  });
}

function parseLines(text: string): unknown[] {
  if (text === "") return [];
  assert.ok(text.endsWith("\n"));
  return text.slice(0, -1).split("\n").map((line) => JSON.parse(line));
}

/** A cell of free text without the apostrophe that a spreadsheet needs. */
const unguarded = (text: string) => text.startsWith("'") ? text.slice(1) : text;
const orNull = (text: string) => text === "" ? null : text;

function markersOfCsv(text: string): unknown[] {
  return parseCsv(text).map(({ index_name, session_id, origin, ...row }) => ({
    ...row,
    ...{ stream_id: unguarded(row.stream_id!), event_type: unguarded(row.event_type!) },
    ...Object.fromEntries(
      ["start_frame", "end_frame", "start_pts_ms", "end_pts_ms", "confidence"].map((name) => [
        name,
        Number(row[name]),
      ]),
    ),
    supersedes_marker_id: orNull(row.supersedes_marker_id!),
    ...(index_name !== "" && { index_name: unguarded(index_name!) }),
    ...(session_id !== "" && { session_id }),
    ...(origin !== "" && { origin }),
  }));
}

/** What is left of a text in a format that has one line for it. */
const onOneLine = (text: string) => text.replaceAll(/[\r\n\t\u2028]/g, " ");

function msOf(time: string): number {
  const [, hours, minutes, seconds, ms] = /^(\d{2,}):([0-5]\d):([0-5]\d)\.(\d{3})$/.exec(time)!;
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000 + Number(ms);
}

function cuesOf(text: string) {
  const [head, ...blocks] = text.split("\n\n");
  assert.equal(head!.trimEnd(), "WEBVTT");
  return blocks.map((block) => {
    const [id, times, cueText, ...rest] = block.replace(/\n$/, "").split("\n");
    assert.deepEqual(rest, []);
    assert.doesNotMatch(cueText!, /[<>]/);
    const [start, end] = times!.split(" --> ").map(msOf);
    const plain = cueText!.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
    return { id, start, end, text: plain };
  });
}

function edlOf(text: string) {
  assert.ok(text.endsWith("\r\n"));
  const lines = text.slice(0, -2).split("\r\n");
  const events = [];
  for (const line of lines.slice(3)) {
    if (line.startsWith("*")) {
      events.at(-1)!.comments.push(line);
      continue;
    }
    const [number, reel, track, cut, ...times] = line.split(/ +/);
    assert.deepEqual([reel, track, cut], ["AX", "V", "C"]);
    assert.deepEqual(times.slice(0, 2), times.slice(2));
    events.push({ number, from: times[0]!, to: times[1]!, comments: [] as string[] });
  }
  // Of each marker three lines; the others are the film's name and rate.
  const marked = events.flatMap(({ comments }) => comments).filter((line) =>
    /^\* (LOC|MARKER|PTS MS):/.test(line)
  );
  const markers = Array.from({ length: marked.length / 3 }, (_, n) => marked.slice(3 * n, 3 * n + 3));
  return { head: lines.slice(0, 3), events, markers };
}

Deno.test("markers are the same in every format, whatever their texts are", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  putDecode(test, runId, 30_000 / 1001);
  const markers = [
    ...AWKWARD.map((event_type, index) => marker(index, { event_type, stream_id: `${event_type}x` })),
    marker(20, { start_pts_ms: 3_599_999, end_pts_ms: 360_000_123, confidence: 4.375e-7 }),
    marker(21, { status: "finalized", supersedes_marker_id: "mk-00000001", index_name: "=a,b" }),
  ];
  putMarkers(test, runId, markers);
  const path = `/v1/runs/${runId}/markers`;
  const { json, headers } = await read(test, path, "application/json");
  assert.equal(headers.get("content-type"), "application/json");
  assert.equal(json.markers.length, markers.length);

  const csv = await read(test, path, CSV);
  assert.equal(csv.headers.get("content-type"), "text/csv; charset=utf-8; header=present");
  assert.deepEqual(markersOfCsv(csv.text), json.markers);
  for (const { event_type, stream_id, index_name } of parseCsv(csv.text)) {
    for (const cell of [event_type, stream_id, index_name]) assert.doesNotMatch(cell!, /^[=+\-@\t\r＝]/);
  }

  const lines = await read(test, path, LINES);
  assert.equal(lines.headers.get("content-type"), "application/x-ndjson");
  assert.deepEqual(parseLines(lines.text), json.markers);

  const vtt = await read(test, path, VTT);
  assert.equal(vtt.headers.get("content-type"), "text/vtt; charset=utf-8");
  const cues = cuesOf(vtt.text);
  assert.equal(new Set(cues.map(({ id }) => id)).size, markers.length);
  assert.deepEqual(
    cues.map(({ id, ...cue }) => ({ id: id!.split("@")[0], ...cue })),
    json.markers.map((found: Marker) => ({
      id: found.marker_id,
      start: found.start_pts_ms,
      end: Math.max(found.end_pts_ms, found.start_pts_ms + 1),
      text: `${onOneLine(found.event_type)} (${found.status}, ${found.confidence})`,
    })),
  );

  const edl = await read(test, path, EDL);
  assert.equal(edl.headers.get("content-type"), "text/x-edl; charset=utf-8");
  const { head, events, markers: inEdl } = edlOf(edl.text);
  assert.deepEqual(head, [`TITLE: ${runId}`, "FCM: NON-DROP FRAME", ""]);
  assert.deepEqual(
    inEdl.map(([loc, ...rest]) => [loc!.replace(/[\d:]{11}/, ""), ...rest]),
    json.markers.map((found: Marker) => [
      `* LOC:  WHITE   ${onOneLine(found.event_type)}`,
      `* MARKER: ${found.marker_id} ${found.status} ${found.confidence}`,
      `* PTS MS: ${found.start_pts_ms} ${found.end_pts_ms}`,
    ]),
  );
  assert.deepEqual(events[0]!.comments.slice(0, 2), [
    `* FROM CLIP NAME: ${runId}`,
    "* FRAME RATE: 30000/1001 (SOURCE)",
  ]);
  assert.deepEqual([events[0]!.number, events[0]!.from], ["001", "00:00:00:00"]);
});

/**
 * Frames of cuts in a film of 800 frames; beside them there are other markers, which overlap each other and
 * the cuts.
 */
const CUT_FRAMES = [285, 378, 553];

for (const rate of [24_000 / 1001, 24, 25, 30_000 / 1001, 30, 50, 60_000 / 1001]) {
  Deno.test({
    ...needing(
      OPENTIMELINEIO,
      `OpenTimelineIO reads the shots of an EDL at ${rate.toFixed(3)} frames a second`,
    ),
    fn: async () => {
      await using test = await startService({}, REACHES_IN);
      const runId = await newRun(test);
      putDecode(test, runId, rate);
      const ms = (frame: number) => Math.round(frame * 1000 / rate);
      const of = (index: number, event_type: string, start: number, end: number) =>
        marker(index, {
          ...{ event_type, start_frame: start, end_frame: end },
          ...{ start_pts_ms: ms(start), end_pts_ms: ms(end) },
        });
      putMarkers(test, runId, [
        of(0, "black", 0, 12),
        of(1, "keyframe_keep", 0, 40),
        of(2, "context_observation", 41, 290),
        ...CUT_FRAMES.map((frame, at) => of(10 + at, "scene_cut", frame, frame)),
        of(20, "freeze", 540, 799),
      ]);
      for (const query of ["", "?event_type=scene_cut"]) {
        const { text } = await read(test, `/v1/runs/${runId}/markers${query}`, EDL);
        const file = Deno.makeTempFileSync({ suffix: ".edl" });
        Deno.writeTextFileSync(file, text);
        const code = `import sys, json, opentimelineio as otio
timeline = otio.adapters.read_from_file(sys.argv[1], rate=float(sys.argv[2]))
print(json.dumps([[clip.name, int(clip.source_range.start_time.value)] for clip in timeline.find_clips()]))`;
        const { success, stdout, stderr } = new Deno.Command(OPENTIMELINEIO_PYTHON, {
          args: ["-c", code, file, String(Math.round(rate))],
        }).outputSync();
        Deno.removeSync(file);
        assert.ok(success, new TextDecoder().decode(stderr));
        const clips = JSON.parse(new TextDecoder().decode(stdout)) as [string, number][];
        assert.deepEqual(clips.map(([, start]) => start), [0, ...CUT_FRAMES], query);
        assert.deepEqual(new Set(clips.map(([name]) => name)), new Set([runId]));
      }
    },
  });
}

Deno.test("events are the same in every format, long ones too", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  for (const description of AWKWARD) {
    test.service.timeline.commit(() => [{ kind: "vlm", runId, payload: { description, index_name: "a" } }]);
  }
  const long = { rows: '"quoted", and\nbroken 🎬 '.repeat(100_000), hash: 1, index_name: "a" };
  const text = JSON.stringify(long).replace('"hash":1', '"hash":18446744073709551615');
  const payload = new PreparedPayload(new TextEncoder().encode(text));
  test.service.timeline.commit(() => [{ kind: "frames_decoded", runId, payload }]);
  test.service.timeline.commit(() => [{ kind: "vlm", runId, payload: { n: -1.5 } }]);
  for (const query of ["", "?index=a", "?index=none"]) {
    const path = `/v1/runs/${runId}/events${query}`;
    const { json } = await read(test, path, "*/*");
    const csv = await read(test, path, CSV);
    assert.ok(csv.text.startsWith("seq,pts_ms,kind,payload\r\n"));
    const rows = parseCsv(csv.text);
    assert.deepEqual(
      rows.map(({ seq, pts_ms, kind, payload }) => ({
        ...{ seq: Number(seq), pts_ms: Number(pts_ms), kind, payload: JSON.parse(payload!) },
      })),
      json.events,
    );
    const lines = await read(test, path, LINES);
    assert.deepEqual(parseLines(lines.text), json.events);
    assert.equal(lines.text.includes("18446744073709551615"), query !== "?index=none");
    if (query !== "?index=none") assert.equal(rows.at(query ? -1 : -2)!.payload, text);
  }
});

Deno.test("filters work in every format, and an empty list is one", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  putMarkers(test, runId, [0, 1, 2, 3].map((index) => marker(index)));
  const idsIn = async (query: string) => {
    const of = async (accept: string) => (await read(test, `/v1/runs/${runId}/markers${query}`, accept)).text;
    const [csv, lines, vtt, edl] = [await of(CSV), await of(LINES), await of(VTT), await of(EDL)];
    return [
      parseCsv(csv).map(({ marker_id }) => marker_id),
      (parseLines(lines) as Marker[]).map(({ marker_id }) => marker_id),
      cuesOf(vtt).map(({ id }) => id!.split("@")[0]),
      edlOf(edl).markers.map((comments) => comments[1]!.split(" ")[2]),
    ].map((ids) => ids.map((id) => Number(id!.slice(-1))));
  };
  const check = async (query: string, expected: number[]) =>
    assert.deepEqual(await idsIn(query), [expected, expected, expected, expected], query);
  await check("", [0, 1, 2, 3]);
  await check("?from_frame=1&to_frame=2", [1, 2]);
  await check("?status=provisional", []);
});

Deno.test("events are read from a sequence number on and without a kind, in every format", async () => {
  await using test = await startService();
  const run = `/v1/runs/${await newRun(test)}`;
  for (const _ of [1, 2]) await test.call("POST", `${run}/keepalive`);
  const { json: { events } } = await test.call("GET", `${run}/events`);
  const wanted = events.filter(({ seq, kind }: { seq: number; kind: string }) =>
    seq >= 2 && kind !== "run_created"
  );
  const part = `${run}/events?from_seq=2&without_kind=run_created`;
  assert.ok(wanted.length > 0 && wanted.length < events.length);
  assert.deepEqual((await test.call("GET", part)).json.events, wanted);
  const { text } = await test.send(part, { headers: { "x-api-key": KEY_A, accept: LINES } });
  assert.deepEqual(text.trim().split("\n").map((line: string) => JSON.parse(line)), wanted);
  assert.equal(
    (await test.call("GET", `${run}/events?without_kind=keepalive_refreshed`)).json.events.length,
    1,
  );
  assert.deepEqual((await test.call("GET", `${run}/events?from_seq=999999`)).json.events, []);
  for (const wrong of ["-1", "x", "1.5", "1".repeat(16)]) {
    assert.equal(
      (await test.send(`${run}/events?from_seq=${wrong}`, { headers: { "x-api-key": KEY_A } })).status,
      400,
    );
  }
});

Deno.test("an EDL counts at the one rate of the run's sources, else at 25", async () => {
  await using test = await startService({}, REACHES_IN);
  const check = async (rates: readonly (number | null)[], line: string, start: string, bytes?: number) => {
    const runId = await newRun(test);
    for (const rate of rates) putDecode(test, runId, rate, bytes);
    putMarkers(test, runId, [marker(0, { start_pts_ms: 1500, end_pts_ms: 2000 })]);
    const { head, events } = edlOf((await read(test, `/v1/runs/${runId}/markers`, EDL)).text);
    assert.equal(head.length, 3);
    assert.deepEqual([events[0]!.comments[1], events[1]!.from], [`* FRAME RATE: ${line}`, start]);
    assert.equal((await test.call("DELETE", `/v1/runs/${runId}`)).status < 300, true);
  };
  await check([], "25 (DEFAULT)", "00:00:01:13");
  await check([null], "25 (DEFAULT)", "00:00:01:13");
  await check([24], "24 (SOURCE)", "00:00:01:12");
  await check([24, 24], "24 (SOURCE)", "00:00:01:12", 3_000_000);
  await check([24, 30], "25 (DEFAULT)", "00:00:01:13");
  await check([24, null], "25 (DEFAULT)", "00:00:01:13");
  await check([23.42], "25 (DEFAULT)", "00:00:01:13");
});

Deno.test("the header decides, the answer says so, and HEAD answers like GET", async () => {
  await using test = await startService();
  const runId = await newRun(test);
  const check = async (route: string, accept: string, expected: string) => {
    const path = `/v1/runs/${runId}/${route}`;
    for (const method of ["GET", "HEAD"]) {
      const answer = await read(test, path, accept, method);
      assert.equal(answer.status, 200);
      assert.equal(answer.headers.get("content-type")?.split(";")[0], expected, `${method} ${accept}`);
      assert.match(answer.headers.get("vary")!, /\baccept\b(?!-)/);
      assert.equal(answer.headers.get("cache-control"), "no-store");
    }
  };
  for (const route of ["events", "markers"]) {
    await check(route, "*/*", "application/json");
    await check(route, "application/json", "application/json");
    await check(route, CSV, CSV);
    await check(route, LINES, LINES);
    await check(route, "text/csv;q=0.4, application/x-ndjson;q=0.6", LINES);
    await check(route, "image/png", "application/json");
  }
  await check("markers", VTT, VTT);
  await check("markers", EDL, EDL);
  await check("events", VTT, "application/json");
  for (const route of ["events", "markers"]) {
    const missing = await read(test, `/v1/runs/${UNKNOWN_RUN}/${route}`, CSV);
    assert.equal(missing.json.error.code, "not_found");
  }
  assert.equal((await read(test, `/v1/runs/${runId}/markers?from_frame=x`, EDL)).status, 400);
});

Deno.test("the best media type is the one that the standard says", () => {
  const served = ["application/json", "text/csv", "application/x-ndjson"] as const;
  const check = (header: string | undefined, expected: typeof served[number]) =>
    assert.equal(preferredType(header, served), expected, String(header));
  check(undefined, "application/json");
  check("", "application/json");
  check("*/*", "application/json");
  check("text/html, application/xml;q=0.9, */*;q=0.8", "application/json");
  check("application/json, text/plain, */*", "application/json");
  check("text/csv, */*", "text/csv");
  check("*/*, text/csv", "text/csv");
  check("text/csv;q=0.5, */*", "application/json");
  check("text/*", "text/csv");
  check("TEXT/CSV", "text/csv");
  check("text/csv; header=absent", "text/csv");
  check('text/csv; x="a,b;q=0"; q=0.5, application/x-ndjson;q=0.4', "text/csv");
  check("text/csv;q=0, text/*", "application/json");
  check("application/json;q=0, */*", "text/csv");
  check("application/*;q=0.5, application/x-ndjson", "application/x-ndjson");
  check("application/x-ndjson, text/csv", "application/x-ndjson");
  check("application/json;q=0.001, text/csv;q=0.002", "text/csv");
  check("text/plain", "application/json");
  check("application/json;q=0", "application/json");
  check(";;,,q=1", "application/json");
});

Deno.test("a long list is compressed where the client accepts it", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  putMarkers(test, runId, Array.from({ length: 2000 }, (_, index) => marker(index)));
  for (const accept of [CSV, LINES, VTT, EDL]) {
    const of = async (encoding: string) => {
      const headers = { "x-api-key": KEY_A, accept, "accept-encoding": encoding };
      const answer = await test.send(`/v1/runs/${runId}/markers`, { headers });
      assert.equal(answer.headers.get("content-encoding"), encoding === "gzip" ? "gzip" : null);
      assert.equal(answer.headers.get("vary"), "accept, accept-encoding");
      return answer.text;
    };
    assert.equal(await of("gzip"), await of("identity"));
  }
});

Deno.test("readers of one list at the same time get what each gets alone, though markers are written and one goes away", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  putMarkers(test, runId, Array.from({ length: 6000 }, (_, index) => marker(6000 - index)));
  const path = `/v1/runs/${runId}/markers`;
  const types = [LINES, CSV, VTT, EDL];
  const alone = await Promise.all(
    [path, `${path}?from_frame=3000`].map(async (place) => (await read(test, place, LINES)).text),
  );
  const leaving = new AbortController();
  const left = fetch(test.url + path, {
    headers: { "x-api-key": KEY_A, accept: LINES },
    signal: leaving.signal,
  })
    .then((response) => response.text()).catch(() => {});
  const all = Promise.all([
    ...types.map((accept) => read(test, path, accept)),
    read(test, `${path}?from_frame=3000`, LINES),
  ]);
  leaving.abort();
  const [lines, csv, vtt, edl, some] = (await all).map(({ text }) => text);
  assert.deepEqual([lines, some], alone);
  assert.equal(parseCsv(csv!).length, 6000);
  assert.equal(cuesOf(vtt!).length, 6000);
  assert.equal(edlOf(edl!).markers.length, 6000);
  await left;
  const before = read(test, path, LINES);
  putMarkers(test, runId, [marker(7000)]);
  const after = await read(test, path, LINES);
  assert.equal(parseLines(after.text).length, 6001);
  assert.ok(parseLines((await before).text).length >= 6000);
});

Deno.test("what a model says is told apart in every format, and begins no shot", async () => {
  await using at = await startReason({ answer: () => seen({ event_type: "scene_cut", confidence: 0.9 }) });
  const { runId } = await at.reason({ max_frames: 60, detectors: [] });
  const path = `/v1/runs/${runId}/markers?event_type=scene_cut`;
  const { markers } = (await at.test.call("GET", path)).json;
  const said = markers.filter(({ origin }: { origin?: string }) => origin === "model");
  assert.deepEqual([said.length, markers.length], [1, 4]);
  const rows = parseCsv((await read(at.test, path, CSV)).text);
  assert.deepEqual(rows.map(({ origin }) => origin).toSorted(), ["", "", "", "model"]);
  const cues = (await read(at.test, path, VTT)).text;
  assert.equal(cues.match(/^model:scene_cut \(0\.9\)$/gm)?.length, 1);
  assert.equal(cues.match(/^scene_cut \(exact, /gm)?.length, 3);
  const { events, markers: inEdl } = edlOf((await read(at.test, path, EDL)).text);
  assert.equal(
    events.length,
    4,
    "the model's stretch, which begins with the film, is in the first of four shots",
  );
  assert.equal(inEdl.filter(([loc]) => /GREEN +model:scene_cut$/.test(loc!)).length, 1);
  assert.equal(inEdl.filter(([loc]) => /WHITE +scene_cut$/.test(loc!)).length, 3);
});
