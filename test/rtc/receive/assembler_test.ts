import assert from "node:assert/strict";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { VideoCodec } from "../../../src/model/live/offer.ts";
import { Assembler, type AssemblerActions, type VideoPacket } from "../../../src/rtc/receive/assembler.ts";
import { seededRandom } from "../../support/seeded_random.ts";

interface Frame {
  readonly isKeyframe: boolean;
  readonly timestamp: number;
  readonly packets: VideoPacket[];
}

/** VP8 frames of 1 to 12 packets with a keyframe every 30; only their headers are real. */
function stream(
  count: number,
  options: { sequence?: number; timestamp?: number; isMarked?: boolean } = {},
): Frame[] {
  const random = seededRandom(count);
  let sequence = options.sequence ?? 1000;
  return Array.from({ length: count }, (_, index) => {
    const isKeyframe = index % 30 === 0;
    const timestamp = ((options.timestamp ?? 90_000) + index * 3000) % 2 ** 32;
    const pieces = 1 + Math.floor(random() * (isKeyframe ? 12 : 5));
    const packets = Array.from({ length: pieces }, (_, piece) => {
      const payload = new Uint8Array(30).fill(index % 251);
      payload[0] = piece === 0 ? 0x10 : 0;
      if (piece === 0) payload.set(isKeyframe ? [0, 0, 0, 0x9d, 1, 0x2a, 64, 1, 180, 0] : [1], 1);
      const isMarked = (options.isMarked ?? true) && piece === pieces - 1;
      return { sequence: sequence++ & 0xffff, timestamp, isMarked, payload, arrivedMs: 0 };
    });
    return { isKeyframe, timestamp, packets };
  });
}

function emptyActions(): AssemblerActions {
  return { units: [], nacks: [], wantsKeyframe: false };
}

/** The units that came out, as indices in the list of frames. */
function placesOf(frames: Frame[], actions: AssemblerActions): number[] {
  return actions.units.map((unit) =>
    frames.findIndex(({ timestamp }) => timestamp === unit.rtpTimestamp % 2 ** 32)
  );
}

interface Faults {
  readonly loss?: number;
  readonly reorder?: number;
  readonly duplicate?: number;
  readonly burst?: number;
  /** Whether requested packets are sent again, through the same network. */
  readonly isAnswered?: boolean;
  readonly seed: number;
}

/** Sends frames through a network with a delay of 20 ms, one frame every 33 ms. */
function run(
  frames: Frame[],
  faults: Faults,
  codec: VideoCodec = "vp8",
): { assembler: Assembler; actions: AssemblerActions } {
  const random = seededRandom(faults.seed);
  const assembler = new Assembler(codec);
  const actions = emptyActions();
  const sent = new Map<number, VideoPacket>();
  const inTransit: { atMs: number; packet: VideoPacket }[] = [];
  let burst = 0;
  const send = (packet: VideoPacket, nowMs: number) => {
    // The loss of the very first packet cannot be noticed, so it always arrives.
    if (packet === frames[0]!.packets[0]) return void inTransit.push({ atMs: nowMs + 20, packet });
    if (random() < (faults.burst ?? 0)) burst = 20;
    if (burst-- > 0 || random() < (faults.loss ?? 0)) return;
    const delay = 20 + (random() < (faults.reorder ?? 0) ? random() * 60 : 0);
    inTransit.push({ atMs: nowMs + delay, packet });
    if (random() < (faults.duplicate ?? 0)) inTransit.push({ atMs: nowMs + delay + random() * 100, packet });
  };
  for (let nowMs = 0; nowMs < frames.length * 33 + 3_000; nowMs++) {
    const frame = nowMs % 33 === 0 ? frames[nowMs / 33] : undefined;
    for (const packet of frame?.packets ?? []) {
      sent.set(packet.sequence, packet);
      send(packet, nowMs);
    }
    for (const { packet } of inTransit.filter(({ atMs }) => atMs <= nowMs)) {
      assembler.push({ ...packet, arrivedMs: nowMs }, nowMs, actions);
    }
    inTransit.splice(0, inTransit.length, ...inTransit.filter(({ atMs }) => atMs > nowMs));
    if (nowMs % 5 === 0) assembler.poll(nowMs, 40, actions);
    for (const sequence of actions.nacks.splice(0)) {
      const packet = sent.get(sequence);
      if (packet && faults.isAnswered) send(packet, nowMs);
    }
  }
  return { assembler, actions };
}

Deno.test("with retransmissions no frame is lost, in any order of packets and over wraps", () => {
  const check = (faults: Faults, options: Parameters<typeof stream>[1] = {}) => {
    const frames = stream(400, options);
    const { assembler, actions } = run(frames, { ...faults, isAnswered: true });
    assert.deepEqual(placesOf(frames, actions), frames.map((_, index) => index), JSON.stringify(faults));
    assert.equal(assembler.packetCounts.lost, 0);
    const times = actions.units.map(({ rtpTimestamp }) => rtpTimestamp);
    assert.ok(times.every((time, index) => index === 0 || time - times[index - 1]! === 3000));
  };
  check({ seed: 1 });
  for (const seed of [1, 2, 3, 4, 5]) check({ seed, loss: 0.05, reorder: 0.05, duplicate: 0.05 });
  check({ seed: 6, loss: 0.05 }, { sequence: 65_000, timestamp: 2 ** 32 - 300_000 });
  check({ seed: 7, reorder: 0.5 }, { sequence: 65_535 });
  check({ seed: 8, burst: 0.005 });
  check({ seed: 9, duplicate: 1 });
});

Deno.test("every unit is a keyframe or follows the unit before it", () => {
  for (let seed = 0; seed < 20; seed++) {
    const frames = stream(300, { sequence: 65_300 });
    const { actions, assembler } = run(frames, {
      seed,
      loss: 0.02,
      burst: 0.002,
      reorder: 0.1,
      isAnswered: seed % 2 === 0,
    });
    const places = placesOf(frames, actions);
    for (const [index, place] of places.entries()) {
      assert.ok(
        frames[place]!.isKeyframe || place === places[index - 1]! + 1,
        `seed ${seed}: ${place} at ${index}`,
      );
    }
    assert.equal(assembler.counts.units, places.length);
    assert.ok(places.length > 20, `seed ${seed}: ${places.length} frames`);
  }
});

Deno.test("packets around the wrap can be lost and retransmitted", () => {
  for (const missing of [65_534, 65_535, 0, 1]) {
    const frames = stream(60, { sequence: 65_480 });
    const assembler = new Assembler("vp8");
    const actions = emptyActions();
    let nowMs = 0;
    for (const packet of frames.flatMap(({ packets }) => packets)) {
      nowMs += 2;
      if (packet.sequence !== missing) assembler.push(packet, nowMs, actions);
      assembler.poll(nowMs, 0, actions);
      const asked = actions.nacks.splice(0);
      assert.ok(asked.every((sequence) => sequence === missing), String(asked));
      const again = frames.flatMap(({ packets }) => packets).find(({ sequence }) => sequence === missing)!;
      if (asked.length > 0) assembler.push(again, nowMs, actions);
    }
    assembler.poll(nowMs + 30, 0, actions);
    assert.equal(actions.units.length, 60, `without ${missing}`);
  }
});

Deno.test("a packet is requested after 5 ms, at most 8 times, and given up after 250 ms", () => {
  const frames = stream(3);
  const assembler = new Assembler("vp8");
  const actions = emptyActions();
  const packets = frames.flatMap(({ packets }) => packets);
  const missing = packets.find(({ timestamp }) => timestamp === frames[1]!.timestamp)!.sequence;
  for (const packet of packets) if (packet.sequence !== missing) assembler.push(packet, 0, actions);
  const asked: number[] = [];
  for (let nowMs = 0; nowMs <= 400; nowMs++) {
    assembler.poll(nowMs, 16, actions);
    if (nowMs < 250) assert.ok(!actions.wantsKeyframe || nowMs < 20, `at ${nowMs}`);
    asked.push(...actions.nacks.splice(0).map(() => nowMs));
  }
  assert.deepEqual(asked, [5, 25, 45, 65, 85, 105, 125, 145]);
  assert.ok(actions.wantsKeyframe);
  assert.equal(actions.units.length, 1);
  assert.equal(assembler.packetCounts.lost, 1);
  assert.equal(assembler.isWaiting, false);
});

Deno.test("without markers a frame ends with the next timestamp, and padding is no frame", () => {
  const frames = stream(10, { isMarked: false });
  const assembler = new Assembler("vp8");
  const actions = emptyActions();
  let sequence = 500;
  for (const packet of frames.flatMap(({ packets }) => packets)) {
    assembler.push({ ...packet, sequence: sequence++ }, 100, actions);
    assembler.push({ ...packet, sequence: sequence++, payload: new Uint8Array(0) }, 100, actions);
  }
  assembler.poll(200, 0, actions);
  assert.deepEqual(placesOf(frames, actions), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
});

Deno.test("a sender that restarts with other sequence numbers is followed from its next keyframe", () => {
  const assembler = new Assembler("vp8");
  const actions = emptyActions();
  let nowMs = 0;
  const push = (frames: Frame[]) => {
    for (const packet of frames.flatMap(({ packets }) => packets)) {
      assembler.push(packet, nowMs += 10, actions);
    }
  };
  push(stream(20, { sequence: 100 }));
  push(stream(20, { sequence: 30_000, timestamp: 5_000_000 }));
  assert.equal(actions.units.length, 40);
  // A single packet far outside the window is ignored.
  const [stray] = stream(1, { sequence: 60_000 });
  assembler.push(stray!.packets[0]!, nowMs, actions);
  push(stream(20, { sequence: 30_000, timestamp: 5_000_000 }).slice(0, 1));
  assert.equal(actions.units.length, 40);
});

Deno.test("units over 2 MiB are dropped and counted, and memory stays bounded", () => {
  const assembler = new Assembler("vp8");
  const actions = emptyActions();
  const [keyframe] = stream(1);
  const piece = new Uint8Array(1200);
  let sequence = 0;
  const packet = (payload: Uint8Array, timestamp: number, isMarked: boolean) =>
    assembler.push(
      { sequence: sequence++ & 0xffff, timestamp, isMarked, payload, arrivedMs: 0 },
      100 + sequence,
      actions,
    );
  packet(keyframe!.packets[0]!.payload, 1, false);
  for (let index = 0; index * 1199 < LIMITS.live.videoUnitBytesMax + 10_000; index++) packet(piece, 1, false);
  packet(piece, 1, true);
  assert.equal(assembler.counts.oversize, 1);
  assert.ok(actions.wantsKeyframe);
  packet(keyframe!.packets[0]!.payload, 2, true);
  assert.equal(actions.units.length, 1);
});

Deno.test("no payload of any codec makes the assembler throw", () => {
  const random = seededRandom(5);
  for (const codec of ["vp8", "vp9", "h264", "h265", "av1"] as const) {
    const assembler = new Assembler(codec, codec === "h264" ? [Uint8Array.of(0x67, 66)] : []);
    const actions = emptyActions();
    for (let sequence = 0; sequence < 5_000; sequence++) {
      const payload = Uint8Array.from({ length: Math.floor(random() * 40) }, () => random() * 256);
      const timestamp = Math.floor(sequence / 3);
      assembler.push(
        { sequence, timestamp, isMarked: sequence % 3 === 2, payload, arrivedMs: 0 },
        sequence,
        actions,
      );
    }
    assert.ok(actions.units.length <= 1_700);
  }
});
