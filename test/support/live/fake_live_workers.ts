/** Live Workers without threads: a test sees every order to a session and makes the session's reports itself.
 */

import { zeros } from "../../../src/live/messages/session_counts.ts";
import type {
  Credit,
  FrameFacts,
  LiveCounts,
  LivePicture,
  SessionReport,
  SessionSettings,
  WithoutSessionId,
} from "../../../src/live/messages/messages.ts";
import type { LiveWorkers, Opening, SessionOrder, SessionPort } from "../../../src/live/worker_pool.ts";
import { fullFrame } from "../../../src/model/frames/coordinates.ts";

export const ANSWER = "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n";

type Acknowledged =
  & Partial<Record<Credit, number>>
  & Record<"pictures" | "evidence" | "audioWindows", number>;

/** The Worker's side of one session. */
export class FakeWorkerSession implements SessionPort {
  readonly orders: SessionOrder[] = [];
  /** Whether `close` was called. */
  isAskedToClose = false;
  isClosed = false;
  /** Whether the session is armed, as the last order said; null without one. */
  isArmed: boolean | null = null;
  /** Whether it gives a picture of what it sees, or its video, when it is asked for it. */
  seesFrames = true;
  readonly #onReport: (report: SessionReport) => void;
  readonly #closed = Promise.withResolvers<void>();
  readonly #closesAtOnce: boolean;

  constructor(
    readonly settings: SessionSettings,
    readonly opening: Opening,
    onReport: (report: SessionReport) => void,
    closesAtOnce: boolean,
  ) {
    this.#onReport = onReport;
    this.#closesAtOnce = closesAtOnce;
  }

  /** How many pictures, pieces of evidence, audio windows and, if any, other reports were acknowledged. */
  get acknowledged(): Acknowledged {
    const sum: Acknowledged = { pictures: 0, evidence: 0, audioWindows: 0 };
    for (const order of this.orders) {
      if (order.kind === "acknowledge") sum[order.credit] = (sum[order.credit] ?? 0) + order.count;
    }
    return sum;
  }

  report(report: WithoutSessionId<SessionReport>): void {
    if (this.isClosed) return;
    if (report.kind === "closed" || report.kind === "refused") {
      this.isClosed = true;
      this.#closed.resolve();
    }
    this.#onReport({ ...report, sessionId: this.settings.sessionId } as SessionReport);
  }

  /** Reports a picture; by default one that the gate kept. */
  picture(frameIndex: number, picture: Partial<LivePicture> = {}, frame: Partial<FrameFacts> = {}): void {
    this.report({
      kind: "picture",
      picture: {
        frame: frameFacts(frameIndex, frame),
        jpeg: jpegOf(frameIndex),
        isKeyframe: true,
        zone: null,
        trigger: null,
        isArmed: this.isArmed,
        ...picture,
      },
    });
  }

  send(order: SessionOrder): void {
    if (this.isClosed) return;
    this.orders.push(order);
    if (order.kind === "arm") this.isArmed = order.isArmed;
    if (!this.seesFrames) return;
    if (order.kind === "watch" && order.viewId !== null) this.#view(order.viewId);
    if (order.kind !== "snapshot") return;
    const snapshot = { ptsMs: 0, arrivedMs: Date.now(), jpeg: jpegOf(0) };
    queueMicrotask(() => this.report({ kind: "snapshot", snapshot }));
  }

  /** A key frame, after which everything changes: the answer ends. */
  #view(viewId: number): void {
    queueMicrotask(() => {
      const began = (codecs: string) => {
        this.report({ kind: "view", view: { kind: "began", viewId, init: new Uint8Array(8), codecs } });
      };
      began("avc1.42e01f");
      const fragment = { kind: "fragment", viewId, bytes: new Uint8Array(8), isKeyframe: true } as const;
      this.report({ kind: "view", view: fragment });
      began("avc1.64001f");
    });
  }

  close(): Promise<void> {
    this.isAskedToClose = true;
    if (this.#closesAtOnce) queueMicrotask(() => this.report({ kind: "closed" }));
    return this.#closed.promise;
  }
}

export interface FakeLiveWorkersOptions {
  /** Called after a session was opened; the default answers an offer. */
  readonly onOpen?: (session: FakeWorkerSession) => void;
  /** Whether a session closes as soon as it is asked to; default true. */
  readonly closesAtOnce?: boolean;
}

export class FakeLiveWorkers implements LiveWorkers {
  readonly sessions: FakeWorkerSession[] = [];
  readonly #options: FakeLiveWorkersOptions;
  isDisposed = false;

  constructor(options: FakeLiveWorkersOptions = {}) {
    this.#options = options;
  }

  /** The newest session. */
  get last(): FakeWorkerSession {
    return this.sessions.at(-1)!;
  }

  open(
    settings: SessionSettings,
    opening: Opening,
    onReport: (report: SessionReport) => void,
  ): FakeWorkerSession {
    // Cloned, as a message to a real Worker is.
    const { closesAtOnce = true, onOpen = answerOffer } = this.#options;
    const session = new FakeWorkerSession(structuredClone(settings), opening, onReport, closesAtOnce);
    this.sessions.push(session);
    queueMicrotask(() => onOpen(session));
    return session;
  }

  // deno-lint-ignore require-await
  async [Symbol.asyncDispose](): Promise<void> {
    this.isDisposed = true;
  }
}

export function answerOffer(session: FakeWorkerSession): void {
  if (session.opening.kind !== "offer") return;
  session.report({ kind: "answered", answer: ANSWER, video: { codec: "vp8" }, audioTracks: 1 });
}

export function frameFacts(frameIndex: number, facts: Partial<FrameFacts> = {}): FrameFacts {
  return {
    frameIndex,
    ptsMs: 90_000 + frameIndex * 33,
    coordinates: fullFrame(640, 480),
    gateReason: frameIndex === 0 ? "initial_frame" : "periodic_keepalive",
    gateConfidence: 1,
    novelty: 0.5,
    motion: 0.25,
    stability: 0.75,
    confidence: 0.58,
    arrivedMs: Date.now(),
    ...facts,
  };
}

/** A minimal JPEG with the number in a comment, so that each one has another hash. */
export function jpegOf(number: number): Uint8Array<ArrayBuffer> {
  const [high, low] = [number >> 8 & 0xff, number & 0xff];
  const comment = [0xff, 0xfe, 0x00, 0x04, high, low];
  return Uint8Array.from([0xff, 0xd8, ...comment, ...GRAY_8X8, 0xff, 0xd9]);
}

/** Quantization table, frame header, Huffman tables and scan of a gray image of 8x8 pixels. */
const GRAY_8X8 = [
  ...[0xff, 0xdb, 0x00, 0x43, 0x00, ...new Array(64).fill(1)],
  ...[0xff, 0xc0, 0x00, 0x0b, 0x08, 0x00, 0x08, 0x00, 0x08, 0x01, 0x01, 0x11, 0x00],
  ...[0xff, 0xc4, 0x00, 0x14, 0x00, 0x01, ...new Array(15).fill(0), 0x00],
  ...[0xff, 0xc4, 0x00, 0x14, 0x10, 0x01, ...new Array(15).fill(0), 0x00],
  ...[0xff, 0xda, 0x00, 0x08, 0x01, 0x01, 0x00, 0x00, 0x3f, 0x00, 0x3f],
];

export const NO_COUNTS: LiveCounts = { ...zeros(), decodeLatenciesUs: [], gateLatenciesUs: [] };

/**
 * An offer as a publisher makes it. `video` has the codecs of each video section; empty for a publisher
 * without a camera.
 */
export function offerText(
  { video = [["VP8", "H264"]], audio = true }: { video?: readonly (readonly string[])[]; audio?: boolean } =
    {},
): string {
  const sections = [
    ...video.map((codecs) => ({ kind: "video", codecs: codecs.map((name) => `${name}/90000`) })),
    ...(audio ? [{ kind: "audio", codecs: ["opus/48000/2"] }] : []),
  ];
  return [
    "v=0",
    "o=- 4611732 2 IN IP4 127.0.0.1",
    "s=-",
    "t=0 0",
    `a=group:BUNDLE ${sections.map((_, mid) => mid).join(" ")}`,
    ...sections.flatMap(({ kind, codecs }, mid) => [
      `m=${kind} 9 UDP/TLS/RTP/SAVPF ${codecs.map((_, index) => 96 + mid * 10 + index).join(" ")}`,
      "c=IN IP4 0.0.0.0",
      "a=ice-ufrag:abcd",
      "a=ice-pwd:aaaaaaaaaaaaaaaaaaaaaaaa",
      `a=fingerprint:sha-256 ${new Array(32).fill("AB").join(":")}`,
      "a=setup:actpass",
      `a=mid:${mid}`,
      "a=sendonly",
      "a=rtcp-mux",
      ...codecs.map((codec, index) => `a=rtpmap:${96 + mid * 10 + index} ${codec}`),
      `a=ssrc:${1000 + mid} cname:publisher`,
    ]),
    "",
  ].join("\r\n");
}
