/**
 * A scripted WHIP publisher that runs as its own process: real ICE, DTLS and SRTP, encoded frames from files,
 * and faults.
 *
 *     ./scripts/deno run -A test/support/live/rtp_publisher.ts --url http://127.0.0.1:8080/v1/stream/whip \
 *       --header 'x-api-key: key' --video a.ivf --video b.ivf --audio a.ogg --loss 5
 *
 * | Option              | Meaning                                                                          |
 * | ------------------- | -------------------------------------------------------------------------------- |
 * | `--url`             | where the offer is posted; `Location` of the answer is taken relative to it        |
 * | `--header 'k: v'`   | header of every request; may be repeated                                           |
 * | `--video FILE`      | IVF (VP8, VP9) or `.h264` (Annex B); repeated for more, of any size                |
 * | `--audio FILE`      | Ogg with 20 ms Opus packets; repeated for more tracks                              |
 * | `--fps N`           | frames a second (30)                                                               |
 * | `--repeat N`        | how often the list of videos is sent (1)                                           |
 * | `--loss P`          | percent of packets lost, also of retransmissions; never the first and the last, whose loss cannot be noticed |
 * | `--reorder P`       | percent of packets sent a few packets later                                        |
 * | `--duplicate P`     | percent of packets sent twice                                                      |
 * | `--hole AT,N`       | N packets from the AT-th on are never sent, and never retransmitted                |
 * | `--sequence N`      | first sequence number (0)                                                          |
 * | `--timestamp N`     | first RTP timestamp of the video (90000)                                           |
 * | `--seed N`          | of the random faults (1)                                                           |
 * | `--silence AT,S`    | before frame AT no media is sent for S seconds                                     |
 * | `--garbage N`       | N random datagrams to the server's port before the first frame                     |
 * | `--reports N`       | before the fourth frame N datagrams with a sender report and feedback that takes long to parse |
 * | `--plain`           | retransmits under the same SSRC, without RTX                                       |
 * | `--no-ssrc`         | no `a=ssrc` lines in the offer                                                     |
 * | `--trickle`         | candidates follow the offer in a PATCH                                             |
 * | `--restart-at N`    | ICE is restarted by a PATCH before frame N                                         |
 * | `--setup ROLE`      | `actpass` (default): the service is the DTLS client; `active`: it is the server      |
 * | `--wait`            | nothing is sent before a byte comes on stdin                                        |
 * | `--remind`          | the messages that began the DTLS handshake are sent again before the end of it       |
 * | `--end HOW`         | `delete` (default: DELETE, then close_notify), `close-notify`, `vanish`, `stay` (until stdin ends) |
 * |                     | `forge`: a close_notify that is not authentic, then nothing more                     |
 *
 * Prints JSON lines: `{"event":"answered"}`, `connected`, `keyframe_request`, `restarted`, `sent` (at the
 * end: frames, packets, lost, retransmissions, audioPackets, timestamps of the frames, senderReport that was
 * answered or 0), `refused` with the status, `failed`.
 */

import { Buffer } from "node:buffer";
import { createSocket } from "node:dgram";
import { parseArgs } from "node:util";
import {
  Candidate,
  GenericNack,
  PictureLossIndication,
  RTCDtlsFingerprint,
  RTCDtlsParameters,
  RTCDtlsTransport,
  RTCIceGatherer,
  RTCIceParameters,
  RTCIceTransport,
  type RtcpPacket,
  RtcpPayloadSpecificFeedback,
  RtcpRrPacket,
  RtcpSenderInfo,
  RtcpSrPacket,
  RtcpTransportLayerFeedback,
  RtpHeader,
} from "werift";
import { closeNotify } from "../../../src/rtc/dtls_alert.ts";
import { followRollover } from "../../../src/rtc/receive/rollover.ts";
import { readCandidate } from "../../../src/model/live/candidate.ts";
import { readSdp } from "../../../src/model/live/sdp.ts";
import { type EncodedVideo, readOpus, readVideo } from "./encoded_media.ts";
import { seededRandom } from "../seeded_random.ts";

const VIDEO_SSRC = 0x1111;
const RTX_SSRC = 0x2222;
const AUDIO_SSRC = 0x3333;
const VIDEO_TYPE = 96;
const RTX_TYPE = 97;
const AUDIO_TYPE = 111;
const MID_EXTENSION = 4;
const PAYLOAD_BYTES = 1_150;
const HISTORY = 2_000;

const { values: options } = parseArgs({
  options: {
    url: { type: "string" },
    header: { type: "string", multiple: true, default: [] },
    video: { type: "string", multiple: true, default: [] },
    audio: { type: "string", multiple: true, default: [] },
    fps: { type: "string", default: "30" },
    repeat: { type: "string", default: "1" },
    loss: { type: "string", default: "0" },
    reorder: { type: "string", default: "0" },
    duplicate: { type: "string", default: "0" },
    hole: { type: "string", default: "0,0" },
    sequence: { type: "string", default: "0" },
    timestamp: { type: "string", default: "90000" },
    seed: { type: "string", default: "1" },
    silence: { type: "string", default: "0,0" },
    garbage: { type: "string", default: "0" },
    reports: { type: "string", default: "0" },
    plain: { type: "boolean", default: false },
    "no-ssrc": { type: "boolean", default: false },
    trickle: { type: "boolean", default: false },
    "restart-at": { type: "string", default: "-1" },
    setup: { type: "string", default: "actpass" },
    wait: { type: "boolean", default: false },
    remind: { type: "boolean", default: false },
    end: { type: "string", default: "delete" },
  },
});

const random = seededRandom(Number(options.seed));
const happens = (percent: string) => random() * 100 < Number(percent);
const headers = Object.fromEntries(
  options.header.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
);
const videos = await Promise.all(options.video.map(readVideo));
const tracks = await Promise.all(options.audio.map(readOpus));

const gatherer = new RTCIceGatherer({
  additionalHostAddresses: ["127.0.0.1"],
});
gatherer.connection.stunServer = undefined;
const ice = new RTCIceTransport(gatherer);
const dtls = new RTCDtlsTransport({}, ice, await RTCDtlsTransport.SetupCertificate(), [0x0007, 0x0001]);
gatherer.connection.iceControlling = true;
if (options.remind) remind();
await ice.gather();
const location = await negotiate();
dtls.onRtcp.subscribe(answerRequest);
const isConnected = new Promise<void>((resolve, reject) => {
  ice.connection.stateChanged.subscribe((state) => {
    if (state !== "connected" || dtls.state !== "new") return;
    dtls.start().then(() => resolve(), reject);
  });
});
ice.start().catch(fail);
await Promise.race([
  isConnected,
  pause(25_000).then(() => Promise.reject(new Error("not connected in 25 s"))),
])
  .catch(fail);
(dtls.srtp.localContext as { updateRolloverCount: unknown }).updateRolloverCount = followRollover;
report("connected");
if (options.wait) await Deno.stdin.read(new Uint8Array(1));

let sequence = Number(options.sequence);
let packets = 0;
let lost = 0;
let retransmissions = 0;
let rtxSequence = 1;
let audioPackets = 0;
let isLastFrame = false;
const frameCount = Number(options.repeat) * videos.reduce((sum, { frames }) => sum + frames.length, 0);
const history = new Map<number, { header: RtpHeader; payload: Buffer }>();
const late: { header: RtpHeader; payload: Buffer; after: number }[] = [];
const timestamps: number[] = [];
/** The middle of the time of a sender report, as the service's reports repeat it. */
let senderReport = 0;

await sendGarbage();
await Promise.all([sendVideos(), ...tracks.map(sendAudio)]);
report("sent", {
  frames: timestamps.length,
  packets,
  lost,
  retransmissions,
  audioPackets,
  timestamps,
  senderReport,
});
await end();

/**
 * Sends hellos and, as a DTLS server, all of flight 4 once more, in one datagram right before the change to
 * encryption.
 */
function remind(): void {
  const HANDSHAKE = 22, CHANGE_CIPHER_SPEC = 20, CLIENT_HELLO = 1;
  const { connection } = ice;
  const send = connection.send.bind(connection);
  const sent: Buffer[] = [];
  connection.send = async (data) => {
    if (data[0] === CHANGE_CIPHER_SPEC && sent.length > 0) await send(Buffer.concat(sent.splice(0)));
    const isEncrypted = data.readUInt16BE(3) !== 0;
    if (data[0] === HANDSHAKE && !isEncrypted && (dtls.role === "server" || data[13] === CLIENT_HELLO)) {
      sent.push(Buffer.from(data));
    }
    await send(data);
  };
}

async function sendVideos(): Promise<void> {
  const step = Math.round(90_000 / Number(options.fps));
  const [silentAt, silentS] = options.silence.split(",").map(Number) as [number, number];
  let timestamp = Number(options.timestamp);
  let dueMs = performance.now();
  for (let round = 0; round < Number(options.repeat); round++) {
    for (const { codec, frames } of videos) {
      for (const frame of frames) {
        if (timestamps.length === silentAt && silentS > 0) {
          await pause(silentS * 1000);
          dueMs += silentS * 1000;
        }
        if (timestamps.length === Number(options["restart-at"])) await restart();
        if (timestamps.length === 3) await sendReports(Number(options.reports));
        isLastFrame = timestamps.length === frameCount - 1;
        await sendFrame(codec, frame, timestamp >>> 0);
        timestamps.push(timestamp);
        timestamp += step;
        dueMs += 1000 / Number(options.fps);
        await pause(dueMs - performance.now());
      }
    }
  }
  for (const packet of late.splice(0)) await transmit(packet);
  // Time for the last retransmissions.
  if (videos.length > 0) await pause(400);
}

/** A sender report, and 1,400 bytes of feedback on 65,535 packets. */
async function sendReports(count: number): Promise<void> {
  if (count === 0) return;
  const feedback = Buffer.alloc(1400, 0xff);
  feedback.set([0x8f, 205]);
  feedback.writeUInt16BE(feedback.length / 4 - 1, 2);
  const { srtcp } = dtls;
  const report = new RtcpSrPacket({
    ssrc: VIDEO_SSRC,
    senderInfo: new RtcpSenderInfo({
      ...{ ntpTimestamp: 0x1234_5678_9abc_def0n, rtpTimestamp: 0, packetCount: 1, octetCount: 1 },
    }),
  });
  const datagram = Buffer.concat([report.serialize(), feedback]);
  for (let sent = 0; sent < count; sent++) {
    await ice.connection.send(srtcp.encrypt(datagram));
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
}

async function sendFrame(codec: EncodedVideo["codec"], frame: Uint8Array, timestamp: number): Promise<void> {
  const payloads = codec === "h264" ? nalPayloads(frame) : vpxPayloads(codec, frame);
  const [holeAt, holeLength] = options.hole.split(",").map(Number) as [number, number];
  for (const [index, payload] of payloads.entries()) {
    const header = new RtpHeader({
      payloadType: VIDEO_TYPE,
      sequenceNumber: sequence,
      timestamp,
      ssrc: VIDEO_SSRC,
      marker: index === payloads.length - 1,
      ...midOf("0"),
    });
    sequence = (sequence + 1) & 0xffff;
    packets++;
    const packet = { header, payload };
    if (packets > holeAt && packets <= holeAt + holeLength) continue;
    history.set(header.sequenceNumber, packet);
    history.delete((header.sequenceNumber - HISTORY) & 0xffff);
    if (happens(options.reorder)) late.push({ ...packet, after: packets + 2 + Math.floor(random() * 6) });
    else await transmit(packet);
    if (happens(options.duplicate)) await transmit(packet);
    for (const delayed of late.filter(({ after }) => after <= packets)) {
      late.splice(late.indexOf(delayed), 1);
      await transmit(delayed);
    }
  }
}

async function transmit({ header, payload }: { header: RtpHeader; payload: Buffer }): Promise<void> {
  const isEdge = header.sequenceNumber === Number(options.sequence) || (isLastFrame && header.marker);
  if (!isEdge && happens(options.loss)) {
    lost++;
    return;
  }
  await dtls.sendRtp(payload, header);
  // A socket of Deno may reorder a burst, so the event loop runs once after each packet.
  await new Promise((resolve) => setTimeout(resolve, 0));
}

async function sendAudio(track: Uint8Array[], index: number): Promise<void> {
  let dueMs = performance.now();
  for (const [number, packet] of track.entries()) {
    const header = new RtpHeader({
      payloadType: AUDIO_TYPE,
      sequenceNumber: (65_530 + number) & 0xffff,
      timestamp: 48_000 + number * 960,
      ssrc: AUDIO_SSRC + index,
      marker: number === 0,
      ...midOf(String(index + (videos.length > 0 ? 1 : 0))),
    });
    if (!happens(options.loss)) {
      await dtls.sendRtp(Buffer.from(packet), header);
      audioPackets++;
    }
    dueMs += 20;
    await pause(dueMs - performance.now());
  }
}

function midOf(mid: string): Partial<RtpHeader> {
  return {
    extension: true,
    extensionProfile: 0xbede,
    extensions: [{ id: MID_EXTENSION, payload: Buffer.from(mid) }],
  };
}

function answerRequest(packet: RtcpPacket): void {
  if (packet instanceof RtcpRrPacket) senderReport ||= packet.reports.find(({ lsr }) => lsr !== 0)?.lsr ?? 0;
  if (packet instanceof RtcpPayloadSpecificFeedback && packet.feedback instanceof PictureLossIndication) {
    report("keyframe_request");
  }
  if (!(packet instanceof RtcpTransportLayerFeedback) || !(packet.feedback instanceof GenericNack)) return;
  for (const number of packet.feedback.lost) {
    const sent = history.get(number);
    if (!sent) continue;
    retransmissions++;
    if (options.plain) {
      void transmit(sent);
      continue;
    }
    const payload = Buffer.concat([Buffer.of(number >> 8, number & 0xff), sent.payload]);
    const header = new RtpHeader({
      ...sent.header,
      payloadType: RTX_TYPE,
      ssrc: RTX_SSRC,
      sequenceNumber: rtxSequence++ & 0xffff,
    });
    void transmit({ header, payload });
  }
}

function vpxPayloads(codec: "vp8" | "vp9", frame: Uint8Array): Buffer[] {
  const payloads: Buffer[] = [];
  const isKeyframe = codec === "vp9" && (frame[0]! & 0x04) === 0;
  for (let place = 0; place < frame.length; place += PAYLOAD_BYTES) {
    const isFirst = place === 0;
    const isLast = place + PAYLOAD_BYTES >= frame.length;
    const head = codec === "vp8"
      ? isFirst ? 0x10 : 0
      : (isKeyframe ? 0 : 0x40) | (isFirst ? 0x08 : 0) | (isLast ? 0x04 : 0);
    payloads.push(Buffer.concat([Buffer.of(head), frame.subarray(place, place + PAYLOAD_BYTES)]));
  }
  return payloads;
}

function nalPayloads(frame: Uint8Array): Buffer[] {
  return splitNals(frame).flatMap((nal) => {
    if (nal.length <= PAYLOAD_BYTES) return [Buffer.from(nal)];
    const pieces: Buffer[] = [];
    for (let place = 1; place < nal.length; place += PAYLOAD_BYTES) {
      const flags = (place === 1 ? 0x80 : 0) | (place + PAYLOAD_BYTES >= nal.length ? 0x40 : 0);
      const head = Buffer.of((nal[0]! & 0xe0) | 28, flags | (nal[0]! & 0x1f));
      pieces.push(Buffer.concat([head, nal.subarray(place, place + PAYLOAD_BYTES)]));
    }
    return pieces;
  });
}

function splitNals(unit: Uint8Array): Uint8Array[] {
  const starts: number[] = [];
  for (let place = 0; place + 3 < unit.length; place++) {
    if (unit[place] === 0 && unit[place + 1] === 0 && unit[place + 2] === 1) starts.push(place + 3);
  }
  return starts.map((start, index) => {
    let end = index + 1 < starts.length ? starts[index + 1]! - 3 : unit.length;
    while (end > start && unit[end - 1] === 0) end--;
    return unit.subarray(start, end);
  });
}

async function negotiate(): Promise<URL | null> {
  const response = await fetch(options.url!, {
    method: "POST",
    headers: { "content-type": "application/sdp", ...headers },
    body: offer(),
  });
  const text = await response.text();
  if (response.status !== 201) {
    report("refused", { status: response.status, text });
    Deno.exit(2);
  }
  const place = response.headers.get("location");
  const resource = place ? new URL(place, options.url) : null;
  const answer = readSdp(text);
  const section = answer.media.find(({ port }) => port !== 0)!;
  const value = (name: string) => section.attributes.first(name)!;
  const [algorithm, fingerprint] = value("fingerprint").split(" ") as [string, string];
  ice.setRemoteParams(
    new RTCIceParameters({ usernameFragment: value("ice-ufrag"), password: value("ice-pwd") }),
  );
  const isActive = value("setup") === "active";
  dtls.role = isActive ? "server" : "client";
  dtls.setRemoteParams(
    new RTCDtlsParameters([new RTCDtlsFingerprint(algorithm, fingerprint)], isActive ? "client" : "server"),
  );
  section.attributes.all("candidate").forEach((line) => addCandidate(`candidate:${line}`));
  report("answered", {
    answer: text,
    runId: response.headers.get("x-service-run-id"),
    location: resource?.href ?? null,
  });
  if (resource && options.trickle) await patch(resource, fragment());
  return resource;
}

function addCandidate(line: string): void {
  const read = readCandidate(line);
  if (!read) return;
  const { foundation, priority, address, port, type } = read;
  void ice.connection.addRemoteCandidate(new Candidate(foundation, 1, "udp", priority, address, port, type));
}

async function patch(resource: URL, body: string, more: Record<string, string> = {}): Promise<string> {
  const response = await fetch(resource, {
    method: "PATCH",
    headers: { "content-type": "application/trickle-ice-sdpfrag", ...headers, ...more },
    body,
  });
  return await response.text();
}

async function restart(): Promise<void> {
  ice.restart();
  const gathering = ice.gather();
  await gathering;
  const answer = await patch(location!, fragment(), { "if-match": '"*"' });
  const value = (name: string) => new RegExp(`^a=${name}:(.*?)\r?$`, "m").exec(answer)?.[1];
  if (!value("ice-ufrag")) return report("failed", { message: "no answer to the restart" });
  ice.connection.setRemoteParams({
    iceLite: false,
    usernameFragment: value("ice-ufrag")!,
    password: value("ice-pwd")!,
  });
  answer.split("\r\n").filter((line) => line.startsWith("a=candidate")).forEach(addCandidate);
  ice.start().catch(fail);
  while (!ice.connection.nominated) await pause(5);
  report("restarted");
}

function candidates(): string[] {
  return ice.localCandidates.map(({ foundation, priority, ip, port }) =>
    `a=candidate:${foundation.replace(/^candidate:/, "")} 1 udp ${priority} ${ip} ${port} typ host`
  );
}

function fragment(): string {
  const { usernameFragment, password } = ice.localParameters;
  const lines = [
    `a=ice-ufrag:${usernameFragment}`,
    `a=ice-pwd:${password}`,
    "m=audio 9 UDP/TLS/RTP/SAVPF 0",
    "a=mid:0",
  ];
  return [...lines, ...candidates(), "a=end-of-candidates", ""].join("\r\n");
}

function offer(): string {
  const { usernameFragment, password } = ice.localParameters;
  const { value } = dtls.localParameters.fingerprints[0]!;
  const names = [...(videos.length > 0 ? ["video"] : []), ...tracks.map(() => "audio")];
  const common = (mid: number) => [
    "c=IN IP4 0.0.0.0",
    `a=ice-ufrag:${usernameFragment}`,
    `a=ice-pwd:${password}`,
    `a=fingerprint:sha-256 ${value}`,
    `a=setup:${options.setup}`,
    `a=mid:${mid}`,
    `a=extmap:${MID_EXTENSION} urn:ietf:params:rtp-hdrext:sdes:mid`,
    "a=sendonly",
    "a=rtcp-mux",
    ...(options.trickle ? [] : candidates()),
  ];
  const ssrc = (number: number) => options["no-ssrc"] ? [] : [`a=ssrc:${number} cname:publisher`];
  const rtx = options.plain ? [] : [`a=rtpmap:${RTX_TYPE} rtx/90000`, `a=fmtp:${RTX_TYPE} apt=${VIDEO_TYPE}`];
  const sections = names.flatMap((kind, index) =>
    kind === "video"
      ? [
        `m=video 9 UDP/TLS/RTP/SAVPF ${VIDEO_TYPE}${options.plain ? "" : ` ${RTX_TYPE}`}`,
        ...common(index),
        `a=rtpmap:${VIDEO_TYPE} ${videos[0]!.codec.toUpperCase()}/90000`,
        ...(videos[0]!.codec === "h264"
          ? [`a=fmtp:${VIDEO_TYPE} packetization-mode=1;profile-level-id=42e01f`]
          : []),
        ...["nack", "nack pli", "goog-remb", "transport-cc"].map((feedback) =>
          `a=rtcp-fb:${VIDEO_TYPE} ${feedback}`
        ),
        ...rtx,
        ...(options["no-ssrc"] || options.plain ? [] : [`a=ssrc-group:FID ${VIDEO_SSRC} ${RTX_SSRC}`]),
        ...ssrc(VIDEO_SSRC),
        ...(options.plain ? [] : ssrc(RTX_SSRC)),
      ]
      : [
        `m=audio 9 UDP/TLS/RTP/SAVPF ${AUDIO_TYPE}`,
        ...common(index),
        `a=rtpmap:${AUDIO_TYPE} opus/48000/2`,
        ...ssrc(AUDIO_SSRC + index - (videos.length > 0 ? 1 : 0)),
      ]
  );
  const lines = [
    "v=0",
    "o=- 1 1 IN IP4 127.0.0.1",
    "s=-",
    "t=0 0",
    `a=group:BUNDLE ${names.keys().toArray().join(" ")}`,
    ...sections,
  ];
  return `${lines.join("\r\n")}\r\n`;
}

/** Sends random datagrams from another socket, as a stranger would. */
async function sendGarbage(): Promise<void> {
  const count = Number(options.garbage);
  if (count === 0) return;
  const socket = createSocket("udp4");
  const { remoteCandidates } = ice.connection;
  for (let number = 0; number < count; number++) {
    const bytes = Uint8Array.from({ length: Math.floor(random() * 1400) }, () => random() * 256);
    // First bytes of every protocol: STUN, DTLS with its alerts, RTP and RTCP.
    if (bytes.length > 0) bytes[0] = [0, 1, 20, 21, 22, 23, 0x80, 0x90, 255][number % 9]!;
    const { host, port } = remoteCandidates[number % remoteCandidates.length]!;
    await new Promise<void>((resolve) => socket.send(bytes, port, host, () => resolve()));
    // What is sent faster than it is read takes the place of media that come behind it.
    if (number % 50 === 49) await pause(5);
  }
  await pause(100);
  socket.close();
}

async function end(): Promise<void> {
  if (options.end === "stay") await Array.fromAsync(Deno.stdin.readable).catch(() => {});
  if (options.end === "delete" && location) {
    await (await fetch(location, { method: "DELETE", headers })).body?.cancel();
  }
  if (options.end === "delete" || options.end === "close-notify") {
    await ice.connection.send(closeNotify(dtls.dtls!)!);
    await pause(50);
  }
  if (options.end === "forge") {
    await ice.connection.send(Buffer.of(21, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 9, 0, 4, 1, 0, 3, 4));
    await pause(50);
  }
  Deno.exit(0);
}

function report(event: string, facts: object = {}): void {
  console.log(JSON.stringify({ event, ...facts }));
}

function fail(error: unknown): never {
  report("failed", { message: String(error) });
  Deno.exit(1);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
}
