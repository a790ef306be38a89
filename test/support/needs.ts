/** What some tests need of the machine: where it is missing they are skipped, under a name that gives the
 * reason.
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { canMountSmallDisk } from "./folders.ts";

export interface Need {
  readonly isMet: () => boolean;
  readonly reason: string;
}

/** Real clips beside the project, which most machines do not have. */
export const SHARED_CLIPS_FOLDER = fileURLToPath(new URL("../../../shared/media/clips/", import.meta.url));

export const SHARED_CLIPS: Need = {
  isMet: () => exists(SHARED_CLIPS_FOLDER),
  reason: "no ../shared/media/clips beside the project",
};

export const SMALL_DISK: Need = { isMet: canMountSmallDisk, reason: "no right to mount a small disk" };

export const PRLIMIT = program("prlimit");
export const ESPEAK = program("espeak-ng");
export const NODE = program("node");
/** Runs a program on a terminal of its own. */
export const SCRIPT = program("script");
export const PROMTOOL = program("promtool");
export const HADOLINT = program("hadolint");
export const KUBERNETES_VALIDATE = program("kubernetes-validate");
/**
 * The need of systemd-analyze: it wants a folder that a system with another process 1 does not have, which
 * only root can make.
 */
export const SYSTEMD_ANALYZE: Need = {
  isMet: () => program("systemd-analyze").isMet() && (Deno.uid() === 0 || exists("/run/systemd")),
  reason: "systemd-analyze is not installed, or there is no /run/systemd",
};
export const OPENSSL = program("openssl");
export const AIOQUIC: Need = {
  isMet: () => exists(Deno.env.get("AIOQUIC_PYTHON") ?? ""),
  reason: "aioquic is not installed",
};
/** A Python that has OpenTimelineIO with its reader of EDLs. */
export const OPENTIMELINEIO_PYTHON = Deno.env.get("OPENTIMELINEIO_PYTHON") ?? "";
export const OPENTIMELINEIO: Need = {
  isMet: () => exists(OPENTIMELINEIO_PYTHON),
  reason: "OpenTimelineIO is not installed",
};
export const BUN = program("bun");

/** Path of an installed Chromium. */
export const CHROMIUM_PATH = ["chromium", "chromium-browser", "google-chrome"]
  .map(programOnPath).find((path) => path !== null) ?? null;

export const CHROMIUM: Need = { isMet: () => CHROMIUM_PATH !== null, reason: "Chromium is not installed" };

export function ffmpegEncoder(name: string): Need {
  return {
    isMet() {
      const { stdout } = new Deno.Command("ffmpeg", { args: ["-v", "quiet", "-encoders"] }).outputSync();
      return new TextDecoder().decode(stdout).includes(` ${name} `);
    },
    reason: `ffmpeg has no ${name}`,
  };
}

/** The name and the `ignore` of a test that cannot run without `need`. */
export function needing(need: Need, name: string): { readonly name: string; readonly ignore: boolean } {
  return need.isMet() ? { name, ignore: false } : { name: `${name}${note(need)}`, ignore: true };
}

/**
 * Whether CI accepts that the test of this name is skipped. A tool can be installed, so that its absence is a
 * failure there. Clips that are not in the repository and the right to mount are not for every machine.
 */
export function isSkipAllowed(testName: string): boolean {
  return [SHARED_CLIPS, SMALL_DISK].some((need) => testName.endsWith(note(need)));
}

function note(need: Need): string {
  return ` (skipped: ${need.reason})`;
}

function program(name: string): Need {
  return { isMet: () => programOnPath(name) !== null, reason: `${name} is not installed` };
}

/** The real path of a program on PATH, or null. */
export function programOnPath(name: string): string | null {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    try {
      return Deno.realPathSync(join(folder, name));
    } catch {
      // Not there.
    }
  }
  return null;
}

function exists(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}
