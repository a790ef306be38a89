import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { RtcpPacketConverter, RtcpSenderInfo, RtcpSrPacket } from "werift";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { Reception } from "../../../src/rtc/receive/reception.ts";
import { followRollover } from "../../../src/rtc/receive/rollover.ts";
import {
  firstSenderReport,
  fullIntra,
  genericNack,
  maximumBitrate,
  pictureLoss,
  receiverReport,
} from "../../../src/rtc/receive/rtcp.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { Unwrapper } from "../../../src/rtc/receive/unwrap.ts";

/** Reads a packet with another implementation, werift. */
// deno-lint-ignore no-explicit-any
function read(bytes: Uint8Array): any {
  return RtcpPacketConverter.deSerialize(Buffer.from(bytes))[0];
}

Deno.test("another implementation reads our feedback packets correctly", () => {
  const check = (sequences: number[]) => {
    const { feedback } = read(genericNack(1, 2, sequences));
    assert.deepEqual([feedback.senderSsrc, feedback.mediaSourceSsrc, feedback.lost], [1, 2, sequences]);
  };
  check([5]);
  check([5, 6, 21, 22, 23, 400]);
  check([65_530, 65_535]);
  check(Array.from({ length: 200 }, (_, index) => 100 + index * 3));
  assert.deepEqual(genericNack(1, 2, [65_535, 0, 1]).subarray(12), Uint8Array.of(255, 255, 0, 3));
  assert.equal(read(pictureLoss(1, 2)).feedback.mediaSsrc, 2);
  assert.deepEqual([...fullIntra(1, 2, 258)], [
    0x84,
    206,
    0,
    4,
    0,
    0,
    0,
    1,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    2,
    2,
    0,
    0,
    0,
  ]);
  for (const bitrate of [0, 1, 30_000, 262_143, 262_144, 2_500_000, 1e9]) {
    const { feedback } = read(maximumBitrate(1, 2, bitrate));
    assert.ok(
      Math.abs(Number(feedback.bitrate) - bitrate) <= bitrate / 2 ** 17,
      `${bitrate}: ${feedback.bitrate}`,
    );
    assert.deepEqual(feedback.ssrcFeedbacks, [2]);
  }
});

Deno.test("of what a publisher sends only its first sender report is read, whatever the bytes are", () => {
  const report = Buffer.from(
    new RtcpSrPacket({
      ssrc: 7,
      senderInfo: new RtcpSenderInfo({
        ...{ ntpTimestamp: 5n << 32n, rtpTimestamp: 90_000, packetCount: 3, octetCount: 4 },
      }),
    }).serialize(),
  );
  const others = [receiverReport(1, []), genericNack(1, 2, [5, 900]), maximumBitrate(1, 2, 1e6)];
  const found = (...parts: Uint8Array[]) => Buffer.from(firstSenderReport(joinedBytes(...parts)));
  assert.deepEqual(found(...others), Buffer.alloc(0));
  assert.deepEqual(found(...others, report, ...others, report), report);
  assert.deepEqual(found(report.subarray(0, 24)), Buffer.alloc(0), "cut");
  const more = Buffer.from(report);
  more[0] = 0x9f; // 31 blocks that are not there
  assert.deepEqual(found(more, report), report);
  const random = seededRandom(20261128);
  const below = (count: number) => Math.floor(random() * count);
  let reports = 0;
  for (let round = 0; round < 20_000; round++) {
    const datagram = joinedBytes(
      ...Array.from({ length: 1 + below(4) }, () => [...others, report][below(4)]!),
    );
    for (let count = below(4); count > 0; count--) datagram[below(datagram.length)] = below(256);
    const part = Buffer.from(firstSenderReport(datagram.subarray(0, below(datagram.length + 1))));
    const packets = RtcpPacketConverter.deSerialize(part);
    assert.ok(packets.length <= 1 && packets.every((packet) => "senderInfo" in packet), `round ${round}`);
    reports += packets.length;
  }
  assert.ok(reports > 2_000, `${reports}`);
});

Deno.test("a receiver report has the losses, the jitter and the last sender report", () => {
  const reception = new Reception(90_000);
  assert.equal(reception.takeBlock(7, 0), null);
  for (let index = 0; index < 100; index++) {
    if (index % 10 !== 5) reception.receive((65_500 + index) & 0xffff, index * 900, index * 10);
  }
  reception.receiveReport(0x0000_0064_8000_0000n, 12_345, 500);
  assert.deepEqual(reception.clockMark, { rtpTimestamp: 12_345, ntpMs: 100_500 });
  const block = reception.takeBlock(7, 1_500)!;
  assert.deepEqual(block, {
    ssrc: 7,
    fractionLost: 25,
    cumulativeLost: 10,
    highestSequence: 65_599,
    jitter: 0,
    lastSenderReport: 0x0064_8000,
    delaySinceSenderReport: 65_536,
  });
  assert.equal(reception.takeBlock(7, 1_500)!.fractionLost, 0);
  const { ssrc, reports } = read(receiverReport(3, [block, { ...block, cumulativeLost: -1 }]));
  assert.deepEqual([ssrc, reports.length, reports[0].fractionLost, reports[0].packetsLost], [3, 2, 25, 10]);
  assert.equal(reports[0].highestSequence, 65_599);
});

Deno.test("the rollover counter follows every wrap, over any loss and back again", () => {
  const state = { rolloverCounter: 0, lastSequenceNumber: 0 };
  const check = (sequence: number, counter: number) => {
    followRollover(sequence, state);
    assert.equal(state.rolloverCounter, counter, `at ${sequence}`);
  };
  check(65_300, 0);
  check(200, 1);
  check(65_400, 0);
  check(201, 1);
  check(0, 1);
  check(30_000, 1);
  check(60_000, 1);
  check(10, 2);
});

Deno.test("counters that wrap are followed forward and back, and never below 0", () => {
  const clock = new Unwrapper(32);
  const values = [2 ** 32 - 10, 5, 2 ** 32 - 5, 20];
  assert.deepEqual(values.map((value) => clock.follow(value)), [
    2 ** 32 - 10,
    2 ** 32 + 5,
    2 ** 32 - 5,
    2 ** 32 + 20,
  ]);
  const early = new Unwrapper(32);
  assert.deepEqual([early.follow(3), early.follow(2 ** 32 - 3)], [3, 0]);
});
