import assert from "node:assert/strict";
import {
  interleavedChannels,
  RtspRefused,
  RtspReplies,
  type RtspRequest,
  type RtspServerRequest,
} from "../../../src/remote/sources/rtsp_replies.ts";

const textOf = (bytes: Uint8Array) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
const bytesOf = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

const URI = "rtsp://camera.test/dock";
const request = (method: string, cseq: number): RtspRequest => ({
  ...{ method, uri: URI, cseq: String(cseq), channels: "2-3" },
});

interface Heard {
  readonly passed: string;
  readonly asked: RtspServerRequest[];
  readonly reason: string | null;
}

/**
 * What ffmpeg gets when the server sends `text` after these requests, in pieces of each size: the same for
 * all.
 */
function heard(text: string, methods: readonly string[] = ["PLAY"]): Heard {
  const all = bytesOf(text);
  const results = [text.length, 1, 2, 3, 7, 64].map((size): Heard => {
    const asked: RtspServerRequest[] = [];
    const replies = new RtspReplies({ nowMs: () => 0, onRequest: (one) => void asked.push(one) });
    for (const [index, method] of methods.entries()) replies.requested(request(method, index + 1), index + 1);
    let passed = "";
    try {
      for (let at = 0; at < all.length; at += size) {
        for (const part of replies.take(all.subarray(at, at + size))) passed += textOf(part);
      }
      return { passed, asked, reason: null };
    } catch (error) {
      assert.ok(error instanceof RtspRefused, String(error));
      return { passed, asked, reason: error.message };
    }
  });
  for (const { asked, reason, passed } of results) {
    assert.deepEqual([asked, reason], [results[0]!.asked, results[0]!.reason], JSON.stringify(text));
    // What comes before a refusal passes or not, depending on where the pieces end.
    if (reason === null) assert.equal(passed, results[0]!.passed, JSON.stringify(text));
    assert.doesNotMatch(passed.replaceAll(/\$[^]{200,}/g, ""), /302|Location|REDIRECT/i);
  }
  return results[0]!;
}

function passed(text: string, ...methods: string[]): string {
  const { passed, reason } = heard(text, methods.length === 0 ? undefined : methods);
  assert.equal(reason, null, JSON.stringify(text));
  return passed;
}

function refused(text: string, reason: RegExp, ...methods: string[]): void {
  assert.match(
    heard(text, methods.length === 0 ? undefined : methods).reason ?? "",
    reason,
    JSON.stringify(text),
  );
}

const frame = (payload: string) =>
  `$\x00${String.fromCharCode(payload.length >> 8, payload.length & 255)}${payload}`;
const OK = "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n";
const MEDIA = frame("eight on");

Deno.test("replies are written anew with the headers that are needed, and media passes unchanged", () => {
  assert.equal(passed(OK), OK);
  assert.equal(
    passed(
      "RTSP/1.0 200 All is well\r\ncseq:  1 \r\nServer: WMServer/9\r\nLocation: rtsp://10.0.0.1/\r\nDate: x\r\n" +
        "Session: 5 ; timeout = 30\r\nRTP-Info: url=a\r\nRTP-Info: url=b\r\n\r\n",
    ),
    "RTSP/1.0 200 OK\r\nCSeq: 1\r\nSession: 5;timeout=30\r\nRTP-Info: url=a,url=b\r\n\r\n",
  );
  assert.equal(
    passed(
      "RTSP/1.0 200 OK\r\nCSeq: 1\r\nTransport: RTP/AVP/TCP;unicast;destination=10.0.0.1;interleaved=0 - 1;ssrc=1F\r\n\r\n",
      "SETUP",
    ),
    "RTSP/1.0 200 OK\r\nCSeq: 1\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n",
  );
  const media = frame("RTSP/1.0 302 Moved\r\nLocation: x\r\n\r\n".padEnd(300)) + frame("\n$".repeat(400)) +
    MEDIA;
  assert.equal(passed(OK + media), OK + media);
  const body = "RTSP/1.0 404 Moved\r\n\r\n";
  const described = `RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  assert.equal(passed(described + MEDIA, "DESCRIBE"), described + MEDIA);
  assert.equal(passed(described + MEDIA, "PLAY"), OK + MEDIA, "a body is passed of descriptions only");
});

Deno.test("a refusal passes without the questions for a password, which ffmpeg does not have", () => {
  const asked = "WWW-Authenticate: Basic realm=a\r\nContent-Length: 2\r\n\r\nhi";
  assert.equal(passed(`RTSP/1.0 401 No\r\n${asked}`), "RTSP/1.0 401 Refused\r\nCSeq: 1\r\n\r\n");
  assert.equal(passed(`RTSP/1.0 499 No\r\n${asked}`), "RTSP/1.0 400 Refused\r\nCSeq: 1\r\n\r\n");
  assert.equal(passed(`RTSP/1.0 999 No\r\n${asked}`), "RTSP/1.0 500 Refused\r\nCSeq: 1\r\n\r\n");
  assert.match(passed("RTSP/1.0 501 No\r\n\r\n", "OPTIONS"), /^RTSP\/1\.0 200 OK\r\nCSeq: 1\r\nPublic: /);
});

Deno.test("an answer belongs to the request that it names, or to the oldest one", () => {
  const numbers = (text: string, ...methods: string[]) =>
    Array.from(passed(text, ...methods).matchAll(/CSeq: (\d+)/g), ([, number]) => Number(number));
  const reply = (cseq: string, more = "") => `RTSP/1.0 200 OK\r\n${cseq}${more}\r\n`;
  const three = ["PLAY", "OPTIONS", "TEARDOWN"];
  assert.deepEqual(numbers(reply("CSeq: 2\r\n") + reply("CSeq: 3\r\n"), ...three), [2, 3]);
  for (const cseq of ["", "CSeq: 0\r\n", "CSeq: x\r\n", "CSeq: 77\r\n"]) {
    assert.deepEqual(numbers(reply(cseq) + reply(cseq, "Session: 1\r\n"), ...three), [1, 2], cseq);
  }
  assert.deepEqual(numbers(reply("CSeq: 1\r\n").repeat(2) + reply("CSeq: 2\r\n"), ...three), [1, 2]);
  assert.deepEqual(numbers(reply("CSeq: 1\r\n") + reply("CSeq: 1\r\n", "Public: a\r\n"), ...three), [1, 2]);
  assert.deepEqual(numbers(OK.repeat(5)), [1]);
  assert.deepEqual(numbers("RTSP/1.0 100 Continue\r\nCSeq: 1\r\n\r\n" + OK), [1]);
});

Deno.test("what a server asks is told and does not pass", () => {
  const text = "OPTIONS * RTSP/1.0\nCSeq: 7\nSession: 5;timeout=9\n\n";
  const set = "set_parameter rtsp://a/ RTSP/1.0\r\nContent-Length: 5\r\n\r\nx: 1\n";
  const { passed, asked, reason } = heard(text + OK + MEDIA + set + MEDIA);
  assert.deepEqual([passed, reason], [OK + MEDIA + MEDIA, null]);
  assert.deepEqual(asked, [
    { method: "OPTIONS", cseq: 7, session: "5", hasBody: false },
    { method: "SET_PARAMETER", cseq: null, session: null, hasBody: true },
  ]);
});

Deno.test("what is neither media nor an answer is left out once a server has answered in RTSP", () => {
  const others = [
    ...["\r\n", "\n\n", "\0".repeat(37), "hello\n", "HTTP/1.1 200 OK\r\n\r\n", "RTSP", "\x80\x60\xff$\x05"],
    ...["x".repeat(9_000) + "\n", "Location: rtsp://a/\r\n", "RTSP/ 1.0 302\r\n", "$", "\x01$\0\0\x08\0"],
    ...["", "a", "RTSP/1", "OPTIONS"].map(frame),
  ];
  for (const other of others) {
    const setUp = "RTSP/1.0 200 OK\r\nTransport: RTP/AVP/TCP;interleaved=0-1\r\n\r\n";
    const media = frame("\x80 of version 2");
    const first = frame("the first media");
    const rest = /^(RTSP|\$)$/.test(other) ? "\0" : "";
    const result = passed(`${setUp}${first}${other}${rest}${media}`, "SETUP");
    assert.ok(result.endsWith(media), `${JSON.stringify(other)}: ${JSON.stringify(result)}`);
    if (!other.startsWith("$")) assert.equal(result.match(/\$/g)!.length, 2, JSON.stringify(other));
  }
  refused("HTTP/1.1 400 Bad Request\r\n\r\n", /does not answer in RTSP/);
  refused(`${OK}SSH-2.0 hello\r\nCSeq: 1\r\n\r\n`, /does not answer in RTSP/);
  refused("SSH-2.0-OpenSSH_9.2\r\n", /does not answer in RTSP/);
  refused("220 mail.test ESMTP\r\n", /does not answer in RTSP/);
  refused("\x16\x03\x01\0\x02", /does not answer in RTSP/);
  refused("\0RTSP/1.0 200 OK\r\n\r\n", /does not answer in RTSP/);
});

Deno.test("what is left out is bounded by time, not by count", () => {
  let nowMs = 0;
  const replies = new RtspReplies({ nowMs: () => nowMs });
  const short = bytesOf(frame("RTCP").repeat(12));
  const media = bytesOf(MEDIA);
  for (; nowMs < 600_000; nowMs += 40) {
    assert.deepEqual(replies.take(short), []);
    assert.equal(replies.take(media).length, 1);
  }
  assert.throws(() => {
    for (const endMs = nowMs + 20_000; nowMs < endMs; nowMs += 40) replies.take(short);
  }, /frames without media/);
  const flooded = new RtspReplies({ nowMs: () => 0 });
  const flood = bytesOf(OK.repeat(1_000));
  assert.throws(() => {
    for (let times = 0; times < 100; times++) flooded.take(flood);
  }, /too much that is neither/);
});

Deno.test("redirects are refused however they are spelled", () => {
  const location = "\r\nLocation: rtsp://10.0.0.1/\r\n\r\n";
  for (const code of [300, 301, 302, 303, 305, 307, 399]) {
    refused(`RTSP/1.0 ${code} Moved${location}`, /redirects to another place/);
  }
  for (
    const line of [
      ...[
        "RTSP/1.0\t302 Moved",
        "RTSP/10.0 302 Moved",
        "RTSP/1.0 0302 Moved",
        "RTSP/ 302 Moved",
        "rtsp/1.0 302",
      ],
      ...[
        "RTSP/1.0  302 Moved",
        " RTSP/1.0 302 Moved",
        "\tRTSP/1.0 302",
        "RTSP/1.0 +302",
        "RTSP/1.0 302\tMoved",
      ],
      ...["RTSP/1.0 302x", "\r\nRTSP/1.0 302", "\nRTSP/1.0 302", "RTSP/2.0 302 Moved"],
    ]
  ) {
    for (const before of ["", OK, OK + MEDIA, OK + "\0\0", OK + frame("")]) {
      refused(`${before}${line}${location}`, /redirects to another place/);
    }
  }
  refused("RTSP/1.0 302 Moved\nLocation: rtsp://10.0.0.1/\n\n", /redirects/);
  refused(`${OK}RTSP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabcRTSP/1.0\t302 Moved${location}`, /redirects/);
});

Deno.test("lines are cut where a server cuts them, and one that hides another gives nothing of it", () => {
  for (
    const text of [
      "RTSP/1.0 200 OK\rRTSP/1.0 302 Moved\r\nCSeq: 1\r\nLocation: rtsp://10.0.0.1/\r\n\r\n",
      "RTSP/1.0 200 OK\r\nCSeq: 1\nLocation: rtsp://10.0.0.1/\r\n\r\n",
      "RTSP/1.0 200 OK\r\nCSeq: 1\rLocation: rtsp://10.0.0.1/\r\n\r\n",
      "RTSP/1.0 200 OK\r\nCSeq: 1\r\n Location: rtsp://10.0.0.1/\r\n\r\n",
      "RTSP/1.0 200 OK\r\nCSeq: 1\0Location: rtsp://10.0.0.1/\r\n\r\n",
    ]
  ) assert.equal(passed(text), OK, JSON.stringify(text));
  // A length is what its digits say, as for the players that cameras are made for.
  const lengths: [string, number][] = [["5 ", 5], ["+5", 5], ["5,5", 5], ["5 bytes", 5], ["-1", 0], ["", 0], [
    "x",
    0,
  ]];
  for (const [length, bytes] of lengths) {
    const text = `RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: ${length}\r\n\r\n${"a".repeat(bytes)}`;
    assert.equal(passed(text + MEDIA), OK + MEDIA, length);
  }
  for (const length of ["99999999", "4294967297", "99999999999"]) {
    refused(`RTSP/1.0 200 OK\r\nContent-Length: ${length}\r\n\r\nabcde`, /not a small number/);
  }
  refused(`RTSP/1.0 200 OK\r\nX: ${"a".repeat(20_000)}\r\n\r\n`, /too long/);
});

Deno.test("media by another way than inside the connection is refused", () => {
  for (
    const transport of [
      ...[
        "RTP/AVP;unicast;server_port=1-2;source=10.0.0.1",
        "RTP/AVP/UDP;unicast",
        "RTP/AVP/UDP;interleaved=0-1",
      ],
      ...["RTP/AVP;multicast;destination=239.0.0.1", "RTP/AVP/TCP;multicast"],
      ...[
        "x-real-rdt/udp",
        "RAW/RAW/UDP;interleaved=0-1",
        "RTP/AVP;unicast;interleaved=0-999",
        "x",
        ";;;",
        ",",
      ],
    ]
  ) {
    refused(`RTSP/1.0 200 OK\r\nTransport: ${transport}\r\n\r\n`, /inside the connection/, "SETUP");
    assert.throws(() => interleavedChannels(transport, request("SETUP", 1)), RtspRefused);
  }
  const spelled: [string | null, string][] = [
    [null, "2-3"],
    ["RTP/AVP/TCP", "2-3"],
    ["RTP/AVP/TCP;unicast;interleaved=x", "2-3"],
    ["RTP/AVP/TCP;multicast;interleaved=0-1", "0-1"],
    ["RTP/AVP;interleaved=4", "4-5"],
    ['RTP/AVP/TCP;mode="PLAY,RECORD;interleaved=8-9";interleaved = 0 - 1 ', "0-1"],
    ["RTP/AVP;unicast, rtp/avp/tcp;Interleaved=6-7", "6-7"],
  ];
  for (const [transport, channels] of spelled) {
    assert.equal(interleavedChannels(transport, request("SETUP", 1)), channels, `${transport}`);
  }
});
