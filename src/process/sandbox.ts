/** The sandbox of the service: a Worker that may touch its own folders and programs, and the network. */

import type { Config } from "../contract/config.ts";
import type { Places, Tools } from "../base/program_paths.ts";
import type { Certificate } from "../http3/listener.ts";
import type { ConnectionsSeen, ListenedAt, LookAtConnections } from "../http/connections.ts";
import type { BackendFile } from "../model/infer/backend_file.ts";
import { type Cage, type CageLevel, type StreamsBy, streamsOf } from "../media/broker/cage.ts";
import type { LabelMaps } from "../model/frames/label_map.ts";
import type { NamedSource } from "../model/sources/source_file.ts";
import { linkedFolders } from "../store/files/folder.ts";
import { lookAtConnections } from "./tcp_connections.ts";

/** Everything that the service needs to start, found before it is sandboxed. */
export interface Start {
  readonly config: Config;
  /** Whether both streams of the log go to one place, so that each line is written once. Absent for no. */
  readonly logsOnce?: boolean;
  /** The programs that the broker may start; the service itself may start none. */
  readonly tools: Tools;
  /** The cage in which the broker runs ffmpeg and ffprobe; null where it is found while the service runs. */
  readonly cage: Cage | null;
  readonly places: Places;
  /** How labels are renamed; absent or null for not at all. */
  readonly labelMaps?: LabelMaps | null;
  /** The model backends, by priority, and the zone of live sessions; none when absent. */
  readonly backendFile?: BackendFile;
  /** The named sources; none when absent. */
  readonly namedSources?: readonly NamedSource[];
  /** The certificate of the HTTP/3 listener; absent or null where there is none. */
  readonly certificate?: Certificate | null;
}

/** A message of the sandboxed service to the process that started it. */
export type ServiceNotice =
  | { readonly type: "listening"; readonly hostname: string; readonly port: number }
  | {
    readonly type: "look-at-connections";
    readonly question: number;
    readonly listener: ListenedAt;
    readonly clients: readonly string[];
  }
  | { readonly type: "failed"; readonly message: string }
  | { readonly type: "closed" };

/** A message of the process to the sandboxed service. */
export type ServiceOrder =
  | StartOrder
  | { readonly type: "cage"; readonly cage: CageFacts }
  /** Says that the file of named sources was read again. */
  | { readonly type: "sources"; readonly sources: SourcesRead }
  | { readonly type: "connections"; readonly question: number; readonly seen: ConnectionsSeen | null }
  | { readonly type: "close" };

/** The sources of the file; null where it cannot be used: then the sources stay as they are. */
export type SourcesRead = readonly NamedSource[] | null;

/** What the sandboxed service knows of the cage. */
export interface CageFacts {
  readonly level: CageLevel;
  readonly streams: StreamsBy;
}

export interface StartOrder {
  readonly type: "start";
  readonly start: Start;
  /** The way to the broker, which starts programs for the service. */
  readonly broker: MessagePort;
}

/**
 * The permissions of the service. See docs/security/sandbox.md.
 *
 * Deno checks every path after resolving `.` and `..`, but follows symbolic links inside a granted folder, so
 * code that opens a caller's path checks the real path too (`media/files/source.ts`). It asks for the real
 * path when an open file is looked at, so folders of the data directory that are links have to be granted. No
 * Worker may start a program: the broker does that outside (`media/broker/broker.ts`), for the jobs that it
 * knows, after it has checked their paths.
 *
 * The network is granted as a whole: callers choose the hosts (webhooks, remote sources), and the permissions
 * of a Worker have no list of denied hosts. Code restricts it instead: only `remote/` connects (a house test
 * checks that), and it connects to addresses that `remote/guard/address_guard.ts` has found to be public. Of
 * the system the service sees the installed certificate authorities, the processors and the network
 * interfaces.
 */
export function permissionsOf(
  { config, places }: Pick<Start, "config" | "places">,
): Deno.PermissionOptionsObject {
  const { dataDir, uploadRoot, tempDir, socketDir, ingestRoots, codeDirs, pagesDir } = places;
  const own = [...new Set([dataDir, uploadRoot, tempDir, socketDir, ...linkedFolders(dataDir)])];
  return {
    read: [...own, ...ingestRoots, ...codeDirs, pagesDir],
    // Sending to a Unix socket needs the permission to write to its path.
    write: [
      ...own,
      ...(config.triggerLocalOutputSocket ? [config.triggerLocalOutputSocket] : []),
    ],
    run: false,
    net: true,
    env: false,
    // Live media offers publishers the addresses of the network interfaces; GET /v1/system tells the room on
    // the disk.
    sys: ["ca", "networkInterfaces", "cpus", "statfs"],
    ffi: false,
    import: false,
  };
}

/** Loads `entry` as the sandboxed service, which waits for the order to start. */
export function loadSandboxed(entry: URL, start: Start): Worker {
  const worker = new Worker(entry.href, {
    type: "module",
    name: "service",
    deno: { permissions: permissionsOf(start) },
  });
  answerAboutConnections(worker);
  return worker;
}

/**
 * The order that starts a service whose programs `broker` starts, at once or later. Its port is to be
 * transferred.
 */
export function startOrder(start: Start, broker: { serve(port: MessagePort): void }): StartOrder {
  const { port1, port2 } = new MessageChannel();
  broker.serve(port1);
  return { type: "start", start, broker: port2 };
}

/** Looks at the connections for a sandboxed service, as it may not read the system's list of them. */
export function answerAboutConnections(worker: Worker): void {
  worker.addEventListener("message", ({ data: notice }: MessageEvent<ServiceNotice>) => {
    if (notice.type !== "look-at-connections") return;
    const { question, listener, clients } = notice;
    void lookAtConnections(listener, clients).then((seen) =>
      worker.postMessage({ type: "connections", question, seen } satisfies ServiceOrder)
    );
  });
}

/** The side of the sandboxed service: asks with `post`, and is told every answer. */
export class ConnectionQuestions {
  readonly #post: (notice: ServiceNotice) => void;
  readonly #asked = new Map<number, (seen: ConnectionsSeen | null) => void>();
  #last = 0;

  constructor(post: (notice: ServiceNotice) => void) {
    this.#post = post;
  }

  readonly ask: LookAtConnections = (listener, clients) => {
    const question = ++this.#last;
    const answered = Promise.withResolvers<ConnectionsSeen | null>();
    this.#asked.set(question, answered.resolve);
    this.#post({ type: "look-at-connections", question, listener, clients });
    return answered.promise;
  };

  answer({ question, seen }: Extract<ServiceOrder, { type: "connections" }>): void {
    this.#asked.get(question)?.(seen);
    this.#asked.delete(question);
  }
}

export function factsOf(cage: Cage): CageFacts {
  return { level: cage.level, streams: streamsOf(cage).by };
}
