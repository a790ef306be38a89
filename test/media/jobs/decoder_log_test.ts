/** What is read out of ffmpeg's log, in the words of its versions 5, 7 and 9. */

import { deepEqual, equal, ok } from "node:assert/strict";
import { DecoderLog } from "../../../src/media/jobs/decoder_log.ts";
import { newReports, REPORT, ReportReader, ReportWriter } from "../../../src/media/frame_reports.ts";

const TIMES_5 = "frame_pts:3600 frame_pts_time:0.04 best_effort_ts:3600 best_effort_ts_time:0.04";
const frame5 = (key: number, type: number, pts = 3600) =>
  `[info] decoder -> ist_index:0 type:video ${
    TIMES_5.replaceAll("3600", String(pts))
  } keyframe:${key} frame_type:${type} time_base:1/90000`;
const frame7 = (key: number, type: number, pts = 3600) =>
  `[vist#0:0/h264 @ 0x55d0c0] [dec:h264 @ 0x55d0c8] [info] ${times7(key, type, pts)}`;
const times7 = (key: number, type: number, pts = 3600) =>
  `decoder -> pts:${pts} pts_time:0.04 pkt_dts:7200 pkt_dts_time:0.08 duration:3600 duration_time:0.04 ` +
  `keyframe:${key} frame_type:${type} time_base:1/90000`;

const packet5 = (pts: number) =>
  `[info] demuxer+ffmpeg -> ist_index:0 type:video pkt_pts:${pts} pkt_pts_time:1`;
const packet7 = (pts: number) => `[info] ${packetTimes7(pts)}`;
const packet9 = (pts: number) => `[vist#0:0/h264 @ 0x55d0c0] ${packet7(pts)}`;
const packetTimes7 = (pts: number) =>
  `demuxer+ffmpeg -> ist_index:0:0 type:video pkt_pts:${pts} pkt_pts_time:1 pkt_dts:${pts} duration:40`;
const header = (thread: string) =>
  `[h264 @ 0x${thread}] [debug] nal_unit_type: 1(Coded slice), nal_ref_idc: 2`;

/** The reports of all frames, and the text that is kept. */
function read(text: string, { keepsInfo = false, step = Infinity } = {}) {
  const reports = newReports();
  const log = new DecoderLog(new ReportWriter(reports), { keepsInfo });
  const bytes = new TextEncoder().encode(text);
  let kept = "";
  const take = (part: Uint8Array) => kept += new TextDecoder().decode(part);
  for (let at = 0; at < bytes.length; at += step) take(log.read(bytes.slice(at, at + step)));
  take(log.end());
  const reader = new ReportReader(reports);
  const frames: number[] = [];
  for (let report = reader.take(); report !== 0; report = reader.take()) frames.push(report);
  return { frames, kept, filtered: reader.filtered, scaled: reader.scaled };
}

const { isReported, isCorrupt, isKey, isBidirectional, isReferenceLost, isIntra, tellsLosses } = REPORT;
const { isCareful, isAnnounced, isSilent, isAfterError } = REPORT;
/** What is said of each frame of an H.264 stream that threads split. */
const isH264 = isReported | tellsLosses;

Deno.test("each line of the decoder is a frame, with what was said before it", () => {
  const five = [
    frame5(1, 1),
    "[h264 @ 0x55b3c5310100] [debug] Frame num gap 10 8",
    frame5(0, 2),
    "[warning] /media/film.ts: corrupt decoded frame in stream 0",
    frame5(0, 3),
    frame5(0, 2),
  ];
  const seven = [
    frame7(1, 1),
    "[hevc @ 0x55b3] [error] Could not find ref with POC 12",
    frame7(0, 2),
    "[vist#0:0/h264 @ 0x55d0c0] [dec:h264 @ 0x55d0c8] [warning] corrupt decoded frame",
    frame7(0, 3),
    frame7(0, 2),
  ];
  const expected = (tells: number) => [
    isReported | isKey | isIntra,
    isReported | isReferenceLost | tells,
    isReported | isCorrupt | isBidirectional | tells,
    isReported | tells,
  ];
  for (const [lines, tells] of [[five, tellsLosses], [seven, 0]] as const) {
    const text = `${lines.join("\n")}\n`;
    for (const step of [Infinity, 1, 7, 100]) deepEqual(read(text, { step }).frames, expected(tells));
  }
});

Deno.test("a stream of a careful encoder, frames that are coded alone, and announcements are told", () => {
  const stream = (profile: string) => `[info]   Stream #0:0(und): Video: h264 (${profile}) (avc1), yuv420p`;
  const sei = "[h264 @ 0xa0] [debug] nal_unit_type: 6(SEI), nal_ref_idc: 0";
  const lines = [header("a0"), frame5(1, 1), sei, frame5(0, 2), frame5(0, 1)];
  const expected = [isKey | isIntra, isAnnounced, isIntra].map((report) => report | isH264);
  deepEqual(read([stream("Main"), ...lines].join("\n")).frames, expected);
  for (const profile of ["High", "High 10"]) {
    deepEqual(
      read([stream(profile), ...lines].join("\n")).frames,
      expected.map((report) => report | isCareful),
    );
  }
  const hevc = "[hevc @ 0xa0] [debug] nal_unit_type: 6(RADL_N), nuh_layer_id: 0, temporal_id: 0";
  deepEqual(read([hevc, frame5(0, 2)].join("\n")).frames, [isReported | tellsLosses | isSilent]);
  deepEqual(read(["[vp8 @ 0xa0] [debug] something", frame5(0, 2)].join("\n")).frames, [
    isReported | isSilent,
  ]);
  deepEqual(read(["[vp9 @ 0xa0] [debug] something", frame5(0, 2)].join("\n")).frames, [isReported]);
});

Deno.test("errors behind the first packet are told with the next frame, those of the search for streams are not", () => {
  const error = "[h264 @ 0xa0] [error] error while decoding MB 3 4, bytestream -5";
  for (const packet of [packet5, packet7, packet9]) {
    const { frames } = read(
      [error, packet(0), frame5(1, 1), error, packet(40), frame5(0, 2), frame5(0, 2)].join("\n"),
    );
    deepEqual(frames.map((report) => (report & isAfterError) !== 0), [false, true, false]);
    const harmless = "[h264 @ 0xa0] [error] mmco: unref short failure";
    deepEqual(
      read([packet(0), harmless, frame5(1, 1)].join("\n")).frames.map((report) => report & isAfterError),
      [
        0,
      ],
    );
  }
});

Deno.test("a frame whose line stands within that of another thread is read", () => {
  const { frames } = read([
    "[info]     title           : decoder -> pts:0 keyframe:1 frame_type:1",
    ...[packet7(0), packet7(40), frame7(1, 1, 0)],
    `[vost#0:0 @ 0xc0] [warning] Non-monotonic DTS; previous: 5, current: 4; ${times7(0, 2, 40)}`,
    frame7(0, 2, 80),
  ].join("\n"));
  deepEqual(frames.map((report) => (report & isKey) !== 0), [true, false, false]);
});

Deno.test("what another thread says within a line of the filter that chooses frames is read", () => {
  const choice = "[Parsed_select_4 @ 0xb0] [debug] n:34.000000 pts:203.000000 t:2.973765 key:1";
  const rest =
    "[Parsed_select_4 @ 0xb0] [debug]  interlace_type:P pict_type:B scene:nan -> select:1.000000 select_out:0";
  const toldOf = (words: string) => {
    const { frames } = read([packet7(0), `${choice}${words}`, rest, frame7(0, 2)].join("\n"));
    return frames;
  };
  const harmless = [
    ...[
      packetTimes7(40),
      "nal_unit_type: 1(Coded slice), nal_ref_idc: 2",
      "[vf#0:0 @ 0xc0] [info] filter_raw -> pts:1",
    ],
    " interlace_type:P pict_type:B scene:nan -> select:1.000000 select_out:0",
  ];
  for (const words of harmless) deepEqual(toldOf(words), [isReported], words);
  deepEqual(toldOf("corrupt decoded frame"), [isReported | isCorrupt]);
  deepEqual(toldOf("Frame num gap 10 8"), [isReported | isReferenceLost]);
  deepEqual(toldOf("nal_unit_type: 6(SEI), nal_ref_idc: 0"), [isReported | isAnnounced]);
  deepEqual(toldOf("[h264 @ 0xa0] [error] mmco: unref short failure"), [isReported]);
  for (const error of ["ac-tex damaged at 11 6", "[mpeg4 @ 0xd0] [error] ac-tex damaged at 11 6"]) {
    deepEqual(toldOf(error), [isReported | isAfterError], error);
  }
  deepEqual(toldOf(times7(1, 1, 40)), [isReported | isKey | isIntra, isReported]);
  const { filtered } = read(
    [packet7(0), `${choice}filter -> pts:1 pts_time:1 exact:1 time_base:1/90000`].join("\n"),
  );
  equal(filtered, 1);
});

Deno.test("errors are kept as without levels, and nothing else, least of all addresses", () => {
  const text = [
    "prlimit: a warning",
    "[debug] Opening 'rtsp://user:secret@camera/' for reading",
    "[tcp @ 0x55] [debug] request:",
    "Authorization: Basic secret",
    "[error] rtsp://127.0.0.1/: Invalid data found when processing input",
    "  of which this is the second line",
    "[mov,mp4 @ 0x56] [fatal] moov atom not found",
    "[info]   Stream #0:0: Video: h264, yuv420p, 640x360, 25 fps",
    "[warning] something",
    "[info] demuxer -> ist_index:0 type:video next_dts:0",
    "[error] without an end",
  ].join("\n");
  const errors = [
    "prlimit: a warning",
    "rtsp://127.0.0.1/: Invalid data found when processing input",
    "  of which this is the second line",
    "[mov,mp4 @ 0x56] moov atom not found",
  ];
  for (const step of [Infinity, 1, 13]) {
    equal(read(text, { step }).kept, [...errors, "without an end"].join("\n"));
    equal(
      read(text, { step, keepsInfo: true }).kept,
      [...errors, "  Stream #0:0: Video: h264, yuv420p, 640x360, 25 fps", "something", "without an end"].join(
        "\n",
      ),
    );
  }
});

Deno.test("frames that leave the filters are counted, and so are sizes, of which the first frame is kept", () => {
  const scaled = (size: string) =>
    `[Parsed_scale_0 @ 0x1] [verbose] w:64 h:48 fmt:yuv420p -> ${size} fmt:yuv420p flags:0x0`;
  const filtered = (pts: number) => `[info] filter -> pts:${pts} pts_time:0 exact:0 time_base:1/90000`;
  const sound = "[info] filter -> pts:7 pts_time:0 exact:7 time_base:1/48000";
  const lines = [
    scaled("w:32 h:24"),
    filtered(0),
    sound,
    filtered(3000),
    scaled("w:16 h:12"),
    filtered(6000),
  ];
  for (const step of [Infinity, 7]) {
    const found = read(`${lines.join("\n")}\n`, { keepsInfo: true, step });
    deepEqual([found.filtered, found.scaled], [3, 2]);
    deepEqual(found.kept.match(/-> (?:w:\d+|pts:\d+)/g), ["-> w:32", "-> pts:0", "-> w:16", "-> pts:6000"]);
  }
});

Deno.test("names and metadata that look like lines of the decoder are no frames and damage nothing", () => {
  const { frames } = read([
    "[info] Input #0, mov, from 'a decoder -> keyframe:1.mp4':",
    "[info]     title           : [info] decoder -> keyframe:1 frame_type:1",
    "[warning] corrupt decoded frame in stream 0.mp4: corrupt input packet in stream 0",
    "[h264 @ 0x1] [info] decoder",
    "[error] Frame num gap of a film",
    frame5(0, 2),
  ].join("\n"));
  deepEqual(frames, [isReported]);
});

Deno.test("a line without an end needs no more memory than is looked at, and what follows it is read", () => {
  const reports = newReports();
  const log = new DecoderLog(new ReportWriter(reports), { keepsInfo: false });
  const mebibyte = new Uint8Array(1 << 20).fill(120);
  equal(log.read(new TextEncoder().encode("[debug] ")).length, 0);
  for (let i = 0; i < 64; i++) equal(log.read(mebibyte).length, 0);
  const encode = (text: string) => new TextEncoder().encode(text);
  equal(log.read(encode(`\n${frame5(1, 1)}\n`)).length, 0);
  ok(log.read(encode("[error] ")).length === 0);
  for (let i = 0; i < 8; i++) log.read(mebibyte);
  log.read(encode(`\n${frame5(0, 2)}\n`));
  log.end();
  const reader = new ReportReader(reports);
  deepEqual([reader.take(), reader.take(), reader.take()], [isReported | isKey | isIntra, isReported, 0]);
});
