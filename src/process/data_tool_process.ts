/** Runs a tool on a data directory in a Worker that may touch nothing but that directory and the tool's
 * target.
 */

import { errorText } from "../base/log.ts";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readVariables } from "../contract/config.ts";
import { CODE, entryOf } from "../base/program_paths.ts";
import type { Environment } from "./clean_process.ts";
import { type BackupPlace, TOOL_EXIT, type ToolNotice, type ToolOrder } from "../data_tools/tool_order.ts";
import { INSTANCE_KEY_FILE } from "../store/bundle/instance_key.ts";
import { linkedFolders } from "../store/files/folder.ts";
import { readSecretFiles } from "./environment.ts";
import type { S3Place } from "../remote/s3_storage.ts";
import type { CheckedPlaces } from "../store/checks/directory_check.ts";

/** The tools, with the names of their arguments. */
const TOOLS = {
  verify: [],
  repair: [],
  backup: ["TARGET"],
  backups: ["TARGET"],
  restore: ["SOURCE"],
  export: ["RUN", "TARGET"],
  "public-key": [],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type DataTool = keyof typeof TOOLS;

export function isDataTool(name: string | undefined): name is DataTool {
  return name !== undefined && Object.hasOwn(TOOLS, name);
}

/** The error of wrong arguments or settings, in words for the operator. */
class UsageFault extends Error {}

/** Runs the tool that the arguments name. Returns the exit code. */
export async function runDataTool(
  tool: DataTool,
  args: readonly string[],
  variables: Environment["variables"],
): Promise<number> {
  try {
    const { order, permissions } = orderOf(tool, args, variables);
    return await inWorker(order, permissions);
  } catch (error) {
    if (!(error instanceof UsageFault)) throw error;
    console.error(error.message);
    return TOOL_EXIT.usage;
  }
}

interface ConfinedOrder {
  readonly order: ToolOrder;
  readonly permissions: Deno.PermissionOptionsObject;
}

function orderOf(
  tool: DataTool,
  args: readonly string[],
  variables: Environment["variables"],
): ConfinedOrder {
  const { options, positionals } = readArguments(tool, args);
  const asJson = options.json === true;
  const places = placesOf(options["data-dir"], variables);
  const { dataDir, uploadRoot } = places;
  const read = [dataDir, uploadRoot, ...linkedFolders(dataDir)];
  if (tool === "verify" || tool === "repair") {
    requireDataDirectory(dataDir);
    return {
      order: { tool, places, asJson },
      permissions: only({ read, write: tool === "repair" ? [dataDir] : false }),
    };
  }
  const keyFile = join(dataDir, INSTANCE_KEY_FILE);
  if (tool === "public-key") {
    requireDataDirectory(dataDir);
    return { order: { tool, places, asJson }, permissions: only({ read, write: [keyFile] }) };
  }
  const target = positionals.at(-1)!;
  if (tool === "export") {
    requireDataDirectory(dataDir);
    const folder = targetFolder(tool, target, places);
    const order = { tool, places, runId: positionals[0]!, target: folder, asJson } as const;
    return { order, permissions: only({ read: [...read, folder], write: [keyFile, folder] }) };
  }
  if (tool === "backup") requireDataDirectory(dataDir);
  const place: BackupPlace = target.startsWith("s3:")
    ? { s3: s3Place(target, variables) }
    : { folder: targetFolder(tool, target, places) };
  const folders = "folder" in place ? [place.folder] : [];
  const net = "s3" in place && [hostOf(place.s3.endpoint)];
  if (tool === "restore") {
    return {
      order: { tool, places, place, backupId: options.backup, asJson },
      permissions: only({ read: [...read, ...folders], write: read, net }),
    };
  }
  const permissions = only({ read: [...read, ...folders], write: tool === "backup" ? folders : false, net });
  if (tool === "backups") return { order: { tool, places, place, asJson }, permissions };
  return { order: { tool, places, place, keep: keptBackups(options.keep), asJson }, permissions };
}

function keptBackups(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(text)) {
    throw new UsageFault(`--keep must be a whole number of at least 1, got '${text}'`);
  }
  return Number(text);
}

/** Reads `s3://bucket/prefix`, and adds the settings of the storage. */
function s3Place(target: string, given: Environment["variables"]): S3Place {
  const [, bucket, prefix] = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,62})(?:\/(.*))?$/.exec(target) ?? [];
  if (bucket === undefined) throw new UsageFault(`${target} must be s3://BUCKET or s3://BUCKET/PREFIX`);
  const faults: string[] = [];
  const own = Object.entries(given).filter(([name]) => name.startsWith("SERVICE_BACKUP_S3_"));
  const { config, faults: others } = readVariables({
    SERVICE_REQUIRE_API_KEY: "false",
    ...readSecretFiles(Object.fromEntries(own), faults),
  });
  faults.push(...others);
  const { endpoint, region, accessKeyId, secretAccessKey } = config.backupS3!;
  if (faults.length === 0 && (accessKeyId === undefined || secretAccessKey === undefined)) {
    faults.push(`${target} needs SERVICE_BACKUP_S3_ACCESS_KEY_ID and SERVICE_BACKUP_S3_SECRET_ACCESS_KEY`);
  }
  if (faults.length > 0) throw new UsageFault(faults.join("\n"));
  return {
    ...{ endpoint, region, bucket },
    prefix: prefix ? `${prefix.replace(/\/+$/, "")}/` : "",
    ...{ accessKeyId: accessKeyId!, secretAccessKey: secretAccessKey! },
  };
}

/** The host of an endpoint with its port, as permissions have it. */
function hostOf(endpoint: string): string {
  const { hostname, port, protocol } = new URL(endpoint);
  return `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`;
}

function readArguments(tool: DataTool, args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        json: { type: "boolean" },
        "data-dir": { type: "string" },
        ...(tool === "restore" && { backup: { type: "string" } }),
        ...(tool === "backup" && { keep: { type: "string" } }),
      },
    });
    const { length } = TOOLS[tool];
    if (positionals.length < length) throw new Error(`it takes ${TOOLS[tool].join(" and ")}`);
    if (positionals.length > length) throw new Error(`it takes no argument '${positionals[length]}'`);
    // Of a variable of a script that is not set; it would be the working directory.
    const empty = positionals.indexOf("");
    if (empty >= 0) throw new Error(`${TOOLS[tool][empty]} is empty`);
    return {
      options: values as { json?: boolean; "data-dir"?: string; backup?: string; keep?: string },
      positionals,
    };
  } catch (error) {
    throw new UsageFault(`service ${tool}: ${errorText(error)}; --help has the commands`);
  }
}

/** The real paths of the data, as far as they are there. Nothing is made. */
function placesOf(given: string | undefined, variables: Environment["variables"]): CheckedPlaces {
  const { SERVICE_DATA_DIR, SERVICE_UPLOAD_ROOT } = variables;
  const { config, faults } = readVariables({
    SERVICE_REQUIRE_API_KEY: "false",
    ...{ SERVICE_DATA_DIR: given ?? SERVICE_DATA_DIR, SERVICE_UPLOAD_ROOT },
  });
  if (faults.length > 0) throw new UsageFault(faults.join("\n"));
  const dataDir = futurePath(resolve(config.dataDir!));
  return { dataDir, uploadRoot: futurePath(resolve(config.uploadRoot ?? join(dataDir, "uploads"))) };
}

/** The real path that a folder has once it is made. */
function futurePath(path: string): string {
  const parent = dirname(path);
  try {
    return Deno.realPathSync(path);
  } catch {
    return parent === path ? path : join(futurePath(parent), basename(path));
  }
}

function requireDataDirectory(dataDir: string): void {
  try {
    if (Deno.statSync(join(dataDir, "timeline")).isDirectory) return;
  } catch {
    // said below
  }
  throw new UsageFault(
    `${dataDir} is no data directory of this service, it has no folder timeline; set SERVICE_DATA_DIR, or give --data-dir`,
  );
}

/**
 * The real path of a folder, made for a backup; an export makes its own. It lies outside of what is backed
 * up.
 */
function targetFolder(tool: DataTool, target: string, { dataDir, uploadRoot }: CheckedPlaces): string {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(target)) {
    throw new UsageFault(
      `${target} must be a folder${tool === "export" ? "" : ", or s3://BUCKET or s3://BUCKET/PREFIX"}`,
    );
  }
  const folder = futurePath(resolve(target));
  for (const own of [dataDir, uploadRoot]) {
    if (folder === own || folder.startsWith(`${own}/`) || own.startsWith(`${folder}/`)) {
      throw new UsageFault(`${folder} must lie outside of ${own}, and not around it`);
    }
  }
  if (tool === "export") return folder;
  if (tool === "backup") makeFolder(folder);
  try {
    if (Deno.statSync(folder).isDirectory) return folder;
  } catch (error) {
    throw new UsageFault(`${target} is no folder with backups: ${errorText(error)}`);
  }
  throw new UsageFault(`${target} is no folder`);
}

function makeFolder(path: string): void {
  try {
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageFault(`${path} cannot be made: ${errorText(error)}`);
  }
}

/** Permissions for what is named; everything else is denied. A Worker may read its own code. */
function only(
  { read, write, net = false }: {
    readonly read: readonly string[];
    readonly write: readonly string[] | false;
    readonly net?: readonly string[] | false;
  },
): Deno.PermissionOptionsObject {
  return {
    read: [...read, fileURLToPath(CODE).slice(0, -1)],
    write: write === false ? false : [...write],
    net: net === false ? false : [...net],
    ...{ env: false, run: false, sys: false, ffi: false, import: false },
  };
}

/** Prints what the Worker tells; returns its exit code. */
async function inWorker(order: ToolOrder, permissions: Deno.PermissionOptionsObject): Promise<number> {
  const end = Promise.withResolvers<number>();
  const worker = new Worker(entryOf("dataTools").href, {
    type: "module",
    name: order.tool,
    deno: { permissions },
  });
  worker.onmessage = ({ data: notice }: MessageEvent<ToolNotice>) => {
    if (notice.type === "end") return end.resolve(notice.code);
    if (notice.to === "stdout") console.log(notice.text);
    else console.error(notice.text);
  };
  worker.onerror = (event) => {
    event.preventDefault();
    console.error(`the tool ended unexpectedly: ${event.message}`);
    end.resolve(TOOL_EXIT.failed);
  };
  worker.postMessage(order);
  try {
    return await end.promise;
  } finally {
    worker.terminate();
  }
}
