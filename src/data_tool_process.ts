/** Runs a tool on a data directory in a Worker that may touch nothing but that directory and the tool's target. */

import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { readVariables } from "./base/config.ts";
import { CODE, entryOf } from "./base/program_paths.ts";
import type { Environment } from "./clean_process.ts";
import { TOOL_EXIT, type ToolNotice, type ToolOrder } from "./data_tools/tool_order.ts";
import { reason } from "./environment.ts";
import type { CheckedPlaces } from "./store/checks/directory_check.ts";

/** With the names of the arguments behind it. */
const TOOLS = {
  verify: [],
  repair: [],
  backup: ["TARGET"],
  backups: ["TARGET"],
  restore: ["SOURCE"],
} as const satisfies Readonly<Record<string, readonly string[]>>;
type DataTool = keyof typeof TOOLS;

export function isDataTool(name: string | undefined): name is DataTool {
  return name !== undefined && Object.hasOwn(TOOLS, name);
}

/** Wrong arguments or settings, in words for the operator. */
class UsageFault extends Error {}

/** Returns the exit code. */
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
  const read = [dataDir, uploadRoot];
  if (tool === "verify" || tool === "repair") {
    requireDataDirectory(dataDir);
    return {
      order: { tool, places, asJson },
      permissions: only({ read, write: tool === "repair" ? [dataDir] : false }),
    };
  }
  const folder = targetFolder(tool, positionals[0]!, places);
  const place = { folder };
  if (tool === "restore") {
    makeFolder(dataDir);
    return {
      order: {
        tool,
        places: { ...places, dataDir: Deno.realPathSync(dataDir) },
        place,
        backupId: options.backup,
        asJson,
      },
      permissions: only({ read: [...read, folder], write: read }),
    };
  }
  if (tool === "backup") requireDataDirectory(dataDir);
  return {
    order: { tool, places, place, asJson },
    permissions: only({ read: [...read, folder], write: tool === "backup" ? [folder] : false }),
  };
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
      },
    });
    const { length } = TOOLS[tool];
    if (positionals.length < length) throw new Error(`it takes ${TOOLS[tool].join(" and ")}`);
    if (positionals.length > length) throw new Error(`it takes no argument '${positionals[length]}'`);
    return { options: values as { json?: boolean; "data-dir"?: string; backup?: string }, positionals };
  } catch (error) {
    throw new UsageFault(`service ${tool}: ${reason(error)}; --help has the commands`);
  }
}

/** Real paths, as far as they are there. Nothing is made. */
function placesOf(given: string | undefined, variables: Environment["variables"]): CheckedPlaces {
  const { SERVICE_DATA_DIR, SERVICE_UPLOAD_ROOT } = variables;
  const { config, faults } = readVariables({
    SERVICE_REQUIRE_API_KEY: "false",
    ...{ SERVICE_DATA_DIR: given ?? SERVICE_DATA_DIR, SERVICE_UPLOAD_ROOT },
  });
  if (faults.length > 0) throw new UsageFault(faults.join("\n"));
  const dataDir = realPath(config.dataDir!);
  return { dataDir, uploadRoot: realPath(config.uploadRoot ?? join(dataDir, "uploads")) };
}

function realPath(path: string): string {
  try {
    return Deno.realPathSync(path);
  } catch {
    return resolve(path);
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

/** The real path of a folder for backups, which a first backup makes. It lies outside of what is backed up. */
function targetFolder(tool: DataTool, target: string, { dataDir, uploadRoot }: CheckedPlaces): string {
  const path = resolve(target);
  if (tool === "backup") makeFolder(path);
  const folder = realPath(path);
  for (const own of [dataDir, uploadRoot]) {
    if (folder === own || folder.startsWith(`${own}/`) || own.startsWith(`${folder}/`)) {
      throw new UsageFault(`${folder} must lie outside of ${own}, and not around it`);
    }
  }
  try {
    if (Deno.statSync(folder).isDirectory) return folder;
  } catch (error) {
    throw new UsageFault(`${target} is no folder with backups: ${reason(error)}`);
  }
  throw new UsageFault(`${target} is no folder`);
}

function makeFolder(path: string): void {
  try {
    Deno.mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new UsageFault(`${path} cannot be made: ${reason(error)}`);
  }
}

/** Everything that is not named is denied. Its own code it may read. */
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
