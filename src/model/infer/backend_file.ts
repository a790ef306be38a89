/** The configured model backends, from two variables or from a TOML file. See docs/models.md#backend-file. */

import type { Config } from "../../contract/config.ts";
import { httpUrl } from "../../contract/setting_parsers.ts";
import { canonicalModel } from "./catalog.ts";
import { FieldRules } from "../field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import { checkZone, type RestrictedZone } from "../policies/zone.ts";
import { isToken, parsedToml, TOKEN_RULE, TomlFault, TomlTable } from "../toml_table.ts";

/** A server with an OpenAI-compatible API; the kind is a label only. */
export interface OpenaiCompatSettings {
  readonly type: "openai_compat";
  readonly name: string;
  readonly kind: OpenaiKind;
  /** The URL of the server, without a slash at the end and without `/v1`, which each request adds. */
  readonly baseUrl: string;
  /** The key that is sent as a bearer token; null sends none. */
  readonly apiKey: string | null;
  /** The only id that the backend serves; null when it serves every id of the catalog and of its server. */
  readonly model: string | null;
  /** The name of that model on the server; null when it is the id. */
  readonly upstreamModel: string | null;
  /** The place among the backends: those with smaller numbers are asked first. */
  readonly priority: number;
}

export interface GeminiSettings {
  readonly type: "gemini";
  readonly name: string;
  /** The URL of the server, without a slash at the end. */
  readonly baseUrl: string;
  readonly apiKey: string;
  /** The only id that the backend serves. */
  readonly model: string;
  readonly priority: number;
}

export type BackendSettings = OpenaiCompatSettings | GeminiSettings;

const OPENAI_KINDS = ["vllm", "sglang", "mlx"] as const;
type OpenaiKind = typeof OPENAI_KINDS[number];

export interface BackendFile {
  /** The backends by priority; those of equal priority in the order of the file. */
  readonly backends: readonly BackendSettings[];
  /** The zone of live sessions that give none of their own. */
  readonly restrictedZone: RestrictedZone | null;
}

export const NO_BACKENDS: BackendFile = { backends: [], restrictedZone: null };

/**
 * Everything that is wrong, one line for each fault, without values of variables, keys, and URLs with a
 * password.
 */
export class BackendFaults extends Error {
  override readonly name = "BackendFaults";

  constructor(readonly faults: readonly string[]) {
    super(faults.join("; "));
  }
}

export const GEMINI_BASE_URL = "https://generativelanguage.googleapis.com";
const GEMINI_MODEL = "gemini-3.5-flash-lite";

/**
 * The backends of the two URL variables; null when neither is set: then the file is read. Errors:
 * `BackendFaults`.
 */
export function backendsOfVariables(
  config: Partial<Pick<Config, "vllmBaseUrl" | "vllmApiKey" | "sglangBaseUrl" | "sglangApiKey">>,
): BackendFile | null {
  const { vllmBaseUrl, vllmApiKey = null, sglangBaseUrl, sglangApiKey = null } = config;
  const rows = [
    { kind: "vllm", baseUrl: vllmBaseUrl, apiKey: vllmApiKey },
    { kind: "sglang", baseUrl: sglangBaseUrl, apiKey: sglangApiKey },
  ] as const;
  const faults: string[] = [];
  const backends = rows.flatMap(({ kind, baseUrl, apiKey }, index): BackendSettings[] => {
    if (baseUrl === undefined) return [];
    const name = `SERVICE_${kind.toUpperCase()}`;
    if (apiKey !== null && !isToken(apiKey)) {
      faults.push(
        `${name}_API_KEY ${TOKEN_RULE}; set it to the key alone, or remove it for a server without keys`,
      );
    }
    const common = { type: "openai_compat", name: kind, model: null, upstreamModel: null } as const;
    return [{ ...common, kind, baseUrl: serverUrl(baseUrl), apiKey, priority: index + 1 }];
  });
  if (faults.length > 0) throw new BackendFaults(faults);
  return backends.length === 0 ? null : { backends, restrictedZone: null };
}

/**
 * Reads the backend file. `${NAME}` inside a string stands for the variable of that name in `env`. Errors:
 * `BackendFaults`.
 */
export function parseBackendFile(
  text: string,
  env: Readonly<Record<string, string | undefined>>,
): BackendFile {
  const faults: string[] = [];
  const file = new TomlTable(toml(text), "", env, faults);
  const tables = file.tables("backends");
  const read = tables.map(readBackend);
  const zone = file.table("restricted_zone");
  const restrictedZone = zone ? readZone(zone, faults) : null;
  file.close();
  read.forEach((backend, index) => {
    const first = read.findIndex((other) => other?.name === backend?.name);
    if (backend?.name && first < index) {
      tables[index]!.fault("name", `must differ from that of backends[${first}]`);
    }
  });
  if (faults.length > 0) throw new BackendFaults(faults);
  const backends = read.filter((backend) => backend !== undefined);
  return { backends: backends.toSorted((one, other) => one.priority - other.priority), restrictedZone };
}

function toml(text: string): Record<string, unknown> {
  try {
    return parsedToml(text);
  } catch (error) {
    throw error instanceof TomlFault ? new BackendFaults([error.message]) : error;
  }
}

/** Reads a backend; undefined, with a fault, for one of unknown type. */
function readBackend(table: TomlTable): BackendSettings | undefined {
  const type = table.word("type", ["openai_compat", "gemini"]);
  if (type === undefined) return undefined;
  const name = table.text("name") ?? "";
  const priority = table.integer("priority", { isOptional: true }) ?? LIMITS.backend.priorityDefault;
  const backend = type === "gemini"
    ? readGemini(table, name, priority)
    : readOpenaiCompat(table, name, priority);
  table.close();
  return backend;
}

function readOpenaiCompat(table: TomlTable, name: string, priority: number): OpenaiCompatSettings {
  const baseUrl = serverUrl(readBaseUrl(table, { isRequired: true }) ?? "");
  const model = readModel(table) ?? null;
  const upstreamModel = table.text("upstream_model", { isOptional: true }) ?? null;
  if (upstreamModel !== null && !table.has("model")) {
    table.fault("upstream_model", "requires model, the id that callers use");
  }
  return {
    type: "openai_compat",
    name,
    kind: table.word("openai_kind", OPENAI_KINDS, { isOptional: true }) ?? guessedKind(name),
    baseUrl,
    apiKey: table.secret("api_key", { isOptional: true }) ?? null,
    model,
    upstreamModel,
    priority,
  };
}

function guessedKind(name: string): OpenaiKind {
  return OPENAI_KINDS.find((kind) => name.toLowerCase().includes(kind)) ?? "vllm";
}

function readGemini(table: TomlTable, name: string, priority: number): GeminiSettings {
  return {
    type: "gemini",
    name,
    baseUrl: readBaseUrl(table, { isRequired: false }) ?? GEMINI_BASE_URL,
    apiKey: table.secret("api_key") ?? "",
    model: readModel(table) ?? GEMINI_MODEL,
    priority,
  };
}

function readBaseUrl(table: TomlTable, { isRequired }: { isRequired: boolean }): string | undefined {
  const url = table.text("base_url", { isOptional: !isRequired });
  if (url === undefined) return undefined;
  const read = httpUrl.read(url);
  if (read === undefined || url.includes("${")) table.fault("base_url", `must be ${httpUrl.rule}`);
  return read;
}

function readModel(table: TomlTable): string | undefined {
  const id = table.text("model", { isOptional: true });
  if (id === undefined) return undefined;
  const rules = new FieldRules();
  rules.name("model", id);
  rules.faults.forEach(({ message }) => table.fault("model", message));
  const model = id.trim();
  return canonicalModel(model) ?? model;
}

/**
 * The URL of a server without the `/v1` that the pages of most servers print, and without what follows it
 * there.
 */
function serverUrl(url: string): string {
  return url.replace(/\/v1(\/chat\/completions|\/models)?$/i, "");
}

/**
 * Reads a zone. The rules are those of every zone. An unreadable field, already a fault, gets a value that
 * breaks none of them.
 */
function readZone(table: TomlTable, faults: string[]): RestrictedZone {
  const zone = {
    policy_id: table.text("policy_id") ?? "-",
    policy_version: table.integer("policy_version") ?? 1,
    device_id: table.text("device_id") ?? "-",
    region: readRegion(table),
    enter_motion_score: table.number("enter_motion_score") ?? 1,
    exit_motion_score: table.number("exit_motion_score") ?? 0,
    enter_after_frames: table.integer("enter_after_frames") ?? 1,
    exit_after_frames: table.integer("exit_after_frames") ?? 1,
  };
  table.close();
  const rules = new FieldRules();
  checkZone(rules, "restricted_zone", zone);
  faults.push(...rules.faults.map(({ field, message }) => `${field} ${message}`));
  return zone;
}

function readRegion(table: TomlTable): RestrictedZone["region"] {
  const region = table.table("region", { isOptional: false });
  const [x, y, width, height] = ["x", "y", "width", "height"].map((side) => region?.number(side));
  region?.close();
  if (x === undefined || y === undefined || width === undefined || height === undefined) {
    return { x: 0, y: 0, width: 1, height: 1 };
  }
  return { x, y, width, height };
}
