/** What the machine's ffmpeg says of itself: its version, and which codecs it decodes on the processor. */

import { NEVER_ABORTED } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { ToolRunner } from "../jobs/runner.ts";

export interface FfmpegFacts {
  /** ffmpeg's version as it writes it, such as `5.1.8-0+deb12u1`; null where it writes none. */
  readonly version: string | null;
  /** Names of {@link DECODERS}, in its order. */
  readonly codecs: readonly string[];
}

/**
 * The codecs that media for this service mostly have, each with the decoders for it that run on the processor
 * alone: ffmpeg's own decoder `av1` needs a graphics card.
 */
export const DECODERS = {
  h264: ["h264"],
  hevc: ["hevc"],
  vp8: ["vp8", "libvpx"],
  vp9: ["vp9", "libvpx-vp9"],
  av1: ["libdav1d", "libaom-av1", "libgav1"],
  mpeg4: ["mpeg4"],
  mpeg2video: ["mpeg2video"],
  mjpeg: ["mjpeg"],
  aac: ["aac", "aac_fixed", "libfdk_aac"],
  mp3: ["mp3float", "mp3"],
  opus: ["opus", "libopus"],
  vorbis: ["vorbis", "libvorbis"],
} as const satisfies Record<string, readonly string[]>;

/**
 * The first and the last version that the service knows; of the last one all minor versions. See
 * docs/deployment.md#requirements.
 */
const [FIRST_KNOWN, LAST_KNOWN] = [{ major: 5, minor: 1 }, { major: 9 }];
export const KNOWN_VERSIONS = `${FIRST_KNOWN.major}.${FIRST_KNOWN.minor} to ${LAST_KNOWN.major}`;

/**
 * Whether the service knows a version such as `7.1.5-0+deb13u1`, `n9.0.2` or `5.1`; null where the version
 * has no number, as in a build of an unfinished one.
 */
export function isKnownVersion(version: string): boolean | null {
  const [, first, second] = /^n?(\d{1,2})\.(\d+)/.exec(version) ?? [];
  if (first === undefined) return null;
  const [major, minor] = [Number(first), Number(second)];
  const isEarlier = major < FIRST_KNOWN.major || (major === FIRST_KNOWN.major && minor < FIRST_KNOWN.minor);
  return !isEarlier && major <= LAST_KNOWN.major;
}

/** Longest wait for ffmpeg's answer on a busy machine; its processor time has a limit of its own. */
const DEADLINE_MS = 30_000;
const LIST_BYTES_MAX = 256 << 10;
const BANNER_BYTES_MAX = 8 << 10;
const VERSION_MAX = 100;

/** Asks ffmpeg when it is first needed, as the answer takes longer than the start of the service. */
export class AboutFfmpeg {
  readonly #options: { readonly runner: ToolRunner; readonly world: World };
  #asked: Promise<FfmpegFacts | null> | null = null;

  constructor(options: { readonly runner: ToolRunner; readonly world: World }) {
    this.#options = options;
  }

  /** What ffmpeg says of itself; null where it does not answer, and then the next call asks it again. */
  async facts(): Promise<FfmpegFacts | null> {
    const asked = this.#asked ??= this.#ask().catch(() => null);
    const facts = await asked;
    if (facts === null && this.#asked === asked) this.#asked = null;
    return facts;
  }

  async #ask(): Promise<FfmpegFacts | null> {
    const { runner, world } = this.#options;
    const { end, code, stdout, stderr } = await runner.run({ kind: "list_decoders" }, {
      world,
      signal: NEVER_ABORTED,
      deadlineMs: DEADLINE_MS,
      maxStdoutBytes: LIST_BYTES_MAX,
      maxStderrBytes: BANNER_BYTES_MAX,
    });
    if (end !== "exited" || code !== 0) return null;
    // " VFS..D hevc                 HEVC (High Efficiency Video Coding)"
    const lines = new TextDecoder().decode(stdout).matchAll(/^ [VA]\S{5} (\S+)/gm);
    const names = new Set(Array.from(lines, ([, name]) => name!));
    if (names.size === 0) return null;
    const version = /^ffmpeg version (\S+)/m.exec(stderr)?.[1]?.slice(0, VERSION_MAX) ?? null;
    const codecs = Object.entries(DECODERS).filter(([, decoders]) =>
      decoders.some((name) => names.has(name))
    );
    return { version, codecs: codecs.map(([codec]) => codec) };
  }
}
