/** The config file: lines KEY=VALUE that only its owner may read, changed in one step. */

import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { CliError } from "../failure.ts";

export const CONFIG_KEYS = ["api_url", "api_key", "tenant_id"] as const;
export type ConfigKey = typeof CONFIG_KEYS[number];
export type ConfigValues = Partial<Readonly<Record<ConfigKey, string>>>;

export interface ConfigFile {
  readonly path: string;
  /** False where there is no file. */
  readonly exists: boolean;
  readonly values: ConfigValues;
  /** What its owner should know. */
  readonly warnings: readonly string[];
}

/** `--config`, SERVICE_CLI_CONFIG, or `service/config` in the folder for settings of this user. */
export function configPath(flag: string | undefined): string {
  const named = flag || Deno.env.get("SERVICE_CLI_CONFIG");
  if (named) return named;
  const folder = Deno.env.get("XDG_CONFIG_HOME") || join(homedir(), ".config");
  return join(folder, "service", "config");
}

/** Reads the file; one that is missing is empty, as `config set` makes it. */
export function readConfigFile(path: string): ConfigFile {
  let text: string;
  let mode: number | null;
  try {
    text = Deno.readTextFileSync(path);
    mode = Deno.statSync(path).mode;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return { path, exists: false, values: {}, warnings: [] };
    throw new CliError("usage", `cannot read the config file ${path}: ${reasonOf(error)}`);
  }
  const values: Partial<Record<ConfigKey, string>> = {};
  const warnings: string[] = [];
  text.split("\n").forEach((line, index) => {
    const trimmed = line.trim();
    if (trimmed === "" || trimmed.startsWith("#")) return;
    const key = keyOf(trimmed);
    if (key) values[key] = trimmed.slice(trimmed.indexOf("=") + 1).trim();
    // The line itself is not shown: it may be a key that was misspelt.
    else {warnings.push(`${path}:${index + 1} is none of ${
        CONFIG_KEYS.map((name) => `${name}=…`).join(", ")
      }`);}
  });
  if (values.api_key && mode !== null && (mode & 0o077) !== 0 && Deno.build.os !== "windows") {
    const digits = (mode & 0o777).toString(8).padStart(4, "0");
    warnings.push(`${path} has an API key and others may read it (mode ${digits}); chmod 600 it`);
  }
  return { path, exists: true, values, warnings };
}

/**
 * Sets one value, or removes it; other lines stay. The file is replaced in one step, with mode 0600; a link
 * to it stays a link.
 */
export function changeConfigFile(path: string, key: ConfigKey, value: string | undefined): void {
  let target = path;
  let lines: string[] = [];
  try {
    target = Deno.realPathSync(path);
    lines = Deno.readTextFileSync(target).replace(/\n$/, "").split("\n");
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw writeError(path, error);
  }
  const changed = lines.filter((line) => keyOf(line.trim()) !== key && !(lines.length === 1 && line === ""));
  if (value !== undefined) changed.push(`${key}=${value}`);
  const temporary = `${target}.${crypto.randomUUID()}.tmp`;
  try {
    Deno.mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    using file = Deno.openSync(temporary, { write: true, createNew: true, mode: 0o600 });
    const bytes = new TextEncoder().encode(changed.map((line) => `${line}\n`).join(""));
    for (let at = 0; at < bytes.length;) at += file.writeSync(bytes.subarray(at));
    file.syncSync();
    Deno.renameSync(temporary, target);
  } catch (error) {
    try {
      Deno.removeSync(temporary);
    } catch {
      // It was never made, or has its name already.
    }
    throw writeError(path, error);
  }
}

function keyOf(line: string): ConfigKey | undefined {
  const name = /^(\w+)\s*=/.exec(line)?.[1];
  return CONFIG_KEYS.find((key) => key === name);
}

function writeError(path: string, error: unknown): CliError {
  return new CliError("failed", `cannot write the config file ${path}: ${reasonOf(error)}`);
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
