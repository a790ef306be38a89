/** TABLE of the generated sections of docs/: the name in the marker, and the text that the code's tables
 * give.
 */

import { EXIT_CODES } from "../../cli/exit_codes.ts";
import { COMMANDS } from "../../cli/table/commands.ts";
import { SETTINGS } from "../../src/contract/settings.ts";
import { FAMILIES, type Family } from "../../src/contract/metric_families.ts";
import { REFUSALS } from "../../src/contract/refusal.ts";
import { ROUTES } from "../../src/http/routes/route_table.ts";
import { type BlobGrant, type EventRow, EVENTS } from "../../src/model/events/event_table.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { markdownOf } from "../../bench/run/table.ts";
import { code, table } from "./markdown.ts";
import { internalBoundsTable } from "./internal_bounds.ts";
import { GROUPS, payloadSections, sharedSections } from "./payloads.ts";
import { valueText } from "./values.ts";

export const GENERATED: Readonly<Record<string, () => string>> = {
  settings: settingsTable,
  metrics: metricsTable,
  limits: limitsTables,
  "internal bounds": internalBoundsTable,
  refusals: refusalsTable,
  routes: routesTable,
  events: eventsTable,
  "payloads run": () => payloadSections("run"),
  "payloads analysis": () => payloadSections("analysis"),
  "payloads live": () => payloadSections("live"),
  "payloads policy": () => payloadSections("policy"),
  "payload objects": sharedSections,
  ratios: ratiosTable,
  "cli commands": cliCommandsTable,
  "cli exit codes": cliExitCodesTable,
};

function cliCommandsTable(): string {
  return table(
    ["Command", "What it does"],
    COMMANDS.filter(({ isHidden }) => !isHidden).map(({ path, args, summary }) => [
      code([path, ...(args ?? []).map(({ name }) => name)].join(" ")),
      summary,
    ]),
  );
}

function cliExitCodesTable(): string {
  return table(
    ["Code", "When"],
    Object.values(EXIT_CODES).map(({ code, meaning }) => [String(code), meaning]),
  );
}

/** The last committed run of the benchmarks. */
function ratiosTable(): string {
  return markdownOf(
    JSON.parse(Deno.readTextFileSync(new URL("../../fixtures/bench/ratios.json", import.meta.url))),
  );
}

interface RouteFacts {
  readonly method: string;
  readonly path: string;
  readonly success: number;
  readonly also?: readonly number[];
  readonly auth: "key" | "none" | "metrics";
  readonly body: "none" | "json" | "multipart" | "sdp" | "text";
  readonly failures: readonly number[];
}

function settingsTable(): string {
  return table(
    ["Variable", "Default", "Value", "Meaning"],
    Object.entries(SETTINGS).map(([name, row]) => [
      name,
      row.default ? code(row.default) : "unset",
      row.parser.rule,
      row.meaning + (row.noEffect === undefined ? "" : `. **No effect in this version:** ${row.noEffect}`),
    ]),
  );
}

function metricsTable(): string {
  return table(
    ["Family", "Type", "Labels and buckets", "Meaning"],
    Object.entries<Family>(FAMILIES).map(([name, { type, labels = {}, buckets, help }]) => [
      code(name),
      type,
      [
        ...Object.entries(labels).map(([label, values]) => `${code(label)}: ${values.join(", ")}`),
        ...(buckets ? [`${code("le")}: ${buckets.join(", ")}`] : []),
      ].join("; "),
      help,
    ]),
  );
}

function refusalsTable(): string {
  return table(
    ["Status", "Code", "When"],
    Object.values(REFUSALS).map(({ status, code: name, when }) => [String(status), code(name), when]),
  );
}

const AUTHENTICATION: Readonly<Record<RouteFacts["auth"], string>> = {
  key: "key",
  none: "none",
  metrics: "key, see SERVICE_METRICS_REQUIRE_API_KEY",
};

const BODIES: Readonly<Record<RouteFacts["body"], string>> = {
  none: "",
  json: "JSON",
  multipart: "form",
  sdp: "SDP",
  text: "text",
};

function routesTable(): string {
  const facts = new Map(
    (fixture("routes") as { rows: RouteFacts[] }).rows.map((row) => [`${row.method} ${row.path}`, row]),
  );
  return table(
    ["Route", "What it does", "Key", "Body", "Success", "Failures"],
    ROUTES.map(({ method, path, summary }) => {
      const row = facts.get(`${method} ${path}`);
      if (!row) throw new Error(`fixtures/contract/routes.json has no row for ${method} ${path}`);
      return [
        code(`${method} ${path}`),
        summary,
        AUTHENTICATION[row.auth],
        BODIES[row.body],
        [row.success, ...row.also ?? []].join(", "),
        row.failures.join(", "),
      ];
    }),
  );
}

function eventsTable(): string {
  return table(
    ["Kind", "When it is written", "Group", "Grants"],
    Object.entries<EventRow>(EVENTS).map(([kind, row]) => [
      `[${kind}](#${anchorOf(kind)})`,
      row.summary + (row.bookkeeping ? " Never delivered to a webhook." : ""),
      GROUPS[kind] ?? "",
      row.blobs.map((grant) => `${grant.route}: ${code([...grant.at, hashKey(grant)].join("."))}`).join("; "),
    ]),
  );
}

function hashKey({ route, mediaType }: BlobGrant): string {
  if (mediaType) return "sha256";
  return route === "keyframes" ? "image_sha256" : "media_sha256";
}

function anchorOf(kind: string): string {
  return kind.replace(".*", "");
}

/** What each group of limits is about; a group without a line here has its name alone. */
function limitsTables(): string {
  const subjects = new Map(
    (fixture("limits") as { rows: { subject: string; at: string }[] }).rows.map((
      { at, subject },
    ) => [at, subject]),
  );
  const rowOf = (
    path: string,
    value: unknown,
  ) => [code(path), valueText(path, value), subjects.get(path) ?? ""];
  const head = ["Name", "Value", "Subject"];
  return Object.entries(LIMITS).flatMap(([group, rows]) => [
    `### ${group}`,
    table(head, Object.entries(rows).map(([name, value]) => rowOf(`${group}.${name}`, value))),
  ]).join("\n\n");
}

function fixture(name: string): unknown {
  return JSON.parse(Deno.readTextFileSync(new URL(`../../fixtures/contract/${name}.json`, import.meta.url)));
}
