/** Finds the programs and folders that the sandboxed service may use, creates its own folders, reads the
 * files of secrets.
 */

import { errorText } from "../base/log.ts";
import { isAbsolute, join, resolve } from "node:path";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { type Config, secretFileVariables } from "../contract/config.ts";
import { utf8Length } from "../base/bytes.ts";
import {
  type CageTools,
  CODE,
  type DecodeDevices,
  entryOf,
  type Places,
  PROJECT,
  type Tools,
} from "../base/program_paths.ts";
import { FORWARD_STREAMS } from "./clean_process.ts";
import type { ForwarderCommand } from "../media/broker/forwarder.ts";
import { SOCKET_NAME_BYTES, SOCKET_PATH_BYTES_MAX } from "../media/broker/job_paths.ts";
import { claimDataDir, claimFolder, claimTempFolder, FolderFault } from "../store/files/own_folder.ts";
import { adoptFormerUploads } from "../store/media/upload_root.ts";

/**
 * Where earlier versions kept uploads, under the system's temporary folder. See
 * docs/deployment/data-directory.md#upload-root.
 */
const FORMER_UPLOAD_ROOT = "service-uploads";

const SOCKET_DIR_BYTES_MAX = SOCKET_PATH_BYTES_MAX - SOCKET_NAME_BYTES;
const SOCKET_DIR_PREFIX = "service-sockets-";
/** The longest secret in bytes. A secret is a line of text; a longer file was named by mistake. */
const SECRET_BYTES_MAX = 64 * 1024;

/**
 * The variables with each secret that a file holds (`SERVICE_API_KEYS_FILE` for `SERVICE_API_KEYS`) under the
 * name of its setting. Adds what is wrong to `faults`. See docs/configuration.md#secrets-in-files.
 */
export function readSecretFiles(
  variables: Readonly<Record<string, string>>,
  faults: string[],
): Record<string, string> {
  const read = { ...variables };
  for (const [fileVariable, name] of secretFileVariables()) {
    const path = variables[fileVariable]?.trim();
    if (!path) continue;
    if (variables[name]?.trim()) {
      faults.push(`${fileVariable} and ${name} must not both be set: remove one of them`);
      continue;
    }
    try {
      read[name] = oneLineOf(path);
    } catch (error) {
      faults.push(
        `${fileVariable} must name a file with one line of UTF-8 text, got ${JSON.stringify(path)}: ${
          errorText(error)
        }; correct the path or the file, or set ${name} itself`,
      );
    }
  }
  return read;
}

/**
 * The text of a file without the line break at its end. The reason of an error contains nothing of the text.
 */
function oneLineOf(path: string): string {
  const bytes = Deno.readFileSync(path);
  if (bytes.length > SECRET_BYTES_MAX) throw new Error(`it has more than ${SECRET_BYTES_MAX} bytes`);
  const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes).replace(/\r?\n$/, "");
  if (text.trim() === "") throw new Error("it is empty");
  if (/[\r\n]/.test(text)) throw new Error("it has several lines");
  return text;
}

// A field of the configuration that is undefined here belongs to a faulty variable. That fault is reported
// already, so nothing is checked, created or reported for it a second time.

/** Looks each program up like a shell would. Adds what is missing to `faults`. */
export function findTools(
  config: Partial<Pick<Config, "ffmpegPath" | "ffprobePath" | "nvidiaSmiPath">>,
  faults: string[],
): Tools {
  return {
    ffmpeg: required("SERVICE_FFMPEG_PATH", config.ffmpegPath),
    ffprobe: required("SERVICE_FFPROBE_PATH", config.ffprobePath),
    mkfifo: required("mkfifo", "mkfifo"),
    prlimit: find("prlimit") ?? null,
    nice: find("nice") ?? null,
    nvidiaSmi: (config.nvidiaSmiPath && find(config.nvidiaSmiPath)) ?? null,
    devices: findDecodeDevices(),
  };

  function required(name: string, program: string | undefined): string {
    if (program === undefined) return "";
    const path = find(program);
    if (path === undefined) {
      faults.push(
        `${name} must name an executable program, got ${JSON.stringify(program)}; ${
          name.startsWith("SERVICE_")
            ? `install it, or set ${name} to its path`
            : "install it, or add its folder to PATH"
        }`,
      );
    }
    return path ?? program;
  }
}

/** Device files of NVIDIA cards; of several cards the first one is used. */
const NVIDIA_DEVICES = ["/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia0"];
const GRAPHICS_DEVICES = "/dev/dri";

/**
 * Looks for device files only; whether ffmpeg can use them is found out later (`media/files/hardware.ts`).
 */
function findDecodeDevices(): DecodeDevices {
  const node = renderNode();
  const nvidia = NVIDIA_DEVICES.filter(isThere);
  return {
    ...(nvidia.length > 0 && { "nvdec-cuda": nvidia }),
    ...(node !== undefined && { vaapi: [node] }),
    ...(Deno.build.os === "darwin" && { videotoolbox: [] }),
  };
}

/** The first graphics card that can be used without a screen. */
function renderNode(): string | undefined {
  try {
    const names = Array.from(Deno.readDirSync(GRAPHICS_DEVICES), ({ name }) => name);
    const [first] = names.filter((name) => name.startsWith("renderD")).sort();
    return first && join(GRAPHICS_DEVICES, first);
  } catch {
    return undefined; // there is none
  }
}

/**
 * Programs from which the cage of decoders is built, see docs/security/cage.md. None of them must be there.
 */
export function findCageTools(): CageTools {
  const found = (program: string) => find(program, SYSTEM_FOLDERS) ?? null;
  return {
    bwrap: found("bwrap"),
    sh: found("sh"),
    unshare: found("unshare"),
    nsenter: found("nsenter"),
    setpriv: found("setpriv"),
    mount: found("mount"),
    umount: found("umount"),
    pivotRoot: found("pivot_root"),
    mkdir: found("mkdir"),
  };
}

/**
 * How the process of the forwarder is started, see docs/security/sandbox.md#forwarder: by Deno, or by the
 * service that was compiled with it.
 */
export function forwarderCommand(): ForwarderCommand {
  const program = Deno.execPath();
  if (Deno.build.standalone) return { program, options: [], entry: FORWARD_STREAMS };
  const options = ["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm"];
  // Its own network has nothing but 127.0.0.1, and it gives up the right to load native code after its first
  // step.
  options.push("--no-code-cache", "--v8-flags=--max-old-space-size=64", "--allow-net", "--allow-ffi");
  return {
    program,
    options,
    entry: fileURLToPath(entryOf("forwarder")),
  };
}

/** The path of a folder without the slash at its end. */
function folderPath(url: URL): string {
  return fileURLToPath(url).slice(0, -1);
}

/** Where programs for administrators are, which users often do not have on PATH. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/sbin"];

/**
 * Creates the folders that the service owns and resolves the configured ones. Adds what is wrong to `faults`.
 */
export function preparePlaces(
  config: Partial<Pick<Config, "dataDir" | "uploadRoot" | "ingestFileRoots">>,
  faults: string[],
): Places {
  const hasDataDir = config.dataDir !== undefined;
  const faultsBefore = faults.length;
  const dataDir = hasDataDir
    ? claimed("SERVICE_DATA_DIR", "SERVICE_DATA_DIR", resolve(config.dataDir), claimDataDir)
    : "";
  // Nothing is made in a data directory with a fault.
  const tempDir = hasDataDir && faults.length === faultsBefore
    ? claimed(
      "the temporary folder",
      "SERVICE_DATA_DIR",
      join(dataDir, "tmp"),
      () => claimTempFolder(dataDir),
    )
    : "";
  return {
    dataDir,
    uploadRoot: tempDir !== "" ? uploadRoot() : "",
    tempDir,
    socketDir: socketDir(tempDir),
    ingestRoots: (config.ingestFileRoots ?? []).map(ingestRoot),
    codeDirs: [CODE, new URL("wasm/", PROJECT), new URL("weights/", PROJECT)].map(folderPath),
    pagesDir: folderPath(new URL("dist/pages/", PROJECT)),
  };

  /** The real path of the folder; `path` itself where it has a fault. */
  function claimed(name: string, setting: string, path: string, claim: (path: string) => string): string {
    try {
      return claim(path);
    } catch (error) {
      const rule = error instanceof FolderFault
        ? error.message
        : `a folder that can be made: ${
          errorText(error)
        }; set ${setting} to a folder in which this user may write`;
      faults.push(`${name} ${JSON.stringify(path)} must be ${rule}`);
      return path;
    }
  }

  /**
   * The folder of the sockets: another one than `tempDir` where its path is too long, as the system bounds
   * the path of a socket.
   */
  function socketDir(tempDir: string): string {
    const isShort = (path: string) => utf8Length(path) <= SOCKET_DIR_BYTES_MAX;
    if (isShort(tempDir)) return tempDir;
    let why = "its path is too long as well";
    try {
      const made = Deno.realPathSync(Deno.makeTempDirSync({ prefix: SOCKET_DIR_PREFIX }));
      if (isShort(made)) return made;
      Deno.removeSync(made);
    } catch (error) {
      why = errorText(error);
    }
    const most = SOCKET_DIR_BYTES_MAX - utf8Length("/tmp");
    faults.push(
      `SERVICE_DATA_DIR must have a real path of at most ${most} bytes where the temporary folder of the system cannot be ` +
        `used (${why}), got ${JSON.stringify(dataDir)}; set it, or TMPDIR, to a folder with a shorter path`,
    );
    return tempDir;
  }

  function uploadRoot(): string {
    const path = config.uploadRoot === undefined ? join(dataDir, "uploads") : resolve(config.uploadRoot);
    const setting = "SERVICE_UPLOAD_ROOT";
    return claimed("the upload root", setting, path, () => claimFolder(path, setting));
  }

  function ingestRoot(path: string): string {
    try {
      const real = Deno.realPathSync(path);
      if (Deno.statSync(real).isDirectory) return real;
    } catch {
      // reported below
    }
    faults.push(
      `SERVICE_INGEST_FILE_ROOTS must name existing folders, got ${
        JSON.stringify(path)
      }; make the folder, or take it out of the list`,
    );
    return path;
  }
}

/** Removes the folder of the sockets where it is one of its own, made for this process. */
export function removeSocketDir({ socketDir, tempDir }: Pick<Places, "socketDir" | "tempDir">): void {
  if (socketDir !== tempDir) Deno.removeSync(socketDir, { recursive: true });
}

/**
 * Moves the uploads of an earlier version into the upload root, on the first start on a data directory that
 * has a timeline already: a new one has no uploads to miss. Returns their number.
 */
export function adoptUploads({ dataDir, uploadRoot }: Pick<Places, "dataDir" | "uploadRoot">): number {
  try {
    Deno.lstatSync(join(dataDir, "timeline"));
  } catch {
    return 0;
  }
  return adoptFormerUploads(join(Deno.env.get("TMPDIR") ?? tmpdir(), FORMER_UPLOAD_ROOT), uploadRoot);
}

/** The real path of an executable file named by a path or found on PATH. */
function find(program: string, moreFolders: readonly string[] = []): string | undefined {
  const candidates = program.includes("/")
    ? [isAbsolute(program) ? program : resolve(program)]
    : [...(Deno.env.get("PATH") ?? "").split(":"), ...moreFolders].filter((dir) => dir !== "")
      .map((dir) => join(dir, program));
  return candidates.find(isExecutableFile);
}

/** Whether something is at the path, or may be: of a path that cannot be looked at, its reader tells why. */
export function isThere(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch (error) {
    return !(error instanceof Deno.errors.NotFound);
  }
}

function isExecutableFile(path: string): boolean {
  try {
    const { isFile, mode } = Deno.statSync(path);
    return isFile && mode !== null && (mode & 0o111) !== 0;
  } catch {
    return false;
  }
}
