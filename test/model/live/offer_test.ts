import assert from "node:assert/strict";
import { Refusal } from "../../../src/contract/refusal.ts";
import { writeAnswer } from "../../../src/model/live/answer.ts";
import { readCandidate, readTrickle, writeTrickle } from "../../../src/model/live/candidate.ts";
import { type Offer, readOffer, type VideoCodec } from "../../../src/model/live/offer.ts";
import { pictureBound } from "../../../src/model/live/picture_limits.ts";
import { readSdp } from "../../../src/model/live/sdp.ts";

const CHROMIUM = await Deno.readTextFile(
  new URL("../../rtc/fixtures/chromium_156_offer.sdp", import.meta.url),
);
const ALL = new Set<VideoCodec>(["h265", "vp9", "av1"]);

interface Section {
  kind?: string;
  port?: number;
  lines: string[];
}

const video = (...lines: string[]): Section => ({ lines });
const audio = (...lines: string[]): Section => ({ kind: "audio", lines });
const OPUS = "a=rtpmap:111 opus/48000/2";

/** An offer with these sections; their payload types are those of their rtpmap lines. */
function offer(sections: Section[], change: { drop?: RegExp; add?: string[]; bundle?: string } = {}): string {
  const lines = [
    "v=0",
    "o=- 1 2 IN IP4 127.0.0.1",
    "s=-",
    "t=0 0",
    change.bundle ?? `a=group:BUNDLE ${sections.keys().toArray().join(" ")}`,
    "a=ice-ufrag:abcd",
    "a=ice-pwd:0123456789012345678901",
    `a=fingerprint:sha-256 ${Array(32).fill("AB").join(":")}`,
    "a=setup:actpass",
    ...change.add ?? [],
    ...sections.flatMap(({ kind = "video", port = 9, lines }, mid) => [
      `m=${kind} ${port} UDP/TLS/RTP/SAVPF ${
        lines.map((line) => /^a=rtpmap:(\d+)/.exec(line)?.[1]).filter(Boolean).join(" ") || 0
      }`,
      `a=mid:${mid}`,
      ...lines,
    ]),
  ];
  return lines.filter((line) => !change.drop?.test(line)).join("\r\n") + "\r\n";
}

function served(text: string, decodes: ReadonlySet<VideoCodec> = ALL): Offer {
  return readOffer(text, decodes);
}

/** What `read` gives, or the status and message of its refusal. */
function orRefusal<Result>(read: () => Result): Result | string {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return `${error.status} ${error.message}`;
  }
}

Deno.test("Chromium's own offer is served as VP8 with retransmissions, and Opus", () => {
  const { video, audio, isBundled, setup } = served(CHROMIUM);
  assert.equal(video?.codec, "vp8");
  assert.deepEqual(video.section.served?.payloadType, 96);
  assert.ok(video.section.served!.rtxPayloadType);
  assert.equal(audio.length, 1);
  assert.equal(audio[0]!.served?.payloadType, 111);
  assert.deepEqual([isBundled, setup], [true, "actpass"]);
  assert.equal(video.section.ssrcs.length, 1);
});

Deno.test("an offer that cannot be served is refused with its status and reason", () => {
  const check = (text: string, status: number, message: RegExp, decodes = ALL) => {
    const refused = orRefusal(() => readOffer(text, decodes));
    assert.ok(typeof refused === "string", text.slice(0, 80));
    assert.equal(refused.slice(0, 4), `${status} `, refused);
    assert.match(refused.slice(4), message);
  };
  check("", 400, /empty/);
  check(" \r\n\t", 400, /empty/);
  for (
    const text of [
      "v=0",
      "hello",
      "{}",
      "\0\0",
      "v=0\r\nm=video",
      CHROMIUM.slice(10),
      "v=1\r\n" + CHROMIUM.slice(5),
    ]
  ) {
    check(text, 400, /malformed/);
  }
  const vp8 = [video("a=rtpmap:96 VP8/90000")];
  check(offer([]), 400, /no m= line/);
  check(offer(vp8, { drop: /^t=/ }), 400, /no t= line/);
  check(offer(vp8, { drop: /ice-ufrag/ }), 400, /ice-ufrag/);
  check(offer(vp8, { drop: /ice-pwd/ }), 400, /ice-pwd/);
  check(offer(vp8, { drop: /fingerprint/ }), 400, /fingerprint/);
  check(offer(vp8, { drop: /setup/ }), 400, /setup/);
  check(offer(vp8, { drop: /setup/, add: ["a=setup:holdconn"] }), 400, /setup/);
  check(offer(vp8, { drop: /fingerprint/, add: ["a=fingerprint:sha-256 AB:CD"] }), 400, /fingerprint/);
  check(offer(vp8, { drop: /fingerprint/, add: ["a=fingerprint:md5 AB:CD"] }), 400, /fingerprint/);
  check(offer(vp8, { drop: /ice-pwd/, add: ["a=ice-pwd:short"] }), 400, /ice-pwd/);
  check(offer([{ port: 70_000, lines: [] }]), 400, /m= line/);
  check(offer([...vp8, ...vp8]), 415, /2 video sections/);
  check(offer([video("a=rtpmap:96 theora/90000")]), 415, /theora/);
  check(offer([video("a=rtpmap:96 VP8/8000")]), 415, /VP8/);
  check(offer([video("a=rtpmap:96 VP9/90000")]), 415, /VP9/, new Set());
  check(offer([video("a=rtpmap:96 H264/90000", "a=fmtp:96 packetization-mode=2")]), 415, /H264/);
  check(offer([video("a=rtpmap:96 H265/90000", "a=fmtp:96 sprop-max-don-diff=2")]), 415, /H265/);
  check(offer([video("a=rtpmap:96 H265/90000", "a=fmtp:96 sprop-depack-buf-nalus=1")]), 415, /H265/);
  check(offer([video("a=rtpmap:96 VP8/90000", "a=recvonly")]), 415, /neither/);
  check(offer([video("a=rtpmap:96 VP8/90000", "a=inactive")]), 415, /neither/);
  check(offer([audio("a=rtpmap:0 PCMU/8000")]), 415, /neither/);
  check(offer([{ kind: "application", lines: [] }]), 415, /neither/);
  check(offer([{ port: 0, lines: ["a=rtpmap:96 VP8/90000"] }]), 415, /neither/);
  check(offer(Array(40).fill(audio(OPUS))), 400, /32/);
});

Deno.test("an offer is bounded in its length, its lines and the formats of a section", () => {
  const message = (text: string) => orRefusal(() => readOffer(text, ALL) && "served");
  const lines = (count: number) => offer([video("a=rtpmap:96 VP8/90000", ...Array(count).fill("a=x:1"))]);
  const others = lines(0).split("\r\n").length;
  assert.equal(message(lines(2_000 - others)), "served");
  assert.equal(message(lines(2_001 - others)), "400 malformed offer: it has more than 2000 lines");
  const formats = (count: number) =>
    offer([video(...Array.from({ length: count }, (_, at) => `a=rtpmap:${at} VP8/90000`))]);
  assert.equal(message(formats(64)), "served");
  assert.match(message(formats(65)), /^400 malformed offer: line \d+ has more than 64 formats$/);
  const long = (count: number) => offer([video("a=rtpmap:96 VP8/90000", `a=x:${"x".repeat(count)}`)]);
  const rest = long(0).length;
  assert.equal(message(long(65_536 - rest)), "served");
  assert.equal(message(long(65_537 - rest)), "400 malformed offer: it has more than 65536 bytes");
});

Deno.test("the codec is the first that is served, VP8 and H.264 before the others", () => {
  const check = (lines: string[], codec: VideoCodec, payloadType: number, decodes = ALL) => {
    const { video: chosen } = served(offer([video(...lines)]), decodes);
    assert.deepEqual(
      [chosen?.codec, chosen?.section.served?.payloadType],
      [codec, payloadType],
      lines.join(),
    );
  };
  const [vp8, vp9, av1] = [
    "a=rtpmap:96 VP8/90000",
    "a=rtpmap:98 VP9/90000",
    "a=rtpmap:45 AV1/90000",
  ] as const;
  const [h264, h265] = ["a=rtpmap:102 H264/90000", "a=rtpmap:49 H265/90000"] as const;
  check([vp8, h264], "vp8", 96);
  check([h264, vp8], "h264", 102);
  check([av1, vp9, h265, h264], "h264", 102);
  check([av1, h265, vp9], "vp9", 98);
  check([av1, h265], "h265", 49);
  check([av1, h265], "av1", 45, new Set(["av1"]));
  check(
    [h264.replace("102", "103"), "a=fmtp:103 packetization-mode=2", h264, "a=fmtp:102 packetization-mode=0"],
    "h264",
    102,
  );
  check(["a=rtpmap:102 h264/90000"], "h264", 102);
});

Deno.test("a session with evidence clips is served what MP4 carries to browsers, or refused", () => {
  const codecOf = (text: string) => orRefusal(() => readOffer(text, ALL, { isRecorded: true }).video?.codec);
  assert.equal(codecOf(CHROMIUM), "h264");
  const vp8 = video("a=rtpmap:96 VP8/90000", "a=rtpmap:97 AV1/90000");
  assert.match(codecOf(offer([vp8]))!, /^415 record needs H\.264 or H\.265, .* and the offer has VP8, AV1$/);
  assert.match(codecOf(offer([audio(OPUS)]))!, /^415 record needs .* has no video$/);
});

Deno.test("sections that are not served are refused in their place, and the answer lists only supported features", () => {
  const text = offer([
    audio("a=rtpmap:0 PCMU/8000"),
    video(
      "a=rtpmap:96 VP8/90000",
      ...["nack", "nack pli", "ccm fir", "goog-remb", "transport-cc"].map((kind) => `a=rtcp-fb:96 ${kind}`),
    ),
    { kind: "application", lines: [] },
    audio(OPUS, "a=extmap:3 urn:ietf:params:rtp-hdrext:sdes:mid", "a=extmap:5 urn:other"),
    { kind: "audio", port: 0, lines: [OPUS, "a=bundle-only"] },
  ]);
  const judged = served(text);
  const answer = readSdp(writeAnswer(judged, {
    sessionId: "1",
    ufrag: "efgh",
    password: "p".repeat(22),
    fingerprint: { algorithm: "sha-256", value: "AB" },
    setup: "active",
    candidates: ["candidate:1 1 udp 1 127.0.0.1 5 typ host"],
  }));
  assert.deepEqual(answer.media.map(({ kind, port }) => [kind, port]), [
    ["audio", 0],
    ["video", 9],
    ["application", 0],
    ["audio", 9],
    ["audio", 9],
  ]);
  assert.equal(answer.attributes.first("group"), "BUNDLE 1 3 4");
  assert.deepEqual(answer.media[1]!.attributes.all("rtcp-fb"), [
    "96 nack",
    "96 nack pli",
    "96 ccm fir",
    "96 goog-remb",
  ]);
  assert.deepEqual(answer.media[3]!.attributes.all("extmap"), ["3 urn:ietf:params:rtp-hdrext:sdes:mid"]);
  assert.ok(
    answer.media.filter(({ port }) => port > 0).every(({ attributes }) => attributes.has("recvonly")),
  );
  assert.equal(answer.media.flatMap(({ attributes }) => attributes.all("candidate")).length, 1);
});

Deno.test("without a bundle only one section is served, because each would have its own transport", () => {
  const text = offer([audio(OPUS), video("a=rtpmap:96 VP8/90000")], { bundle: "a=x-nothing" });
  const { sections, isBundled } = served(text);
  assert.deepEqual([isBundled, sections.map((section) => section.served !== null)], [false, [false, true]]);
});

Deno.test("the largest frame size is read from the offer", () => {
  const check = (lines: string[], width: number, height: number) =>
    assert.deepEqual(pictureBound(served(offer([video(...lines)]))), { width, height }, lines.join());
  const vp8 = "a=rtpmap:96 VP8/90000";
  const h264 = "a=rtpmap:96 H264/90000";
  check([vp8], 1920, 1080);
  check([vp8, "a=fmtp:96 max-fs=3600"], 1280, 720);
  check([vp8, "a=fmtp:96 max-fs=999999"], 3840, 2160);
  check([vp8, "a=fmtp:96 max-fs=oops"], 1920, 1080);
  check([vp8, "a=imageattr:96 send [x=640,y=480] [x=320,y=240] recv [x=4000,y=4000]"], 640, 480);
  check([vp8, "a=imageattr:* send [x=[320:16:1280],y=720]"], 1920, 1080);
  check([h264, "a=fmtp:96 profile-level-id=42001f"], 1280, 720);
  check([h264, "a=fmtp:96 profile-level-id=42001f;level-asymmetry-allowed=1"], 1920, 1080);
  check([h264, "a=fmtp:96 profile-level-id=zz"], 1920, 1080);
  const { width, height } = pictureBound(served(offer([video(h264, "a=fmtp:96 profile-level-id=640033")])));
  assert.ok(width * height >= 32_400 * 256 && width * height < 33_500 * 256, `${width}x${height}`);
  assert.deepEqual(pictureBound(served(offer([audio(OPUS)]))), { width: 0, height: 0 });
});

Deno.test("a candidate is read in every form that clients send, and one that cannot be used is null", () => {
  const check = (line: string, expected: string | null) => {
    const read = readCandidate(line);
    assert.equal(read && `${read.address} ${read.port} ${read.type} ${read.ufrag}`, expected, line);
  };
  check("candidate:1 1 udp 2113937151 192.0.2.1 5000 typ host", "192.0.2.1 5000 host null");
  check(
    "a=candidate:1 1 UDP 1 2001:db8::1 5000 typ srflx raddr 1.2.3.4 rport 5 generation 0 ufrag abcd",
    "2001:db8::1 5000 srflx abcd",
  );
  check("candidate:1 1 udp 1 b0b1.local 5000 typ host", null);
  check("candidate:1 1 tcp 1 192.0.2.1 9 typ host tcptype active", null);
  check("candidate:1 2 udp 1 192.0.2.1 9 typ host", null);
  check("candidate:1 1 udp 1 192.0.2.256 9 typ host", null);
  check("candidate:1 1 udp 1 192.0.2.1 0 typ host", null);
  check("candidate:1 1 udp 1 192.0.2.1 70000 typ host", null);
  check("candidate:", null);
  check('{"candidate":1}', null);
});

Deno.test("a fragment has credentials, candidates and the end of candidates; our own fragments can be read", () => {
  assert.deepEqual(readTrickle(""), { credentials: null, candidates: [], isEnd: true });
  assert.equal(readTrickle("nonsense\n\n").isEnd, false);
  const written = writeTrickle({
    ufrag: "abcd",
    password: "0123456789012345678901",
    mid: "0",
    kind: "video",
    candidates: ["candidate:1 1 udp 1 127.0.0.1 5 typ host", "candidate:2 1 udp 1 ::1 5 typ host"],
  });
  const read = readTrickle(written);
  assert.deepEqual(read.credentials, { ufrag: "abcd", password: "0123456789012345678901" });
  assert.deepEqual([read.candidates.length, read.isEnd], [2, true]);
  assert.equal(readTrickle("a=ice-ufrag:abcd\na=ice-pwd:short").credentials, null);
  assert.equal(readTrickle("candidate:1 1 udp 1 1.1.1.1 5 typ host\n".repeat(100)).candidates.length, 32);
});
