/** Heads of RTSP as cameras write them: what they mean, and where the tracks that they name may be. */

import assert from "node:assert/strict";
import {
  leadingNumber,
  numberPair,
  pathControls,
  rtspHeaders,
  rtspSession,
  rtspStart,
  rtspTransports,
  trackAddresses,
} from "../../../src/model/sources/rtsp_head.ts";

Deno.test("a line begins a reply, a request or nothing", () => {
  for (const line of ["RTSP/1.0 200 OK", "rtsp/1.1\t200", " RTSP/  0200x", "RTSP/2.0 +200 sch\xf6n"]) {
    assert.deepEqual(rtspStart(line), { kind: "reply", code: 200 }, line);
  }
  for (const line of ["OPTIONS * RTSP/1.0", "options\t*  rtsp/2.0 "]) {
    assert.deepEqual(rtspStart(line), { kind: "request", method: "OPTIONS" }, line);
  }
  for (
    const line of [
      "",
      "HTTP/1.1 200 OK",
      "RTSP/1.0",
      "RTSP/1.0 3020",
      "RTSP/1.0 x",
      "CSeq: 1",
      "OPTIONS *",
      "A B C",
    ]
  ) assert.equal(rtspStart(line), null, line);
});

Deno.test("of headers those that are wanted are kept, folded lines with them, and nothing of the others", () => {
  const wanted = new Set(["session", "public"]);
  const lines = [
    "X: 1",
    " Session: 9",
    "no colon",
    "Public : a",
    "\tb",
    "session:7\0 x",
    ": 2",
    "PUBLIC:c",
    "3d: 4",
  ];
  assert.deepEqual([...rtspHeaders(lines, wanted)], [["public", ["a b", "c"]], ["session", ["7"]]]);
  assert.deepEqual([...rtspHeaders([" Session: 1", "Session: 2"], wanted)], [["session", ["1", "2"]]]);
  assert.deepEqual([leadingNumber(["1", "+20 bytes"]), leadingNumber(["x"]), leadingNumber(undefined)], [
    20,
    null,
    null,
  ]);
});

Deno.test("sessions, transports and pairs of numbers are read with blanks, quotes and any case", () => {
  assert.deepEqual(rtspSession(' a+b == ; x ; TimeOut = "30"'), { name: "a+b ==", timeoutS: 30 });
  assert.deepEqual([rtspSession("7;timeout="), rtspSession(" ;timeout=3")], [
    { name: "7", timeoutS: null },
    null,
  ]);
  const [first, second, ...rest] = rtspTransports('RTP / AVP ; A="x;y,z" ; b ; ; c = 1=2 , rtp/avp/tcp');
  assert.deepEqual([first!.protocol, [...first!.parameters]], ["rtp/avp", [["a", "x;y,z"], ["b", ""], [
    "c",
    "1=2",
  ]]]);
  assert.deepEqual([second!.protocol, rest], ["rtp/avp/tcp", []]);
  assert.deepEqual([numberPair(" 4 - 5 ", 255), numberPair("6", 255)], [[4, 5], [6, 7]]);
  assert.deepEqual([numberPair("255", 255), numberPair("-1", 255), numberPair(undefined, 255)], [
    null,
    null,
    null,
  ]);
});

Deno.test("a track may be behind the host, behind the base, as it was asked for, or at the host of the source", () => {
  const description =
    "v=0\r\na=control:*\r\nm=video 0 RTP/AVP 96\r\na=control:/media/1\r\nm=audio 0\na = Control: /b \n";
  const paths = pathControls(description);
  assert.deepEqual(paths, ["/media/1", "/b"]);
  const server = "rtsp://camera:8554/dock";
  const addresses = (address: string) => trackAddresses(address, { paths, server });
  assert.deepEqual(addresses("rtsp://camera:8554/dock/track1"), ["rtsp://camera:8554/dock/track1"]);
  assert.deepEqual(addresses("rtsp://camera:8554/dock//media/1"), [
    "rtsp://camera:8554/media/1",
    "rtsp://camera:8554/dock/media/1",
    "rtsp://camera:8554/dock//media/1",
  ]);
  assert.deepEqual(addresses("rtsp://camera:8554//b"), ["rtsp://camera:8554/b", "rtsp://camera:8554//b"]);
  assert.deepEqual(addresses("rtsp://10.0.0.1/a?x=/y"), [
    "rtsp://10.0.0.1/a?x=/y",
    "rtsp://camera:8554/a?x=/y",
  ]);
  assert.deepEqual(addresses("*"), ["*"]);
});
