import { deepEqual, equal, match, throws } from "node:assert/strict";
import { RtspRefused, RtspReplies } from "../../../src/remote/sources/rtsp_replies.ts";

const LATIN1 = new TextDecoder("latin1");

function bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

/** What ffmpeg gets when the server sends `text`, in pieces of each size: the same for all. */
function passed(text: string): string {
  const results = [1, 2, 3, 7, 64, text.length].map((size) => {
    const replies = new RtspReplies();
    replies.requested(Infinity);
    let result = "";
    const all = bytes(text);
    for (let at = 0; at < all.length; at += size) {
      for (const part of replies.take(all.subarray(at, at + size))) result += LATIN1.decode(part);
    }
    return result;
  });
  deepEqual(new Set(results).size, 1, "the same however it is cut");
  return results[0]!;
}

function refused(text: string, reason: RegExp = /./): void {
  const leaked: string[] = [];
  for (const size of [1, 5, text.length]) {
    const replies = new RtspReplies();
    replies.requested(Infinity);
    throws(
      () => {
        const all = bytes(text);
        for (let at = 0; at < all.length; at += size) {
          for (const part of replies.take(all.subarray(at, at + size))) leaked.push(LATIN1.decode(part));
        }
      },
      (error) => {
        equal(error instanceof RtspRefused, true, `${JSON.stringify(text)}: ${error}`);
        match((error as Error).message, reason, JSON.stringify(text));
        return true;
      },
      JSON.stringify(text),
    );
  }
  equal(
    /302|Location|REDIRECT/i.test(leaked.join("")),
    false,
    `${JSON.stringify(text)} leaked ${leaked.join("")}`,
  );
}

const frame = (payload: string) =>
  `$\x00${String.fromCharCode(payload.length >> 8, payload.length & 255)}${payload}`;
const OK = "RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n";

Deno.test("replies are written anew with the headers that are needed, and media passes unchanged", () => {
  equal(passed(OK), OK);
  equal(
    passed(
      "RTSP/1.0 200 All is well\r\ncseq:  7 \r\nServer: WMServer/9\r\nLocation: rtsp://10.0.0.1/\r\nDate: x\r\n\r\n",
    ),
    "RTSP/1.0 200 OK\r\nCSeq: 7\r\n\r\n",
  );
  equal(passed("RTSP/1.0 200\r\n\r\n"), "RTSP/1.0 200 OK\r\n\r\n");
  equal(
    passed(
      "RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Basic realm=a\r\nWWW-Authenticate: Digest realm=b\r\n\r\n",
    ),
    "RTSP/1.0 401 Refused\r\nWWW-Authenticate: Basic realm=a\r\nWWW-Authenticate: Digest realm=b\r\n\r\n",
  );
  equal(
    passed(
      "RTSP/1.0 200 OK\r\nTransport: RTP/AVP/TCP;unicast;destination=10.0.0.1;source=10.0.0.2;interleaved=0-1;ssrc=1F\r\n\r\n",
    ),
    "RTSP/1.0 200 OK\r\nTransport: RTP/AVP/TCP;unicast;interleaved=0-1\r\n\r\n",
  );
  const media = frame("RTSP/1.0 302 Moved\r\nLocation: x\r\n\r\n") + frame("\n$".repeat(400)) +
    frame("eight on");
  equal(passed(OK + media + OK), OK + media + OK);
  const described = "RTSP/1.0 200 OK\r\nContent-Length: 22\r\n\r\nRTSP/1.0 302 Moved\r\n\r\n";
  equal(passed(described + frame("at least") + OK), described + frame("at least") + OK);
});

Deno.test("a frame that ffmpeg would not skip is left out", () => {
  const short = ["", "a", "RTSP/1", "OPTIONS"].map(frame).join("");
  equal(passed(short + OK + short + frame("eight on") + short + OK), OK + frame("eight on") + OK);
  refused(short.repeat(300), /frames without media/);
});

Deno.test("a server answers each request once", () => {
  const replies = new RtspReplies();
  throws(() => replies.take(bytes(OK)), /answers what nobody asked/);
  const asked = new RtspReplies();
  asked.requested(2);
  equal(
    asked.take(bytes(OK + frame("eight on") + OK)).map((part) => LATIN1.decode(part)).join(""),
    OK + frame("eight on") + OK,
  );
  asked.requested(1);
  equal(asked.take(bytes(OK)).length, 1);
  throws(() => asked.take(bytes(OK)), RtspRefused);
});

Deno.test("whatever else a server says ends the connection, and ffmpeg gets nothing of it", () => {
  const redirects = /redirects to another place/;
  const location = "\r\nLocation: rtsp://10.0.0.1/\r\n\r\n";
  for (const code of [300, 301, 302, 303, 305, 307, 399]) {
    refused(`RTSP/1.0 ${code} Moved${location}`, redirects);
  }
  for (
    const line of [
      ...[
        "RTSP/1.0\t302 Moved",
        "RTSP/10.0 302 Moved",
        "RTSP/1.0 0302 Moved",
        "RTSP/ 302 Moved",
        "RTSP/1.0  302 Moved",
      ],
      ...[
        "rtsp/1.0 302",
        "RTSP/2.0 302 Moved",
        "RTSP/1.1 302",
        " RTSP/1.0 302 Moved",
        "\tRTSP/1.0 302",
        "RTSP/1.0 +302",
      ],
      ...[
        "RTSP/1.0 302\tMoved",
        "RTSP/1.0 3020",
        "RTSP/1.0 302x",
        "RTSP/1.0 0x12e",
        "RTSP/1.0 200\x0b302",
        "RTSP/1.0 100 Go",
      ],
      ...[
        "RTSP/1.0 200302",
        "RTSP/1.0 600 What",
        "RTSP/1.0 999 x",
        "RTSP/1.0 000",
        "RTSP/1.0",
        "RTSP/1.0 ",
        "HTTP/1.1 302 Found",
      ],
      ...[
        "REDIRECT rtsp://10.0.0.1/ RTSP/1.0",
        "ANNOUNCE rtsp://a/ RTSP/1.0",
        "OPTIONS * RTSP/1.0",
        "",
        "x",
        "\0RTSP/1.0 302",
      ],
    ]
  ) {
    refused(`${line}${location}`);
    refused(`${OK}${line}${location}`);
    refused(`${OK}${frame("media")}${line}${location}`);
  }
  // Ends of lines and headers that programs read in different ways.
  refused(`RTSP/1.0 302 Moved\nLocation: rtsp://10.0.0.1/\n\n`);
  refused(`\nRTSP/1.0 302 Moved${location}`);
  refused(`\r\nRTSP/1.0 302 Moved${location}`);
  refused(`RTSP/1.0 200 OK\rRTSP/1.0 302 Moved${location}`);
  refused(`RTSP/1.0 200 OK\r\nCSeq: 1\nLocation: rtsp://10.0.0.1/\r\n\r\n`);
  refused(`RTSP/1.0 200 OK\r\nCSeq: 1\rLocation: rtsp://10.0.0.1/\r\n\r\n`);
  refused("RTSP/1.0 200 OK\r\nSession: 1\r\n Location: rtsp://10.0.0.1/\r\n\r\n");
  refused("RTSP/1.0 200 OK\r\nSession: 1\r\n\tx\r\n\r\n");
  refused("RTSP/1.0 200 OK\r\n$\x00\x00\x02ab\r\n\r\n");
  refused("RTSP/1.0 200 OK\r\nno colon\r\n\r\n");
  refused("RTSP/1.0 200 OK\r\nSession: a\0b\r\n\r\n");
  // Lengths that programs could count in different ways.
  for (const length of ["-1", "+5", "0x10", "5 ", "5,5", "99999999", "1e2", "", "4294967297"]) {
    if (length.trim() === "5") continue;
    refused(`RTSP/1.0 200 OK\r\nContent-Length: ${length}\r\n\r\nabcde`);
  }
  refused("RTSP/1.0 200 OK\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nabcde");
  refused(`${OK}RTSP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabcRTSP/1.0\t302 Moved${location}`);
  // Media by another way.
  for (
    const transport of [
      ...[
        "RTP/AVP;unicast;server_port=1-2;source=10.0.0.1",
        "RTP/AVP/UDP;unicast",
        "RTP/AVP;multicast;destination=239.0.0.1",
      ],
      ...[
        "RTP/AVP/TCP;unicast",
        "RTP/AVP/TCP;interleaved=0-1,RTP/AVP;unicast",
        "x-real-rdt/udp",
        "RAW/RAW/UDP;interleaved=0-1",
      ],
    ]
  ) refused(`RTSP/1.0 200 OK\r\nTransport: ${transport}\r\n\r\n`, /inside the connection/);
  refused(`RTSP/1.0 200 OK\r\nX: ${"a".repeat(20_000)}\r\n\r\n`, /too long/);
});
