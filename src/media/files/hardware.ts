/** Which hardware decodes recorded media: found by trials in the cage of the decoders, and the CPU where none
 * works.
 */

import type { DecodeBackend, DecodeDevices, HardwareDecoder } from "../../base/program_paths.ts";
import { NEVER_ABORTED } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { MediaInfo } from "../media_info.ts";
import type { RunJob } from "../jobs/jobs.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import { maySuitHardware } from "../jobs/parts/hardware_args.ts";

export interface HardwareOptions {
  readonly asked: "auto" | DecodeBackend;
  readonly devices: DecodeDevices;
  readonly runner: ToolRunner;
  readonly world: World;
}

/** The hardware in the order in which `auto` tries it. */
const ORDER: readonly HardwareDecoder[] = ["nvdec-cuda", "vaapi", "videotoolbox"];

/** Longest trial, milliseconds: a driver that hangs counts as none. */
const DEADLINE_MS = 10_000;
const TEXT_BYTES_MAX = 8 << 10;
const LINE_MAX = 200;
/** Decodes in a row that only the CPU could do, after which the hardware is tried no more. */
const FAILURES_MAX = 3;

export class Hardware {
  readonly #options: HardwareOptions;
  #found: Promise<HardwareDecoder | null> | null = null;
  #failures = 0;
  #known: DecodeBackend | null = null;

  constructor(options: HardwareOptions) {
    this.#options = options;
  }

  /** What decodes sources that suit it; null until that is found. */
  get known(): DecodeBackend | null {
    return this.#failures >= FAILURES_MAX ? "cpu-ffmpeg" : this.#known;
  }

  /**
   * The hardware that works here; null for the CPU. The first call tries what there is, and writes one line
   * to the log unless there is nothing to try.
   */
  find(): Promise<HardwareDecoder | null> {
    return this.#found ??= this.#find().then((found) => {
      this.#known = found ?? "cpu-ffmpeg";
      return found;
    });
  }

  /** What a decode of this source should use; null for the CPU. */
  async for(info: MediaInfo): Promise<HardwareDecoder | null> {
    if (!maySuitHardware(info) || this.#failures >= FAILURES_MAX) return null;
    return await this.find();
  }

  worked(): void {
    this.#failures = 0;
  }

  /** To be called where the hardware gave no frames of a source, which the CPU decodes now. */
  failed(hardware: HardwareDecoder, why: string): void {
    this.#failures++;
    const isLast = this.#failures === FAILURES_MAX;
    this.#options.world.log.warn(
      `${hardware} could not decode a source, so the CPU does${
        isLast ? ", and all further ones" : ""
      }: ${why}`,
    );
  }

  async #find(): Promise<HardwareDecoder | null> {
    const { asked, devices, world: { log } } = this.#options;
    if (asked === "cpu-ffmpeg") return null;
    const candidates = ORDER.filter((each) => each in devices && (asked === "auto" || asked === each));
    const misses: string[] = [];
    for (const candidate of candidates) {
      const miss = await this.#tried(candidate);
      if (miss === null) {
        log.info(`recorded media are decoded by ${candidate}`);
        return candidate;
      }
      misses.push(`${candidate}: ${miss}`);
    }
    if (asked !== "auto" && candidates.length === 0) misses.push(`this machine has no device for ${asked}`);
    if (misses.length > 0) log.warn(`recorded media are decoded on the CPU; ${misses.join("; ")}`);
    return null;
  }

  /** Why the hardware cannot be used; null where it can. */
  async #tried(hardware: HardwareDecoder): Promise<string | null> {
    if (hardware === "nvdec-cuda" && this.#options.asked === "auto") {
      const miss = await this.#run({ kind: "list_gpus" }, "nvidia-smi lists no card");
      if (miss !== null) return miss;
    }
    return await this.#run({ kind: "open_device", hardware }, "ffmpeg does not open it");
  }

  async #run(job: RunJob, whatIsWrong: string): Promise<string | null> {
    const { runner, world } = this.#options;
    try {
      const { end, code, stderr } = await runner.run(job, {
        world,
        signal: NEVER_ABORTED,
        deadlineMs: DEADLINE_MS,
        maxStdoutBytes: TEXT_BYTES_MAX,
        maxStderrBytes: TEXT_BYTES_MAX,
      });
      if (end === "exited" && code === 0) return null;
      const [line = ""] = stderr.trim().split("\n");
      return line === "" ? whatIsWrong : `${whatIsWrong} (${line.slice(0, LINE_MAX)})`;
    } catch {
      return whatIsWrong;
    }
  }
}
