/** Where the code of the service lies, and the folders and programs that it may use, found before it enters
 * its sandbox.
 */

// This file lies two folders below the project in both forms of the code: src/base/, and dist/bundle/ where
// it is bundled (scripts/build_service.ts).
const IS_BUNDLED = import.meta.url.endsWith(".mjs");
export const PROJECT = new URL("../../", import.meta.url);
/** The modules of the service. */
export const CODE = new URL(IS_BUNDLED ? "./" : "../", import.meta.url);

/** The modules that start a Worker or a process, in `CODE`. */
export const ENTRIES = {
  main: "main",
  forwarder: "process/forwarder_process",
  service: "service/service_worker",
  decode: "media/files/decode_worker",
  live: "live/live_worker",
  relay: "remote/sources/relay_worker",
  schema: "flow/reason/schema_worker",
  dataTools: "data_tools/data_tools_worker",
} as const;

/** A bundle has all entries in one folder. */
export function entryOf(name: keyof typeof ENTRIES): URL {
  const path = ENTRIES[name];
  return new URL(IS_BUNDLED ? `${path.slice(path.lastIndexOf("/") + 1)}.mjs` : `${path}.ts`, CODE);
}

/** Hardware that decodes video for ffmpeg. See docs/deployment.md#hardware-decoding. */
export const HARDWARE_DECODERS = ["nvdec-cuda", "vaapi", "videotoolbox"] as const;
export type HardwareDecoder = typeof HARDWARE_DECODERS[number];

export const DECODE_BACKENDS = ["cpu-ffmpeg", ...HARDWARE_DECODERS] as const;
export type DecodeBackend = typeof DECODE_BACKENDS[number];

/** The hardware that a machine may have, with the device files that each kind needs. */
export type DecodeDevices = Readonly<Partial<Record<HardwareDecoder, readonly string[]>>>;

/**
 * Absolute paths of the programs that the service may start; null for an optional one that is not installed.
 */
export interface Tools {
  readonly ffmpeg: string;
  readonly ffprobe: string;
  /** Creates the named pipes through which decoded frames are read. */
  readonly mkfifo: string;
  /** Limits a program's CPU time and memory; absent outside Linux. */
  readonly prlimit: string | null;
  /** Lowers a program's priority; without it all programs have the same one. */
  readonly nice?: string | null;
  /** Lists the NVIDIA graphics cards; null or absent where it is not installed. */
  readonly nvidiaSmi?: string | null;
  /** Device files of the decode hardware that was found; none when absent. */
  readonly devices?: DecodeDevices;
}

/**
 * Absolute paths of the programs from which the cage of decoders is built; null for one that is not
 * installed.
 */
export interface CageTools {
  readonly bwrap: string | null;
  readonly sh: string | null;
  readonly unshare: string | null;
  readonly nsenter: string | null;
  readonly setpriv: string | null;
  readonly mount: string | null;
  readonly umount: string | null;
  readonly pivotRoot: string | null;
  readonly mkdir: string | null;
}

/** Real paths of existing directories. */
export interface Places {
  readonly dataDir: string;
  readonly uploadRoot: string;
  /** The folder for named pipes and files that live as long as one request. */
  readonly tempDir: string;
  /**
   * The folder for the sockets of programs: `tempDir`, or one with a shorter path where that one is too long
   * for a socket.
   */
  readonly socketDir: string;
  readonly ingestRoots: readonly string[];
  /** The service's own code, kernels and fitted trees. */
  readonly codeDirs: readonly string[];
  /** The web pages, as `scripts/build_pages.ts` builds them; it need not exist. */
  readonly pagesDir: string;
}
