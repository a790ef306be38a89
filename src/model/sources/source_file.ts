/** The file of named sources: which cameras and streams callers may name, who may, and which are always
 * watched. See docs/cameras.md.
 */

import { ATTACH, type AttachBody, type AttachContext, checkAttach } from "../live/attach.ts";
import { shapeMessage } from "../shape_message.ts";
import { Refusal } from "../../contract/refusal.ts";
import { MEDIA_KINDS, type MediaKind } from "../files/media_kind.ts";
import { LIMITS } from "../../contract/limits.ts";
import { parsedToml, TomlFault, TomlTable } from "../toml_table.ts";
import { readWebhooks, type SourceWebhook, type SourceWebhookContext } from "../webhooks/source_webhook.ts";
import { type ArmedTimes, readArmedTimes } from "./armed_times.ts";
import { remoteSource, type RemoteSourceToggles } from "./remote_source.ts";
import type { RecordingPlan } from "./recording_plan.ts";
import type { SourceCredentials } from "./source_credentials.ts";
import { isSourceName } from "../source_name.ts";

export const SOURCE_KINDS = ["rtsp", "hls", "mjpeg", "file"] as const;
/** How the media of a source come: `file` is a local or a remote file, read from its start each time. */
export type SourceKind = typeof SOURCE_KINDS[number];

export interface NamedSource {
  readonly name: string;
  readonly kind: SourceKind;
  /** The address without user name and password. It is told to nobody. */
  readonly uri: string;
  readonly credentials: SourceCredentials | null;
  /** The keys of the principals that may use the source; null for all. */
  readonly principals: readonly string[] | null;
  /** Hours after which the events of the source's runs are removed; null where the general setting holds. */
  readonly retentionHours: number | null;
  /**
   * Hours after which pictures, clips and sounds of the source's runs are removed; the general ones where
   * they are not given.
   */
  readonly mediaHours?: Readonly<Partial<Record<MediaKind, number>>>;
  /** How the source is always watched; null for one that is not. */
  readonly watch: SourceWatch | null;
}

export type AlwaysOnSource = NamedSource & { readonly watch: SourceWatch };

export function isAlwaysOn(source: NamedSource): source is AlwaysOnSource {
  return source.watch !== null;
}

/** How a source is always watched. */
export interface SourceWatch {
  readonly attach: AttachBody;
  readonly rolloverMs: number;
  /** The webhooks of each of the source's runs. */
  readonly webhooks: readonly SourceWebhook[];
  /** When the source is armed; null for one that is armed at all times. */
  readonly armed: ArmedTimes | null;
  /** How the source is recorded; null where it is not recorded all day. */
  readonly recording: RecordingPlan | null;
}

/**
 * Everything that is wrong, one line for each fault, without addresses, credentials and values of variables.
 */
export class SourceFaults extends Error {
  override readonly name = "SourceFaults";

  constructor(readonly faults: readonly string[]) {
    super(faults.join("; "));
  }
}

export interface SourceFileContext {
  /** The values of variables, `${NAME}` in the file. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly toggles: RemoteSourceToggles;
  readonly attach: AttachContext;
  readonly webhooks: SourceWebhookContext;
}

/** Reads the file: the sources in its order. Errors: `SourceFaults`. */
export function parseSourceFile(text: string, context: SourceFileContext): readonly NamedSource[] {
  const faults: string[] = [];
  const file = new TomlTable(toml(text), "", context.env, faults);
  const tables = file.tables("sources", ({ name }) => isSourceName(name) ? name : null);
  const most = LIMITS.sources.namedMax;
  if (tables.length > most) file.fault("sources", `must be at most ${most} tables`);
  const sources = tables.slice(0, most).map((table) => readSource(table, context));
  file.close();
  const webhooks = sources.reduce((count, { watch }) => count + (watch?.webhooks.length ?? 0), 0);
  if (webhooks > LIMITS.sources.webhooksMax) {
    file.say(
      "sources",
      `must have at most ${LIMITS.sources.webhooksMax} webhooks in all, and have ${webhooks}`,
    );
  }
  sources.forEach(({ name }, index) => {
    const first = sources.findIndex((other) => other.name === name);
    if (name !== "" && first < index) {
      tables[index]!.fault("name", `must differ from that of the source ${first + 1} of the file`);
    }
  });
  if (faults.length > 0) throw new SourceFaults(shown(faults));
  return sources;
}

/**
 * The most faults that are shown. A file that is something else altogether has a fault in every line, and
 * each is a line of the log.
 */
const FAULTS_SHOWN_MAX = 50;
const FAULT_CHARACTERS_MAX = 1000;

function shown(faults: readonly string[]): string[] {
  const first = faults.slice(0, FAULTS_SHOWN_MAX).map((fault) =>
    fault.length <= FAULT_CHARACTERS_MAX ? fault : `${fault.slice(0, FAULT_CHARACTERS_MAX)}…`
  );
  const more = faults.length - first.length;
  return more === 0 ? first : [...first, `${more} more faults`];
}

function toml(text: string): Record<string, unknown> {
  try {
    return parsedToml(text);
  } catch (error) {
    throw error instanceof TomlFault ? new SourceFaults([error.message]) : error;
  }
}

/** Reads a source. A field that cannot be read is a fault, and gets a value that nobody uses. */
function readSource(table: TomlTable, context: SourceFileContext): NamedSource {
  const name = table.text("name") ?? "";
  if (name !== "" && !isSourceName(name)) {
    table.fault("name", "must be 1 to 64 of the characters a-z, 0-9 and -");
  }
  const location = table.location("uri");
  const principals = readPrincipals(table);
  const isWatched = table.flag("live");
  const watch = readWatch(table, isWatched, context);
  const { hours: retentionHours, media: mediaHours } = readRetention(table);
  table.close();
  return {
    name,
    principals,
    retentionHours,
    ...(Object.keys(mediaHours).length > 0 && { mediaHours }),
    watch,
    ...readLocation(table, location, { isWatched, ...context }),
  };
}

function readLocation(
  table: TomlTable,
  location: string | undefined,
  { isWatched, toggles }: { readonly isWatched: boolean; readonly toggles: RemoteSourceToggles },
): Pick<NamedSource, "kind" | "uri" | "credentials"> {
  const [, scheme = "", userInfo, rest = ""] = /^([a-z][a-z0-9+.-]*:\/\/)(?:([^/?#]*)@)?(.*)$/is.exec(
    location ?? "",
  ) ?? [];
  const uri = scheme === "" ? location ?? "" : `${scheme}${rest}`;
  let kind: SourceKind = "file";
  try {
    kind = remoteSource(uri, toggles, { isWatched })?.kind ?? "file";
    if (location !== undefined && isWatched && kind === "file") {
      table.say("uri", "must be an rtsp, rtsps, HLS, http or https URL, as live is true");
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    table.say("uri", error.details[0]!.message);
  }
  return { kind, uri, credentials: readCredentials(table, userInfo) };
}

function readCredentials(table: TomlTable, userInfo: string | undefined): SourceCredentials | null {
  if (userInfo === undefined) return null;
  const colon = userInfo.indexOf(":");
  const parts = colon === -1 ? [userInfo, ""] : [userInfo.slice(0, colon), userInfo.slice(colon + 1)];
  try {
    const [user, password] = parts.map(decodeURIComponent) as [string, string];
    // deno-lint-ignore no-control-regex -- they would end a header
    if (/[\x00-\x1f\x7f]/.test(user + password)) throw new URIError();
    return { user, password };
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    table.say("uri", "must have a user name and a password without control characters, and % as %25");
    return null;
  }
}

function readPrincipals(table: TomlTable): readonly string[] | null {
  const given = table.texts("principals") ?? ["*"];
  if (given.length === 1 && given[0] === "*") return null;
  const hashes = given.map((text) => /^(?:api-key:)?([0-9a-f]{64})$/.exec(text)?.[1]);
  if (hashes.includes(undefined)) {
    table.say("principals", `must be ["*"], or SHA-256 hashes of API keys, each of 64 of 0-9 and a-f`);
  }
  return hashes.map((hash) => `api-key:${hash}`);
}

/** Reads `retention = { hours = 48, clip_hours = 24 }`. */
function readRetention(
  table: TomlTable,
): { readonly hours: number | null; readonly media: Partial<Record<MediaKind, number>> } {
  const { retention } = table.given(["retention"]);
  const media: Partial<Record<MediaKind, number>> = {};
  if (retention === undefined) return { hours: null, media };
  const { minimum, maximum } = LIMITS.retention.hours;
  const isTable = typeof retention === "object" && retention !== null && !Array.isArray(retention);
  const fields = new Map(Object.entries(isTable ? retention : {}));
  const isHours = (value: unknown): value is number => isWhole(value, LIMITS.retention.hours);
  const isGood = fields.size > 0 &&
    fields.entries().every(([name, value]) => RETENTION_FIELDS.has(name) && isHours(value));
  if (!isGood) {
    const names = [...RETENTION_FIELDS].join(", ");
    table.say(
      "retention",
      `must be { hours = … } with some of ${names}, each an integer from ${minimum} to ${maximum}`,
    );
    return { hours: null, media };
  }
  for (const kind of MEDIA_KINDS) {
    const hours = fields.get(`${kind}_hours`);
    if (isHours(hours)) media[kind] = hours;
  }
  const hours: unknown = fields.get("hours");
  return { hours: isHours(hours) ? hours : null, media };
}

const RETENTION_FIELDS: ReadonlySet<string> = new Set([
  "hours",
  ...MEDIA_KINDS.map((kind) => `${kind}_hours`),
]);

function readWatch(
  table: TomlTable,
  isWatched: boolean,
  { attach, webhooks: context }: SourceFileContext,
): SourceWatch | null {
  const given = table.given(Object.keys(ATTACH.shape));
  const rollover = table.text("rollover", { isOptional: true });
  const webhooks = readWebhooks(table, context);
  const armed = readArmedTimes(table);
  const recording = readRecording(table);
  const watched = [
    ...Object.keys(given),
    ...rollover === undefined ? [] : ["rollover"],
    ...webhooks.length === 0 ? [] : ["webhooks"],
    ...armed === null ? [] : ["armed"],
    ...recording === null ? [] : ["recording"],
  ];
  if (!isWatched) {
    for (const name of watched) table.say(name, "is a field of sources with live = true, and this has none");
    return null;
  }
  return {
    attach: readAttach(table, given, attach),
    rolloverMs: readRollover(table, rollover),
    webhooks,
    armed,
    recording,
  };
}

/** Reads `recording = { hours = 48, bytes = 100000000000 }`, with `bytes` or without. */
function readRecording(table: TomlTable): RecordingPlan | null {
  const { recording } = table.given(["recording"]);
  if (recording === undefined) return null;
  const isTable = typeof recording === "object" && recording !== null;
  const { hours, bytes, ...others } = (isTable ? recording : {}) as Readonly<Record<string, unknown>>;
  const areBytes = bytes === undefined || isWhole(bytes, LIMITS.recording.bytes);
  if (!isWhole(hours, LIMITS.recording.hours) || !areBytes || Object.keys(others).length > 0) {
    table.say(
      "recording",
      `must be { hours = …, bytes = … }, with integers from ${LIMITS.recording.hours.minimum} to ${LIMITS.recording.hours.maximum} and from ` +
        `${LIMITS.recording.bytes.minimum} to ${LIMITS.recording.bytes.maximum}; bytes may be absent`,
    );
    return { hours: LIMITS.recording.hours.minimum, bytes: null };
  }
  return { hours, bytes: bytes as number | undefined ?? null };
}

function isWhole(
  value: unknown,
  { minimum, maximum }: { minimum: number; maximum: number },
): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= minimum && value <= maximum;
}

function readAttach(table: TomlTable, given: Record<string, unknown>, context: AttachContext): AttachBody {
  const parsed = ATTACH.safeParse(given, { error: shapeMessage });
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues) table.say(path.map(String).join("."), message);
    return {};
  }
  try {
    checkAttach(parsed.data, context);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    for (const { field, message } of error.details) table.say(field, message);
  }
  return parsed.data;
}

function readRollover(table: TomlTable, text: string | undefined): number {
  const { minimum, maximum } = LIMITS.sources.rolloverMs;
  if (text === undefined) return LIMITS.sources.rolloverMsDefault;
  const [, amount, unit] = /^([1-9]\d{0,5})([smhd])$/.exec(text) ?? [];
  const rolloverMs = Number(amount) * (UNIT_MS[unit ?? ""] ?? NaN);
  if (!(rolloverMs >= minimum && rolloverMs <= maximum)) {
    table.fault("rollover", "must be a time such as 24h, 90m or 7d, from 1m to 7d");
  }
  return rolloverMs;
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
