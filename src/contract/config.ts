/** The configuration of the process: reads and checks the whole environment once, by the table of settings.
 */

import { utf8Length } from "../base/bytes.ts";
import type { Setting } from "./setting_parsers.ts";
import {
  API_KEY_CHARACTERS_WARNED,
  type SettingName,
  SETTINGS,
  WEBHOOK_SECRET_BYTES_MIN,
} from "./settings.ts";

type FieldOf<N extends SettingName> = typeof SETTINGS[N]["field"];
type ValueOf<N extends SettingName> = typeof SETTINGS[N] extends Setting<string, infer T> ? T : never;
type Flat = { readonly [N in SettingName as FieldOf<N>]: ValueOf<N> };
type GroupName = keyof Flat extends infer F ? F extends `${infer G}.${string}` ? G : never : never;
type Group<G extends string> = {
  readonly [F in keyof Flat as F extends `${G}.${infer Name}` ? Name : never]: Flat[F];
};

/**
 * The configuration of one process, frozen. Every row of the table is a field here, camelCase, in its group
 * where the row names one: `config.bindAddr`, `config.gateThresholds.flickerThreshold`.
 */
export type Config =
  & { readonly [F in keyof Flat as F extends `${string}.${string}` ? never : F]: Flat[F] }
  & { readonly [G in GroupName]: Group<G> }
  & {
    /**
     * SERVICE_* variables of the environment that have no row: probably misspelt, so main logs a warning for
     * each.
     */
    readonly unknownVariables: readonly string[];
    /** What the operator should know although the service can start: one sentence each, without secrets. */
    readonly warnings: readonly string[];
  };

/** Everything that is wrong with the environment, one line for each fault. */
export class ConfigFaults extends Error {
  override readonly name = "ConfigFaults";

  constructor(readonly faults: readonly string[]) {
    super(`Cannot start as the configuration has ${faults.length} fault(s):\n${faults.join("\n")}`);
  }
}

/** Reads and checks the whole environment. Throws {@link ConfigFaults} with all faults together. */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const { config, faults } = readVariables(env);
  if (faults.length > 0) throw new ConfigFaults(faults);
  return config as Config;
}

/**
 * Like {@link readConfig} without throwing, for a caller that has more to check and reports all faults
 * together. Without faults the configuration is complete; else the field of each faulty variable is
 * undefined.
 */
export function readVariables(
  env: Readonly<Record<string, string | undefined>>,
): { readonly config: Partial<Config>; readonly faults: readonly string[] } {
  const faults: string[] = [];
  const fields: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(SETTINGS)) {
    const given = env[name];
    const source = given === undefined || (row.emptyIsUnset && given.trim() === "") ? row.default : given;
    const value = source === undefined ? undefined : row.parser.read(source);
    if (source !== undefined && value === undefined) faults.push(faultLine(name, row, source));
    put(fields, row.field, value);
  }
  // The field of a faulty text is undefined here, and the rules between fields skip it.
  const read = fields as { -readonly [F in keyof Config]: Config[F] };
  faults.push(...faultsBetween(read));
  const warnings = warningsOfNoEffect(env);
  if (read.webhookSecret !== undefined && utf8Length(read.webhookSecret) < WEBHOOK_SECRET_BYTES_MIN) {
    read.webhookSecret = undefined;
    warnings.push(
      `SERVICE_WEBHOOK_SECRET is shorter than ${WEBHOOK_SECRET_BYTES_MIN} bytes: webhooks are off`,
    );
  }
  const short = (read.apiKeys ?? []).filter((key) => key.length < API_KEY_CHARACTERS_WARNED).length;
  if (short > 0) {
    warnings.push(
      `${short} of the keys of SERVICE_API_KEYS ${
        short === 1 ? "is" : "are"
      } shorter than ${API_KEY_CHARACTERS_WARNED} characters: they can be guessed`,
    );
  }
  read.unknownVariables = Object.keys(env).filter(isUnknown).sort();
  warnings.push(...read.unknownVariables.map((name) => `${name} is not a variable of this service`));
  read.warnings = warnings;
  return { config: frozen(read), faults };
}

const OF_FILE = "_FILE";

/**
 * The variable that names the file of each secret setting, with the setting: `[SERVICE_API_KEYS_FILE,
 * SERVICE_API_KEYS]`.
 */
export function secretFileVariables(): [fileVariable: string, setting: SettingName][] {
  return (Object.keys(SETTINGS) as SettingName[])
    .filter((name) => SETTINGS[name].isSecret)
    .map((name) => [`${name}${OF_FILE}`, name]);
}

/** One for each variable that is set although it has no effect yet. */
function warningsOfNoEffect(env: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries<Setting<string, unknown>>(SETTINGS).flatMap(([name, row]) => {
    const isSet = (env[name] ?? "").trim() !== "";
    return isSet && row.noEffect !== undefined
      ? [`${name} has no effect in this version: ${row.noEffect}`]
      : [];
  });
}

function isUnknown(name: string): boolean {
  return name.startsWith("SERVICE_") && !Object.hasOwn(SETTINGS, name) &&
    !secretFileVariables().some(([fileVariable]) => fileVariable === name);
}

/** One setting as it would be read: texts for a person, without secrets. */
export interface ShownSetting {
  readonly name: SettingName;
  readonly value: string;
  readonly usual: string;
  readonly source: string;
}

/** Every setting with where its text comes from. Files of secrets are named and not read. */
export function shownSettings(env: Readonly<Record<string, string | undefined>>): ShownSetting[] {
  return (Object.entries(SETTINGS) as [SettingName, Setting<string, unknown>][]).map(([name, row]) => {
    const given = env[name];
    const isGiven = given !== undefined && !(row.emptyIsUnset && given.trim() === "");
    const file = row.isSecret ? env[`${name}${OF_FILE}`]?.trim() : undefined;
    const shown = (text: string | undefined) => {
      if (text === undefined) return "unset";
      return text === "" || mayBeShown(row, text) ? JSON.stringify(text) : "(not shown)";
    };
    const usual = shown(row.default);
    if (isGiven) return { name, value: shown(given), usual, source: "environment" };
    if (file) return { name, value: "(not shown)", usual, source: `file ${JSON.stringify(file)}` };
    return { name, value: usual, usual, source: "default" };
  });
}

/**
 * Whether there are several principals, so that none of them may take everything. See
 * docs/security/load.md#shares.
 */
export function hasSeveralPrincipals({ requireApiKey, apiKeys }: Config): boolean {
  return requireApiKey && new Set(apiKeys).size > 1;
}

/** Rules that take more than one variable. */
function faultsBetween(read: Partial<Config>): string[] {
  const faults: string[] = [];
  const inference = read.inference;
  if (read.requireApiKey === true && read.apiKeys?.length === 0) {
    faults.push(
      "SERVICE_API_KEYS must name at least one key as SERVICE_REQUIRE_API_KEY is on, got none; " +
        "set SERVICE_API_KEYS, or SERVICE_REQUIRE_API_KEY=false for a service without keys",
    );
  }
  if (read.requireApiKey === false && read.requireTenantId === true) {
    faults.push(
      "SERVICE_REQUIRE_TENANT_ID must be off as SERVICE_REQUIRE_API_KEY is off, got on; " +
        "set SERVICE_REQUIRE_TENANT_ID=false, or SERVICE_REQUIRE_API_KEY=true with SERVICE_API_KEYS",
    );
  }
  if (read.requireApiKey === true && read.corsAllowedOrigins?.includes("*")) {
    faults.push(
      'SERVICE_CORS_ALLOWED_ORIGINS must list exact origins as SERVICE_REQUIRE_API_KEY is on, got "*"; ' +
        "name each origin, for example https://console.example, or set SERVICE_REQUIRE_API_KEY=false",
    );
  }
  if (inference && inference.perPrincipalLimit > inference.globalLimit) {
    faults.push(
      `SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT must be at most SERVICE_INFERENCE_GLOBAL_LIMIT ` +
        `(${inference.globalLimit}), got ${inference.perPrincipalLimit}; ` +
        "lower the first, or raise SERVICE_INFERENCE_GLOBAL_LIMIT",
    );
  }
  return faults;
}

function faultLine(name: string, row: Setting<string, unknown>, got: string): string {
  const isShown = mayBeShown(row, got);
  const short = got.length > 80 ? `${got.slice(0, 80)}…` : got;
  const part = isShown ? row.parser.faultyPart?.(got)?.slice(0, 80) : undefined;
  const fault = `${name} must be ${row.parser.rule}, got ${
    isShown ? JSON.stringify(short) : "a value that is not shown"
  }${part === undefined || part === got ? "" : `: ${JSON.stringify(part)} is none`}`;
  return `${fault}; ${wayOut(row)}`;
}

/**
 * Whether the text of a setting holds no secret: a URL that is no secret itself may contain a password, or a
 * key in its query.
 */
function mayBeShown({ isSecret }: Setting<string, unknown>, text: string): boolean {
  return !isSecret && !text.includes("@") && !/:\/\/.*[?#]/s.test(text);
}

/** What the operator can do besides giving a text that keeps the rule. */
function wayOut({ default: usual }: Setting<string, unknown>): string {
  if (usual === undefined) return "correct it, or remove it to do without";
  return usual === ""
    ? "correct it, or remove it for none"
    : `correct it, or remove it for the default ${usual}`;
}

function put(fields: Record<string, unknown>, field: string, value: unknown): void {
  const [group, name] = field.split(".");
  if (name === undefined) fields[group!] = value;
  else ((fields[group!] ??= {}) as Record<string, unknown>)[name] = value;
}

function frozen<T extends object>(value: T): T {
  for (const part of Object.values(value)) {
    if (typeof part === "object" && part !== null && !Object.isFrozen(part)) frozen(part);
  }
  return Object.freeze(value);
}
