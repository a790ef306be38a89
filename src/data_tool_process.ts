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

const TOOLS = ["verify", "repair"] as const;
type DataTool = typeof TOOLS[number];

export function isDataTool(name: string | undefined): name is DataTool {
  return TOOLS.some((tool) => tool === name);
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
  const { options } = readArguments(tool, args);
  const places = placesOf(options["data-dir"], variables);
  const asJson = options.json === true;
  return {
    order: { tool, places, asJson },
    permissions: only({
      read: [places.dataDir, places.uploadRoot],
      write: tool === "repair" ? [places.dataDir] : false,
    }),
  };
}

function readArguments(tool: DataTool, args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { json: { type: "boolean" }, "data-dir": { type: "string" } },
    });
    if (positionals.length > 0) throw new Error(`it takes no argument '${positionals[0]}'`);
    return { options: values, positionals };
  } catch (error) {
    throw new UsageFault(`service ${tool}: ${reason(error)}; --help has the commands`);
  }
}

/** Of an existing data directory. Nothing is made. */
function placesOf(given: string | undefined, variables: Environment["variables"]): CheckedPlaces {
  const { SERVICE_DATA_DIR, SERVICE_UPLOAD_ROOT } = variables;
  const { config, faults } = readVariables({
    SERVICE_REQUIRE_API_KEY: "false",
    ...{ SERVICE_DATA_DIR: given ?? SERVICE_DATA_DIR, SERVICE_UPLOAD_ROOT },
  });
  if (faults.length > 0) throw new UsageFault(faults.join("\n"));
  const path = resolve(config.dataDir!);
  try {
    const dataDir = Deno.realPathSync(path);
    if (!Deno.statSync(join(dataDir, "timeline")).isDirectory) throw new Error("timeline is no folder");
    const uploads = config.uploadRoot === undefined ? join(dataDir, "uploads") : resolve(config.uploadRoot);
    return { dataDir, uploadRoot: isFolder(uploads) ? Deno.realPathSync(uploads) : uploads };
  } catch (error) {
    throw new UsageFault(
      `${path} is no data directory of this service: ${
        reason(error)
      }; set SERVICE_DATA_DIR, or give --data-dir`,
    );
  }
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
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
