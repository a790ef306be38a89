/** What an operator wants to know of the running service: its versions, the disk, its settings. See docs/api.md#health-system-and-metrics. */

import type { Config } from "../base/config.ts";
import type { Setting } from "../base/setting_parsers.ts";
import { SETTINGS } from "../base/settings.ts";
import type { World } from "../base/world.ts";
import { type DiskRoom, diskRoom } from "../store/disk_room.ts";

export interface SystemOptions {
  readonly config: Config;
  readonly dataDir: string;
  readonly version: string;
  /** Whether the service has several principals: none learns the values of the settings then. */
  readonly isShared: boolean;
  readonly world: World;
}

export interface SystemLook {
  readonly version: string;
  readonly deno: string;
  /** Epoch milliseconds. */
  readonly started_at_ms: number;
  /** Of the file system of the data directory; null where the system does not tell. */
  readonly disk: DiskRoom | null;
  readonly settings: readonly SettingLook[];
}

interface SettingLook {
  readonly name: string;
  readonly meaning: string;
  readonly is_set: boolean;
  readonly is_secret: boolean;
  readonly value: string | null;
}

export class System {
  readonly #options: SystemOptions;
  readonly #startedMs: number;
  readonly #settings: readonly SettingLook[];

  constructor(options: SystemOptions) {
    this.#options = options;
    this.#startedMs = options.world.now();
    this.#settings = Object.entries(SETTINGS).map(([name, row]) => look(name, row, options));
  }

  async look(): Promise<SystemLook> {
    return {
      version: this.#options.version,
      deno: Deno.version.deno,
      started_at_ms: this.#startedMs,
      disk: await diskRoom(this.#options.dataDir),
      settings: this.#settings,
    };
  }
}

function look(
  name: string,
  { field, meaning, isSecret, parser, ...row }: Setting<string, unknown>,
  { config, isShared }: SystemOptions,
): SettingLook {
  const value = valueText(valueAt(config, field));
  const byDefault = row.default === undefined ? undefined : parser.read(row.default);
  return {
    name,
    meaning,
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
