/** The sandbox of the service: a Worker that may touch its own folders and programs, and the network. */

import type { Config } from "./base/config.ts";
import type { Places, Tools } from "./base/program_paths.ts";
import type { BackendFile } from "./model/infer/backend_file.ts";
import type { LabelMaps } from "./model/frames/label_map.ts";

/** Everything that the service needs to start, settled before it is confined. */
export interface Start {
  readonly config: Config;
  readonly tools: Tools;
  readonly places: Places;
  /** How labels are renamed; absent or null for not at all. */
  readonly labelMaps?: LabelMaps | null;
  /** The model backends, by priority, and the zone of live sessions; none when absent. */
  readonly backendFile?: BackendFile;
}

/** What the confined service tells the process that started it. */
export type ServiceNotice =
  | { readonly type: "listening"; readonly hostname: string; readonly port: number }
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "closed" };

/** What the process asks of the confined service. */
export type ServiceOrder = { readonly type: "start"; readonly start: Start } | { readonly type: "close" };

/**
 * What the service may do. Deno checks every path after resolving `.` and `..`, but follows symbolic links inside a
 * granted folder, so code that opens a caller's path checks the real path too (`media/source.ts`).
 * The programs that are started are not confined by this: `media/process.ts` limits them in its own ways.
 *
 * The network is granted whole: whom the service calls is named by its callers (webhooks, remote sources), and a Worker
 * has no list of what to deny. What holds instead is code: only `remote/` connects (`test/house/house.ts`), and it connects to
 * addresses that `remote/guard/address_guard.ts` has found to be public. Of the system it sees the installed certificate authorities,
 * its processors and its network interfaces.
 */
export function permissionsOf(
  { config, tools, places }: Pick<Start, "config" | "tools" | "places">,
): Deno.PermissionOptionsObject {
  const { dataDir, uploadRoot, tempDir, operatorRoots, codeDirs } = places;
  return {
    read: [dataDir, uploadRoot, tempDir, ...operatorRoots, ...codeDirs],
    // To send to a Unix socket is to write to its path.
    write: [
      dataDir,
      uploadRoot,
      tempDir,
      ...(config.triggerLocalOutputSocket ? [config.triggerLocalOutputSocket] : []),
    ],
    run: Object.values(tools).filter((path) => path !== null),
    net: true,
    env: false,
    // Live media needs the addresses that publishers can reach.
    sys: ["ca", "networkInterfaces", "cpus"],
    ffi: false,
    import: false,
  };
}

/** Starts `entry` as the confined service and hands it what it needs. */
export function startSandboxed(entry: URL, start: Start): Worker {
  const worker = new Worker(entry.href, {
    type: "module",
    name: "service",
    deno: { permissions: permissionsOf(start) },
  });
  worker.postMessage({ type: "start", start } satisfies ServiceOrder);
  return worker;
}
