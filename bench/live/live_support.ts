/** Shared parts of the live benchmarks: a service whose session reports are recorded, publishers, processor
 * time.
 */

import { TemporaryFolder } from "../support.ts";
import { realWorld } from "../../src/base/world.ts";
import { quietLog } from "../../src/base/log.ts";
import type { SessionReport } from "../../src/live/messages/messages.ts";
import { LiveWorkerPool, type LiveWorkers } from "../../src/live/worker_pool.ts";
import { findTools } from "../../src/process/environment.ts";
import { metric } from "../../test/support/live/live.ts";
import { LivePublisher } from "../../test/support/live/live_publisher.ts";
import { TestBroker } from "../../test/support/test_broker.ts";
import { childProcesses } from "../../test/support/own_process.ts";
import { type ReasonTest, startReason } from "../../test/support/models/reason.ts";

/**
 * A service in this process with a model that answers at once, real live Workers, and all reports of these.
 */
export interface LiveBench extends AsyncDisposable {
  readonly live: ReasonTest;
  readonly reports: RecordedReport[];
  publish(args: readonly string[]): LivePublisher;
  /** The sum of a counter of the pipeline. */
  count(name: string): Promise<number>;
}

export interface RecordedReport {
  readonly report: SessionReport;
  /** When the report came, in epoch milliseconds. */
  readonly atMs: number;
  /** When the HTTP thread had read the offer of its session, in epoch milliseconds. */
  readonly offeredMs: number;
}

export async function openLiveBench(): Promise<LiveBench> {
  const reports: RecordedReport[] = [];
  const folder = new TemporaryFolder();
  const live = await startReason({ answer: () => "A picture." }, { SERVICE_WEBRTC_STUN_SERVERS: "" }, {
    liveWorkers: () => recordingWorkers(reports, folder.path),
  });
  return {
    live,
    reports,
    publish: (args) => LivePublisher.start({ url: live.test.url, args }),
    count: (name) => metric(live.test, `service_pipeline_${name}_total`),
    async [Symbol.asyncDispose]() {
      await live[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

function recordingWorkers(reports: RecordedReport[], tempDir: string): LiveWorkers {
  const broker = new TestBroker(findTools({ ffmpegPath: "ffmpeg", ffprobePath: "ffprobe" }, []), {
    tempDir,
    uploadRoot: tempDir,
    ingestRoots: [],
  });
  const pool = new LiveWorkerPool({
    start: { socketDir: tempDir },
    connect: () => broker.connect(),
    readable: [],
    world: realWorld(quietLog()),
    workersMax: navigator.hardwareConcurrency,
  });
  return {
    open(settings, opening, onReport) {
      const offeredMs = Date.now();
      return pool.open(settings, opening, (report) => {
        reports.push({ report, atMs: Date.now(), offeredMs });
        onReport(report);
      });
    },
    async [Symbol.asyncDispose]() {
      await pool[Symbol.asyncDispose]();
      await broker[Symbol.asyncDispose]();
    },
  };
}

/** Seconds of processor time that this process and its running ffmpeg processes have used. */
export function processorTime(): { readonly service: number; readonly ffmpeg: number } {
  return {
    service: secondsOf(Deno.pid),
    ffmpeg: childProcesses("unix:").reduce((sum, { pid }) => sum + secondsOf(pid), 0),
  };
}

/** Seconds of processor time of one process with its threads. */
export function secondsOf(pid: number): number {
  const fields = Deno.readTextFileSync(`/proc/${pid}/stat`).split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

const TICKS_PER_SECOND = 100;

export function pauseSeconds(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}

/**
 * Processors and load average of the machine at the start: with a high load the figures are less reliable.
 */
export function machine(): string {
  const [load] = Deno.loadavg();
  return `${navigator.hardwareConcurrency} processors, load ${load!.toFixed(1)} at the start`;
}
