/** Sessions in a real live Worker, without the rest of the service, and everything that they report. */

import assert from "node:assert/strict";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { findTools } from "../../../src/process/environment.ts";
import type { SessionReport, SessionSettings } from "../../../src/live/messages/messages.ts";
import { LiveWorkerPool, type Opening, type SessionPort } from "../../../src/live/worker_pool.ts";
import { fileInput } from "../../../src/media/input.ts";
import type { MediaInfo } from "../../../src/media/media_info.ts";
import { probeMedia } from "../../../src/media/files/probe.ts";
import { TemporaryFolder } from "../folders.ts";
import { localRunner } from "../local_runner.ts";
import { TestBroker } from "../test_broker.ts";
import { until } from "../until.ts";

export const WORLD = realWorld(quietLog());
export const TOOLS = findTools({ ffmpegPath: "ffmpeg", ffprobePath: "ffprobe" }, []);

export const SETTINGS: Omit<SessionSettings, "sessionId"> = {
  generation: 1,
  gateThresholds: {
    keepaliveEveryFrames: 30,
    sceneCutHammingThreshold: 18,
    lumaShiftThreshold: 0.15,
    flickerThreshold: 0.55,
    ghostingThreshold: 0.55,
    noiseVarianceThreshold: 0.55,
  },
  windowSize: 16,
  crop: null,
  zone: null,
  trigger: null,
  clip: null,
  wantsKeyframes: true,
  wantsAudio: false,
  record: null,
  recording: null,
  maxFrame: { width: 1920, height: 1080 },
  mediaIdleMs: 60_000,
  isAlwaysOn: false,
  ice: { stunServers: [], turn: null, candidates: { listenHost: "127.0.0.1", allowedNetworks: [] } },
};

/** A session and everything that it reported. */
export interface Opened {
  readonly port: SessionPort;
  readonly reports: SessionReport[];
  /** Resolves with the first report of this kind. */
  waitFor<Kind extends SessionReport["kind"]>(kind: Kind): Promise<Extract<SessionReport, { kind: Kind }>>;
}

export class Workers implements AsyncDisposable {
  readonly #folder = new TemporaryFolder();
  readonly #broker = new TestBroker(TOOLS, {
    tempDir: this.#folder.path,
    uploadRoot: this.#folder.path,
    ingestRoots: ["/tmp"],
  });
  readonly #pool: LiveWorkerPool;
  #sessions = 0;
  /** Workers that were started. */
  started = 0;

  constructor(world = WORLD) {
    this.#pool = new LiveWorkerPool({
      start: { socketDir: this.#folder.path },
      connect: () => {
        this.started++;
        return this.#broker.connect();
      },
      readable: [],
      world,
      workersMax: 1,
    });
  }

  open(
    opening: Opening,
    settings: Partial<SessionSettings> = {},
    onReport: (report: SessionReport, port: SessionPort) => void = () => {},
  ): Opened {
    const sessionId = `sess-${this.#sessions++}`;
    const reports: SessionReport[] = [];
    const port: SessionPort = this.#pool.open({ ...SETTINGS, ...settings, sessionId }, opening, (report) => {
      assert.equal(report.sessionId, sessionId);
      reports.push(report);
      onReport(report, port);
    });
    const waitFor: Opened["waitFor"] = async (kind) => {
      await until(`it reports ${kind}`, () => reports.some((report) => report.kind === kind));
      return reports.find((report) => report.kind === kind) as never;
    };
    return { port, reports, waitFor };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool[Symbol.asyncDispose]();
    await this.#broker[Symbol.asyncDispose]();
    this.#folder[Symbol.dispose]();
  }
}

/** A file that is pulled like a live source. */
export async function pulled(
  path: string,
  changes: Partial<MediaInfo> = {},
): Promise<Extract<Opening, { kind: "pull" }>> {
  const info = await probeMedia(fileInput(path), {
    runner: localRunner(TOOLS),
    world: WORLD,
    signal: new AbortController().signal,
  });
  return { kind: "pull", input: fileInput(path), info: { ...info, durationMs: 2_000, ...changes } };
}
