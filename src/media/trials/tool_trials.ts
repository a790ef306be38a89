/** Tries once what the machine's ffmpeg and ffprobe can do, so that a fault of theirs is never taken for one
 * of a caller's file.
 */

import type { World } from "../../base/world.ts";
import { type AboutFfmpeg, DECODERS } from "./ffmpeg_facts.ts";
import { decoderUnusable } from "../media_fault.ts";
import { niced, type ToolRunner } from "../jobs/runner.ts";
import type { NeededAbilities } from "../files/needed_abilities.ts";
import { ABILITIES, type Ability, Unable, type WriteFile } from "./abilities.ts";

export interface ToolTrialsOptions {
  readonly runner: ToolRunner;
  readonly tempDir: string;
  /** Makes a new file. */
  readonly writeFile: WriteFile;
  readonly world: World;
  readonly ffmpeg: Pick<AboutFfmpeg, "facts">;
  /** Whether the programs are known to work, so that nothing is tried; false unless given. */
  readonly knownTools?: boolean;
}

/** What a program of the machine cannot do. */
export interface ToolFault {
  readonly ability: Ability;
  /** What the program cannot do, such as "make a clip of a film". */
  readonly cannot: string;
  /** What the program said last. */
  readonly reason: string;
}

/** Priority of trials for which nobody waits: they leave the processors to others. */
const NICE = 15;
/**
 * Milliseconds after which a trial that did not end well is made again: whoever installs another ffmpeg needs
 * no restart.
 */
const AGAIN_AFTER_MS = 60_000;

interface Verdict {
  /** What the program cannot do; null where it works, or where the trial had no result. */
  readonly fault: ToolFault | null;
  readonly works: boolean;
  readonly atMs: number;
}

/**
 * ```
 *   require ──▶ tried? ──no──▶ trial of this ability ──▶ works: go on     fails: 503 decoder_unusable, a line in the log
 *   begin   ──▶ the trials of all abilities, one after the other
 * ```
 */
export class ToolTrials implements NeededAbilities, AsyncDisposable {
  readonly #options: ToolTrialsOptions;
  readonly #closing = new AbortController();
  readonly #tried = new Map<Ability, Promise<Verdict>>();
  readonly #faults = new Map<Ability, ToolFault>();
  #walk: Promise<void> | null = null;

  constructor(options: ToolTrialsOptions) {
    this.#options = options;
  }

  /** What is known not to work, in the order of {@link ABILITIES}. */
  get faults(): readonly ToolFault[] {
    return Object.keys(ABILITIES).flatMap((ability) => this.#faults.get(ability as Ability) ?? []);
  }

  /** Tries in the background what nobody has needed so far. */
  begin(): void {
    if (!this.#options.knownTools) this.#walk ??= this.#tryAll();
  }

  /**
   * Waits for the trials of these abilities, and of its version; refuses (503 `decoder_unusable`) where one
   * has failed.
   */
  async require(...abilities: readonly Ability[]): Promise<void> {
    if (this.#options.knownTools) return;
    for (const ability of ["version", ...abilities] as const) {
      const { fault } = await this.#verdict(ability, 0);
      if (fault) throw decoderUnusable(`it cannot ${fault.cannot} (${fault.reason})`);
    }
  }

  /**
   * Refuses (503 `decoder_unusable`) a codec of which every ffmpeg has a decoder, where this one has none.
   */
  async requireDecoder(codec: string): Promise<void> {
    if (!Object.hasOwn(DECODERS, codec)) return;
    const facts = await this.#options.ffmpeg.facts();
    if (facts && !facts.codecs.includes(codec)) throw decoderUnusable(`it has no decoder of ${codec}`);
  }

  /** Ends what is being tried. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the service is closing"));
    await Promise.allSettled([this.#walk, ...this.#tried.values()]);
  }

  async #tryAll(): Promise<void> {
    for (const ability of Object.keys(ABILITIES)) {
      if (this.#closing.signal.aborted) return;
      await this.#verdict(ability as Ability, NICE).catch(() => {/* it is closing */});
    }
  }

  async #verdict(ability: Ability, nice: number): Promise<Verdict> {
    const known = this.#tried.get(ability);
    if (known) {
      const verdict = await known;
      const isOld = this.#options.world.monotonicMs() - verdict.atMs >= AGAIN_AFTER_MS;
      if (verdict.works || !isOld) return verdict;
      if (this.#tried.get(ability) === known) this.#tried.delete(ability);
    }
    const running = this.#tried.get(ability) ?? this.#try(ability, nice);
    this.#tried.set(ability, running);
    return await running;
  }

  async #try(ability: Ability, nice: number): Promise<Verdict> {
    const { runner, tempDir, writeFile, world, ffmpeg } = this.#options;
    const { signal } = this.#closing;
    signal.throwIfAborted();
    const { does: cannot, attempt } = ABILITIES[ability];
    let fault: ToolFault | null = null;
    let works = false;
    try {
      await attempt({ runner: niced(runner, nice), tempDir, writeFile, world, signal, ffmpeg });
      works = true;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof Unable) fault = { ability, cannot, reason: error.message };
      else world.log.warn(`it is not known whether ffmpeg can ${cannot}`, { error });
    }
    if (fault) {
      this.#faults.set(ability, fault);
      world.log.error(
        `this machine's ffmpeg cannot ${cannot}, so requests that need it get 503: ${fault.reason}`,
      );
    } else this.#faults.delete(ability);
    return { fault, works, atMs: world.monotonicMs() };
  }
}
