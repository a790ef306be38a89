/** What an operator wants to know of the running service: its versions, the disk, its settings. See
 * docs/api/system.md#health-system-and-metrics.
 */

import type { Config } from "../../contract/config.ts";
import type { Setting } from "../../contract/setting_parsers.ts";
import type { DecodeBackend } from "../../base/program_paths.ts";
import { SETTINGS } from "../../contract/settings.ts";
import type { World } from "../../base/world.ts";
import type { AboutFfmpeg, FfmpegFacts } from "../../media/trials/ffmpeg_facts.ts";
import type { Hardware } from "../../media/files/hardware.ts";
import type { ToolTrials } from "../../media/trials/tool_trials.ts";
import type { BackendLook } from "../../remote/models/providers.ts";
import type { Mirror, MirrorLook } from "./mirror.ts";
import { type DiskRoom, diskRoom } from "../../store/space/disk_room.ts";
import { DiskUse, type UsedBytes } from "../../store/space/disk_use.ts";
import type { Inference } from "../infer/inference.ts";
import type { LiveModelChoice } from "../live/describing/live_model_choice.ts";

export interface SystemOptions {
  readonly config: Config;
  readonly dataDir: string;
  readonly uploadRoot: string;
  readonly inference: Inference;
  readonly liveModels: LiveModelChoice;
  /** Null where there is no mirror database. */
  readonly mirror: Pick<Mirror, "look"> | null;
  readonly ffmpeg: Pick<AboutFfmpeg, "facts">;
  readonly hardware: Pick<Hardware, "known">;
  readonly trials: Pick<ToolTrials, "faults">;
  readonly version: string;
  /**
   * Whether the service has several principals: none learns the values of the settings then, nor the names of
   * backends.
   */
  readonly isShared: boolean;
  readonly world: World;
}

export interface SystemLook {
  readonly version: string;
  readonly deno: string;
  /** Null where it does not answer. */
  readonly ffmpeg: FfmpegFacts | null;
  /** What ffmpeg and ffprobe were tried for and cannot do. */
  readonly decoder_faults: readonly { readonly cannot: string; readonly reason: string }[];
  /** Null until it is found. */
  readonly decode_backend: DecodeBackend | null;
  /** Epoch milliseconds. */
  readonly started_at_ms: number;
  /** The room on the file system of the data directory; null where the system does not tell. */
  readonly disk: DiskRoom & { readonly used: UsedBytes | null } | null;
  readonly backends: readonly ListedBackend[];
  /** What live sessions ask; null where no backend serves it. */
  readonly live_model: LiveModelLook | null;
  /** Null where there is no mirror database. */
  readonly mirror: MirrorLook | null;
  readonly settings: readonly SettingLook[];
}

interface ListedBackend {
  readonly name: string | null;
  readonly provider: BackendLook["kind"];
  readonly model: string | null;
  readonly circuit: BackendLook["circuit"];
  /** Epoch milliseconds. */
  readonly probe_at_ms: number | null;
  readonly is_slow: boolean;
  readonly fault: string | null;
  readonly models: readonly string[] | null;
}

interface LiveModelLook {
  readonly id: string;
  readonly is_known: boolean | null;
}

interface SettingLook {
  readonly name: string;
  readonly meaning: string;
  readonly default: string | null;
  /** What the service does instead of what the setting says; null for one that has its effect. */
  readonly no_effect: string | null;
  readonly is_set: boolean;
  readonly is_secret: boolean;
  readonly value: string | null;
}

export class System implements AsyncDisposable {
  readonly #options: SystemOptions;
  readonly #use: DiskUse;
  readonly #startedMs: number;
  readonly #settings: readonly SettingLook[];

  constructor(options: SystemOptions) {
    this.#options = options;
    this.#startedMs = options.world.now();
    this.#use = new DiskUse(options);
    this.#settings = Object.entries(SETTINGS).map(([name, row]) => look(name, row, options));
  }

  async look(): Promise<SystemLook> {
    const { dataDir, ffmpeg, hardware, trials } = this.#options;
    const [room, used, facts] = await Promise.all([diskRoom(dataDir), this.#use.look(), ffmpeg.facts()]);
    return {
      version: this.#options.version,
      deno: Deno.version.deno,
      ffmpeg: facts,
      decoder_faults: trials.faults.map(({ cannot, reason }) => ({ cannot, reason })),
      decode_backend: hardware.known,
      started_at_ms: this.#startedMs,
      disk: room === null ? null : { ...room, used },
      backends: this.#backends(),
      live_model: this.#liveModel(),
      mirror: this.#options.mirror?.look() ?? null,
      settings: this.#settings,
    };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#use[Symbol.asyncDispose]();
  }

  #backends(): ListedBackend[] {
    const { inference, isShared } = this.#options;
    return inference.backends().map(({ name, kind, model, circuit, probeMs, isSlow, fault, models }) => ({
      name: isShared ? null : name,
      provider: kind,
      model: isShared ? null : model,
      circuit,
      probe_at_ms: probeMs,
      is_slow: isSlow,
      fault: isShared ? null : fault,
      models: isShared ? null : models,
    }));
  }

  #liveModel(): LiveModelLook | null {
    const { inference, liveModels } = this.#options;
    const { first, notServed } = liveModels.now;
    return notServed === null ? { id: first, is_known: inference.knows(first) } : null;
  }
}

function look(
  name: string,
  { field, meaning, isSecret, parser, noEffect, ...row }: Setting<string, unknown>,
  { config, isShared }: SystemOptions,
): SettingLook {
  const value = valueText(valueAt(config, field));
  const byDefault = row.default === undefined ? undefined : parser.read(row.default);
  return {
    name,
    meaning,
    default: row.default === undefined || row.default === "" ? null : row.default,
    no_effect: noEffect ?? null,
    is_set: value !== valueText(byDefault),
    is_secret: isSecret,
    value: isSecret || isShared ? null : value,
  };
}

/** The value of a field, or of a field in a group: `gateThresholds.flickerThreshold`. */
function valueAt(config: Config, field: string): unknown {
  return field.split(".").reduce<unknown>(
    (value, part) => (value as Readonly<Record<string, unknown>> | undefined)?.[part],
    config,
  );
}

/** A list with commas, an address as `host:port`, other values as JSON writes them; null for none. */
function valueText(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return value.length === 0 ? null : value.map(valueText).join(",");
  if (typeof value === "object" && "hostname" in value && "port" in value) {
    return `${value.hostname}:${value.port}`;
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
