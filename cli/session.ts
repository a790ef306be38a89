/** What a running command has at hand: settings, output, the client, and the signal of Ctrl-C. */

import type { Client, ClientOptions } from "../client/mod.ts";
import type { Output } from "./output/output.ts";
import { readSettings, type SettingFlags, type Settings } from "./settings/settings.ts";

/** What the readers of the command table made of the command's flags, by their names in camel case. */
// deno-lint-ignore no-explicit-any -- the row of the command says which type each flag has
export type Flags = Readonly<Record<string, any>>;

/** Does the work of one command. */
export type Handler = (session: Session, args: readonly string[], flags: Flags) => Promise<void> | void;

/** The reason of the session's signal. */
export class Interrupted extends Error {}

/** Time for one attempt of a short request. */
const TIMEOUT_MS = 10_000;
/** What is read in one piece is no longer; what may be, is read line by line. */
const ANSWER_BYTES_MAX = 128 * 1024 * 1024;
/** Attempts after the first one. */
const RETRIES = 2;

export class Session {
  readonly out: Output;
  /** Aborted by Ctrl-C and SIGTERM, with an `Interrupted`. */
  readonly signal: AbortSignal;
  readonly settingFlags: SettingFlags;
  #settings: Settings | undefined;

  constructor(settingFlags: SettingFlags, out: Output, signal: AbortSignal) {
    this.settingFlags = settingFlags;
    this.out = out;
    this.signal = signal;
  }

  /**
   * Read when they are first asked for, so that a fault in the config file does not stop who is about to mend
   * it.
   */
  get settings(): Settings {
    if (!this.#settings) {
      this.#settings = readSettings(this.settingFlags);
      this.#settings.file.warnings.forEach((text) => this.out.warn(`warning: ${text}`));
    }
    return this.#settings;
  }

  /** The settings, where they have been read. */
  get knownSettings(): Settings | undefined {
    return this.#settings;
  }

  /** A client of the server that the settings name. */
  readonly client = async (options?: ClientOptions): Promise<Client> => {
    const { url, apiKey, tenantId } = this.settings;
    const { Client } = await import("../client/mod.ts");
    return new Client(url, {
      ...(apiKey !== undefined && { apiKey }),
      ...(tenantId !== undefined && { tenantId }),
      maxRetries: RETRIES,
      timeoutMs: TIMEOUT_MS,
      maxAnswerBytes: ANSWER_BYTES_MAX,
      ...options,
    });
  };
}
